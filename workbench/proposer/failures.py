"""Why a solver failed, clustered: which tests, what kind of error, and the line that shows it (AutoEnvScaling §3.1).

The paper gives "the most common failure" and does not say how it is found. Ours: attempts are alike when they ended alike,
the same tests failed, and the verifier's output or the last turns name the same kind of error; numbers, paths, addresses
and quoted values do not count. Everything read here comes from a sandbox: it is cleaned and cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from workbench.trials import Trial, plain

LAST_TURNS = 3  # of an attempt that are read
MAX_TEXT, MAX_QUOTE, SHOWN_TESTS = 20_000, 240, 6

_PATH = re.compile(r"(?:[A-Za-z]:)?(?:[./~][\w.+@-]*)?/[\w./+@-]+")
_QUOTED = re.compile(r"'[^'\n]{1,200}'|\"[^\"\n]{1,200}\"|`[^`\n]{1,200}`")
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-f]{12,}\b|\d+(?:\.\d+)?")
# What a line says went wrong, in the order in which it is believed. An assertion only says that a test failed.
_KINDS = (
    ("timed out", re.compile(r"\btimed? ?out\b|TimeoutExpired|TimeoutError", re.I)),
    ("out of memory", re.compile(r"MemoryError|out of memory|oom-kill", re.I)),
    ("syntax error", re.compile(r"SyntaxError|IndentationError|syntax error", re.I)),
    ("module missing", re.compile(r"ModuleNotFoundError|ImportError|No module named")),
    ("command not found", re.compile(r"command not found|: not found$", re.M)),
    ("permission denied", re.compile(r"PermissionError|Permission denied|Operation not permitted")),
    ("no such file", re.compile(r"FileNotFoundError|No such file or directory")),
    ("connection refused", re.compile(r"ConnectionRefusedError|Connection refused", re.I)),
    ("disk full", re.compile(r"No space left on device")),
)
_EXCEPTION = re.compile(r"^(?:E\s+)?(?:[\w.]+\.)?([A-Z]\w*(?:Error|Exception|Exit|Warning))\b", re.M)


@dataclass(frozen=True)
class Failure:
    """One cluster. words: what it is, for people; trials: ids of its attempts; quote: a line of the first that shows it."""

    words: str
    trials: tuple[str, ...]
    quote: str = ""

    @property
    def count(self) -> int:
        return len(self.trials)


def normalise(text: str) -> str:
    """A line or a name without what differs from attempt to attempt."""
    text = _QUOTED.sub("<text>", text)
    text = _PATH.sub("<path>", text)
    return " ".join(_NUMBER.sub("<n>", text).split())


def error_of(trial: Trial) -> tuple[str, str]:
    """(kind of error, the line that says so): the verifier's own output first, then the last turns, latest first."""
    for text in _texts(trial):
        for kind, pattern in _KINDS:
            if found := pattern.search(text):
                return kind, _line(text, found.start())
        for found in _EXCEPTION.finditer(text):
            if found[1] != "AssertionError":
                return found[1], _line(text, found.start())
    return "", ""


def failure_of(trial: Trial) -> str:
    """In words, how an attempt fell short; "" when it passed everything. Attempts that failed alike give the same words up
    to `normalise`."""
    return _words(trial, error_of(trial)[0])


def cluster(trials: Iterable[Trial]) -> list[Failure]:
    """The failures of the attempts that count, most common first (ties: in the order of the words)."""
    members: dict[str, list[Trial]] = {}
    words: dict[str, str] = {}
    for trial in trials:
        if trial.counts and (said := failure_of(trial)):
            key = normalise(said)
            members.setdefault(key, []).append(trial)
            words.setdefault(key, said)
    found = [Failure(words[k], tuple(t.id for t in m), quote_of(m[0])) for k, m in members.items()]
    return sorted(found, key=lambda f: (-f.count, f.words))


def quote_of(trial: Trial) -> str:
    """One line that shows the failure: the error's, else one of the verifier's that names a failed test, else its last."""
    if line := error_of(trial)[1]:
        return line
    failed = [name for name, status in trial.tests.items() if status != "passed"]
    lines = [line for grade in trial.steps for line in grade.stdout[-MAX_TEXT:].splitlines() if line.strip()]
    named = next((line for line in lines if any(name and name in line for name in failed)), "")
    return _cut(named or (lines[-1] if lines else ""))


def _words(trial: Trial, kind: str) -> str:
    if trial.reward is not None and trial.reward >= 1:
        return ""
    failed = sorted(name for name, status in trial.tests.items() if status != "passed")
    parts = [f"ended by {trial.ended_by}"] if trial.ended_by and trial.ended_by != "submit" else []
    if failed:
        more = f" and {len(failed) - SHOWN_TESTS} more" if len(failed) > SHOWN_TESTS else ""
        parts.append("failed " + ", ".join(_cut(name, 80) for name in failed[:SHOWN_TESTS]) + more)
    elif trial.reason:
        parts.append(trial.reason)
    if kind:
        parts.append(kind)
    return "; ".join(parts) or f"reward {trial.reward}"


def _texts(trial: Trial) -> list[str]:
    turns = [turn for episode in trial.episodes for turn in episode.turns][-LAST_TURNS:]
    verifier = [grade.stdout[-MAX_TEXT:] for grade in trial.steps]
    return [text for text in (*verifier, *(t.observation[-MAX_TEXT:] for t in reversed(turns))) if text]


def _line(text: str, at: int) -> str:
    end = text.find("\n", at)
    return _cut(text[text.rfind("\n", 0, at) + 1 : end if end >= 0 else len(text)])


def _cut(line: str, limit: int = MAX_QUOTE) -> str:
    line = " ".join(plain(line).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
