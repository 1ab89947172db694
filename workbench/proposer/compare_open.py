"""From an entry of a comparison to its proposer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from workbench.admission.review import DEFAULT, Reviewer
from workbench.agents import Agent, Budget, get_agent
from workbench.models import Model, Sampling, get_model
from workbench.models.budget import Budget as Cap
from workbench.proposer import Proposer, get_proposer
from workbench.proposer.compare_config import CompareError, Entry, ModelSpec
from workbench.proposer.compare_replies import Memory, Remembered
from workbench.proposer.compare_scripted import Designer
from workbench.proposer.feedback import ROUNDS, FeedbackProposer
from workbench.proposer.harness import EPISODE, HarnessProposer, HarnessSettings
from workbench.proposer.latent import LatentWorlds
from workbench.proposer.limits import Caps, Slots
from workbench.proposer.prompt import PromptProposer
from workbench.proposer.tools import SolverTool, Toolbox
from workbench.sandboxes import Backend, Network, get_backend

CHECKING = ("validate", "run", "solver_model")  # what executes the reference solution or shows that nothing works


@dataclass
class Opener:
    """Opens entries. run: remembers replies. backend: where the feedback method and harnesses run. folder: where harnesses
    keep their versions. rounds: of the feedback method. budget: of a harness episode. solver: of the tool solver_model.
    worlds: options of the library of latent worlds, which the control `world` draws from; harness_worlds: whether harnesses have
    it as a tool too (the paper's have none). cap: the dollars of the whole comparison. models: opened ones by their names in the file; each is opened once, however
    many entries it has."""

    run: Memory
    backend: Backend
    folder: Path
    rounds: int = ROUNDS
    budget: Budget = EPISODE
    caps: Caps = Caps()
    solver: SolverTool | None = None
    cap: Cap | None = None
    slots: Slots = field(default_factory=lambda: Slots(2, 2))
    worlds: Mapping[str, Any] = field(default_factory=dict)
    harness_worlds: bool = False
    models: dict[str, Model] = field(default_factory=dict)
    _harnesses: dict[str, HarnessProposer] = field(default_factory=dict)

    def open(self, entry: Entry) -> Proposer:
        """CompareError says which entry cannot be opened and why."""
        try:
            return self._open(entry)
        except CompareError:
            raise
        except (ValueError, TypeError, KeyError) as error:
            raise CompareError(f"{entry.id}: {error}") from error

    def _open(self, entry: Entry) -> Proposer:
        if entry.spec is None:
            return get_proposer(entry.method, **(self.worlds if entry.method == "world" else {}))
        if entry.method == "harness":
            return self.harness(entry)
        model = Remembered(self.model(entry.spec), self.run, entry.id)
        sampling = Sampling(**{"max_tokens": 16_384, **entry.spec.sampling})
        if entry.method == "prompt":
            return PromptProposer(model, sampling)
        return FeedbackProposer(model, self.backend, rounds=self.rounds, sampling=sampling)

    def harness(self, entry: Entry) -> HarnessProposer:
        """One harness an id; an optimized entry plays with the one that was edited."""
        assert entry.spec is not None
        home = entry.id.removesuffix("-optimized")
        if home not in self._harnesses:
            calls = {k: (n if entry.self_check or k not in CHECKING else 0) for k, n in self.caps.calls.items()}
            toolbox = Toolbox(
                self._children(), slots=self.slots, caps=replace(self.caps, calls=calls), solver=self.solver,
                worlds=LatentWorlds(**self.worlds) if self.harness_worlds else None,
            )  # fmt: skip
            self._harnesses[home] = HarnessProposer(
                self._agent(entry.spec, home), backend=self.backend, toolbox=toolbox, store=self.folder / home,
                settings=HarnessSettings(budget=self.budget), name=f"harness:{entry.spec.name}",
            )  # fmt: skip
        return self._harnesses[home]

    def close(self) -> None:
        for harness in self._harnesses.values():
            harness.close()

    def reviewer(self, entry: Entry, rubric: str | Path = DEFAULT) -> Reviewer | None:
        """The review by the proposer's own model (G.4); None for a proposer without one."""
        if entry.spec is None or entry.spec.model.startswith("designer:"):
            return None
        return Reviewer(Remembered(self.model(entry.spec), self.run, f"{entry.id}-review"), rubric)

    def model(self, spec: ModelSpec) -> Model:
        if spec.name not in self.models:
            self.models[spec.name] = self._open_model(spec)
        return self.models[spec.name]

    def _open_model(self, spec: ModelSpec) -> Model:
        if spec.model.startswith("designer:"):
            return Designer(*(float(part) for part in spec.model.split(":")[1:]))
        options = dict(spec.options)
        if spec.price.known and spec.model.startswith("litellm:"):
            name = spec.model.removeprefix("litellm:")
            options["prices"] = {name: spec.price, f"openai/{name}": spec.price}
        return get_model(spec.model, **options, **({"budget": self.cap} if self.cap is not None else {}))

    def _agent(self, spec: ModelSpec, scope: str) -> Any:
        if spec.agent != "terminal":
            return self._coding(spec)
        model = Remembered(self.model(spec), self.run, scope)
        drawn = Sampling(**{"max_tokens": 8_192, **spec.sampling})

        def agent(seed: int) -> Agent:
            return get_agent("terminal", model, sampling=replace(drawn, seed=seed % 2**31), prompt=spec.prompt)

        return agent

    def _coding(self, spec: ModelSpec) -> Agent:
        from workbench.agents.coding.endpoint import Endpoint

        if self.cap is not None and math.isnan(spec.price.input):
            raise CompareError(f"model {spec.name}: a spending cap needs its prices")
        name = spec.model.rpartition("/")[2].rpartition(":")[2]
        endpoint = Endpoint(**{"model": name, "price": spec.price, "cap": self.cap, **spec.endpoint})
        return get_agent(spec.agent, endpoint=endpoint)

    def _children(self) -> Backend:
        """Where tools build and run: without network in builds, or the web rules can be walked around."""
        if self.backend.name != "bubblewrap":
            return self.backend
        return get_backend("bubblewrap", build_network=Network("no-network"))
