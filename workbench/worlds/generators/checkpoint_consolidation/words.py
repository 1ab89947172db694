"""The words of the world: names, rules of partition and the public contract."""

from __future__ import annotations

from typing import Any

from workbench.worlds import Prompt

MODELS = (
    "aurelia borealis cobalt dunlin egret fathom gannet harrier isobar juniper kestrel lapwing merlin nimbus".split()
)
PLACEMENT = {
    "tensor": "string",
    "rank": "string",
    "local_name": "string",
    "axis": "integer",
    "local_start": "integer",
    "local_stop": "integer",
    "start": "integer",
    "stop": "integer",
    "piece_sha256": "string",
}
# (local prefix of a layer, global prefix of a layer, attention, fused projection, output projection, feed-forward, up, down)
FAMILIES = (
    ("layers", "model.layers", "self_attn", "qkv_proj", "o_proj", "mlp", "up_proj", "down_proj"),
    ("decoder.layers", "transformer.h", "attn", "c_attn", "c_proj", "mlp", "c_fc", "c_out"),
    ("blocks", "backbone.blocks", "mixer", "in_proj", "out_proj", "ffn", "w1", "w2"),
    ("encoder.layers", "language_model.layers", "attention", "query_key_value", "dense", "mlp", "h_to_4h", "4h_to_h"),
)


def rules(family: tuple[str, ...], topology: dict[str, Any]) -> list[dict[str, str]]:
    """One rule per kind of tensor: its name in a shard, its global name, and how it was split."""
    local, whole, attention, fused, out, forward, up, down = family
    made = [
        ("word_embeddings.weight", f"{whole.split('.')[0]}.embed_tokens.weight", "vocabulary_rows"),
        (f"{local}.{{layer}}.norm_1.weight", f"{whole}.{{layer}}.input_norm.weight", "replicated"),
        (
            f"{local}.{{layer}}.{attention}.{fused}.weight",
            f"{whole}.{{layer}}.{attention}.{fused}.weight",
            "fused_qkv_rows",
        ),
        (f"{local}.{{layer}}.{attention}.{out}.weight", f"{whole}.{{layer}}.{attention}.{out}.weight", "columns"),
    ]
    inside = f"{forward}.experts.{{expert}}" if topology["experts"] else forward
    made += [
        (f"{local}.{{layer}}.{inside}.{up}.weight", f"{whole}.{{layer}}.{inside}.{up}.weight", "rows"),
        (f"{local}.{{layer}}.{inside}.{down}.weight", f"{whole}.{{layer}}.{inside}.{down}.weight", "columns"),
        ("final_norm.weight", f"{whole.split('.')[0]}.norm.weight", "replicated"),
    ]
    if not topology["tied_embeddings"]:
        made.append(("output_layer.weight", "lm_head.weight", "vocabulary_rows"))
    return [{"local": a, "global": b, "split": c} for a, b, c in made]


def prompt(model: str) -> Prompt:
    return Prompt(
        goal=f"A training cluster saved the model {model} as one shard per rank; some copies have rotted or are out of date. "
        "Audit the copies, undo the parallel layout and write one consolidated safetensors file with its index and report.",
        inputs={
            "input/topology.json": "parallel sizes, first layer of every pipeline stage, dimensions",
            "input/tensor_rules.json": "local name -> global name and split of every kind of tensor",
            "input/manifests/<rank>.json": "what the rank declared when it saved: size, SHA-256, tensors",
            "input/primary/, input/mirror/": "copies of shards; __metadata__ in the header names rank and iteration",
            "input/shard_index.csv": "which file belongs to which rank, kept by hand",
            "input/save_journal.jsonl": "one line per rank and save, maybe repeated",
            "input/latest.txt": "a pointer written by the launcher",
        },
        requirements=(
            "The iteration to consolidate is the newest one that every rank named by the topology saved according to the journal. Ranks are "
            "named pp<p>-tp<t>-ep<e>, counting from 0.",
            "shard_audit.json: `iteration`, and `files` sorted by path: path, rank and iteration as in the file's own header, the file's "
            "sha256, and `verdict`, the first that applies: stale (an iteration before the chosen one), truncated (shorter than the "
            "manifest says), corrupt (another SHA-256 than the manifest's), used, spare. Of two sound copies of a rank the primary is "
            "used, the mirror spare.",
            "Layer numbers in a shard count from its pipeline stage's first layer; global numbers do so over all stages. Rules without "
            "{layer}: embeddings live on the first stage, the final norm and output layer on the last. Experts: rank ep<e> holds experts "
            "e*n .. e*n+n-1 under local numbers 0 .. n-1, n = experts / expert_parallel; all other tensors are held by ep0 alone.",
            "Splits over the tensor-parallel ranks, in order: rows (axis 0), columns (axis 1); replicated (use tp0); vocabulary_rows (rows "
            "of the padded vocabulary; rows from `vocabulary` on are padding and are dropped); fused_qkv_rows (each rank holds its part "
            "of q, then of k, then of v; the global tensor is all of q, then all of k, then all of v).",
            "placement.csv: one row per contiguous piece (three per rank for fused_qkv_rows, none for dropped padding), columns as listed; axis 0 or 1, -1 "
            "for replicated (then over axis 0); half-open ranges along the axis, local and global, without padding; piece_sha256 the "
            "SHA-256 of the piece's bytes, row by row, first 16 digits. Sorted by tensor, then start.",
            "model.safetensors: tensors sorted by global name, element types kept, no padding between, no other header entries; the header is JSON "
            "without spaces, keys dtype, shape, data_offsets, padded with spaces to a multiple of 8 bytes.",
            "tensor_index.json: per tensor dtype, shape, the SHA-256 of its bytes, and sum_64, the sum of its elements times 64, which is whole.",
            "report.json: model; iteration; parameters; tensor_bytes; sum_64 over all; parameters_by_stage, key the stage's number; rejected: for each of "
            "stale, truncated, corrupt the sorted paths; file_sha256, SHA-256 over the consolidated tensors' bytes in file order.",
        ),
        authority=(
            "A shard's own header wins over shard_index.csv; the journal wins over latest.txt; a journal line that repeats another counts once.",
            "A manifest decides what its rank's shard must be. Every rank has at least one sound copy.",
        ),
    )
