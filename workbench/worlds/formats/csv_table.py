"""Tables as worlds write and read their own clean files. For files of strangers there is `hostile.table_file`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable


def table(header: Iterable[object], rows: Iterable[Iterable[object]], delimiter: str = ",") -> bytes:
    """A header and its rows; lines end in a line feed, and a cell is quoted only when it has to be."""
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows([header, *rows])
    return text.getvalue().encode()


def rows(data: bytes, delimiter: str = ",") -> list[list[str]]:
    """The cells of every line below the header."""
    return list(csv.reader(io.StringIO(data.decode(), newline=""), delimiter=delimiter))[1:]
