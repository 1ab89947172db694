"""safetensors files: 8 bytes of header length, a JSON header, then the tensors' bytes (little endian, row by row)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from math import prod

WIDTH = {"F32": 4, "BF16": 2, "F16": 2, "I8": 1, "I32": 4, "I64": 8}
MAX_HEADER = 1_000_000

# name -> (dtype, shape, bytes)
Tensors = dict[str, tuple[str, tuple[int, ...], bytes]]


def write(
    tensors: Iterable[tuple[str, str, tuple[int, ...], bytes]], metadata: Mapping[str, str] | None = None
) -> bytes:
    """The file, tensors in the given order, header padded with spaces to a multiple of 8 bytes."""
    header: dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
    at, parts = 0, []
    for name, dtype, shape, data in tensors:
        if len(data) != prod(shape) * WIDTH[dtype]:
            raise ValueError(f"tensor {name!r}: {len(data)} bytes for shape {shape} of {dtype}")
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
        parts.append(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(parts)


def header(data: bytes) -> dict:
    """The JSON header alone, which survives the loss of a file's tail. ValueError when it can't be read."""
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > min(MAX_HEADER, len(data) - 8):
        raise ValueError("no safetensors header")
    try:
        value = json.loads(data[8 : 8 + size])
    except (ValueError, RecursionError) as error:
        raise ValueError(f"safetensors header: {error}") from None
    if not isinstance(value, dict):
        raise ValueError("safetensors header is no object")
    return value


def read(data: bytes) -> tuple[dict[str, str], Tensors]:
    """(metadata, tensors). ValueError when a tensor's place, type or size is wrong."""
    head = header(data)
    start = 8 + int.from_bytes(data[:8], "little")
    metadata = head.pop("__metadata__", {})
    if not isinstance(metadata, dict):
        raise ValueError("safetensors metadata is no object")
    return metadata, {name: _tensor(name, entry, data, start) for name, entry in head.items()}


def _tensor(name: str, entry: object, data: bytes, start: int) -> tuple[str, tuple[int, ...], bytes]:
    if not isinstance(entry, dict):
        raise ValueError(f"tensor {name!r}: no object")
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    whole = all(isinstance(v, list) and all(type(n) is int and 0 <= n < 2**40 for n in v) for v in (shape, offsets))
    if not whole or len(offsets) != 2 or len(shape) > 8 or not isinstance(dtype, str) or dtype not in WIDTH:
        raise ValueError(f"tensor {name!r}: dtype, shape or data_offsets can't be read")
    begin, end = start + offsets[0], start + offsets[1]
    if end > len(data) or end - begin != prod(shape) * WIDTH[dtype]:
        raise ValueError(f"tensor {name!r}: its bytes don't fit its shape")
    return dtype, tuple(shape), data[begin:end]
