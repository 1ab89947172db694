"""Makes the Cold-Start checkpoint that ships: `python -m workbench.training.cold_start_make`, or `make cold-start`.

Half an hour on two quiet cores; killed, it goes on where it was. The checkpoint is published when every stage is done, in one step.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench import paths
from workbench.runs.folder import Run, list_runs, new_run, open_run
from workbench.runs.profiles import load_profile
from workbench.runs.progress import say
from workbench.training.cold_start import cold_start, comparison
from workbench.training.micro import CHECKPOINT

NOTEBOOK = "30_cold_start"
# Over the profile `micro`, which is cut down to minutes.
FULL = {"solver_traces": 4600, "proposer_traces": 400, "control": 100, "assignments": 48}
COMMAND = "make cold-start"
FILES = ("config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja")  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """0: published (or there already, with `--check`). 1: the pass rate ended outside of the band, or the digest differs."""
    parser = argparse.ArgumentParser(prog="cold_start_make", description=__doc__)
    parser.add_argument("--out", type=Path, default=CHECKPOINT, help="where the checkpoint goes")
    parser.add_argument("--profile", default="micro")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=JSON", help="a value of the profile")
    parser.add_argument("--check", action="store_true", help="only compare the checkpoint with its card")
    given = parser.parse_args(arguments)
    if given.check:
        return report_check(given.out)
    sets = {name: json.loads(value) for name, _, value in (text.partition("=") for text in given.set)}
    values = load_profile(NOTEBOOK, given.profile, **{**FULL, **sets})
    run = _run(dict(values))
    with run:
        policy = cold_start(run, values)
        policy.close()
        card = publish(run, given.out, values)
    say(f"cold start: {card['passed']:.0%} of {card['control']} calibration worlds passed; {given.out}")
    return 0 if values["low"] <= card["passed"] <= values["high"] else 1


def _run(values: Mapping[str, Any]) -> Run:
    """The last run with these values that is not done, else a new one."""
    for folder in reversed(list_runs()):
        if folder.parent.name != NOTEBOOK:
            continue
        run = open_run(folder)
        if run.params["parameters"] == {"profile": "make", **values} and not run.rows("published"):
            say(f"cold start: going on with {run.id}")
            return run
    return new_run(NOTEBOOK, {"profile": "make", **values}, results=paths.results())


def publish(run: Run, folder: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """Copy the run's model to `folder` with its card: what it can do, how it was made, the digest of each file."""
    draft = folder.with_name(f".{folder.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    for name in FILES:
        if (run.folder / "model" / name).is_file():
            shutil.copyfile(run.folder / "model" / name, draft / name)
    card = _card(run, draft, values)
    (draft / "card.json").write_text(json.dumps(card, indent=1) + "\n")
    (draft / "README.md").write_text(_readme(card))
    if folder.exists():
        shutil.rmtree(folder)
    draft.replace(folder)
    run.record("published", card)
    return card


def digests(folder: Path) -> dict[str, str]:
    """sha256 of each file of the model and the tokenizer."""
    found = [folder / name for name in FILES if (folder / name).is_file()]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def report_check(folder: Path) -> int:
    card = json.loads((folder / "card.json").read_text())
    wrong = sorted(name for name, digest in digests(folder).items() if card["sha256"].get(name) != digest)
    say(f"{folder}: {'as on its card' if not wrong else 'differs from its card: ' + ', '.join(wrong)}")
    return int(bool(wrong))


def _card(run: Run, folder: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    selection, sft = run.get("selection", "selection"), run.get("sft", "sft")
    after = run.get("evaluation", "after")
    plain = {
        "executed": selection["executed"],
        "chosen": selection["chosen"],
        "steps": sft["steps"],
        "tokens": sft["tokens"],
    }
    return {"name": folder.name.strip(".").removesuffix(".draft"), "command": COMMAND, "revision": run.params["revision"], **plain,
            "passed": after["pass@1"], "reward": after["avg"], "control": after["tasks"], "comparison": comparison(run),
            "feasibility": {k: v for k, v in run.get("feasibility", "feasibility").items() if k not in ("kind", "run_id", "id", "time")},
            "values": dict(values), "sha256": digests(folder)}  # fmt: skip


def _readme(card: Mapping[str, Any]) -> str:
    files = "\n".join(f"    {digest}  {name}" for name, digest in card["sha256"].items())
    return f"""# {card["name"]}

The Cold-Start checkpoint of the micro policy: about a million weights, a closed vocabulary, both roles (docs/cold_start.md).

- Made by `{card["command"]}` from random weights: {card["executed"]} executed expert traces, {card["chosen"]} chosen, {card["steps"]} steps of SFT,
  stopped early on purpose.
- Solves all three jobs of {card["passed"]:.0%} of {card["control"]} calibration worlds (mean reward {card["reward"]:.2f}, temperature 1).
- No data but what this project's own generators and scripted experts made; licence as the project's.
- Arithmetic in other orders gives other last bits: the same command on another machine gives another checkpoint of the same kind. These are the
  bytes that ship:

{files}
"""


if __name__ == "__main__":
    raise SystemExit(main())
