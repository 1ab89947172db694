"""Operators that change values in place: they neither move nor lose a record."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any

from workbench.worlds import Tree, WorldError
from workbench.worlds.corruption_records import Records, rows_of
from workbench.worlds.corruption_registry import UNDO, Operator, Params, changed, need, register, undo_of
from workbench.worlds.corruption_times import reformat, shift

ROWS = {
    "rows": "[row, …] from 0 without the header; or `where`; default all",
    "where": "{column: [value, …]}: the rows that hold one of the values in each column",
}
Change = Callable[[Any, Params, int], Any]  # (value, params, how many rows before) -> value


def _columns(params: Params, kind: str) -> list[str]:
    return list(params["columns"]) if "columns" in params else [need(params, "column", kind)]


def _rows_before(tree: Tree, path: str, params: Params) -> list[int]:
    """Which rows were meant: remembered, for `where` may not find them after the change."""
    return list(rows_of(Records(tree, path), params))


def _each(kind: str, change: Change) -> Callable[[Tree, str, Params], dict[str, bytes]]:
    def run(tree: Tree, path: str, params: Params) -> dict[str, bytes]:
        records = Records(tree, path)
        for nth, row in enumerate(params[UNDO] if UNDO in params else rows_of(records, params)):
            for column in _columns(params, kind):
                records.set(row, column, change(records.get(row, column), params, nth))
        return changed(tree, path, records.bytes())

    return run


def _cells(kind: str, about: str, params: dict[str, str], forward: Change, back: Change) -> Operator:
    known = {"column": "its name (or `columns`: several)", **ROWS, **params}
    return register(Operator(kind, "cells", about, known, _each(kind, forward), _each(kind, back), _rows_before))


def _drift(value: Any, params: Params, nth: int) -> Any:
    variants = need(params, "mapping", "category_drift").get(value)
    if variants is None:
        raise WorldError(f"category_drift: the mapping has no variant of {value!r}")
    return variants if isinstance(variants, str) else variants[nth % len(variants)]


def _settle(value: Any, params: Params, nth: int) -> Any:
    names = [n for n, v in params["mapping"].items() if value == v or (not isinstance(v, str) and value in v)]
    if len(names) != 1:
        raise WorldError(f"category_drift: {value!r} is a variant of {names}: the mapping must be unambiguous")
    return names[0]


_cells(
    "category_drift",
    "one category is spelled in several ways",
    {"mapping": "{canonical: variant or [variant, …]}; variants are taken in turn"},
    _drift,
    _settle,
)

_cells(
    "date_format_drift",
    "dates of some records are written in another format",
    {"from": "format like %Y-%m-%d", "to": "format like %d/%m/%Y (directives: %Y %y %m %d %H %M %S %b)"},
    lambda v, p, n: reformat(v, need(p, "from", "date_format_drift"), need(p, "to", "date_format_drift")),
    lambda v, p, n: reformat(v, p["to"], p["from"]),
)

_cells(
    "clock_skew",
    "one source's clock is fast or slow",
    {"seconds": "whole seconds to add", "format": "of the time, like %Y-%m-%dT%H:%M:%SZ, or epoch"},
    lambda v, p, n: shift(v, need(p, "format", "clock_skew"), need(p, "seconds", "clock_skew")),
    lambda v, p, n: shift(v, p["format"], -p["seconds"]),
)


def _exactly(value: Any, sum_of: Callable[[Decimal], Decimal]) -> Any:
    """Decimal arithmetic on a cell that keeps its digits; JSON numbers stay numbers."""
    with localcontext() as context:
        context.prec = 80
        try:
            result = format(sum_of(Decimal(str(value))), "f")
        except InvalidOperation:
            raise WorldError(f"{value!r} is not a number") from None
    return result if isinstance(value, str) else int(result) if "." not in result else float(result)


def _to_unit(value: Any, params: Params, nth: int) -> Any:
    factor, offset = Decimal(str(need(params, "factor", "unit_drift"))), Decimal(str(params.get("offset", "0")))
    changed_value = _exactly(value, lambda number: number * factor + offset)
    return f"{changed_value}{params['suffix']}" if params.get("suffix") else changed_value


def _from_unit(value: Any, params: Params, nth: int) -> Any:
    factor, offset = Decimal(str(params["factor"])), Decimal(str(params.get("offset", "0")))
    if params.get("suffix"):
        value = str(value).removesuffix(params["suffix"])
    return _exactly(value, lambda number: (number - offset) / factor)


_cells(
    "unit_drift",
    "some numbers stand in another unit",
    {
        "factor": "decimal text: new = old * factor + offset",
        "offset": "decimal text, default 0",
        "suffix": "text after the number, like ' lb'",
    },
    _to_unit,
    _from_unit,
)

_GROUPS = re.compile(r"(?<=\d)(?=(\d{3})+(?!\d))")


def _write_number(value: Any, params: Params, nth: int) -> str:
    style, text = need(params, "style", "numeric_format_drift"), str(value)
    if not re.fullmatch(r"-?\d+(\.\d+)?", text):
        raise WorldError(f"numeric_format_drift: {text!r} is not a plain decimal number")
    negative, digits = text.startswith("-"), text.removeprefix("-")
    whole, point, rest = digits.partition(".")
    grouped = _GROUPS.sub(",", whole) + point + rest
    if style == "thousands":
        return ("-" if negative else "") + grouped
    if style == "parentheses":
        return f"({grouped})" if negative else grouped
    if style == "trailing_minus":
        return digits + ("-" if negative else "")
    if style == "comma_decimal":
        return ("-" if negative else "") + digits.replace(".", ",")
    if style == "currency":
        return ("-" if negative else "") + params.get("symbol", "$") + grouped
    raise WorldError(f"numeric_format_drift: no style {style!r}")


def _read_number(value: Any, params: Params, nth: int) -> str:
    style, text = params["style"], str(value)
    if style == "comma_decimal":
        return text.replace(",", ".")
    negative = text.startswith(("-", "(")) or text.endswith("-")
    text = text.strip("-()").replace(params.get("symbol", "$") if style == "currency" else "(", "").replace(",", "")
    return ("-" if negative else "") + text


_cells(
    "numeric_format_drift",
    "numbers are written for people",
    {"style": "thousands, parentheses, trailing_minus, comma_decimal or currency", "symbol": "of currency, default $"},
    _write_number,
    _read_number,
)


def _unpad(value: Any, params: Params, nth: int) -> Any:
    before, after = params.get("before", " "), params.get("after", " ")
    return value[len(before) : len(value) - len(after)]


_cells(
    "whitespace_noise",
    "blanks around values",
    {"before": "text, default one blank", "after": "text, default one blank"},
    lambda v, p, n: f"{p.get('before', ' ')}{v}{p.get('after', ' ')}",
    _unpad,
)


def _swap(tree: Tree, path: str, params: Params) -> dict[str, bytes]:
    records = Records(tree, path)
    left, right = need(params, "columns", "swapped_fields")
    for row in params[UNDO] if UNDO in params else rows_of(records, params):
        a, b = records.get(row, left), records.get(row, right)
        records.set(row, left, b)
        records.set(row, right, a)
    return changed(tree, path, records.bytes())


register(
    Operator(
        "swapped_fields",
        "cells",
        "two values of a record stand in each other's place",
        {"columns": "[one, other]", **ROWS},
        _swap,
        _swap,
        _rows_before,
    )
)


def _permute(tree: Tree, path: str, params: Params, back: bool) -> dict[str, bytes]:
    records, column = Records(tree, path), need(params, "column", "scrambled_index")
    rows, order = list(need(params, "rows", "scrambled_index")), list(need(params, "order", "scrambled_index"))
    if sorted(order) != list(range(len(rows))):
        raise WorldError(f"scrambled_index: order {order} is no permutation of 0…{len(rows) - 1}")
    values = [records.get(row, column) for row in rows]
    for place, source in enumerate(order):
        if back:
            records.set(rows[source], column, values[place])
        else:
            records.set(rows[place], column, values[source])
    return changed(tree, path, records.bytes())


register(
    Operator(
        "scrambled_index",
        "cells",
        "an index column's values are permuted among records",
        {
            "column": "its name",
            "rows": "[row, …]",
            "order": "permutation of 0…n-1: row i gets the value of rows[order[i]]",
        },
        lambda t, path, p: _permute(t, path, p, False),
        lambda t, path, p: _permute(t, path, p, True),
    )
)


def _contradict(tree: Tree, path: str, params: Params) -> dict[str, bytes]:
    records, column = Records(tree, path), need(params, "column", "contradictory_record")
    for row, value in zip(rows_of(records, params), need(params, "values", "contradictory_record"), strict=True):
        if records.get(row, column) == value:
            raise WorldError(f"contradictory_record: {path} row {row} has {value!r} already: nothing contradicts")
        records.set(row, column, value)
    return changed(tree, path, records.bytes())


def _agree(tree: Tree, path: str, params: Params) -> dict[str, bytes]:
    records = Records(tree, path)
    for row, value in undo_of(params, "contradictory_record"):
        records.set(row, params["column"], value)
    return changed(tree, path, records.bytes())


register(
    Operator(
        "contradictory_record",
        "cells",
        "a source of lower authority disagrees",
        {"column": "its name", **ROWS, "values": "[value, …], one a row"},
        _contradict,
        _agree,
        lambda t, path, p: [[r, Records(t, path).get(r, p["column"])] for r in rows_of(Records(t, path), p)],
    )
)
