"""Whether a folder of safetensors fits a model, read from its headers alone (no tensor is loaded, no torch imported)."""

from __future__ import annotations

import json
import struct
from pathlib import Path

from workbench.models import ModelError

CAP = 64 << 20  # bytes of a header


def shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Shape of every tensor of a folder, sharded or not. Raises ModelError when there are none to read."""
    index = folder / "model.safetensors.index.json"
    try:
        names = sorted(set(json.loads(index.read_text())["weight_map"].values())) if index.exists() else ["model.safetensors"]  # fmt: skip
        return {k: v for name in names for k, v in _header(folder / Path(name).name).items()}
    except (OSError, ValueError, KeyError, TypeError, struct.error) as error:
        raise ModelError(
            f"cannot read weights from {folder}: {error}. It needs model.safetensors or its index"
        ) from error


def check_same_model(folder: Path, old: Path | None) -> None:
    """Raises ModelError unless `folder` holds tensors of the same names and shapes as `old`. A server that is told to load
    anything else does not come back: so this is asked before."""
    new = shapes(folder)
    if old is None:
        return
    own = shapes(old)
    ties = {"lm_head.weight"}  # written or not where it is the embedding
    strange, missing = sorted(new.keys() - own.keys() - ties), sorted(own.keys() - new.keys() - ties)
    wrong = [f"{k} {v}" for k, v in new.items() if k in own and own[k] != v]
    if strange or missing or wrong:
        raise ModelError(
            f"the weights in {folder} are of another model: unknown {strange[:3]}, missing {missing[:3]}, of another "
            f"shape {wrong[:3]}. The old weights stay"
        )


def _header(path: Path) -> dict[str, tuple[int, ...]]:
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        if length > CAP:
            raise ValueError(f"{path.name}: header of {length} bytes")
        header = json.loads(file.read(length))
    return {k: tuple(v["shape"]) for k, v in header.items() if k != "__metadata__"}
