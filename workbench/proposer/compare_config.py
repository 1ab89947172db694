"""What is compared: models, methods and controls from one YAML file (AutoEnvScaling §4.1), expanded to entries.

    models:
      - name: sol                         # as tables and figures call it
        model: "litellm:openai/NAME"      # see workbench.models.get_model; or designer:FAULTS:REPAIRS, a scripted control
        options: {api_base: "URL"}        # of get_model
        prices: {input: 1.25, output: 10} # USD per million tokens; without them what litellm knows, else unknown
        family: gpt                       # models of one family are compared as they weaken ...
        place: 1                          # ... 1 is the strongest
        agent: codex                      # of the harness: terminal (default), claude-code, codex or pi
        endpoint: {url: "URL", key_env: VARIABLE}   # where a coding agent asks
        sampling: {max_tokens: 8192}      # of workbench.models.Sampling
        prompt: standard                  # of the terminal agent
        methods: [prompt, harness]        # other than the file's; so may self_check be
    methods: [prompt, feedback, harness]
    controls: [world, program]            # proposers without a model
    self_check: [true, false]             # the harness with and without its self-check (Table 11)
    optimize: [NAME]                      # models whose harness is edited after a first round, then played again

A file may also be a list: the models alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from workbench.models.prices import Price, read_prices
from workbench.proposer.workspace import safe

METHODS = ("prompt", "feedback", "harness")
CONTROLS = ("world", "program")
AGENTS = ("terminal", "claude-code", "codex", "pi")


class CompareError(ValueError):
    """The comparison's file is wrong; the message says where and what is allowed."""


@dataclass(frozen=True)
class ModelSpec:
    """One model of the file. price: NaN when the file states none."""

    name: str
    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    price: Price = Price()
    family: str = ""
    place: int = 0
    agent: str = "terminal"
    endpoint: Mapping[str, Any] = field(default_factory=dict)
    sampling: Mapping[str, Any] = field(default_factory=dict)
    prompt: str = "standard"
    methods: tuple[str, ...] = METHODS
    self_check: tuple[bool, ...] = (True,)


@dataclass(frozen=True)
class Entry:
    """One proposer that is compared: a model with a method, or a control. id: its name in records and folders.
    self_check: whether its harness may run what it wrote. optimized: it plays after its harness was edited."""

    id: str
    method: str
    name: str
    spec: ModelSpec | None = None
    self_check: bool = True
    optimized: bool = False

    def to_row(self) -> dict[str, Any]:
        spec = self.spec
        return {
            "id": self.id, "method": self.method, "model": self.name, "self_check": self.self_check,
            "optimized": self.optimized, "agent": spec.agent if spec and self.method == "harness" else "",
            "family": spec.family if spec else "", "place": spec.place if spec else 0,
        }  # fmt: skip


def read_config(source: str | Path | Mapping[str, Any]) -> dict[str, Any]:
    """The file as a mapping. CompareError says what is wrong with it."""
    if isinstance(source, Mapping):
        return dict(source)
    import yaml

    try:
        data = yaml.safe_load(Path(source).read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise CompareError(f"{source}: cannot be read: {error}") from error
    if isinstance(data, list):
        data = {"models": data}
    if not isinstance(data, dict):
        raise CompareError(f"{source}: expected a mapping with `models`, or a list of models")
    return data


def entries(config: Mapping[str, Any]) -> list[Entry]:
    """Every entry of a configuration, models in their order, methods from prompt to harness, controls last."""
    known = {"models", "methods", "controls", "self_check", "optimize"}
    if unknown := sorted(set(config) - known):
        raise CompareError(f"unknown key {', '.join(unknown)}: there are {', '.join(sorted(known))}")
    methods = _choice("methods", config.get("methods") or METHODS, METHODS)
    controls = _choice("controls", config.get("controls") or (), CONTROLS)
    checks = tuple(bool(c) for c in config.get("self_check") or (True,))
    specs = [_spec(row, methods, checks) for row in config.get("models") or ()]
    optimize = _choice("optimize", config.get("optimize") or (), [s.name for s in specs])
    made = [e for spec in specs for e in _of_model(spec, spec.name in optimize)]
    made += [Entry(safe(name), name, name) for name in controls]
    if not made:
        raise CompareError("nothing to compare: give `models` or `controls`")
    ids = [e.id.lower() for e in made]
    if twice := sorted({i for i in ids if ids.count(i) > 1}):
        raise CompareError(f"names must differ: {', '.join(twice)}")
    return made


def _of_model(spec: ModelSpec, optimize: bool) -> list[Entry]:
    made, checks = [], spec.self_check
    for method in spec.methods:
        entry = Entry(f"{safe(spec.name)}-{method}", method, spec.name, spec)
        if method != "harness":
            made.append(entry)
            continue
        made += [entry if check else replace(entry, id=f"{entry.id}-unchecked", self_check=False) for check in checks]
        made += [replace(entry, id=f"{entry.id}-optimized", optimized=True)] if optimize and True in checks else []
    return made


def _spec(row: Any, methods: Sequence[str], checks: Sequence[bool]) -> ModelSpec:
    if isinstance(row, str):
        row = {"model": row}
    if not isinstance(row, Mapping) or not isinstance(row.get("model"), str):
        raise CompareError(f"a model needs at least `model: NAME`, found {row!r}")
    fields = {**row, "name": str(row.get("name") or row["model"])}
    prices = fields.pop("prices", None)
    allowed = set(ModelSpec.__dataclass_fields__) - {"price"}
    if unknown := sorted(set(fields) - allowed):
        there = ", ".join(sorted({*allowed, "prices"}))
        raise CompareError(f"model {fields['name']}: unknown key {', '.join(unknown)}; there are {there}")
    if fields.get("agent", "terminal") not in AGENTS:
        raise CompareError(f"model {fields['name']}: no agent {fields['agent']!r}: use {', '.join(AGENTS)}")
    if fields.get("agent", "terminal") != "terminal" and "url" not in (fields.get("endpoint") or {}):
        raise CompareError(f"model {fields['name']}: {fields['agent']} needs endpoint: {{url: URL, key_env: VARIABLE}}")
    try:
        price = read_prices({fields["name"]: prices})[fields["name"]] if prices else Price()
    except ValueError as error:
        raise CompareError(str(error)) from error
    fields["methods"] = _choice(f"methods of {fields['name']}", fields.get("methods") or methods, METHODS)
    fields["self_check"] = tuple(bool(c) for c in fields.get("self_check") or checks)
    return ModelSpec(**{**fields, "price": price})


def _choice(what: str, given: Sequence[str], allowed: Sequence[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        given = [given]
    if unknown := [g for g in given if g not in allowed]:
        raise CompareError(f"{what}: {', '.join(map(str, unknown))} is none of {', '.join(allowed) or 'the models'}")
    return tuple(dict.fromkeys(given))
