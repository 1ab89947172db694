"""A language model's checkpoint, saved by a grid of tensor-, pipeline- and expert-parallel ranks, with mirrors of some shards.

The world is the model: its tensors, element by element, and the topology of the ranks that saved it. The ladder of tiers is the shard
count crossed with the topology, from tensor parallelism alone to all three kinds (Tev A.4).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from math import prod
from typing import Any

from workbench.worlds import Defect, Output, Prompt, Spec, Stage, Workflow, WorldError
from workbench.worlds.draw import Draw
from workbench.worlds.formats import safetensors
from workbench.worlds.generators.checkpoint_consolidation import answers, harm, layout, words

SPEC = Spec(
    name="checkpoint_consolidation",
    revision=1,
    domain="9.3",
    title="Consolidate a distributed checkpoint",
    summary="Choose the sound copy of every rank's shard, undo tensor, pipeline and expert parallelism, and write one safetensors file.",
    outputs=(
        Output(
            "output/staging/shard_audit.json",
            "json",
            "Every copy of every shard and its verdict",
            {
                "iteration": "integer",
                "files": [dict.fromkeys(("path", "rank", "verdict", "sha256"), "string") | {"iteration": "integer"}],
            },
        ),
        Output(
            "output/staging/placement.csv", "csv", "Which slice of which global tensor each piece is", words.PLACEMENT
        ),
        Output("output/model.safetensors", "binary", "The consolidated model", {"description": "one safetensors file"}),
        Output(
            "output/tensor_index.json",
            "json",
            "Type, shape and digest of every consolidated tensor",
            {
                "tensors": {
                    "<tensor>": {"dtype": "string", "shape": ["integer"], "sha256": "string", "sum_64": "integer"}
                }
            },
        ),
        Output(
            "output/report.json",
            "json",
            "Totals of the consolidation",
            {
                "model": "string",
                "iteration": "integer",
                "parameters": "integer",
                "tensor_bytes": "integer",
                "sum_64": "integer",
                "parameters_by_stage": {"<rank's pipeline coordinate>": "integer"},
                "rejected": {"<verdict>": ["string"]},
                "file_sha256": "string",
            },
        ),
    ),
    workflow_stages=("inventory", "audit", "place", "assemble", "index", "report"),
    artifact_roles=("model-shard", "manifest", "topology", "index", "log"),
    relation_types=("checksum", "partition", "precedence", "temporal"),
    source_kind="training cluster",
)


@dataclass(frozen=True)
class Rank:
    """One saver: its grid coordinates and the files of its primary and mirrored shard ("" when not mirrored)."""

    name: str
    tp: int
    pp: int
    ep: int
    primary: str
    mirror: str


@dataclass(frozen=True)
class Tensor:
    """A global tensor. codes: two hexadecimal digits per element, a signed byte; the element is that byte / 64."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    codes: str


@dataclass(frozen=True)
class World:
    topology: dict[str, Any]
    rules: tuple[dict[str, str], ...]
    ranks: tuple[Rank, ...]
    iteration: int
    saved: tuple[tuple[int, str, str], ...]  # the journal: iteration, rank, time
    tensors: tuple[Tensor, ...]


# tier -> (tp, pp, ep, layers, hidden, feed-forward, vocabulary, experts, mirrored ranks)
SIZES = {
    "unit": (4, 1, 1, 2, 16, 32, 41, 0, 3),
    "small": (2, 3, 1, 6, 24, 48, 83, 0, 4),
    "full": (2, 2, 2, 4, 32, 64, 151, 4, 6),
}


def make(draw: Draw, tier: str) -> World:
    tp, pp, ep, layers, hidden, ff, vocab, experts, mirrored = SIZES[tier]
    names = draw.fork("names")
    first = sorted(names.sample(range(1, layers), pp - 1))
    topology = {
        "model": f"{names.choice(words.MODELS)}-{names.integer(11, 99)}{names.choice('bm')}",
        "tensor_parallel": tp,
        "pipeline_parallel": pp,
        "expert_parallel": ep,
        "layers": layers,
        "stage_first_layer": [0, *first],
        "hidden": hidden,
        "feed_forward": ff + 8 * names.integer(0, 2) * tp,
        "vocabulary": vocab + names.integer(0, 6) - 3,
        "padded_vocabulary": (vocab + 11) // (4 * tp) * 4 * tp + 4 * tp,
        "experts": experts,
        "matrix_dtype": names.choice(("F32", "BF16")),
        "tied_embeddings": names.chance(0.4),
    }
    rules = tuple(words.rules(names.choice(words.FAMILIES), topology))
    grid = [(t, p, e) for p in range(pp) for t in range(tp) for e in range(ep)]
    where = draw.fork("files")
    held = set(where.sample(range(len(grid)), mirrored))
    ids = [where.hexadecimal(6) for _ in grid]
    ranks = tuple(
        Rank(
            f"pp{p}-tp{t}-ep{e}",
            t,
            p,
            e,
            f"input/primary/shard-{ids[at]}.safetensors",
            f"input/mirror/copy-{ids[at][::-1]}.safetensors" if at in held else "",
        )
        for at, (t, p, e) in enumerate(grid)
    )
    step = names.choice((100, 200, 250, 500))
    iteration = step * names.integer(12, 90)
    values = draw.fork("values")
    tensors = tuple(
        Tensor(name, dtype, shape, values.hexadecimal(2 * prod(shape)))
        for name, dtype, shape in layout.globals_of(topology, rules)
    )
    return World(topology, rules, ranks, iteration, _journal(draw.fork("journal"), ranks, iteration, step), tensors)


def _journal(draw: Draw, ranks: tuple[Rank, ...], iteration: int, step: int) -> tuple[tuple[int, str, str], ...]:
    """Two complete saves and a third that was cut off after some ranks."""
    day, minute, out = draw.integer(1, 27), draw.integer(60, 600), []
    for number, part in ((iteration - step, ranks), (iteration, ranks), (iteration + step, ranks[: len(ranks) // 2])):
        minute += draw.integer(40, 80)
        for rank in draw.shuffled(part):
            out.append(
                (
                    number,
                    rank.name,
                    f"2025-03-{day:02d}T{minute // 60:02d}:{minute % 60:02d}:{draw.integer(0, 59):02d}Z",
                )
            )
    return tuple(out)


def check(world: World) -> None:
    names = [tensor.name for tensor in world.tensors]
    files = [path for rank in world.ranks for path in (rank.primary, rank.mirror) if path]
    if len(set(names)) != len(names) or len(set(files)) != len(files):
        raise WorldError("tensor names and shard files must be unique")
    if any(len(tensor.codes) != 2 * prod(tensor.shape) for tensor in world.tensors):
        raise WorldError("a tensor's elements do not fit its shape")
    if world.topology["vocabulary"] >= world.topology["padded_vocabulary"]:
        raise WorldError("the padded vocabulary must exceed the vocabulary")


def workflow(world: World) -> Workflow:
    files, pieces = sum(1 + bool(rank.mirror) for rank in world.ranks), len(layout.pieces(world))
    tensors = len(world.tensors)
    return Workflow(
        (
            Stage("inventory", "inventory", len(world.saved) + files),
            Stage("audit", "audit", 3 * files, ("inventory",)),
            Stage("place", "place", pieces, ("inventory",)),
            Stage("assemble", "assemble", pieces + tensors, ("audit", "place")),
            Stage("index", "index", tensors, ("assemble",)),
            Stage("report", "report", tensors + files, ("audit", "index")),
        )
    )


def render(world: World) -> dict[str, bytes]:
    shards = layout.shards(world, world.iteration)
    tree: dict[str, bytes] = {}
    for rank in world.ranks:
        data = shards[rank.name]
        tree[rank.primary] = data
        if rank.mirror:
            tree[rank.mirror] = data
        _, held = safetensors.read(data)
        manifest = {
            "rank": rank.name,
            "iteration": world.iteration,
            "bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
            "tensors": {name: {"dtype": dtype, "shape": list(shape)} for name, (dtype, shape, _) in held.items()},
        }
        tree[f"input/manifests/{rank.name}.json"] = _json(manifest)
    tree["input/topology.json"] = _json(world.topology)
    tree["input/tensor_rules.json"] = _json({"rules": list(world.rules)})
    index = ["rank,primary,mirror", *(f"{rank.name},{rank.primary},{rank.mirror}" for rank in world.ranks)]
    tree["input/shard_index.csv"] = ("\n".join(index) + "\n").encode()
    tree["input/latest.txt"] = f"{world.iteration}\n".encode()
    lines = [{"iteration": number, "rank": rank, "saved": time} for number, rank, time in world.saved]
    tree["input/save_journal.jsonl"] = "".join(json.dumps(line) + "\n" for line in lines).encode()
    return tree


def recover(tree: dict[str, bytes]) -> World:
    topology = json.loads(tree["input/topology.json"])
    rules = tuple(json.loads(tree["input/tensor_rules.json"])["rules"])
    files = [line.split(",") for line in tree["input/shard_index.csv"].decode().splitlines()[1:]]
    ranks = tuple(Rank(name, *layout.coordinates(name), primary, mirror) for name, primary, mirror in files)
    lines = [json.loads(line) for line in tree["input/save_journal.jsonl"].splitlines()]
    saved = tuple((line["iteration"], line["rank"], line["saved"]) for line in lines)
    empty = tuple(Tensor(name, dtype, shape, "") for name, dtype, shape in layout.globals_of(topology, rules))
    world = World(topology, rules, ranks, int(tree["input/latest.txt"]), saved, empty)
    held = {rank.name: safetensors.read(tree[rank.primary])[1] for rank in ranks}
    joined = layout.join(world, held)
    tensors = tuple(Tensor(t.name, t.dtype, t.shape, layout.codes(t.dtype, joined[t.name]).hex()) for t in empty)
    return World(topology, rules, ranks, world.iteration, saved, tensors)


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()


def plan(world: World, draw: Draw) -> tuple[Defect, ...]:
    return harm.plan(world, draw)


def truth(world: World, defects: tuple[Defect, ...]) -> dict[str, Any]:
    return answers.truth(world, defects)


def prompt(world: World, defects: tuple[Defect, ...]) -> Prompt:
    return words.prompt(world.topology["model"])
