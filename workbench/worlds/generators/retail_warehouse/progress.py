"""Progress contract with the nodes of Tev appendix B: how much of each stage's tables already stands in the warehouse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from workbench.worlds.formats import hostile, sqlite_file

NODES = (
    ("readable", 2, ()),
    ("schema", 3, ("readable",)),
    ("dimensions", 15, ("readable",)),
    ("facts", 30, ("readable",)),
    ("normalization", 10, ("dimensions",)),
    ("relations", 10, ("schema", "dimensions", "facts")),
    ("aggregates", 12, ("facts", "normalization")),
    ("quality_report", 10, ("facts",)),
    ("summary", 8, ("aggregates",)),
)
LABELS = {"dim_customer": "segment", "dim_product": "category", "fact_sales": "channel"}
NOTHING = sqlite_file.Table({}, [])


def _column(table: sqlite_file.Table, name: str) -> list[Any]:
    """The values of a column; None for each row when there is no such column."""
    names = list(table.columns)
    if name not in names:
        return [None] * len(table.rows)
    at = names.index(name)
    return [row[at] for row in table.rows]


def _match(columns: list[str], expected: list[list[Any]], table: sqlite_file.Table, key: list[str]) -> float:
    """F1 of the rows; a row is right when it has the right columns and all its cells are right."""
    names = list(table.columns)
    if set(names) != set(columns):
        return 0.0
    order, places = [names.index(c) for c in columns], [columns.index(k) for k in key]
    wanted = {tuple(row[p] for p in places): row for row in expected}
    hits = set()
    for row in table.rows:
        own = [row[i] for i in order]
        name = tuple([own[p] for p in places])
        # Equal, and of equal types: 1 is 1.0 in Python, but not in a warehouse of whole numbers.
        if wanted.get(name) == own and [*map(type, own)] == [*map(type, wanted[name])]:
            hits.add(name)
    return 2 * len(hits) / (len(expected) + len(table.rows)) if hits else 0.0


def _mean(values: Iterable[float]) -> float:
    values = list(values)
    return sum(values) / len(values) if values else 0.0


def _schema(truth: Mapping[str, Any], found: Mapping[str, sqlite_file.Table]) -> float:
    """Declared columns with their types, keys and references; surplus ones count against it."""
    right = total = 0
    for name, columns in truth["columns"].items():
        table = found.get(name, NOTHING)
        surplus = len(table.columns.keys() - columns.keys())
        right += sum(table.columns.get(c) == kind for c, kind in columns.items()) - surplus
        right += set(table.key) == set(truth["keys"][name])
        links = {(a, b) for a, b in truth["links"].get(name, [])}
        have = [(a, b) for a, b, _ in table.foreign]
        good = len(links & set(have))
        right += good - (len(have) - good)
        total += len(columns) + 1 + len(links)
    return max(0, right) / total


def _labels(truth: Mapping[str, Any], found: Mapping[str, sqlite_file.Table]) -> float:
    """Share of labelled rows that carry the canonical label, table by table; a table not loaded yet says nothing."""
    shares = []
    for name, column in LABELS.items():
        table = found.get(name, NOTHING)
        if table.rows:
            at = list(truth["columns"][name]).index(column)
            right = {row[0]: row[at] for row in truth["tables"][name]}
            pairs = zip(_column(table, truth["keys"][name][0]), _column(table, column), strict=True)
            shares.append(sum(right.get(who, ...) == label for who, label in pairs) / len(table.rows))
    return _mean(shares)


def _joined(truth: Mapping[str, Any], found: Mapping[str, sqlite_file.Table]) -> float:
    """Share of references that lead somewhere."""
    good = total = 0
    for name, pairs in truth["links"].items():
        table = found.get(name, NOTHING)
        for column, target in pairs:
            ids = set(_column(found.get(target, NOTHING), truth["keys"][target][0])) - {None}
            total += max(1, len(table.rows))
            good += sum(value in ids for value in _column(table, column))
    return good / total


def _json_share(expected: Mapping[str, Any], got: Any) -> float:
    """Equal values among the top-level ones, lists item by item; surplus keys count."""
    if not isinstance(got, dict):
        return 0.0
    right = total = 0
    for name, value in expected.items():
        other = got.get(name)
        if isinstance(value, list) and value:
            total += max(len(value), len(other) if isinstance(other, list) else 0)
            right += sum(map(hostile.same, value, other)) if isinstance(other, list) else 0
        else:
            total += 1
            right += hostile.same(value, other)
    return right / (total + len(got.keys() - expected.keys()))


def score(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    """All else waits for `readable`: a warehouse that opens and holds at least one row of this world's own."""
    found = sqlite_file.read(tree.get("output/warehouse.sqlite"), truth["columns"])
    if not found:
        return {name: 0.0 for name, _, _ in NODES}
    part = {
        table: _match(list(columns), truth["tables"][table], found.get(table, NOTHING), truth["keys"][table])
        for table, columns in truth["columns"].items()
    }
    own = [part[t] for t in ("dim_customer", "dim_product", "dim_store", "fact_sales")]
    return {
        "readable": float(any(own)),
        "schema": _schema(truth, found),
        "dimensions": _mean(v for t, v in part.items() if t.startswith("dim_")),
        "facts": _mean(v for t, v in part.items() if t.startswith("fact_")),
        "normalization": _labels(truth, found),
        "relations": _joined(truth, found),
        "aggregates": part["agg_month_region_category"],
        "quality_report": _json_share(truth["quality"], hostile.json_file(tree, "output/quality_report.json")),
        "summary": _json_share(truth["summary"], hostile.json_file(tree, "output/summary.json")),
    }
