"""Public-contract hygiene (Tev A.6): no answers, no reference output and no grading code in what an agent sees."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from workbench.worlds import Environment
from workbench.worlds.canonical import canonical_file
from workbench.worlds.catalog import Generator

PRIVATE = re.compile(r"truth\.json|hidden_suite|/tests/(?:verify|progress|truth)|workbench\.worlds|solution/solve")
LEAST_BYTES = 48  # of an output file whose whole content may not stand in the inputs
LEAST_LEAVES = 5  # of an answer's part that may not stand in a JSON input as it is
CODE_LINES, CODE_LENGTH = 3, 30  # so many lines of grading code, so long each
LONG_NUMBER = re.compile(r"(?<![\w.])\d(?:[\d,]*\d)?(?:\.\d+)?(?![\w])")
LEAST_DIGITS = 6  # of a number in the outputs that the prompt may not tell


def public_hygiene(generator: Generator, environment: Environment) -> list[str]:
    texts = {"the prompt": environment.prompt}
    for path, data in environment.public.items():
        texts[path] = data.decode("utf-8", "replace") if b"\0" not in data[:4096] else ""
    wrong = [
        f"{where} speaks of {found[0]!r}, which only the host has: leave it out"
        for where, text in texts.items()
        if (found := PRIVATE.search(text))
    ]
    wrong += _told_numbers(environment)
    wrong += _whole_outputs(environment)
    wrong += _answer_parts(environment)
    wrong += _code(generator, texts)
    return wrong


def _numbers(value: Any) -> Iterator[str]:
    """The numbers with many digits among an answer's leaves, as text without separators."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _numbers(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        text = repr(value).lstrip("-")
        if sum(sign.isdigit() for sign in text) >= LEAST_DIGITS and "e" not in text:
            yield text


def _told_numbers(environment: Environment) -> list[str]:
    """Long numbers of the JSON outputs that the prompt tells."""
    told = {found[0].replace(",", "") for found in LONG_NUMBER.finditer(environment.prompt)}
    wrong = []
    for path, data in environment.output.items():
        if path.endswith(".json"):
            inputs = None
            for number in sorted(set(_numbers(json.loads(data))) & told):
                inputs = inputs if inputs is not None else b"\0".join(environment.public.values())
                if number.encode() not in inputs:
                    wrong.append(f"the prompt tells {number}, an answer of {path}: leave it out")
    return wrong


def _whole_outputs(environment: Environment) -> list[str]:
    """Output files whose content is an input's, or lies in one as it is. What the inputs must hold, they hold in pieces."""
    declared = {output.path for output in environment.spec.outputs}
    contents = {path: canonical_file(path, data) for path, data in environment.public.items()}
    wrong = []
    for path, data in environment.output.items():
        if path not in declared or len(data) < LEAST_BYTES:
            continue
        meaning = canonical_file(path, data)
        for public, content in contents.items():
            if content == meaning or data.strip() in environment.public[public]:
                wrong.append(f"{public} holds the whole of {path}: an agent would copy it")
        if data.decode("utf-8", "replace").strip() in environment.prompt:
            wrong.append(f"the prompt holds the whole of {path}")
    return wrong


def _answer_parts(environment: Environment) -> list[str]:
    """Objects of the JSON outputs, with their names and values, that stand in a JSON input."""
    parts: dict[str, str] = {}
    for path, data in environment.output.items():
        if path.endswith(".json"):
            for part in _objects(json.loads(data)):
                parts.setdefault(_key(part), path)
    if not parts:
        return []
    wrong = []
    for path, data in environment.public.items():
        for value in _json_values(path, data):
            found = {parts[key] for part in _objects(value) if (key := _key(part)) in parts}
            wrong += [
                f"{path} holds an object of {output} with all its values: an agent would copy it" for output in found
            ]
    return sorted(set(wrong))


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _json_values(path: str, data: bytes) -> Iterable[Any]:
    try:
        if path.endswith(".json"):
            return [json.loads(data)]
        if path.endswith((".jsonl", ".ndjson")):
            return [json.loads(line) for line in data.splitlines() if line.strip()]
    except ValueError:
        return []  # a damaged one
    return []


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Objects with many leaves, of which one at least is a number: those are computed, not carried over."""
    if isinstance(value, dict):
        leaves = list(_leaves(value))
        if len(leaves) >= LEAST_LEAVES and any(isinstance(leaf, int | float) for leaf in leaves):
            yield value
        for item in value.values():
            yield from _objects(item)
    elif isinstance(value, list):
        for item in value:
            yield from _objects(item)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)
    else:
        yield value


@functools.cache
def _code_lines(folder: Path) -> dict[str, frozenset[str]]:
    """The telling lines of the host's code: long ones that are no import and no comment."""
    out = {}
    for role in ("verify", "progress", "reference", "alternative", "hidden"):
        lines = (line.strip() for line in (folder / f"{role}.py").read_text(encoding="utf-8").splitlines())
        out[role] = frozenset(
            line for line in lines if len(line) >= CODE_LENGTH and not line.startswith(("import ", "from ", "#", '"'))
        )
    return out


def _code(generator: Generator, texts: dict[str, str]) -> list[str]:
    wrong = []
    for where, text in texts.items():
        lines = {line.strip() for line in text.splitlines() if len(line) >= CODE_LENGTH}
        for role, code in _code_lines(generator.folder).items():
            if len(shared := sorted(lines & code)) >= CODE_LINES:
                wrong.append(
                    f"{where} has {len(shared)} lines of {role}.py, like {shared[0][:60]!r}: agents see none of it"
                )
    return wrong
