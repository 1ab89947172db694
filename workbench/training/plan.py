"""What an update needs: memory of each learner GPU and which GPU does what, before anything is started.

Estimates, with their formulas, for bf16 arithmetic and float32 master weights. N: parameters, W: learner GPUs that share
them, t: tokens of a micro-batch, h: width, L: layers, V: vocabulary. Not counted: the allocator's fragments, the
buffers of collective calls, and what recurrent layers keep beyond 34 bytes a token and unit of width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from workbench.training.settings import CHUNK

CONFIGS = Path(__file__).parent / "configs"
GB = 1e9
SHARDINGS = ("fsdp2", "zero3", "none")


class PlanError(ValueError):
    """No such plan, or a plan that lacks something; the message says what to give."""


@dataclass(frozen=True)
class Shape:
    """Of a model, without its weights. largest_layer: parameters of its largest layer, which is gathered as a whole."""

    name: str
    parameters: int
    layers: int
    hidden: int
    vocabulary: int
    largest_layer: int


@dataclass(frozen=True)
class Part:
    """One line of the estimate. bytes: on each learner GPU."""

    what: str
    bytes: float
    formula: str


def plan_names() -> list[str]:
    return list(_plans())


def load_plan(name: str, **changes: Any) -> dict[str, dict[str, Any]]:
    """Name → {"value", "source"} of one plan. changes: values given by hand, None leaves the plan's own. Raises PlanError."""
    plans = _plans()
    if name not in plans:
        raise PlanError(f"no plan {name!r}: there are {', '.join(plans)}")
    plan = {key: dict(entry) for key, entry in plans[name].items()}
    for key, value in changes.items():
        if value is not None:
            plan[key] = {"value": value, "source": "given"}
    values = {key: entry["value"] for key, entry in plan.items()}
    if values["model"] is None:
        raise PlanError(f"the model's shape of plan {name} is unpublished: give --model, a folder with its config.json")
    if values["sharding"] not in SHARDINGS:
        raise PlanError(f"sharding {values['sharding']!r} is none of {', '.join(SHARDINGS)}")
    if not 1 <= values["learner_gpus"] <= values["gpus"]:
        raise PlanError(f"{values['learner_gpus']} learner GPUs of {values['gpus']}: give at least 1 and at most all")
    return plan


def _plans() -> dict[str, Any]:
    import yaml

    return yaml.safe_load((CONFIGS / "plans.yaml").read_text())


def shape_of(model: str) -> Shape:
    """The shape of `config:TYPE?name=value&…`, or of a folder's or hub model's config; nothing is downloaded but that.

    Parameters are counted on torch's meta device, which holds no numbers. Raises PlanError.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    try:
        if model.startswith("config:"):
            kind, _, changes = model.removeprefix("config:").partition("?")
            config = AutoConfig.for_model(kind, **{k: _number(v) for k, v in parse_qsl(changes)})
        else:
            config = AutoConfig.from_pretrained(model).get_text_config()
        with torch.device("meta"):
            made = AutoModelForCausalLM.from_config(config)
    except (OSError, ValueError, KeyError) as error:
        raise PlanError(f"no shape of {model!r}: {error}. Give a folder with config.json, or a hub model") from error
    layers = [m for m in made.modules() if isinstance(m, torch.nn.ModuleList) and len(m) == config.num_hidden_layers]
    largest = max((_count(layer) for group in layers for layer in group), default=0)
    return Shape(model, _count(made), config.num_hidden_layers, config.hidden_size, config.vocab_size, largest)


def _count(module: Any) -> int:
    return sum(p.numel() for p in module.parameters())


def _number(text: str) -> Any:
    return text == "true" if text in ("true", "false") else int(text)


def memory(shape: Shape, plan: Mapping[str, Mapping[str, Any]]) -> list[Part]:
    """Bytes on each learner GPU, by part."""
    value = {key: entry["value"] for key, entry in plan.items()}
    n, shards = shape.parameters, value["learner_gpus"] if value["sharding"] != "none" else 1
    tokens = max(value["token_budget"], value["sequence"]) / value["sequence_parallel"]
    width, layers = shape.hidden, shape.layers
    parts = _states(n, shards, value["sharding"])
    if value["sharding"] != "none":
        parts.append(
            Part("layers gathered", 2 * 2 * shape.largest_layer, "2 B × 2 layers (one ahead) × its parameters")
        )
    if value["gradient_checkpointing"]:
        parts.append(Part("layer inputs kept", 2 * tokens * width * layers, "2 B × t h L"))
        parts.append(
            Part("one layer recomputed", 34 * tokens * width, "34 B × t h (Korthikanti et al. 2022, fused attention)")
        )
    else:
        parts.append(
            Part("activations", 34 * tokens * width * layers, "34 B × t h L (Korthikanti et al. 2022, fused attention)")
        )
    chunk = min(tokens, CHUNK)
    parts.append(Part("logits", 2 * 4 * chunk * shape.vocabulary, f"4 B × 2 (gradient) × {chunk:,.0f} positions × V"))
    return parts


def _states(n: int, shards: int, sharding: str) -> list[Part]:
    by = "/ W" if shards > 1 else ""
    if sharding == "zero3":  # DeepSpeed keeps bf16 weights and gradients, and a float32 copy in its optimizer
        return [
            Part("weights (bf16)", 2 * n / shards, f"2 B × N {by}"),
            Part("gradients (bf16)", 2 * n / shards, f"2 B × N {by}"),
            Part("optimizer (float32 weights, two moments)", 12 * n / shards, f"12 B × N {by}"),
        ]
    return [
        Part("weights (float32)", 4 * n / shards, f"4 B × N {by}"),
        Part("gradients (float32)", 4 * n / shards, f"4 B × N {by}"),
        Part("optimizer (two moments, float32)", 8 * n / shards, f"8 B × N {by}"),
    ]


def placement(shape: Shape, plan: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Which GPUs learn and which generate, one line each."""
    value = {key: entry["value"] for key, entry in plan.items()}
    learners, gpus, parallel = value["learner_gpus"], value["gpus"], value["tensor_parallel"]
    lines = [
        f"GPU 0–{learners - 1}: learner, {value['sharding']} over {learners}" if learners > 1 else "GPU 0: learner"
    ]
    if gpus == learners:
        return [*lines, "the same: engine, its weights in bf16 beside the learner's"]
    engines, left = divmod(gpus - learners, parallel)
    weights = 2 * shape.parameters / parallel / GB
    lines.append(
        f"GPU {learners}–{learners + engines * parallel - 1}: {engines} engines of {parallel} GPU; bf16 weights {weights:.0f} GB "
        f"a GPU, {value['gpu_gb'] - weights:.0f} GB left for the KV cache"
    )
    return lines + ([f"{left} GPU idle: {gpus - learners} is no multiple of {parallel}"] if left else [])
