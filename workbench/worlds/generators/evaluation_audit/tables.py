"""Comma-separated tables as this world renders them."""

from __future__ import annotations

import csv
import io
from typing import Any


def table(lines: list[Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue().encode()


def rows(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode())))[1:]
