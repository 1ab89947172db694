"""An update as a program of its own, for several GPUs or nodes: rollouts in, checkpoint and weights out.

    accelerate launch --config_file launch/fsdp2.yaml -m workbench.training.launch MODEL ROLLOUTS --out DIR --denominator Z

MODEL: a folder or hub model. ROLLOUTS: one Rollout.to_json() a line. DIR/checkpoints is resumed from and added to,
DIR/policy is the folder that engines load. Every process reads the same file; the same program runs without accelerate's
launcher as one process.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from workbench.training.records import Rollout, from_json
from workbench.training.settings import UpdateSettings, settings_from

CONFIGS = Path(__file__).parent / "configs"
FILES = {"fsdp2": ("fsdp2.yaml",), "zero3": ("deepspeed_zero3.yaml", "deepspeed_zero3.json"), "none": ("none.yaml",)}
TYPES = {"float": float, "int": int, "str": str, "float | None": float, "int | None": int}


def write_launch(plan: Mapping[str, Any], folder: Path) -> list[Path]:
    """The accelerate configuration (and DeepSpeed's) of a plan, with its number of learner GPUs. The first one is the one
    to launch with; existing files are replaced."""
    import yaml

    folder.mkdir(parents=True, exist_ok=True)
    out = [Path(shutil.copy(CONFIGS / name, folder / name)) for name in FILES[plan["sharding"]]]
    config = yaml.safe_load(out[0].read_text())
    config["num_processes"] = plan["learner_gpus"]
    if "deepspeed_config" in config:
        config["deepspeed_config"]["deepspeed_config_file"] = str(out[1].resolve())
    out[0].write_text(yaml.safe_dump(config, sort_keys=False))
    return out


def launch_command(config: Path) -> str:
    return f"accelerate launch --config_file {config} -m workbench.training.launch MODEL ROLLOUTS --out DIR --denominator Z"


def read_rollouts(path: Path) -> Iterator[Rollout]:
    """Rollouts of a JSONL file. Raises ValueError that names the line."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield from_json(line)
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}") from error


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    chosen = {
        f.name: getattr(options, f.name) for f in fields(UpdateSettings) if getattr(options, f.name, None) is not None
    }
    row = update_once(
        options.model,
        Path(options.rollouts),
        Path(options.out),
        settings_from(chosen),
        shaping=options.shaping,
        cpu=options.cpu,
    )
    if row is not None:
        print(json.dumps(row), flush=True)
    return 0


def update_once(
    model: str, rollouts: Path, out: Path, settings: UpdateSettings, *, shaping: str = "", cpu: bool = False
) -> dict[str, Any] | None:
    """One update from a file; its row on the first process, None on the others. shaping: a variant of pprs.py for the
    solver, "" = the plain reward (Eq. 3)."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from workbench.training import pprs
    from workbench.training.trainer import PLAIN, Learner

    learner = Learner(AutoModelForCausalLM.from_pretrained(model), settings, cpu=cpu)
    learner.load(out / "checkpoints")
    credit = {**PLAIN, "solver": pprs.credit(shaping)} if shaping else PLAIN
    value = {"solver": pprs.group_value(shaping)} if shaping else None
    done, chosen = learner.update(list(read_rollouts(rollouts)), credit, value)
    learner.save(out / "checkpoints")
    has_tokenizer = Path(model, "tokenizer_config.json").is_file()
    learner.save_model(out / "policy", AutoTokenizer.from_pretrained(model) if has_tokenizer else None)
    return done.to_row() | {"groups_dropped": chosen.dropped} if learner.accelerator.is_main_process else None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="workbench.training.launch", description=__doc__.split("\n", 1)[0])
    parser.add_argument("model")
    parser.add_argument("rollouts")
    parser.add_argument("--out", required=True)
    parser.add_argument("--shaping", default="", help="pprs, terminal, pooled or direct (default: the plain reward)")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--gradient-checkpointing", dest="gradient_checkpointing", action="store_true", default=None)
    parser.add_argument("--betas", type=float, nargs=2, default=None)
    for field in fields(UpdateSettings):
        kind = TYPES.get(str(field.type), str if str(field.type).startswith("Literal") else None)
        if kind is not None:
            parser.add_argument(f"--{field.name.replace('_', '-')}", type=kind, default=None)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
