"""Minimal Parquet files: flat, required columns, one row group, one PLAIN uncompressed page a column. Other readers open them too."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from workbench.worlds.formats import parquet_reader
from workbench.worlds.formats.parquet_reader import MAGIC, ParquetError, read

__all__ = ["ParquetError", "read", "reader_source", "write"]

INT64, DOUBLE, TEXT = 2, 5, 6  # Parquet's physical types
_TYPES = {"int64": INT64, "double": DOUBLE, "string": TEXT}
_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12  # Thrift's compact kinds


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(value: int) -> bytes:
    return _varint((value << 1) ^ (value >> 63))


def _binary(text: str) -> bytes:
    return _varint(len(text.encode())) + text.encode()


def _list(kind: int, items: Sequence[bytes]) -> bytes:
    head = bytes([len(items) << 4 | kind]) if len(items) < 15 else bytes([0xF0 | kind]) + _varint(len(items))
    return head + b"".join(items)


def _struct(*fields: tuple[int, int, bytes]) -> bytes:
    """(field number, kind, encoded value) in rising order of numbers."""
    out, last = bytearray(), 0
    for number, kind, value in fields:
        out += bytes([(number - last) << 4 | kind]) + value
        last = number
    return bytes(out) + b"\0"


def _plain(values: Sequence, kind: int) -> bytes:
    if kind == TEXT:
        return b"".join(len(b := str(v).encode()).to_bytes(4, "little") + b for v in values)
    return struct.pack(f"<{len(values)}{'q' if kind == INT64 else 'd'}", *values)


def write(columns: Mapping[str, str], rows: Sequence[Sequence]) -> bytes:
    """A file with `columns`: name -> "int64" | "double" | "string". At least one row."""
    out, chunks = bytearray(MAGIC), []
    for place, (name, word) in enumerate(columns.items()):
        kind = _TYPES[word]
        page = _plain([row[place] for row in rows], kind)
        counts = _struct(
            (1, _I32, _number(len(rows))), (2, _I32, _number(0)), (3, _I32, _number(3)), (4, _I32, _number(3))
        )
        size = _number(len(page))
        header = _struct((1, _I32, _number(0)), (2, _I32, size), (3, _I32, size), (5, _STRUCT, counts))
        start = len(out)
        out += header + page
        total = _number(len(header) + len(page))
        meta = _struct(
            (1, _I32, _number(kind)), (2, _LIST, _list(_I32, [_number(0)])), (3, _LIST, _list(_BINARY, [_binary(name)])), (4, _I32, _number(0)),
            (5, _I64, _number(len(rows))), (6, _I64, total), (7, _I64, total), (9, _I64, _number(start)),
        )  # fmt: skip
        chunks.append(_struct((2, _I64, _number(start)), (3, _STRUCT, meta)))
    elements = [_struct((4, _BINARY, _binary("schema")), (5, _I32, _number(len(columns))))]
    for name, word in columns.items():
        fields = [(1, _I32, _number(_TYPES[word])), (3, _I32, _number(0)), (4, _BINARY, _binary(name))]
        elements.append(_struct(*fields, *([(6, _I32, _number(0))] if word == "string" else [])))
    group = _struct((1, _LIST, _list(_STRUCT, chunks)), (2, _I64, _number(len(out) - 4)), (3, _I64, _number(len(rows))))
    footer = _struct(
        (1, _I32, _number(1)), (2, _LIST, _list(_STRUCT, elements)), (3, _I64, _number(len(rows))), (4, _LIST, _list(_STRUCT, [group])),
        (6, _BINARY, _binary("event-collector")),
    )  # fmt: skip
    return bytes(out + footer + len(footer).to_bytes(4, "little") + MAGIC)


def reader_source() -> bytes:
    """The reader as a program of its own, for environments whose toolchain is plain Python."""
    return Path(parquet_reader.__file__).read_bytes()
