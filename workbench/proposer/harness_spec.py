"""A harness proposer from one string."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from workbench.agents import Agent
from workbench.models import Sampling
from workbench.proposer.harness import HarnessProposer, HarnessSettings, places
from workbench.proposer.store import HarnessStore
from workbench.proposer.tools import Toolbox, WorldLibrary
from workbench.sandboxes import Backend


def open_harness(
    spec: str,
    *,
    backend: Backend | None = None,
    toolbox: Toolbox | None = None,
    store: HarnessStore | str | Path | None = None,
    settings: HarnessSettings = HarnessSettings(),
    sampling: Sampling | None = None,
    worlds: WorldLibrary | None = None,
    **options: object,
) -> HarnessProposer:
    """A HarnessProposer from "harness:AGENT:MODEL". AGENT "terminal" takes any model of workbench.models.get_model, with
    `options`, and draws with the episode's seed; "script" takes a file; a coding agent (say "harness:codex:NAME") takes
    `endpoint` and asks it for its own model: NAME only stands in the proposer's name. worlds: what the tool `worlds` composes
    from, when no toolbox is given."""
    from workbench.agents import CODING, get_agent
    from workbench.models import get_model

    _, kind, name = [*spec.split(":", 2), "", ""][:3]
    if not kind or not name:
        raise ValueError(f"{spec!r}: write harness:AGENT:MODEL, such as harness:terminal:smollm2")
    agent: Agent | Callable[[int], Agent]
    if kind == "terminal":
        model, drawn = get_model(name, **options), sampling or Sampling(max_tokens=8_192)

        def agent(seed: int) -> Agent:
            return get_agent("terminal", model, sampling=replace(drawn, seed=seed))
    else:
        agent = get_agent(kind if kind in CODING else f"{kind}:{name}", **options)  # type: ignore[arg-type]
    if toolbox is None and worlds is not None:
        backend, toolbox = places(backend, None)
        toolbox.worlds = worlds
    return HarnessProposer(agent, backend=backend, toolbox=toolbox, store=store, settings=settings, name=spec)
