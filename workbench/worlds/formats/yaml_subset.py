"""A subset of YAML, enough for manifests: block mappings and sequences, plain and double-quoted scalars, `{}`, `[]`, documents by `---`.

No anchors, tags, flow collections, block scalars or comments behind values. Written text reads back equal with any YAML 1.2 reader.
"""

from __future__ import annotations

import json
import re
from typing import Any

LIMIT = 4 << 20  # characters
PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./@-]*(?::[A-Za-z0-9_./@-]+)*")
WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


def dump_all(documents: list[Any]) -> str:
    return "---\n".join("\n".join(_lines(d)) + "\n" for d in documents)


def _scalar(value: Any) -> str:
    if isinstance(value, str) and PLAIN.fullmatch(value) and value.lower() not in WORDS:
        return value
    return json.dumps(value, ensure_ascii=False)


def _lines(value: Any) -> list[str]:
    if not isinstance(value, dict | list) or not value:
        return [_scalar(value)]
    out = []
    if isinstance(value, list):
        for item in value:
            first, *rest = _lines(item)
            out += [f"- {first}", *(f"  {line}" for line in rest)]
        return out
    for name, item in value.items():
        if isinstance(item, dict | list) and item:
            out += [f"{_scalar(name)}:", *(f"  {line}" for line in _lines(item))]
        else:
            out.append(f"{_scalar(name)}: {_scalar(item)}")
    return out


def load_all(text: str) -> list[Any]:
    """The documents. ValueError names the line that is outside the subset."""
    if len(text) > LIMIT:
        raise ValueError(f"a YAML text of {len(text)} characters; at most {LIMIT} are read")
    documents: list[list[tuple[int, str, int]]] = [[]]
    for number, line in enumerate(text.splitlines(), 1):
        body = line.strip()
        if body == "---":
            documents.append([])
        elif body and not body.startswith("#"):
            if "\t" in line[: len(line) - len(line.lstrip())]:
                raise ValueError(f"line {number}: a tab in the indentation")
            documents[-1].append((len(line) - len(line.lstrip(" ")), body, number))
    return [_document(lines) for lines in documents if lines]


def _document(lines: list[tuple[int, str, int]]) -> Any:
    value, rest = _block(lines, 0, lines[0][0])
    if rest != len(lines):
        raise ValueError(f"line {lines[rest][2]}: indentation that fits nothing above")
    return value


def _block(lines: list[tuple[int, str, int]], at: int, indent: int) -> tuple[Any, int]:
    body = lines[at][1]
    if body == "-" or body.startswith("- "):
        return _sequence(lines, at, indent)
    if _key(body):
        return _mapping(lines, at, indent)
    return _value(body, lines[at][2]), at + 1


def _sequence(lines: list[tuple[int, str, int]], at: int, indent: int) -> tuple[list[Any], int]:
    out = []
    while at < len(lines) and lines[at][0] == indent and lines[at][1].startswith("- "):
        lines[at] = (indent + 2, lines[at][1][2:].lstrip(), lines[at][2])
        item, at = _block(lines, at, indent + 2)
        out.append(item)
    return out, at


def _mapping(lines: list[tuple[int, str, int]], at: int, indent: int) -> tuple[dict[str, Any], int]:
    out: dict[str, Any] = {}
    while at < len(lines) and lines[at][0] == indent and (found := _key(lines[at][1])):
        name, rest, number = _value(found[1], lines[at][2]), found[2] or "", lines[at][2]
        if name in out:
            raise ValueError(f"line {number}: the key {name!r} stands twice")
        at += 1
        if rest:
            out[name] = _value(rest, number)
        elif at < len(lines) and (lines[at][0] > indent or (lines[at][0] == indent and lines[at][1].startswith("- "))):
            out[name], at = _block(lines, at, lines[at][0])
        else:
            out[name] = None
    return out, at


def _key(body: str) -> re.Match[str] | None:
    return re.fullmatch(r'("(?:[^"\\]|\\.)*"|[^\s"#\-\[\]{}:][^"#:]*):(?:\s+(.*))?', body)


def _value(text: str, number: int) -> Any:
    if text[0] in '"{[':
        try:
            value = json.loads(text)
        except ValueError:
            raise ValueError(f"line {number}: {text[:40]!r} is outside the subset") from None
        if isinstance(value, dict | list) and value:
            raise ValueError(f"line {number}: flow collections are outside the subset")
        return value
    if re.fullmatch(r"-?(0|[1-9]\d{0,17})", text):
        return int(text)
    if re.fullmatch(r"-?\d+\.\d+", text):
        return float(text)
    return {"true": True, "false": False, "null": None, "~": None}.get(text, text)
