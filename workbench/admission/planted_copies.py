"""How many copies of held-out instructions the contamination check finds: copies are planted in known ways and counted.

N-grams find text, not meaning: the rows say which kinds slip through. Nothing here is tuned to the check.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

from workbench.admission.contamination import Document, HeldOut, N
from workbench.tasks.ngrams import tokens

# What stands around a planted copy, so that the copy is a part of an instruction and not the whole of it.
_BEFORE = "You have taken over a small machine from a colleague who left no notes behind.\n\n"
_AFTER = "\n\nLeave every other file as you found it."
_UNRELATED = "Count the distinct visitors of last week in the access log and print the number, nothing else."

_PAIRS = (
    "create/make write/record read/parse file/document folder/directory list/enumeration line/row find/locate count/tally "
    "remove/delete change/alter fix/repair run/execute start/launch stop/halt build/compile test/check use/employ "
    "show/display print/output sort/order compute/calculate convert/translate copy/duplicate install/deploy "
    "server/daemon program/application script/utility function/routine value/quantity number/figure name/label "
    "user/account password/secret error/failure result/outcome report/summary data/records table/grid column/field "
    "input/source large/big small/little first/initial last/final each/every all/any correct/right wrong/faulty "
    "new/fresh old/previous empty/blank same/identical must/should exactly/precisely only/solely"
)
_SYNONYMS = {a: b for pair in _PAIRS.split() for a, b in (pair.split("/"), pair.split("/")[::-1])}

Rewrite = Callable[[str, random.Random], str]


def rewrapped(text: str, rng: random.Random) -> str:
    """Lines of 8 words."""
    words = text.split()
    return "\n".join(" ".join(words[i : i + 8]) for i in range(0, len(words), 8))


def as_table(text: str, rng: random.Random) -> str:
    """A Markdown table of 4 columns, read row by row."""
    words = text.replace("|", " ").split()
    rows = ["| " + " | ".join(words[i : i + 4]) + " |" for i in range(0, len(words), 4)]
    return "\n".join([rows[0], "|" + " --- |" * 4, *rows[1:]])


def other_case_and_punctuation(text: str, rng: random.Random) -> str:
    """Every word in a case drawn at random, every punctuation mark replaced by another one or by a space."""
    words = (rng.choice((str.upper, str.lower, str.title))(part) for part in re.split(r"(\s+)", text))
    return re.sub(r"[^\w\s]", lambda _: rng.choice(",.;:!?-/ "), "".join(words))


def synonyms(text: str, rng: random.Random) -> str:
    """Each of some 90 everyday words replaced by its synonym wherever it stands."""
    return re.sub(r"[A-Za-z]+", lambda m: _SYNONYMS.get(m[0].lower(), m[0]), text)


KINDS: dict[str, Rewrite] = {
    "verbatim": lambda text, rng: text,
    "re-wrapped": rewrapped,
    "markdown table": as_table,
    "case and punctuation": other_case_and_punctuation,
    "fixture file": lambda text, rng: text,
    "synonyms": synonyms,
}


def planted_copies_recall(held_out: HeldOut, seed: int = 0) -> list[dict[str, Any]]:
    """One row for each kind of copy, over all held-out instructions of at least 13 tokens.

    planted; gated: refused by the 13-gram gate; missed: planted - gated; recall: gated / planted. Beside the gate:
    reported_in_files: the copy stands in a fixture and is reported there; weak: found by 8-grams; coverage, jaccard: means.
    false_hits: copies that were also blamed on a held-out task that does not share the text (should be 0 unless held-out
    instructions repeat each other). Raises ValueError when every held-out instruction is shorter than that.
    """
    usable = [d for d in held_out.documents if len(tokens(d.instruction)) >= N]
    if not usable:
        raise ValueError(f"every held-out instruction has fewer than {N} tokens: there is nothing to plant")
    rng = random.Random(seed)
    return [_row(held_out, usable, kind, rewrite, rng) for kind, rewrite in KINDS.items()]


def _row(held_out: HeldOut, usable: list[Document], kind: str, rewrite: Rewrite, rng: random.Random) -> dict[str, Any]:
    reports = []
    for document in usable:
        copy = rewrite(document.instruction, rng)
        if kind == "fixture file":
            planted = Document("copy", _UNRELATED, {"environment/notes.txt": copy})
        else:
            planted = Document("copy", _BEFORE + copy + _AFTER)
        reports.append((document.name, held_out.check(planted)))
    gated = sum(report.hit for _, report in reports)
    return {
        "kind": kind,
        "planted": len(reports),
        "gated": gated,
        "missed": len(reports) - gated,
        "recall": gated / len(reports),
        "reported_in_files": sum(any(m.held_out == name for m in report.files) for name, report in reports),
        "weak": sum(any(m.held_out == name for m in report.weak_matches) for name, report in reports),
        "coverage": sum(report.coverage for _, report in reports) / len(reports),
        "jaccard": sum(report.jaccard for _, report in reports) / len(reports),
        "false_hits": sum(any(m.held_out != name for m in report.matches) for name, report in reports),
    }
