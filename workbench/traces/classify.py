"""Guess what a turn does (read, build, write, test) by keywords. The rules, and what they are for, stand in rules.yaml."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from workbench.traces.labels import LABELS
from workbench.traces.shell import Part, split
from workbench.traces.turns import TurnView

RULES = Path(__file__).with_name("rules.yaml")
_TRIPLE = re.compile(r"'''.*?'''|\"\"\".*?\"\"\"", re.S)
_MAX_TEXT = 4000  # characters of a text step: what an agent announces stands at its beginning


@dataclass(frozen=True)
class Guess:
    """label, and why: the rule's section and number, and the word or command that it fitted."""

    label: str
    rule: str
    matched: str = ""


@dataclass(frozen=True)
class _Rule:
    label: str
    where: str
    name: re.Pattern[str] | None
    args: re.Pattern[str] | None
    body: re.Pattern[str] | None
    in_loop: re.Pattern[str] | None
    unless: re.Pattern[str] | None
    writes: bool
    weak: bool
    code: bool

    def fits(self, part: Part) -> bool:
        return (
            (self.name is None or self.name.fullmatch(part.name) is not None)
            and (not self.writes or part.writes)
            and (self.args is None or self.args.search(part.rest) is not None)
            and (self.body is None or self.body.search(part.body) is not None)
            and (self.in_loop is None or (bool(part.loop) and self.in_loop.search(part.loop) is not None))
        )


class Classifier:
    """The rules of one file. `version` goes with everything that is derived from its guesses."""

    def __init__(self, path: Path = RULES):
        import yaml

        try:
            data = yaml.safe_load(path.read_text(encoding="utf-8"))
            self.version, self.order = str(data["version"]), tuple(data["order"])
            self.otherwise = data["otherwise"]
            self._rules = {s: [_rule(s, i, r) for i, r in enumerate(data[s], 1)] for s in _SECTIONS}
        except (yaml.YAMLError, KeyError, TypeError, AttributeError, re.error) as error:
            raise ValueError(f"{path}: not a file of rules: {type(error).__name__} {error}") from error
        if sorted(self.order) != sorted(LABELS) or self.otherwise not in LABELS:
            raise ValueError(f"{path}: order must name {', '.join(LABELS)} once each, and otherwise one of them")

    def turns(self, turns: Iterable[TurnView]) -> list[Guess]:
        """One guess a turn. A text that stands right before a call takes the call's."""
        turns = list(turns)
        guesses: list[Guess] = [self.turn(turn) for turn in turns]
        for i in range(len(turns) - 2, -1, -1):
            if turns[i].kind == "text" and turns[i + 1].kind == "call":
                guesses[i] = Guess(guesses[i + 1].label, "text/announces", turns[i + 1].tool)
        return guesses

    def turn(self, turn: TurnView) -> Guess:
        """A guess from the turn alone."""
        if turn.kind == "text":
            return self.text(turn.text)
        return self.tool(turn.tool, turn.arguments) if turn.command is None else self.command(turn.command)

    def command(self, script: str) -> Guess:
        """Of a shell script: of its simple commands' labels the first in `order`, strong ones before weak ones."""
        strong: dict[str, Guess] = {}
        weak: dict[str, Guess] = {}
        for part in split(script):
            rule = next((r for r in self._rules["shell"] if r.fits(part)), None)
            if rule is not None:
                guess = self._code(part) if rule.code else Guess(rule.label, rule.where, part.name)
                (weak if rule.weak else strong).setdefault(guess.label, guess)
        for found in (strong, weak):
            for label in self.order:
                if label in found:
                    return found[label]
        return Guess(self.otherwise, "otherwise")

    def tool(self, name: str, arguments: str = "") -> Guess:
        """Of a tool that is no shell."""
        for rule in self._rules["tools"]:
            if rule.name and rule.name.fullmatch(name) and not (rule.unless and rule.unless.search(arguments)):
                return Guess(rule.label, rule.where, name)
        return Guess(self.otherwise, "otherwise")

    def text(self, text: str) -> Guess:
        """Of words alone: the keyword that comes first."""
        found = [(m.start(), r, m[0]) for r in self._rules["text"] if r.body and (m := r.body.search(text[:_MAX_TEXT]))]
        if not found:
            return Guess(self.otherwise, "otherwise")
        _, rule, word = min(found, key=lambda f: f[0])
        return Guess(rule.label, rule.where, word)

    def _code(self, part: Part) -> Guess:
        body = _TRIPLE.sub("''", part.body)
        for rule in self._rules["code"]:
            if rule.body and (match := rule.body.search(body)):
                return Guess(rule.label, rule.where, match[0][:40] or part.name)
        return Guess(self.otherwise, "otherwise", part.name)


_SECTIONS = ("shell", "code", "tools", "text")


def _rule(section: str, number: int, data: Mapping[str, Any]) -> _Rule:
    patterns = {k: _pattern(data[k]) if data.get(k) else None for k in ("name", "args", "in_loop", "unless")}
    body = _pattern(data["body"]) if "body" in data else None
    unknown = data.keys() - {"label", "body", "writes", "weak", "code", *patterns}
    if unknown or data.get("label", "read") not in LABELS:
        raise ValueError(f"rule {section}/{number}: {', '.join(unknown) or data['label']} is not known")
    flags = {k: bool(data.get(k)) for k in ("writes", "weak", "code")}
    return _Rule(label=data.get("label", ""), where=f"{section}/{number}", body=body, **patterns, **flags)


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.I)


@cache
def default() -> Classifier:
    """The classifier that ships with the workbench."""
    return Classifier()


def classify(turns: Iterable[TurnView]) -> list[str]:
    """Labels of turns, by the default rules."""
    return [guess.label for guess in default().turns(turns)]
