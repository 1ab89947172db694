"""The kinds of steps that program tasks are made of. Each is one file to make or change, with its exact final text.

`KINDS` maps a kind to a function of (random generator, taken names); all are pure. The words are closed lists, so that
small models see the same few tokens again and again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

WORDS = (
    "apple banana cherry lemon mango melon olive peach plum berry carrot onion potato tomato rice bread butter cheese "
    "honey sugar salt pepper water coffee tea milk juice river ocean island forest desert valley mountain garden flower "
    "tree stone sand cloud rain snow wind storm summer winter spring autumn red blue green yellow orange purple black "
    "white silver gold horse tiger lion eagle rabbit mouse sheep goat wolf bear"
).split()
NAMES = (
    "notes data list report items names words colors fruits animals cities log table index draft plan memo box card page "
    "record stock order price"
).split()


@dataclass(frozen=True)
class Step:
    """text: what the solver reads. file: the one that is checked; expected: its text (outer blanks do not count).

    inputs: files that are there at the start. solution: a shell line that does the step. gone: a file that must
    not be there any more."""

    kind: str
    text: str
    file: str
    expected: str
    solution: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    gone: str = ""


def _name(rng: random.Random, taken: set[str]) -> str:
    name = rng.choice([n for n in NAMES if n not in taken])
    taken.add(name)
    return f"{name}.txt"


def _lines(rng: random.Random, n: int) -> list[str]:
    return rng.sample(WORDS, n)


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def write(rng: random.Random, taken: set[str]) -> Step:
    name, word = _name(rng, taken), rng.choice(WORDS)
    return Step("write", f"Create the file /app/{name} containing {word}.", name, word, f"echo {word} > {name}")


def phrase(rng: random.Random, taken: set[str]) -> Step:
    name, words = _name(rng, taken), " ".join(_lines(rng, 3))
    return Step("phrase", f"Create the file /app/{name} containing {words}.", name, words, f"echo {words} > {name}")


def rename(rng: random.Random, taken: set[str]) -> Step:
    old, name, lines = _name(rng, taken), _name(rng, taken), _lines(rng, 2)
    text = f"Rename the file /app/{old} to /app/{name}."
    return Step("rename", text, name, _text(lines), f"mv {old} {name}", {old: _text(lines)}, gone=old)


def append(rng: random.Random, taken: set[str]) -> Step:
    name, word, lines = _name(rng, taken), rng.choice(WORDS), _lines(rng, 2)
    text = f"Append the line {word} to the file /app/{name}."
    return Step("append", text, name, _text([*lines, word]), f"echo {word} >> {name}", {name: _text(lines)})


def copy(rng: random.Random, taken: set[str]) -> Step:
    source, name, lines = _name(rng, taken), _name(rng, taken), _lines(rng, 2)
    text = f"Copy the file /app/{source} to /app/{name}."
    return Step("copy", text, name, _text(lines), f"cp {source} {name}", {source: _text(lines)})


def count(rng: random.Random, taken: set[str]) -> Step:
    source, name, lines = _name(rng, taken), _name(rng, taken), _lines(rng, rng.randint(4, 19))
    text = f"Write the number of lines of /app/{source} into /app/{name}."
    return Step("count", text, name, str(len(lines)), f"wc -l < {source} > {name}", {source: _text(lines)})


def sort(rng: random.Random, taken: set[str]) -> Step:
    source, name, lines = _name(rng, taken), _name(rng, taken), _lines(rng, 5)
    while lines == sorted(lines):
        rng.shuffle(lines)
    text = f"Write the sorted lines of /app/{source} into /app/{name}."
    return Step("sort", text, name, _text(sorted(lines)), f"LC_ALL=C sort {source} > {name}", {source: _text(lines)})


def replace(rng: random.Random, taken: set[str]) -> Step:
    name, lines = _name(rng, taken), _lines(rng, 4)
    old, new = rng.choice(lines), rng.choice([w for w in WORDS if w not in lines])
    text = f"In the file /app/{name} replace {old} with {new}."
    expected = _text([new if line == old else line for line in lines])
    return Step("replace", text, name, expected, f"sed -i 's/^{old}$/{new}/' {name}", {name: _text(lines)})


def column(rng: random.Random, taken: set[str]) -> Step:
    source, name, words = _name(rng, taken), _name(rng, taken), _lines(rng, 6)
    rows = [f"{words[i]},{words[i + 1]},{rng.randint(1, 99)}" for i in range(0, 6, 2)]
    text = f"Write the second column of the comma-separated file /app/{source} into /app/{name}."
    expected = _text([row.split(",")[1] for row in rows])
    return Step("column", text, name, expected, f"cut -d, -f2 {source} > {name}", {source: _text(rows)})


KINDS: dict[str, Callable[[random.Random, set[str]], Step]] = {
    kind.__name__: kind for kind in (write, phrase, rename, append, copy, count, sort, replace, column)
}


def draw_step(kind: str, rng: random.Random, taken: set[str]) -> Step:
    """One step of a kind; `taken` keeps file names of one task apart."""
    return KINDS[kind](rng, taken)
