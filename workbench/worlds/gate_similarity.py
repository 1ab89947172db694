"""The similarity gate (Tev A.1): a generator's code, specification and data against all others, near-duplicates are refused.

Three Jaccard indices. code: 5-grams of the tokens of its modules, without comments and docstrings. specification: 3-grams of the words of
its prompt. data: the shapes of its input lines (letters become a, digits 9) and the names of its input files. The
thresholds are ours: among our own generators the largest values were 0.09, 0.03 and 0.11, a renamed copy has more than 0.85 in all.
"""

from __future__ import annotations

import ast
import functools
import io
import re
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from workbench.tasks.ngrams import grams, shingles
from workbench.worlds import Environment
from workbench.worlds.building import build_environment
from workbench.worlds.catalog import ROLES, Generator

THRESHOLDS = {"code": 0.25, "specification": 0.25, "data": 0.50}
CODE_GRAM = 5
SAMPLE_LINES, SAMPLE_FILES = 400, 60


@dataclass(frozen=True)
class Signature:
    """The three sets that generators are compared by."""

    name: str
    code: frozenset
    specification: frozenset
    data: frozenset


def similarity(generator: Generator, others: Iterable[Generator]) -> list[str]:
    """Which of the others it repeats, and in what."""
    own = signature(generator)
    wrong = []
    for other in others:
        if other.folder == generator.folder:
            continue
        for what, value in compare(own, signature(other)).items():
            if value > THRESHOLDS[what]:
                wrong.append(
                    f"{value:.0%} of its {what} is that of {other.name} (at most {THRESHOLDS[what]:.0%}): "
                    "design a world of its own, or add a tier or a corruption to the other"
                )
    return wrong


def compare(a: Signature, b: Signature) -> dict[str, float]:
    """The Jaccard index of each of the three sets."""
    return {what: _jaccard(getattr(a, what), getattr(b, what)) for what in THRESHOLDS}


def _jaccard(a: frozenset, b: frozenset) -> float:
    return len(a & b) / len(a | b) if a or b else 0.0


def signature(generator: Generator) -> Signature:
    return _signature(generator.name, generator.folder, generator)


_KNOWN: dict[tuple[str, Path], Signature] = {}


def _signature(name: str, folder: Path, generator: Generator) -> Signature:
    """Of its files, and of its first environment: prompts and data of other seeds have the same shape."""
    if (key := (name, folder)) not in _KNOWN:
        environment = build_environment(generator, 0, generator.spec.tiers[0])
        code = frozenset(gram for role in ROLES for gram in grams(code_tokens(folder / f"{role}.py", name), CODE_GRAM))
        _KNOWN[key] = Signature(name, code, shingles(_own_words(environment)), _shapes(environment))
    return _KNOWN[key]


@functools.cache
def code_tokens(path: Path, name: str) -> tuple[str, ...]:
    """The tokens of a module: no comments, docstrings or layout; the generator's own name is no difference."""
    source = path.read_text(encoding="utf-8")
    docs = {
        node.body[0].lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False)
    }
    skip = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    return tuple(
        token.string.replace(name, "NAME")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in skip and not (token.type == tokenize.STRING and token.start[0] in docs)
    )


def _own_words(environment: Environment) -> str:
    """The prompt without the headings and sentences that all prompts have."""
    return re.split(r"\n## Tools\n", environment.prompt)[0].replace("## ", "")


def _shapes(environment: Environment) -> frozenset[str]:
    found = set()
    for path, data in sorted(environment.public.items())[:SAMPLE_FILES]:
        found.add("path " + re.sub(r"\d+", "9", path))
        if b"\0" in data[:4096]:
            found.add(f"binary {path.rsplit('.', 1)[-1]} {data[:4].hex()}")
            continue
        lines = data.decode("utf-8", "replace").splitlines()
        found.add(f"head {lines[0][:200]}" if lines else "empty")
        for line in lines[1 : SAMPLE_LINES // 8]:
            found.add(re.sub(r"[A-Za-z]+", "a", re.sub(r"\d+", "9", line[:200])))
    return frozenset(found)
