"""Operators on a whole file: its layout, its bytes, or a second file beside it."""

from __future__ import annotations

import codecs
import json

from workbench.worlds import Tree, WorldError
from workbench.worlds.corruption_records import Records, json_style, quote, split, text_of, unquote
from workbench.worlds.corruption_registry import Operator, Params, changed, need, register, undo_of

# With its byte-order mark written out, so that no machine's own byte order matters.
BOMS = {"utf-16": ("utf-16-le", codecs.BOM_UTF16_LE), "utf-8-sig": ("utf-8", codecs.BOM_UTF8)}


def _reencode(tree: Tree, path: str, params: Params) -> dict[str, bytes]:
    codec, mark = BOMS.get(name := need(params, "encoding", "encoding_drift"), (name, b""))
    try:
        return changed(tree, path, mark + text_of(tree, path).encode(codec))
    except (UnicodeEncodeError, LookupError) as error:
        raise WorldError(f"encoding_drift: {path} can't be written in {name} ({error})") from None


def _decode(tree: Tree, path: str, params: Params) -> dict[str, bytes]:
    codec, mark = BOMS.get(params["encoding"], (params["encoding"], b""))
    return changed(tree, path, tree[path].removeprefix(mark).decode(codec).encode())


register(
    Operator(
        "encoding_drift",
        "file",
        "a file comes in another text encoding",
        {"encoding": "latin-1, cp1252, utf-16 (little-endian with mark), utf-8-sig (with mark), …"},
        _reencode,
        _decode,
    )
)


def _redelimit(tree: Tree, path: str, params: Params, back: bool) -> dict[str, bytes]:
    new = need(params, "to", "delimiter_drift")
    records = Records(tree, path, new if back else None)
    source, target = records.delimiter, Records({path: b""}, path).delimiter if back else new
    lines = []
    for line in records.lines:
        body = line.rstrip("\r\n")
        cells = [quote(unquote(cell), target) for cell in split(body, source, path)]
        lines.append(target.join(cells) + line[len(body) :])
    return changed(tree, path, "".join(lines).encode())


register(
    Operator(
        "delimiter_drift",
        "file",
        "a table is separated by another sign than its name says",
        {"to": "the sign, like ;"},
        lambda t, path, p: _redelimit(t, path, p, False),
        lambda t, path, p: _redelimit(t, path, p, True),
    )
)


def _columns(records: Records, params: Params) -> tuple[list[str], list[int], dict[str, str]]:
    """(names before, places in the new order, renamed)."""
    names = list(records.names)
    if records.json and records.lines:
        names = list(json.loads(records.lines[0]))
    rename = dict(params.get("rename", {}))
    order = list(params.get("order", names))
    if sorted(order) != sorted(names) or not set(rename) <= set(names):
        raise WorldError(
            f"schema_drift: {records.path} has the columns {names}; order {order} and rename {rename} don't fit"
        )
    return names, [names.index(name) for name in order], rename


def _drift(tree: Tree, path: str, params: Params) -> dict[str, bytes]:
    records = Records(tree, path)
    names, places, rename = _columns(records, params)
    return changed(tree, path, _rearranged(records, names, places, rename))


def _settle(tree: Tree, path: str, params: Params) -> dict[str, bytes]:
    records, names = Records(tree, path), undo_of(params, "schema_drift")
    rename = dict(params.get("rename", {}))
    order = [rename.get(name, name) for name in params.get("order", names)]
    places = [order.index(rename.get(name, name)) for name in names]
    return changed(tree, path, _rearranged(records, order, places, {new: old for old, new in rename.items()}))


def _rearranged(records: Records, names: list[str], places: list[int], rename: dict[str, str]) -> bytes:
    lines = []
    for at, line in enumerate(records.lines):
        body = line.rstrip("\r\n")
        end = line[len(body) :]
        if records.json:
            record = json.loads(body)
            moved = {rename.get(names[p], names[p]): record[names[p]] for p in places}
            lines.append(json.dumps(moved, **json_style(body)) + end)
            continue
        cells = split(body, records.delimiter, records.path)
        if at == 0:
            cells = [quote(rename.get(name, name), records.delimiter) for name in names]
        lines.append(records.delimiter.join(cells[p] for p in places) + end)
    return "".join(lines).encode()


register(
    Operator(
        "schema_drift",
        "file",
        "one partition names or orders its columns otherwise",
        {"rename": "{old: new}", "order": "[old name, …], all of them"},
        _drift,
        _settle,
        lambda t, path, p: _columns(Records(t, path), p)[0],
    )
)


def _rot(tree: Tree, path: str, params: Params) -> dict[str, bytes]:
    data = bytearray(tree[path])
    for offset, mask in zip(need(params, "offsets", "bit_rot"), need(params, "masks", "bit_rot"), strict=True):
        if not (0 <= offset < len(data) and 0 < mask < 256):
            raise WorldError(f"bit_rot: offset {offset}, mask {mask} of {path}, which has {len(data)} bytes")
        data[offset] ^= mask
    return changed(tree, path, bytes(data))


register(
    Operator(
        "bit_rot",
        "file",
        "bits of a file flipped; its checksum tells, a good copy stands elsewhere",
        {"offsets": "[byte, …]", "masks": "[1…255, …], one each: the bits that flip"},
        _rot,
        _rot,
    )
)


def _copy(tree: Tree, path: str, params: Params) -> dict[str, bytes]:
    copy = need(params, "copy", "stale_copy")
    if copy in tree:
        raise WorldError(f"stale_copy: {copy} is there already")
    if "text" in params:
        return changed(tree, copy, params["text"].encode())
    records = Records(tree, path)
    for row, column, value in params.get("edits", ()):
        records.set(row, column, value)
    for row in sorted(set(params.get("drop", ())), reverse=True):
        del records.lines[records.row(row)]
    if records.bytes() == tree[path]:
        raise WorldError(f"stale_copy: {copy} would equal {path}: say by edits, drop or text what is out of date")
    return changed(tree, copy, records.bytes())


register(
    Operator(
        "stale_copy",
        "file",
        "an out-of-date file beside the fresh one",
        {
            "copy": "its path",
            "edits": "[[row, column, value], …]: what was different then",
            "drop": "[row, …]: what was not there yet",
            "text": "or its whole text",
        },
        _copy,
        lambda t, path, p: changed(t, p["copy"], None),
    )
)


def _edit(tree: Tree, path: str, params: Params, back: bool) -> dict[str, bytes]:
    text = text_of(tree, path)
    edits = need(params, "edits", "config_drift")
    for find, replace in reversed(edits) if back else edits:
        old, new = (replace, find) if back else (find, replace)
        if text.count(old) != 1:
            raise WorldError(
                f"config_drift: {old!r} stands {text.count(old)} times in {path}: take more text around it"
            )
        text = text.replace(old, new)
    return changed(tree, path, text.encode())


register(
    Operator(
        "config_drift",
        "file",
        "settings of a text document differ from what they should be",
        {"edits": "[[text, other text], …]; each stands exactly once, before and after"},
        lambda t, path, p: _edit(t, path, p, False),
        lambda t, path, p: _edit(t, path, p, True),
    )
)
