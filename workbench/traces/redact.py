"""Secrets, home folders and user names out of traces. The rules are data: redaction.yaml.

A secret becomes `[NAME-N]`, as in `[openai-key-1]`: the same secret has the same number all through a trace, and again
when the trace is imported again. What no rule describes stays: look before you publish.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from workbench.traces.trace import TraceInfo, TraceStep

RULES = Path(__file__).with_name("redaction.yaml")
_SHORTEST_NAME = 3


@dataclass(frozen=True)
class Rule:
    name: str
    pattern: re.Pattern[str]
    hints: tuple[str, ...]


@dataclass(frozen=True)
class Rules:
    secrets: tuple[Rule, ...]
    homes: tuple[re.Pattern[str], ...]
    stand_in: str
    common: frozenset[str]


@cache
def load_rules(path: Path = RULES) -> Rules:
    """Read a file of rules. ValueError when it is none."""
    import yaml

    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        secrets = tuple(
            Rule(r["name"], re.compile(r["pattern"]), tuple(h.lower() for h in r["hints"])) for r in data["rules"]
        )
        homes = tuple(re.compile(p) for p in data["homes"])
        return Rules(secrets, homes, data["stand_in"], frozenset(n.lower() for n in data["common"]))
    except (yaml.YAMLError, KeyError, TypeError, AttributeError, re.error) as error:
        raise ValueError(f"{path}: not a file of redaction rules: {type(error).__name__} {error}") from error


class Redactor:
    """Replaces secrets in one trace. counts: how many times, by rule."""

    def __init__(self, rules: Rules | None = None):
        self.rules = rules or load_rules()
        self.counts: Counter[str] = Counter()
        self._hints = {hint for rule in self.rules.secrets for hint in rule.hints}
        self._numbers: dict[tuple[str, str], int] = {}
        self._found: Counter[str] = Counter()
        self._word: re.Pattern[str] | None = None

    def learn(self, cwd: str) -> None:
        """Take the name of the person in whose home the agent worked; from now on it is replaced as a word too."""
        names = {m["name"] for home in self.rules.homes for m in home.finditer(cwd)}
        names = {n for n in names if len(n) >= _SHORTEST_NAME and n.lower() not in self.rules.common}
        if names:
            words = "|".join(map(re.escape, sorted(names)))
            self._word = re.compile(rf"(?<![A-Za-z0-9])(?:{words})(?![A-Za-z0-9])")

    def text(self, text: str) -> str:
        """`text` without secrets."""
        lower = text.lower()
        found = {hint for hint in self._hints if hint in lower}  # quick, and almost always empty
        for rule in self.rules.secrets if found else ():
            if not found.isdisjoint(rule.hints):
                text = rule.pattern.sub(lambda m, name=rule.name: self._secret(m, name), text)
        if "/home/" in text or "Users" in text:
            for home in self.rules.homes:
                text = home.sub(self._home, text)
        return self._word.sub(self._name, text) if self._word else text

    def value(self, value: Any) -> Any:
        """The same for every string in plain JSON data."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.value(k): self.value(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(v) for v in value]
        return value

    def info(self, info: TraceInfo) -> TraceInfo:
        return replace(info, cwd=self.text(info.cwd), extra=self.value(info.extra))

    def step(self, step: TraceStep) -> TraceStep:
        usage = step.usage
        if usage is not None and usage.extra:
            usage = replace(usage, extra=self.value(usage.extra))
        return replace(
            step,
            text=self.text(step.text),
            thinking=self.text(step.thinking),
            calls=tuple(replace(c, arguments=self.text(c.arguments), extra=self.value(c.extra)) for c in step.calls),
            results=tuple(replace(r, text=self.text(r.text), extra=self.value(r.extra)) for r in step.results),
            usage=usage,
            extra=self.value(step.extra),
        )

    def _secret(self, match: re.Match[str], name: str) -> str:
        group = "secret" if "secret" in match.re.groupindex else 0
        secret = match[group]
        if secret.startswith("["):  # a placeholder of an earlier rule
            return match[0]
        if (name, secret) not in self._numbers:
            self._found[name] += 1
            self._numbers[name, secret] = self._found[name]
        self.counts[name] += 1
        start, end = (at - match.start() for at in match.span(group))
        return f"{match[0][:start]}[{name}-{self._numbers[name, secret]}]{match[0][end:]}"

    def _home(self, match: re.Match[str]) -> str:
        if match["name"].lower() in self.rules.common:
            return match[0]
        self.counts["home"] += 1
        return match[0][: match.start("name") - match.start()] + self.rules.stand_in

    def _name(self, match: re.Match[str]) -> str:
        self.counts["user-name"] += 1
        return self.rules.stand_in
