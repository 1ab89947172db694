"""Print the rows of a Parquet file as CSV. Standard library only; flat files with required columns, PLAIN encoding, no compression.

python3 parquet_reader.py FILE.parquet
"""

from __future__ import annotations

import csv
import struct
import sys
from pathlib import Path

MAGIC = b"PAR1"
FIXED = {1: ("i", 4), 2: ("q", 8), 4: ("f", 4), 5: ("d", 8)}  # Parquet's INT32, INT64, FLOAT, DOUBLE
BYTE_ARRAY = 6


class ParquetError(ValueError):
    """Not a Parquet file of the supported kind, or a damaged one: says what."""


class Compact:
    """Thrift's compact protocol, as far as Parquet's metadata needs it: a struct becomes {field number: value}."""

    def __init__(self, data: bytes, at: int = 0):
        self.data, self.at = data, at

    def byte(self) -> int:
        if not 0 <= self.at < len(self.data):
            raise ParquetError("the metadata ends too early")
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise ParquetError("a number in the metadata is too long")

    def number(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def binary(self) -> bytes:
        size = self.varint()
        self.at += size
        if self.at > len(self.data):
            raise ParquetError("a text in the metadata is too long")
        return self.data[self.at - size : self.at]

    def value(self, kind: int, depth: int) -> object:
        if depth > 8:
            raise ParquetError("the metadata is nested too deeply")
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self.byte()
        if kind in (4, 5, 6):
            return self.number()
        if kind == 7:
            self.at += 8
            return None
        if kind == 8:
            return self.binary()
        if kind == 9:
            head = self.byte()
            size, inner = head >> 4, head & 15
            size = self.varint() if size == 15 else size
            if size > len(self.data):
                raise ParquetError("a list in the metadata is too long")
            return [self.value(inner, depth + 1) for _ in range(size)]
        if kind == 12:
            return self.struct(depth + 1)
        raise ParquetError(f"the metadata holds a value of the unknown kind {kind}")

    def struct(self, depth: int = 0) -> dict[int, object]:
        out: dict[int, object] = {}
        field = 0
        while head := self.byte():
            delta, kind = head >> 4, head & 15
            field = field + delta if delta else self.number()
            out[field] = self.value(kind, depth)
        return out


def _values(data: bytes, kind: int, count: int) -> list[object]:
    """PLAIN values: fixed-width little-endian, or texts each after its length in four bytes."""
    if kind in FIXED:
        sign, width = FIXED[kind]
        if count * width > len(data):
            raise ParquetError("a page is shorter than its number of values")
        return list(struct.unpack_from(f"<{count}{sign}", data))
    if kind != BYTE_ARRAY:
        raise ParquetError(f"columns of the physical type {kind} are not supported")
    out, at = [], 0
    for _ in range(count):
        if at + 4 > len(data):
            raise ParquetError("a page is shorter than its number of values")
        size = int.from_bytes(data[at : at + 4], "little")
        if at + 4 + size > len(data):
            raise ParquetError("a text runs over the end of its page")
        out.append(data[at + 4 : at + 4 + size].decode("utf-8"))
        at += 4 + size
    return out


def _column(data: bytes, meta: dict) -> list[object]:
    if meta.get(4, 0) != 0:
        raise ParquetError("compressed columns are not supported")
    wanted, out, at = meta[5], [], meta[9]
    while len(out) < wanted:
        reader = Compact(data, at)
        header = reader.struct()
        page = header.get(5)
        if header.get(1) != 0 or not page or page.get(2) != 0 or not 0 < page.get(1, 0) <= len(data):
            raise ParquetError("only data pages in PLAIN encoding are supported")
        out += _values(data[reader.at : reader.at + header[3]], meta[1], page[1])
        at = reader.at + header[3]
    return out


def read(data: bytes) -> tuple[list[str], list[tuple]]:
    """(column names, rows). Raises ParquetError."""
    if len(data) < 12 or data[:4] != MAGIC or data[-4:] != MAGIC:
        raise ParquetError("not a whole Parquet file: it must begin and end with PAR1")
    size = int.from_bytes(data[-8:-4], "little")
    if size > len(data) - 12:
        raise ParquetError("the footer is longer than the file")
    try:
        footer = Compact(data[-8 - size : -8]).struct()
        names = [element[4].decode() for element in footer[2][1:]]
        rows: list[tuple] = []
        for group in footer[4]:
            columns = [_column(data, chunk[3]) for chunk in group[1]]
            if len(columns) != len(names):
                raise ParquetError("a row group lacks a column")
            rows += zip(*columns, strict=True)
        return names, rows
    except ParquetError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, struct.error) as error:
        raise ParquetError(f"damaged: {error}") from None


if __name__ == "__main__":
    try:
        header, lines = read(Path(sys.argv[1]).read_bytes())
    except (IndexError, OSError, ParquetError) as error:
        sys.exit(f"{error}\nusage: parquet_reader.py FILE.parquet")
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(lines)
