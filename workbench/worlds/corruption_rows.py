"""Operators that add or lose records. Row numbers are those of the file as it stands when the defect is applied: where one file has
several of them, say which records are meant by `where`, so that each still finds them when another is left out."""

from __future__ import annotations

from typing import Any

from workbench.worlds import Tree, WorldError
from workbench.worlds.corruption_cells import ROWS
from workbench.worlds.corruption_records import Records, rows_of, text_of
from workbench.worlds.corruption_registry import Operator, Params, changed, need, register, undo_of

PLACES = "[row, …] before which each new record goes, in the file as it was; default: all at the end"


def _insert(records: Records, lines: list[str], places: list[int]) -> list[int]:
    """Put lines before rows; the indices where they stand afterwards."""
    end = records.end()
    if records.lines and not records.lines[-1].endswith("\n"):
        raise WorldError(f"{records.path} does not end with a line end: nothing can be put after it")
    added: list[int] = []
    for shift, (place, line) in enumerate(sorted(zip(places, lines, strict=True), key=lambda pair: pair[0])):
        if not 0 <= place <= len(records) - shift:
            raise WorldError(f"{records.path} has {len(records) - shift} records: there is no place {place}")
        at = place + records.first + shift
        records.lines.insert(at, line + end)
        added.append(at)
    return added


def _take_out(tree: Tree, path: str, params: Params, kind: str) -> dict[str, bytes]:
    records = Records(tree, path)
    for at in reversed(undo_of(params, kind)):
        del records.lines[at]
    return changed(tree, path, records.bytes())


def _duplicates(tree: Tree, path: str, params: Params) -> tuple[Records, list[int]]:
    records = Records(tree, path)
    rows = list(rows_of(records, params))
    copies = Records(tree, path)
    for column, values in params.get("set", {}).items():
        for nth, row in enumerate(rows):
            copies.set(row, column, values[nth % len(values)] if isinstance(values, list) else values)
    lines = [copies.lines[copies.row(row)].rstrip("\r\n") for row in rows]
    return records, _insert(records, lines, list(params.get("places", [len(records)] * len(lines))))


register(
    Operator(
        "duplicate_records",
        "lines",
        "records stand twice, the second perhaps a little different",
        {**ROWS, "places": PLACES, "set": "{column: value or [value, …]}: what differs in the copies"},
        lambda t, path, p: changed(t, path, _duplicates(t, path, p)[0].bytes()),
        lambda t, path, p: _take_out(t, path, p, "duplicate_records"),
        lambda t, path, p: _duplicates(t, path, p)[1],
    )
)


def _orphans(tree: Tree, path: str, params: Params) -> tuple[Records, list[int]]:
    records = Records(tree, path)
    lines = [records.line_of(values) for values in need(params, "records", "orphan_records")]
    return records, _insert(records, lines, list(params.get("places", [len(records)] * len(lines))))


register(
    Operator(
        "orphan_records",
        "lines",
        "records that refer to nothing, or that no source backs",
        {"records": "[{column: value}, …], whole records", "places": PLACES},
        lambda t, path, p: changed(t, path, _orphans(t, path, p)[0].bytes()),
        lambda t, path, p: _take_out(t, path, p, "orphan_records"),
        lambda t, path, p: _orphans(t, path, p)[1],
    )
)


def _lose(tree: Tree, path: str, params: Params) -> dict[str, bytes]:
    records = Records(tree, path)
    for row in sorted(set(rows_of(records, params)), reverse=True):
        del records.lines[records.row(row)]
    return changed(tree, path, records.bytes())


def _lost(tree: Tree, path: str, params: Params) -> list[Any]:
    records = Records(tree, path)
    return [[records.row(r), records.lines[records.row(r)]] for r in sorted(set(rows_of(records, params)))]


def _restore(tree: Tree, path: str, params: Params) -> dict[str, bytes]:
    records = Records(tree, path)
    for at, line in undo_of(params, "missing_records"):
        records.lines.insert(at, line)
    return changed(tree, path, records.bytes())


register(
    Operator(
        "missing_records",
        "lines",
        "records are gone; another file still tells them",
        dict(ROWS),
        _lose,
        _restore,
        _lost,
    )
)


def _cut(tree: Tree, path: str, params: Params) -> int:
    """How many bytes stay."""
    data = tree[path] if path in tree else text_of(tree, path).encode()
    if "bytes" in params:
        keep = len(data) - params["bytes"]
    else:
        lines = data.splitlines(keepends=True)
        keep = len(data) - sum(len(line) for line in lines[len(lines) - need(params, "lines", "truncated_file") :])
    if not 0 <= keep < len(data):
        raise WorldError(f"truncated_file: {path} has {len(data)} bytes: {dict(params)} cannot be cut off")
    return keep


register(
    Operator(
        "truncated_file",
        "file",
        "the tail of a file is lost; a journal or second source still tells it",
        {"lines": "how many lines to cut off", "bytes": "or how many bytes"},
        lambda t, path, p: changed(t, path, t[path][: _cut(t, path, p)]),
        lambda t, path, p: changed(t, path, t[path] + bytes.fromhex(undo_of(p, "truncated_file"))),
        lambda t, path, p: t[path][_cut(t, path, p) :].hex(),
    )
)
