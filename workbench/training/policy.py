"""The policy in both of its roles: an engine that samples, the weights that train, and what each role is told."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench import paths
from workbench.agents import Budget
from workbench.agents.prompts import PROMPTS, Prompt
from workbench.agents.terminal import TerminalAgent
from workbench.models import Model, Sampling
from workbench.models.engine_model import Conversation, EngineModel
from workbench.models.recording import Recording
from workbench.proposer import Proposer

if TYPE_CHECKING:
    from workbench.training.trainer import Learner


@dataclass
class Policy:
    """One set of weights, two roles (AutoEnvScaling §3.3).

    model: the engine with its chat format; it keeps what each conversation sampled. network: the module that a Learner
    trains, not the engine's own, so that sampling goes on while a gradient is computed. solver_prompt, sampling, budget: of a
    solver's episode. propose_with: a Model (one trajectory's) and its sampling → the proposer that it plays. auto_submit: an
    episode that used all its turns counts as submitted, for policies that are given no other way to end."""

    name: str
    model: EngineModel
    network: Any
    tokenizer: Any
    solver_prompt: Prompt | str
    sampling: Sampling
    budget: Budget
    propose_with: Callable[[Model, Sampling], Proposer] | None = None
    auto_submit: bool = False

    def solver(self, key: str, seed: int) -> TerminalAgent:
        """The agent of one trajectory, whose tokens `segments(key)` has afterwards."""
        sampling = replace(self.sampling, seed=seed)
        return TerminalAgent(self.model.conversation(key), sampling=sampling, prompt=self.solver_prompt)

    def untracked_solver(self, seed: int) -> TerminalAgent:
        """An agent whose tokens train nothing (calibration, evaluation); its record goes with it."""
        model = Conversation(self.model, Recording(self.model.format))
        return TerminalAgent(model, sampling=replace(self.sampling, seed=seed), prompt=self.solver_prompt)

    def sync(self, learner: Learner, folder: Path | None = None) -> None:
        """The learner's weights into the engine, and every cache of the old ones forgotten. folder: where to leave them for an
        engine in another process."""
        engine = self.model.engine
        if hasattr(engine, "update_weights"):
            engine.update_weights(learner.weights(), learner.version)
        elif folder is None:
            raise ValueError(f"engine {engine.name} takes weights from a folder: name one that its servers see")
        else:
            engine.load_weights(learner.save_model(folder, self.tokenizer), learner.version)

    def close(self) -> None:
        self.model.engine.close()


def open_policy(spec: str, values: Mapping[str, Any]) -> Policy:
    """A policy from one string.

    "micro"            the Cold-Start checkpoint that ships (about a million weights); "micro:FOLDER" another one,
                       "micro:random" the same model from random weights
    "smollm2", "transformers:PATH_OR_ID", "vllm:URL[,URL…]"  as workbench.models.engines.get_engine; the learner's copy is
                       read from the same place (for vllm: values["weights"], a folder; empty: the one that the
                           server names)
    values: temperature, max_tokens, turns, seconds, command_seconds, prompt, seed, workers; and the worlds that its proposer composes
    from: generators, tiers.
    """
    policy = _micro(spec.partition(":")[2], values) if spec.split(":")[0] == "micro" else _by_engine(spec, values)
    library = library_of(values)
    policy.propose_with = lambda model, sampling: compose(policy, model, sampling, library, spec.startswith("micro"))
    return policy


def library_of(values: Mapping[str, Any]) -> Any:
    """The worlds of a run: generators and tiers by its values, seeds of the training partition."""
    from workbench.proposer.latent import LatentWorlds

    held_out = values.get("held_out_generators") or ()
    return LatentWorlds(
        generators=values["generators"], tiers=tuple(values["tiers"]), held_out=held_out, seed=values["seed"]
    )


def compose(policy: Policy, model: Model, sampling: Sampling, library: Any, micro: bool) -> Proposer:
    """A proposer whose one action is a `worlds compose` line."""
    from workbench.proposer.compose import PLAIN, ComposeProposer

    if micro:
        from workbench.training.micro import proposer_prompt

        return ComposeProposer(model, library, prompt=proposer_prompt, sampling=sampling)
    return ComposeProposer(model, library, prompt=PLAIN, sampling=sampling)


def _micro(place: str, values: Mapping[str, Any]) -> Policy:
    from workbench.training import micro

    folder = None if place == "random" else Path(place) if place else _checkout(micro.CHECKPOINT)
    network, tokenizer = micro.open_policy(folder, seed=values["seed"])
    model = micro.engine_model(copy.deepcopy(network), tokenizer, max_batch=values["workers"])
    return Policy("micro", model, network, tokenizer, micro.solver_prompt, _sampling(values), _budget(values), auto_submit=True)  # fmt: skip


def _checkout(path: Path) -> Path:
    """A path of the checkout, or of the installed package, wherever a notebook's kernel was started."""
    here = paths.DATA.parent / path
    return here if here.exists() else path


def _by_engine(spec: str, values: Mapping[str, Any]) -> Policy:
    from workbench.models.embedded import smollm2_folder
    from workbench.models.engines import get_engine
    from workbench.models.transformers_model import load

    engine, chat = get_engine(spec, **({} if spec.startswith("vllm:") else {"max_batch": values["workers"]}))
    kind, _, rest = spec.partition(":")
    served = str(getattr(engine, "folder", ""))  # a server's own model, when it lies on this machine
    place = smollm2_folder() if spec == "smollm2" else (values["weights"] or served) if kind == "vllm" else rest
    network, tokenizer = load(place, dtype="float32")
    model = EngineModel(engine, chat, name=spec)
    return Policy(spec, model, network, tokenizer, PROMPTS[values["prompt"]], _sampling(values), _budget(values))


def _sampling(values: Mapping[str, Any]) -> Sampling:
    return Sampling(max_tokens=values["max_tokens"], temperature=values["temperature"])


def _budget(values: Mapping[str, Any]) -> Budget:
    return Budget(values["turns"], values["turns"] * values["max_tokens"], values["seconds"], values["command_seconds"])
