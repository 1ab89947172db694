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


def _records(table: sqlite_file.Table | None) -> list[dict[str, Any]]:
    return [] if table is None else [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def _same_cell(a: Any, b: Any) -> bool:
    return type(a) is type(b) and a == b


def _match(expected: list[dict[str, Any]], got: list[dict[str, Any]], key: list[str]) -> float:
    """F1 of the rows; a row is right when all its cells are, those of surplus columns counting against it."""
    wanted = {tuple(row[k] for k in key): row for row in expected}
    hits = set()
    for row in got:
        name = tuple(row.get(k) for k in key)
        other = wanted.get(name)
        if other is not None and row.keys() == other.keys() and all(_same_cell(row[k], v) for k, v in other.items()):
            hits.add(name)
    return 2 * len(hits) / (len(expected) + len(got)) if hits else 0.0


def _mean(values: Iterable[float]) -> float:
    values = list(values)
    # A sum of ones over their number is exactly one; the loop keeps it the same in any order.
    return sum(values) / len(values) if values else 0.0


def _schema(truth: Mapping[str, Any], found: Mapping[str, sqlite_file.Table]) -> float:
    right = total = 0
    for name, columns in truth["columns"].items():
        table = found.get(name, sqlite_file.Table({}, []))
        right += sum(table.columns.get(c) == kind for c, kind in columns.items()) - len(
            table.columns.keys() - columns.keys()
        )
        right += set(table.key) == set(truth["keys"][name])
        links = {(a, b) for a, b in truth["links"].get(name, [])}
        have = [(a, b) for a, b, _ in table.foreign]
        right += len(links & set(have)) - (len(have) - len(links & set(have)))
        total += len(columns) + 1 + len(links)
    return max(0, right) / total


def _labels(expected: Mapping[str, list], got: Mapping[str, list], key: Mapping[str, list[str]]) -> float:
    """Share of labelled rows, among those expected or present, which carry the canonical label."""
    shares = []
    for table, column in LABELS.items():
        if not got[table]:
            continue  # not loaded yet: dimensions and facts speak of that
        right = {row[key[table][0]]: row[column] for row in expected[table]}
        shares.append(
            sum(right.get(row.get(key[table][0]), ...) == row.get(column) for row in got[table]) / len(got[table])
        )
    return _mean(shares)


def _joined(got: Mapping[str, list], links: Mapping[str, list], key: Mapping[str, list[str]]) -> float:
    good = total = 0
    for table, pairs in links.items():
        for column, target in pairs:
            name = key[target][0]
            ids = {row.get(name) for row in got[target]} - {None}
            total += max(1, len(got[table]))
            good += sum(row.get(column) in ids for row in got[table])
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
            right += (
                sum(hostile.same(a, b) for a, b in zip(value, other, strict=False)) if isinstance(other, list) else 0
            )
        else:
            total += 1
            right += hostile.same(value, other)
    return right / (total + len(got.keys() - expected.keys()))


def score(truth: Mapping[str, Any], tree: Mapping[str, bytes]) -> dict[str, float]:
    """All else waits for `readable`: a warehouse that opens and holds at least one row of this world's own."""
    found = sqlite_file.read(tree.get("output/warehouse.sqlite"), truth["columns"])
    if not found:
        return {name: 0.0 for name, _, _ in NODES}
    key = truth["keys"]
    expected = {
        t: [dict(zip(truth["columns"][t], row, strict=True)) for row in rows] for t, rows in truth["tables"].items()
    }
    got = {table: _records(found.get(table)) for table in expected}
    part = {table: _match(expected[table], got[table], key[table]) for table in expected}
    own = [part[t] for t in ("dim_customer", "dim_product", "dim_store", "fact_sales")]
    return {
        "readable": float(any(own)),
        "schema": _schema(truth, found),
        "dimensions": _mean(v for t, v in part.items() if t.startswith("dim_")),
        "facts": _mean(v for t, v in part.items() if t.startswith("fact_")),
        "normalization": _labels(expected, got, key),
        "relations": _joined(got, truth["links"], key),
        "aggregates": part["agg_month_region_category"],
        "quality_report": _json_share(truth["quality"], hostile.json_file(tree, "output/quality_report.json")),
        "summary": _json_share(truth["summary"], hostile.json_file(tree, "output/summary.json")),
    }
