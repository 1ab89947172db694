"""The 13-gram check of 1,000 generated instructions against 200 held-out ones (target: under 1 s), and recall on planted copies.

    python -m benchmarks.contamination

Instructions are drawn from a seeded grammar of terminal tasks, 150 to 400 tokens each; 5 % of the generated ones carry a
sentence of a held-out one. `gate` is what admission needs to decide; `full report` adds 8-grams, coverage and the nearest
neighbour.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

from workbench.admission.contamination import Document, HeldOut
from workbench.admission.planted_copies import planted_copies_recall

TASKS = Path(__file__).parents[1] / "data" / "tasks"
HELD_OUT, GENERATED, PLANTED = 200, 1_000, 0.05

_VERBS = "create write read parse find count remove fix run build test sort compute convert copy install compare merge".split()
_ADJECTIVES = (
    "large small first last empty new old correct broken nested sorted duplicate missing hidden signed stale".split()
)
_NOUNS = "file folder line server program script function value name user error report table column archive index queue".split()
_TAILS = (
    "and write the {a} {n} to /app/{w}/{w}.json", "so that each {n} has exactly {d} {a} entries", "without touching the {a} {n}",
    "within {d} seconds on one core", "as described in /srv/{w}.md", "where every {n} must match the {a} {n} of {w}",
)  # fmt: skip


def sentence(rng: random.Random) -> str:
    """One demand, such as "Merge the stale index of kobiru so that each line has exactly 7 empty entries."."""
    word = "".join(rng.choice("bdfgklmnprstv") + rng.choice("aeiou") for _ in range(3))
    fill = {"a": rng.choice(_ADJECTIVES), "n": rng.choice(_NOUNS), "w": word, "d": rng.randint(2, 99)}
    head = f"{rng.choice(_VERBS)} the {rng.choice(_ADJECTIVES)} {rng.choice(_NOUNS)} of {word}"
    return f"{head} {rng.choice(_TAILS).format(**fill)}.".capitalize()


def instruction(rng: random.Random) -> str:
    return "\n".join(sentence(rng) for _ in range(rng.randint(8, 20)))


def corpus(seed: int = 0) -> tuple[list[Document], list[str], int]:
    """(held-out documents, generated instructions, how many of these carry a sentence of a held-out one)."""
    rng = random.Random(seed)
    held = [Document(f"held/{i}", instruction(rng)) for i in range(HELD_OUT)]
    generated = [instruction(rng) for _ in range(GENERATED)]
    planted = rng.sample(range(GENERATED), int(GENERATED * PLANTED))
    for number in planted:
        source = rng.choice(held).instruction.splitlines()
        start = rng.randrange(len(source) - 1)
        generated[number] += "\n" + "\n".join(source[start : start + 2])
    return held, generated, len(planted)


def best_of(action: Callable[[], object], times: int = 3) -> tuple[float, object]:
    """(seconds of the fastest of a few goes, the last result): the machine is shared."""
    seconds, result = [], None
    for _ in range(times):
        start = time.perf_counter()
        result = action()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def run() -> list[dict]:
    """Rows with `what`, `seconds`, `target_seconds` (None where there is none) and what was found."""
    documents, generated, planted = corpus()
    build, held = best_of(lambda: HeldOut(documents))
    gate, hits = best_of(lambda: sum(held.hit(text) for text in generated))
    full, reports = best_of(lambda: [held.check(text) for text in generated])
    size = f"{GENERATED} instructions against {HELD_OUT}"
    found = f"{hits} hits, {planted} planted"
    rows = [
        {"what": f"index of {HELD_OUT} held-out instructions", "seconds": build, "target_seconds": None},
        {"what": f"13-gram gate, {size}", "seconds": gate, "target_seconds": 1.0, "found": found},
        {"what": f"index + gate, {size}", "seconds": build + gate, "target_seconds": 1.0, "found": found},
        {
            "what": f"full report, {size}",
            "seconds": full,
            "target_seconds": None,
            "found": f"{sum(r.hit for r in reports)} hits",
        },
    ]
    return rows + recall_rows(held, "generated text") + recall_rows(HeldOut.from_folder(TASKS), "data/tasks")


def recall_rows(held: HeldOut, corpus_name: str) -> list[dict]:
    rows = []
    for row in planted_copies_recall(held, seed=0):
        what = f"planted copies of {corpus_name}: {row['kind']}"
        found = f"gated {row['gated']} of {row['planted']}, missed {row['missed']}, by 8-grams {row['weak']}, in files {row['reported_in_files']}"
        rows.append({"what": what, "seconds": None, "target_seconds": None, "found": found, **row})
    return rows


if __name__ == "__main__":
    for result in run():
        timing = f"{result['seconds'] * 1000:8.1f} ms" if result["seconds"] is not None else " " * 11
        print(f"{timing}  {result['what']:<68} {result.get('found', '')}")
