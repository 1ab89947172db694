"""The data ablations of Tev §4.3: each replaces one part of latent-world construction by a model. Terminal reward only.

`public-view`   the world, its damage, its prompt and its solution stay; the verifier is written by a model that sees only what the agent sees
                (Table 5: world and DAG kept, hidden truth by an LLM). Truth, sealed verifier, Phi and hidden suite are gone from the task.
`prompt-first`  a model writes the prompt, then the inputs, then the verifier, then the solution, one call each: self-instruct, without a
                world or a DAG behind it.

Both are proposers, so that admission, calibration and training treat their tasks like any other. Tev has GPT-5.6 (sol, xhigh) write;
here any model does. The paper publishes no prompts: these words are ours, and so is the second attempt at an unreadable answer.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from workbench.agents.turns import turn_of
from workbench.models import Message, Model, Sampling
from workbench.proposer import Assignment, Proposal, Proposer
from workbench.proposer.ablation_text import EXAMPLE, PROMPT_FIRST, PUBLIC_VIEW, STAGES, public_view
from workbench.proposer.prompt import parse_files
from workbench.runs.temporary import prefix
from workbench.tasks.limits import LIMITS_TOML
from workbench.tasks.verifier import VERIFIER_TEMPLATE
from workbench.traces import Episode, Turn
from workbench.worlds import DOMAINS

ATTEMPTS = 2  # of one answer: the fault goes back once
COMPUTING = tuple(key for key in DOMAINS if key.startswith("9."))
DOCKERFILE = "FROM python:3.13-slim\nWORKDIR /app\nCOPY files/ /app/\n"
TOML = """schema_version = "1.4"

[task]
name = {name}
version = "1.0.0"
description = {description}

[metadata.workbench.ablation]
method = "prompt-first"
model = {model}
domain = {domain}

"""


class _Chat:
    """One conversation with a model, whose answers are files below given folders; keeps turns and price."""

    def __init__(self, model: Model, sampling: Sampling, system: str):
        self.model, self.sampling = model, sampling
        self.messages: list[Message] = [{"role": "system", "content": system}]
        self.turns: list[Turn] = []

    def files(self, ask: str, allowed: tuple[str, ...], needed: str) -> tuple[dict[str, str], str]:
        """(files, "" or what is wrong): asks, and once more with the fault. `needed`: a file, or a folder with at least one."""
        for _ in range(ATTEMPTS):
            text = self._ask(ask)
            files, fault = parse_files(text)
            strange = [name for name in files if not name.startswith(allowed) or name == "tests/test.sh"]
            if not fault and strange:
                fault = f"file {strange[0]!r} is not asked for here: write below {', '.join(allowed)}"
            if not fault and not any(name.startswith(needed) for name in files):
                fault = f"there is no {needed}"
            self.turns[-1] = replace(self.turns[-1], observation=fault)
            if not fault:
                return files, ""
            ask = f'Your answer cannot be used: {fault}. Give the whole answer again, every file as <file path="...">.'
        return {}, fault

    def _ask(self, text: str) -> str:
        self.messages.append({"role": "user", "content": text})
        seed = None if self.sampling.seed is None else (self.sampling.seed + len(self.turns)) % 2**31
        reply = self.model.reply(self.messages, replace(self.sampling, seed=seed))
        self.messages.append({"role": "assistant", "content": reply.text})
        self.turns.append(turn_of(reply, len(self.turns)))
        return reply.text

    def proposal(self, assignment: str, name: str, path: Path | None, message: str, began: float) -> Proposal:
        episode = Episode(
            name,
            tuple(self.turns),
            self.model.name,
            submitted=path is not None,
            ended_by="submit" if path is not None else "malformed",
            system=self.messages[0]["content"],
            instruction=self.messages[1]["content"],
        )
        usd = math.fsum(turn.usd for turn in self.turns)
        seconds = time.monotonic() - began
        place = None if path is None else str(path)
        return Proposal(assignment, name, place, message, seconds, usd, len(self.turns), episode)


class PublicView:
    """worlds: who chooses the world, "world" unless given. sampling: how the model answers (16,384 tokens unless said)."""

    def __init__(self, model: Model, worlds: Proposer | None = None, sampling: Sampling | None = None):
        from workbench.proposer.world import WorldProposer

        self.model, self.worlds = model, worlds or WorldProposer()
        self.sampling = sampling or Sampling(max_tokens=16_384)
        self.name = f"public-view:{model.name}"

    def propose(self, assignment: Assignment, target: Path, *, seed: int, feedback: str = "") -> Proposal:
        """The world follows from assignment and seed alone, so a revision is of the same world."""
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix=prefix("public-view")) as folder:
            base = self.worlds.propose(assignment, Path(folder) / "world", seed=seed)
            if base.path is None:
                return replace(base, proposer=self.name, seconds=time.monotonic() - began)
            return self.replace_verifier(Path(base.path), target, seed=seed, feedback=feedback, id=assignment.id)

    def replace_verifier(self, world: Path, target: Path, *, seed: int, feedback: str = "", id: str = "") -> Proposal:
        """Write the task in folder `world` to `target`, with a verifier of the model's in place of its own."""
        began = time.monotonic()
        chat = _Chat(self.model, replace(self.sampling, seed=seed), PUBLIC_VIEW)
        refused = f"\n\nYour last verifier was refused:\n{feedback}" if feedback else ""
        files, fault = chat.files(public_view(world) + refused, ("tests/",), "tests/test_")
        if files:
            _repack(world, target, files, self.model.name)
        return chat.proposal(id, self.name, target if files else None, fault, began)


def _repack(world: Path, target: Path, tests: dict[str, str], model: str) -> None:
    """The world's task with other tests. Nothing of its own tests/ is copied: truth, Phi and hidden suite stay behind."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(world, target, ignore=lambda folder, names: ["tests"] if Path(folder) == world else [])
    _write(target, {**tests, "tests/test.sh": VERIFIER_TEMPLATE})
    toml = target / "task.toml"
    text = re.sub(r'^name = "[^"/]*/', 'name = "public-view/', toml.read_text(encoding="utf-8"), count=1, flags=re.M)
    text += f'\n[metadata.workbench.ablation]\nmethod = "public-view"\nmodel = {json.dumps(model)}\n'
    toml.write_text(text, encoding="utf-8")


class PromptFirst:
    """domains: keys of workbench.worlds.DOMAINS, one drawn for each task. sampling: as for PublicView.

    The parent's instruction, if there is one, is shown as an example of the form, as self-instruct shows seed tasks.
    """

    def __init__(self, model: Model, domains: Sequence[str] = COMPUTING, sampling: Sampling | None = None):
        if unknown := [key for key in domains if key not in DOMAINS]:
            raise ValueError(f"no domain {', '.join(unknown)}: choose of {', '.join(DOMAINS)}")
        self.model, self.domains = model, tuple(domains)
        self.sampling = sampling or Sampling(max_tokens=16_384)
        self.name = f"prompt-first:{model.name}"

    def propose(self, assignment: Assignment, target: Path, *, seed: int, feedback: str = "") -> Proposal:
        began = time.monotonic()
        place = hashlib.sha256(f"{assignment.id}\0{seed}".encode()).digest()[0]
        domain = self.domains[place % len(self.domains)]
        chat = _Chat(self.model, replace(self.sampling, seed=seed), PROMPT_FIRST)
        files: dict[str, str] = {}
        for stage, (ask, allowed, needed) in STAGES.items():
            text = ask.replace("{domain}", DOMAINS[domain])
            if stage == "prompt":
                text += _example(assignment) + (f"\nAn earlier version was refused:\n{feedback}" if feedback else "")
            found, fault = chat.files(text, allowed, needed)
            if fault:
                return chat.proposal(assignment.id, self.name, None, f"{stage}: {fault}", began)
            files |= found
        self._pack(files, target, domain)
        return chat.proposal(assignment.id, self.name, target, f"{domain} {DOMAINS[domain]}", began)

    def _pack(self, files: dict[str, str], target: Path, domain: str) -> None:
        shutil.rmtree(target, ignore_errors=True)
        words = {"name": f"prompt-first/{target.name}", "description": DOMAINS[domain]}
        words |= {"model": self.model.name, "domain": domain}
        toml = TOML.format(**{key: json.dumps(value) for key, value in words.items()}) + LIMITS_TOML
        own = {"environment/Dockerfile": DOCKERFILE, "tests/test.sh": VERIFIER_TEMPLATE, "task.toml": toml}
        _write(target, {**files, **own})


def _example(assignment: Assignment) -> str:
    path = Path(assignment.parent_path) / "instruction.md"
    if not assignment.parent_path or not path.is_file() or path.is_symlink():
        return ""
    with path.open(encoding="utf-8", errors="replace") as file:
        return EXAMPLE.replace("{example}", file.read(6000))


def _write(target: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755 if path.suffix == ".sh" else 0o644)
