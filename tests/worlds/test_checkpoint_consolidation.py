"""A checkpoint small enough to consolidate by hand."""

from __future__ import annotations

import hashlib
import json
import struct

import pytest

from workbench.worlds import Defect, corruption
from workbench.worlds.formats import safetensors
from workbench.worlds.generators.checkpoint_consolidation import alternative, reference


def _floats(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


@pytest.fixture
def tree() -> dict[str, bytes]:
    """Two tensor-parallel ranks; vocabulary 3 padded to 4; q, k, v of one row a rank; the second primary is rotten."""
    topology = {
        "model": "toy-1b",
        "tensor_parallel": 2,
        "pipeline_parallel": 1,
        "expert_parallel": 1,
        "layers": 1,
        "stage_first_layer": [0],
        "experts": 0,
        "vocabulary": 3,
        "padded_vocabulary": 4,
    }
    rules = [
        {"local": "word_embeddings.weight", "global": "model.embed.weight", "split": "vocabulary_rows"},
        {"local": "layers.{layer}.qkv.weight", "global": "model.layers.{layer}.qkv.weight", "split": "fused_qkv_rows"},
        {"local": "layers.{layer}.out.weight", "global": "model.layers.{layer}.out.weight", "split": "columns"},
    ]
    out = {
        "input/topology.json": json.dumps(topology).encode(),
        "input/tensor_rules.json": json.dumps({"rules": rules}).encode(),
        "input/save_journal.jsonl": b"".join(
            json.dumps({"iteration": n, "rank": f"pp0-tp{t}-ep0"}).encode() + b"\n"
            for n, t in ((7, 0), (7, 1), (7, 1), (8, 0))
        ),
        "input/latest.txt": b"8\n",
    }
    for t in (0, 1):
        shard = safetensors.write(
            [
                ("word_embeddings.weight", "F32", (2, 1), _floats(*((1, 2), (3, 0))[t])),
                ("layers.0.qkv.weight", "F32", (3, 1), _floats(*((10, 20, 30), (11, 21, 31))[t])),
                ("layers.0.out.weight", "F32", (2, 1), _floats(*((5, 7), (6, 8))[t])),
            ],
            {"rank": f"pp0-tp{t}-ep0", "iteration": "7"},
        )
        manifest = {"rank": f"pp0-tp{t}-ep0", "bytes": len(shard), "sha256": hashlib.sha256(shard).hexdigest()}
        out[f"input/manifests/pp0-tp{t}-ep0.json"] = json.dumps(manifest).encode()
        out[f"input/primary/{t}.safetensors"] = shard[:-1] + b"\x7f" if t else shard
        out[f"input/mirror/{t}.safetensors"] = shard
    return out


def _solved(tree: dict[str, bytes]) -> list[dict[str, bytes]]:
    return [list(reference.solve(tree))[-1][1], alternative.solve(tree)]


def test_the_parallel_layout_is_undone(tree):
    for outputs in _solved(tree):
        _, tensors = safetensors.read(outputs["output/model.safetensors"])
        assert tensors == {
            "model.embed.weight": ("F32", (3, 1), _floats(1, 2, 3)),
            "model.layers.0.qkv.weight": ("F32", (6, 1), _floats(10, 11, 20, 21, 30, 31)),
            "model.layers.0.out.weight": ("F32", (2, 2), _floats(5, 6, 7, 8)),
        }


def test_verdicts_and_totals(tree):
    for outputs in _solved(tree):
        audit = json.loads(outputs["output/staging/shard_audit.json"])
        assert audit["iteration"] == 7
        assert [(row["path"][6:], row["verdict"]) for row in audit["files"]] == [
            ("mirror/0.safetensors", "spare"),
            ("mirror/1.safetensors", "used"),
            ("primary/0.safetensors", "used"),
            ("primary/1.safetensors", "corrupt"),
        ]
        report = json.loads(outputs["output/report.json"])
        assert (report["parameters"], report["sum_64"]) == (13, 64 * (6 + 123 + 26))
        assert report["parameters_by_stage"] == {"0": 13}


def test_a_file_whose_tensors_do_not_fit_is_refused():
    good = safetensors.write([("a", "F32", (1,), _floats(1))])
    with pytest.raises(ValueError, match="'a'"):
        safetensors.read(good[:-1])
    with pytest.raises(ValueError, match="header"):
        safetensors.header(b"\xff" * 12)


def test_an_overwritten_file_comes_back():
    tree = {"input/a.bin": b"fresh"}
    sealed = corruption.seal(tree, Defect("stale_overwrite", "input/a.bin", {"hex": b"stale".hex()}))
    assert corruption.apply(tree, sealed) == {"input/a.bin": b"stale"}
    assert corruption.invert({"input/a.bin": b"stale"}, sealed) == tree
