"""How the world's tensors are cut over the ranks: geometry, slices and shards."""

from __future__ import annotations

import struct
from collections import defaultdict
from typing import Any, NamedTuple

from workbench.worlds.formats import safetensors

CODE = {
    "F32": [struct.pack("<f", (n - 256 if n > 127 else n) / 64) for n in range(256)],
    "BF16": [struct.pack("<f", (n - 256 if n > 127 else n) / 64)[2:] for n in range(256)],
}
DECODE = {dtype: {value: bytes([n]) for n, value in enumerate(table)} for dtype, table in CODE.items()}


class Piece(NamedTuple):
    """A contiguous range of a global tensor along an axis (-1: the whole, replicated) and where a rank holds it."""

    tensor: str
    rank: str
    local: str
    axis: int
    local_start: int
    local_stop: int
    start: int
    stop: int


def encode(dtype: str, codes: bytes) -> bytes:
    table = CODE[dtype]
    return b"".join([table[n] for n in codes])


def codes(dtype: str, data: bytes) -> bytes:
    width, table = safetensors.WIDTH[dtype], DECODE[dtype]
    return b"".join([table[data[at : at + width]] for at in range(0, len(data), width)])


def coordinates(name: str) -> tuple[int, int, int]:
    """(tp, pp, ep) of a rank's name."""
    p, t, e = (int(part[2:]) for part in name.split("-"))
    return t, p, e


def _instances(topology: dict[str, Any], rules: Any) -> list[tuple[str, str, str, int, int]]:
    """(global name, local name, split, pipeline stage, expert rank) of every tensor."""
    first, layers = topology["stage_first_layer"], topology["layers"]
    per = topology["experts"] // topology["expert_parallel"]
    out = []
    for rule in rules:
        if "{layer}" not in rule["local"]:
            stage = 0 if "embeddings" in rule["local"] else topology["pipeline_parallel"] - 1
            out.append((rule["global"], rule["local"], rule["split"], stage, 0))
            continue
        for layer in range(layers):
            stage = max(at for at, begin in enumerate(first) if begin <= layer)
            for expert in range(topology["experts"]) if "{expert}" in rule["local"] else (0,):
                whole = rule["global"].format(layer=layer, expert=expert)
                held = expert // per if per else 0
                local = rule["local"].format(layer=layer - first[stage], expert=expert - held * per)
                out.append((whole, local, rule["split"], stage, held))
    return out


def _shape(split: str, topology: dict[str, Any]) -> tuple[int, ...]:
    hidden = topology["hidden"]
    if split == "replicated":
        return (hidden,)
    if split == "vocabulary_rows":
        return (topology["vocabulary"], hidden)
    if split == "fused_qkv_rows":
        return (3 * hidden, hidden)
    if split == "rows":
        return (topology["feed_forward"], hidden)
    return (hidden, topology["feed_forward"])


def globals_of(topology: dict[str, Any], rules: Any) -> list[tuple[str, str, tuple[int, ...]]]:
    """(name, dtype, shape) of all global tensors, sorted by name. Of the two kinds split by columns the first is attention's."""
    attention = next(rule["global"] for rule in rules if rule["split"] == "columns")
    out = []
    for name, _, split, _, _ in _instances(topology, rules):
        same = split == "columns" and any(
            name == attention.format(layer=n, expert=0) for n in range(topology["layers"])
        )
        shape = (topology["hidden"], topology["hidden"]) if same else _shape(split, topology)
        out.append((name, "F32" if split == "replicated" else topology["matrix_dtype"], shape))
    return sorted(out)


def pieces(world: Any) -> list[Piece]:
    """All pieces, sorted by tensor, then start."""
    topology, out = world.topology, []
    tp = topology["tensor_parallel"]
    shapes = {tensor.name: tensor.shape for tensor in world.tensors}
    for name, local, split, stage, expert in _instances(topology, world.rules):
        shape = shapes[name]
        for t in range(tp):
            rank = f"pp{stage}-tp{t}-ep{expert}"
            if split == "replicated":
                if t == 0:
                    out.append(Piece(name, rank, local, -1, 0, shape[0], 0, shape[0]))
            elif split == "fused_qkv_rows":
                part = shape[0] // 3 // tp
                for block in range(3):
                    start = block * shape[0] // 3 + t * part
                    out.append(Piece(name, rank, local, 0, block * part, (block + 1) * part, start, start + part))
            else:
                axis = 1 if split == "columns" else 0
                length = topology["padded_vocabulary"] if split == "vocabulary_rows" else shape[axis]
                part = length // tp
                stop = min(shape[axis], (t + 1) * part)
                if stop > t * part:
                    out.append(Piece(name, rank, local, axis, 0, stop - t * part, t * part, stop))
    return sorted(out, key=lambda piece: (piece.tensor, piece.start))


def cut(data: bytes, shape: tuple[int, ...], width: int, axis: int, start: int, stop: int) -> bytes:
    """The bytes of a range along an axis of a tensor held row by row."""
    row = (shape[1] if len(shape) > 1 else 1) * width
    if axis < 1:
        return data[start * row : stop * row]
    return b"".join([data[at + start * width : at + stop * width] for at in range(0, len(data), row)])


def piece_bytes(world: Any) -> list[tuple[Piece, bytes]]:
    held = {t.name: (t, encode(t.dtype, bytes.fromhex(t.codes))) for t in world.tensors}
    out = []
    for piece in pieces(world):
        tensor, data = held[piece.tensor]
        out.append(
            (piece, cut(data, tensor.shape, safetensors.WIDTH[tensor.dtype], piece.axis, piece.start, piece.stop))
        )
    return out


def shards(world: Any, iteration: int) -> dict[str, bytes]:
    """rank -> its safetensors file. Replicated tensors stand on every tensor-parallel rank, padding rows are zero."""
    parts: dict[tuple[str, str], list[tuple[Piece, bytes]]] = defaultdict(list)
    for piece, data in piece_bytes(world):
        parts[piece.rank, piece.local].append((piece, data))
    tensors = {t.name: t for t in world.tensors}
    files: dict[str, list[tuple[str, str, tuple[int, ...], bytes]]] = {rank.name: [] for rank in world.ranks}
    for name, local, split, stage, expert in _instances(world.topology, world.rules):
        tensor = tensors[name]
        for t in range(world.topology["tensor_parallel"]):
            rank = f"pp{stage}-tp{t}-ep{expert}"
            source = f"pp{stage}-tp0-ep{expert}" if split == "replicated" else rank
            data = b"".join(chunk for _, chunk in sorted(parts[source, local], key=lambda part: part[0].local_start))
            shape = _local_shape(tensor.shape, split, world.topology)
            data = data.ljust(safetensors.WIDTH[tensor.dtype] * shape[0] * (shape[1] if len(shape) > 1 else 1), b"\0")
            files[rank].append((local, tensor.dtype, shape, data))
    return {
        rank: safetensors.write(sorted(held), {"rank": rank, "iteration": str(iteration)})
        for rank, held in files.items()
    }


def _local_shape(shape: tuple[int, ...], split: str, topology: dict[str, Any]) -> tuple[int, ...]:
    tp = topology["tensor_parallel"]
    if split == "replicated":
        return shape
    if split == "vocabulary_rows":
        return (topology["padded_vocabulary"] // tp, shape[1])
    return (shape[0], shape[1] // tp) if split == "columns" else (shape[0] // tp, shape[1])


def join(world: Any, held: dict[str, safetensors.Tensors]) -> dict[str, bytes]:
    """Global tensors from the shards' local ones."""
    chunks: dict[str, list[tuple[Piece, bytes]]] = defaultdict(list)
    for piece in pieces(world):
        dtype, shape, data = held[piece.rank][piece.local]
        width = safetensors.WIDTH[dtype]
        chunks[piece.tensor].append((piece, cut(data, shape, width, piece.axis, piece.local_start, piece.local_stop)))
    out = {}
    for tensor in world.tensors:
        parts = chunks[tensor.name]
        if parts[0][0].axis != 1:
            out[tensor.name] = b"".join(data for _, data in parts)
            continue
        rows = tensor.shape[0]
        out[tensor.name] = b"".join(
            data[row * len(data) // rows : (row + 1) * len(data) // rows] for row in range(rows) for _, data in parts
        )
    return out
