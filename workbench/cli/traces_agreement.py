"""`workbench traces agreement`: two annotators, or one and the classifier.

0 when they were compared; 1 when they share no turn; 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

from workbench.cli.parser import UsageError
from workbench.cli.show import json_line, message, table
from workbench.cli.traces import existing, turns_of
from workbench.traces.labels import LabelError
from workbench.traces.store import TraceError

_CLASSIFIER = "classifier"
_RESOLVED = "resolved"  # what all annotators agree on, or an adjudication says


def main(arguments: argparse.Namespace) -> int:
    """Compare two labellings, in all and trace by trace."""
    from workbench.traces.agreement import agreement, per_episode

    try:
        a, b = (_side(arguments, i) for i in (0, 1))
    except LabelError as error:
        message(str(error))
        return 1
    episodes = {key: key[0] for key in {**a, **b}}
    whole = agreement(a, b, clusters=episodes if arguments.by_trace else None)
    if not whole.n:
        message("no turn was labelled on both sides: are these labels of the same traces?")
        return 1
    single = per_episode(a, b, episodes)
    if arguments.json:
        confusion = [list(row) for row in whole.confusion]
        json_line(
            {
                "trace": None,
                **whole.to_row(),
                "labels": list(whole.labels),
                "confusion": confusion,
                "per_label": whole.per_label(),
            }
        )
        for trace, found in single.items():
            json_line({"trace": trace, **found.to_row(), "per_label": found.per_label()})
        return 0
    _print_agreement(whole, single)
    return 0


def _side(arguments: argparse.Namespace, side: int) -> dict[Any, str]:
    """{turn: label} of one side: an annotator of a journal, or the classifier."""
    from workbench.traces.labels import by_annotator, read_labels, resolve

    given = arguments.labels[side]
    if given == _CLASSIFIER:
        return _guessed(arguments)
    labels = read_labels(existing(given))
    annotators = by_annotator(labels)
    wanted = arguments.annotators[side] if arguments.annotators else None
    if wanted == _RESOLVED:
        return {key: found.label for key, found in resolve(labels).items() if found.label}
    if wanted is None and len(annotators) == 1:
        return next(iter(annotators.values()))
    if wanted not in annotators:
        names = ", ".join(sorted(annotators)) or "nobody"
        raise UsageError(
            f"{given} has labels of {names}: say whose with --annotators A B ({_RESOLVED}: what they agree on)"
        )
    return annotators[wanted]


def _guessed(arguments: argparse.Namespace) -> dict[Any, str]:
    from workbench.traces.classify import default
    from workbench.traces.search import trace_files

    if not arguments.traces:
        raise UsageError("to compare with the classifier, give the traces: --traces PATH")
    found: dict[Any, str] = {}
    for path in trace_files([existing(arguments.traces)]):
        try:
            found_turns = turns_of(path)
        except TraceError as error:
            message(str(error))
            continue
        found |= {t.key: guess.label for t, guess in zip(found_turns, default().turns(found_turns), strict=True)}
    return found


def _print_agreement(whole: Any, single: dict[Any, Any]) -> None:
    print(
        f"{whole.n} turns labelled on both sides ({whole.only_a} by the first only, {whole.only_b} by the second only)"
    )
    print(f"agreement {_percent(whole.share)} ({_range(whole.share_interval, _percent)})")
    print(f"Cohen's kappa {_number(whole.kappa)} ({_range(whole.kappa_interval, _number)})")
    print("\nfirst \\ second")
    rows = zip(whole.labels, whole.confusion, strict=True)
    table([["", *whole.labels], *([label, *map(str, row)] for label, row in rows)], "  ")
    print("\nper label")
    head = ["label", "first", "second", "both", "recall", "precision", "f1"]
    shares = ("recall", "precision", "f1")
    table(
        [
            head,
            *([r["label"], r["a"], r["b"], r["both"], *(_percent(r[s]) for s in shares)] for r in whole.per_label()),
        ],
        "  ",
    )
    print("\nper trace")
    table(
        [
            ["trace", "turns", "agreement", "kappa"],
            *([t[:12], f.n, _percent(f.share), _number(f.kappa)] for t, f in single.items()),
        ],
        "  ",
    )


def _percent(value: float) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.1f}%"


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"


def _range(interval: tuple[float, float], show: Callable[[float], str]) -> str:
    return f"95% interval {show(interval[0])} to {show(interval[1])}"
