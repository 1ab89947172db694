"""PNG images with a palette of up to four colours: two bits a pixel, unfiltered rows, zlib blocks stored without compression.

Stored blocks make the same bytes with every version of zlib. The reader takes any palette or grey PNG of at most 8 bits a pixel that is not
interlaced, with any of the five row filters.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

SIGNATURE = b"\x89PNG\r\n\x1a\n"
BLOCK = 65535
MAX_PIXELS = 16_000_000


def write(rows: Sequence[Sequence[int]], palette: Sequence[tuple[int, int, int]]) -> bytes:
    """rows of palette indices 0-3, all of one length, as a file."""
    width = len(rows[0])
    if not 1 <= len(palette) <= 4 or any(len(row) != width for row in rows):
        raise ValueError("a palette of 1 to 4 colours and rows of equal length are needed")
    raw = bytearray()
    for row in rows:
        padded = [*row, 0, 0, 0]
        raw.append(0)  # no filter
        raw += bytes(
            padded[x] << 6 | padded[x + 1] << 4 | padded[x + 2] << 2 | padded[x + 3] for x in range(0, width, 4)
        )
    header = struct.pack(">IIBBBBB", width, len(rows), 2, 3, 0, 0, 0)
    colours = b"".join(bytes(colour) for colour in palette)
    chunks = ((b"IHDR", header), (b"PLTE", colours), (b"IDAT", _stored(bytes(raw))), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(kind, data) for kind, data in chunks)


def _stored(data: bytes) -> bytes:
    out = bytearray(b"\x78\x01")
    for at in range(0, len(data), BLOCK):
        part = data[at : at + BLOCK]
        out += struct.pack("<BHH", at + BLOCK >= len(data), len(part), len(part) ^ 0xFFFF) + part
    return bytes(out) + struct.pack(">I", zlib.adler32(data))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def read(data: bytes) -> tuple[list[list[int]], list[tuple[int, int, int]]]:
    """(rows of indices or grey values, palette: empty when grey). ValueError says what can't be read."""
    chunks = _chunks(data)
    if len(chunks.get(b"IHDR", b"")) != 13:
        raise ValueError("no PNG header")
    width, height, depth, colour, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    if colour not in (0, 3) or depth not in (1, 2, 4, 8) or any(rest) or not 0 < width * height <= MAX_PIXELS:
        raise ValueError(
            f"colour type {colour} of {depth} bits, {width} x {height}: only palette or grey, not interlaced"
        )
    stride = (width * depth + 7) // 8
    size = height * (stride + 1)
    inflate = zlib.decompressobj()
    try:
        raw = inflate.decompress(chunks.get(b"IDAT", b""), size + 1)
    except zlib.error as error:
        raise ValueError(f"PNG data: {error}") from None
    if len(raw) != size:
        raise ValueError(f"PNG data has {len(raw)} bytes, {size} are needed")
    rows, above = [], bytes(stride)
    for at in range(0, size, stride + 1):
        above = _unfiltered(raw[at], raw[at + 1 : at + 1 + stride], above)
        rows.append(_pixels(above, depth)[:width])
    colours = chunks.get(b"PLTE", b"") if colour == 3 else b""
    return rows, [tuple(colours[at : at + 3]) for at in range(0, len(colours), 3)]


def _chunks(data: bytes) -> dict[bytes, bytes]:
    """kind -> data, those of one kind joined; checksums are tested."""
    if data[:8] != SIGNATURE:
        raise ValueError("no PNG signature")
    out: dict[bytes, bytes] = {}
    at = 8
    while at + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        if data[at + 8 + length : at + 12 + length] != struct.pack(">I", zlib.crc32(kind + body)):
            raise ValueError(f"PNG chunk {kind!r} is damaged")
        out[kind] = out.get(kind, b"") + body
        at += 12 + length
    return out


def _unfiltered(kind: int, row: bytes, above: bytes) -> bytes:
    """One row of at most 8 bits a pixel, so the pixel before is the byte before (PNG specification, section 9)."""
    if kind == 0:
        return row
    out = bytearray()
    for at, value in enumerate(row):
        left, up, corner = (out[at - 1] if at else 0), above[at], (above[at - 1] if at else 0)
        if kind == 4:
            guess = left + up - corner
            near = min((left, up, corner), key=lambda side, guess=guess: abs(guess - side))
        elif kind in (1, 2, 3):
            near = (left, up, (left + up) // 2)[kind - 1]
        else:
            raise ValueError(f"PNG row filter {kind}")
        out.append((value + near) & 255)
    return bytes(out)


def _pixels(row: bytes, depth: int) -> list[int]:
    if depth == 8:
        return list(row)
    mask = (1 << depth) - 1
    table = [[value >> shift & mask for shift in range(8 - depth, -1, -depth)] for value in range(256)]
    return [pixel for value in row for pixel in table[value]]
