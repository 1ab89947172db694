"""Text files as records, line by line, so that what a defect leaves alone keeps its bytes: delimited tables and JSON lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.worlds import Tree, WorldError

DELIMITERS = {".csv": ",", ".tsv": "\t", ".psv": "|"}
_STYLES = [
    {"separators": separators, "ensure_ascii": ascii_only}
    for separators in ((", ", ": "), (",", ":"))
    for ascii_only in (True, False)
]


class Records:
    """The records of one text file. Rows count from 0 and leave the header out. `get` and `set` speak of values, without quotes.

    A record is one line: a table whose cells hold line ends can't be corrupted by these operators (WorldError).
    """

    def __init__(self, tree: Tree, path: str, delimiter: str | None = None):
        self.path = path
        self.lines = text_of(tree, path).splitlines(keepends=True)
        if any(line.rstrip("\r\n") != line.splitlines()[0] for line in self.lines if line.strip()):
            raise WorldError(f"{path}: a line holds a control character that splits it")
        self.json = path.endswith((".jsonl", ".ndjson"))
        suffix = "." + path.rsplit(".", 1)[-1]
        self.delimiter = delimiter or DELIMITERS.get(suffix, ",")
        self.header = [] if self.json else split(self._body(0), self.delimiter, path) if self.lines else []
        self.first = 0 if self.json else 1
        self.names = [unquote(name) for name in self.header]

    def __len__(self) -> int:
        return len(self.lines) - self.first

    def _body(self, line: int) -> str:
        return self.lines[line].rstrip("\r\n")

    def _end(self, line: int) -> str:
        return self.lines[line][len(self._body(line)) :]

    def row(self, row: int) -> int:
        """The line of a row; WorldError when there is none."""
        if not 0 <= row < len(self):
            raise WorldError(f"{self.path} has {len(self)} records: there is no row {row}")
        return row + self.first

    def _place(self, column: str) -> int:
        if column not in self.names:
            raise WorldError(f"{self.path} has no column {column!r}: it has {', '.join(self.names)}")
        return self.names.index(column)

    def get(self, row: int, column: str) -> Any:
        body = self._body(self.row(row))
        if self.json:
            record = json.loads(body)
            if column not in record:
                raise WorldError(f"{self.path} row {row} has no field {column!r}: it has {', '.join(record)}")
            return record[column]
        return unquote(self._cells(row)[self._place(column)])

    def _cells(self, row: int) -> list[str]:
        cells = split(self._body(self.row(row)), self.delimiter, self.path)
        if len(cells) != len(self.header):
            raise WorldError(f"{self.path} row {row} has {len(cells)} cells under {len(self.header)} columns")
        return cells

    def set(self, row: int, column: str, value: Any) -> None:
        line = self.row(row)
        end = self._end(line)
        if self.json:
            record = json.loads(self._body(line))
            style = json_style(self._body(line))
            record[column] = value
            self.lines[line] = json.dumps(record, **style) + end
            return
        cells = self._cells(row)
        cells[self._place(column)] = quote(str(value), self.delimiter)
        self.lines[line] = self.delimiter.join(cells) + end

    def line_of(self, values: Mapping[str, Any]) -> str:
        """A record as a line in this file's own style."""
        if self.json:
            style = json_style(self._body(0)) if self.lines else _STYLES[0]
            return json.dumps(dict(values), **style)
        missing = set(self.names) ^ set(values)
        if missing:
            raise WorldError(f"{self.path}: the record and the header differ in {', '.join(sorted(missing))}")
        return self.delimiter.join(quote(str(values[name]), self.delimiter) for name in self.names)

    def end(self) -> str:
        """The file's line end."""
        return (self._end(0) if self.lines else "") or "\n"

    def bytes(self) -> bytes:
        return "".join(self.lines).encode()


def text_of(tree: Tree, path: str) -> str:
    """A file as UTF-8 text; WorldError names what is wrong."""
    if path not in tree:
        raise WorldError(f"there is no file {path!r} to corrupt: the tree has {', '.join(sorted(tree)) or 'nothing'}")
    try:
        return tree[path].decode("utf-8")
    except UnicodeDecodeError as error:
        raise WorldError(
            f"{path} is not UTF-8 ({error}): an operator on text stands before encoding_drift in the plan"
        ) from None


def json_style(body: str) -> dict[str, Any]:
    """How this line was written, among the ways of json.dumps."""
    record = json.loads(body)
    for style in _STYLES:
        if json.dumps(record, **style) == body:
            return style
    raise WorldError(f"the line {body[:60]!r} is not as json.dumps writes it: it could not be put back byte by byte")


def split(line: str, delimiter: str, path: str) -> list[str]:
    """The cells of a line as they stand, quotes and all."""
    cells, start, inside = [], 0, False
    for at, sign in enumerate(line):
        if sign == '"':
            inside = not inside
        elif sign == delimiter and not inside:
            cells.append(line[start:at])
            start = at + 1
    if inside:
        raise WorldError(f"{path}: an open quote in {line[:60]!r}: records over several lines are not supported")
    return [*cells, line[start:]]


def unquote(cell: str) -> str:
    return cell[1:-1].replace('""', '"') if len(cell) > 1 and cell[0] == cell[-1] == '"' else cell


def quote(value: str, delimiter: str) -> str:
    if delimiter in value or '"' in value or "\n" in value or "\r" in value:
        return '"' + value.replace('"', '""') + '"'
    return value


def rows_of(records: Records, params: Mapping[str, Any]) -> Sequence[int]:
    """The rows that a defect speaks of: params["rows"], or those `where` {column: [value, …]} holds, or all."""
    if "rows" in params:
        return params["rows"]
    if "where" not in params:
        return range(len(records))
    found = [
        row
        for row in range(len(records))
        if all(records.get(row, column) in values for column, values in params["where"].items())
    ]
    if not found:
        raise WorldError(f"{records.path}: no record has {params['where']}")
    return found
