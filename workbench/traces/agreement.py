"""How far two sets of labels agree: percent, Cohen's κ with an interval, confusion per label. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.statistics import wilson
from workbench.traces.labels import LABELS

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Agreement:
    """Of n turns that both sides labelled. share: of equal labels, with Wilson's interval. kappa: Cohen's (1960); NaN
    when both sides used one and the same label only. kappa_interval: see `agreement`. confusion: rows are the first
    side's labels, columns the second's. only_a, only_b: turns that one side alone labelled."""

    n: int
    equal: int
    share: float
    share_interval: tuple[float, float]
    kappa: float
    kappa_interval: tuple[float, float]
    labels: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]
    only_a: int = 0
    only_b: int = 0

    def per_label(self) -> list[dict[str, Any]]:
        """A row for each label: counts on both sides, how often both said it, and shares. recall: of the first side's,
        what the second found; precision: of the second's, what the first confirms; f1: their specific agreement."""
        rows = []
        for i, label in enumerate(self.labels):
            both = self.confusion[i][i]
            a, b = sum(self.confusion[i]), sum(row[i] for row in self.confusion)
            recall, precision, f1 = _share(both, a), _share(both, b), _share(2 * both, a + b)
            rows.append(
                {"label": label, "a": a, "b": b, "both": both, "recall": recall, "precision": precision, "f1": f1}
            )
        return rows

    def to_row(self) -> dict[str, Any]:
        return {
            "n": self.n,
            "equal": self.equal,
            "share": self.share,
            "share_low": self.share_interval[0],
            "share_high": self.share_interval[1],
            "kappa": self.kappa,
            "kappa_low": self.kappa_interval[0],
            "kappa_high": self.kappa_interval[1],
            "only_a": self.only_a,
            "only_b": self.only_b,
        }


def agreement(
    a: Mapping[Hashable, str],
    b: Mapping[Hashable, str],
    *,
    labels: Sequence[str] = LABELS,
    clusters: Mapping[Hashable, Hashable] | None = None,
    conf: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> Agreement:
    """Compare two labellings, {turn: label}, on the turns that both have.

    kappa's interval is the percentile bootstrap over turns. Turns of one episode are alike: with `clusters`, {turn: its
    episode}, whole episodes are drawn instead, which is the honest interval when there are about ten or more of them.
    ValueError for a label that is not in `labels`.
    """
    both = sorted((k for k in a if k in b), key=repr)
    groups = {k: clusters[k] for k in both} if clusters is not None else {}
    tables = _tables(a, b, both, tuple(labels), groups)
    table = _sum(tables, len(labels))
    equal = sum(table[i][i] for i in range(len(labels)))
    return Agreement(
        n=len(both),
        equal=equal,
        share=_share(equal, len(both)),
        share_interval=wilson(equal, len(both), conf),
        kappa=kappa(table),
        kappa_interval=_interval(tables, clusters is not None, conf, draws, seed),
        labels=tuple(labels),
        confusion=table,
        only_a=len(a) - len(both),
        only_b=len(b) - len(both),
    )


def per_episode(a: Mapping[Hashable, str], b: Mapping[Hashable, str], episodes: Mapping[Hashable, Hashable]) -> dict:
    """{episode: Agreement}: the classifier against the hand labels of each episode, as in appendix I.1."""
    names = sorted({episodes[k] for k in a if k in b}, key=repr)
    return {
        name: agreement(
            {k: v for k, v in a.items() if episodes.get(k) == name},
            {k: v for k, v in b.items() if episodes.get(k) == name},
        )
        for name in names
    }


def kappa(table: Sequence[Sequence[int]]) -> float:
    """Cohen's κ of a confusion matrix: (p_o − p_e) / (1 − p_e). NaN without turns, or when p_e is 1."""
    n = sum(map(sum, table))
    if n == 0:
        return math.nan
    rows, columns = [sum(row) for row in table], [sum(column) for column in zip(*table, strict=True)]
    expected = sum(r * c for r, c in zip(rows, columns, strict=True))  # p_e · n²
    if expected == n * n:
        return math.nan
    observed = sum(table[i][i] for i in range(len(table))) * n
    return (observed - expected) / (n * n - expected)


def _tables(a: Mapping, b: Mapping, keys: list, labels: tuple[str, ...], groups: Mapping) -> list[list[list[int]]]:
    """One confusion matrix for each group of turns; one in all without groups."""
    place = {label: i for i, label in enumerate(labels)}
    found: dict[Hashable, list[list[int]]] = {}
    for key in keys:
        for side in (a[key], b[key]):
            if side not in place:
                raise ValueError(f"label {side!r} of {key!r} is not one of {', '.join(labels)}")
        table = found.setdefault(groups.get(key), [[0] * len(labels) for _ in labels])
        table[place[a[key]]][place[b[key]]] += 1
    return list(found.values())


def _sum(tables: list[list[list[int]]], size: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(sum(t[i][j] for t in tables) for j in range(size)) for i in range(size))


def _interval(tables: list, clustered: bool, conf: float, draws: int, seed: int) -> tuple[float, float]:
    """Percentile bootstrap. Drawing n turns with replacement is drawing the matrix from a multinomial distribution.
    Draws whose κ is not defined are left out."""
    import numpy as np

    if not tables:
        return math.nan, math.nan
    rng, data = np.random.default_rng(seed), np.array(tables)
    if clustered:
        picks = rng.integers(len(data), size=(draws, len(data)))
        drawn = data[picks].sum(axis=1)
    else:
        total = data.sum(axis=0)
        n = int(total.sum())
        drawn = rng.multinomial(n, total.ravel() / n, size=draws).reshape(draws, *total.shape)
    values = _kappas(drawn)
    values = values[np.isfinite(values)]
    if values.size == 0:
        return math.nan, math.nan
    low, high = np.quantile(values, [(1 - conf) / 2, (1 + conf) / 2])
    return float(low), float(high)


def _kappas(tables: np.ndarray) -> np.ndarray:
    """κ of each of [draws, labels, labels] matrices."""
    import numpy as np

    n = tables.sum(axis=(1, 2)).astype(float)
    expected = (tables.sum(axis=2) * tables.sum(axis=1)).sum(axis=1).astype(float)
    observed = np.trace(tables, axis1=1, axis2=2) * n
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected == n * n, np.nan, (observed - expected) / (n * n - expected))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan
