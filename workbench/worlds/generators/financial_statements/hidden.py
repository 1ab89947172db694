"""Hidden suite: what each component must notice, what it must forgive, and outputs that only look right."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from workbench.worlds import Defect
from workbench.worlds.generators.financial_statements import contract

PATHS = {
    "facts": "output/staging/structured_facts.csv",
    "rows": "output/staging/filing_rows.csv",
    "evidence": "output/evidence.csv",
}
STATEMENTS, EXCEPTIONS = "output/financial_statements.json", "output/exceptions.json"


def causes(tree: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    statements, exceptions = json.loads(tree[STATEMENTS]), json.loads(tree[EXCEPTIONS])
    statements["periods"][0]["balance_sheet"]["inventory"] += 1
    exceptions[0]["resolution"] = "management_judgement"
    evidence = tree[PATHS["evidence"]].replace(b"/units/USD/", b"/units/USD/1", 1)
    return {
        "staging": {**tree, PATHS["rows"]: b"".join(tree[PATHS["rows"]].splitlines(keepends=True)[:-1])},
        "statements": {**tree, STATEMENTS: json.dumps(statements).encode()},
        "evidence": {**tree, PATHS["evidence"]: evidence},
        "exceptions": {**tree, EXCEPTIONS: json.dumps(exceptions).encode()},
    }


def rewrites(tree: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n", quoting=csv.QUOTE_ALL).writerows(
        csv.reader(io.StringIO(tree[PATHS["evidence"]].decode()))
    )
    exceptions = [dict(reversed(entry.items())) for entry in json.loads(tree[EXCEPTIONS])]
    return {
        "quotes and line ends": {**tree, PATHS["evidence"]: out.getvalue().encode()},
        "keys of exceptions": {**tree, EXCEPTIONS: json.dumps(exceptions, separators=(",", ":")).encode()},
        "indented statements": {
            **tree,
            STATEMENTS: json.dumps(json.loads(tree[STATEMENTS]), indent=7, sort_keys=True).encode(),
        },
    }


def _complete(truth: Mapping[str, Any]) -> dict[str, bytes]:
    out = {STATEMENTS: json.dumps(truth["statements"]).encode(), EXCEPTIONS: json.dumps(truth["exceptions"]).encode()}
    for name, path in PATHS.items():
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([truth["headers"][name], *truth[name]])
        out[path] = text.getvalue().encode()
    return out


def stale(world: Any, defects: tuple[Defect, ...]) -> dict[str, dict[str, bytes]]:
    """The packet before its amendments, the originals' numbers, and a clean bill of health."""
    right = contract.truth(world, defects)
    places = {(str(y), contract.model.NAMES[i]): first for y, i, first in world.restated}
    early = json.loads(json.dumps(right["statements"]))
    for period in early["periods"]:
        for section in contract.SECTIONS:
            period[section] = {item: places.get((period["period"], item), v) for item, v in period[section].items()}
    calm = tuple(d for d in defects if d.kind not in ("misstated_fact", "alias_concept", "missing_fact"))
    return {
        "original filings believed": _complete({**right, "statements": early}),
        "defects overlooked": _complete({**right, "exceptions": contract.truth(world, calm)["exceptions"]}),
        "amendments overlooked": _complete(
            {**right, "exceptions": contract.truth(replace(world, restated=()), ())["exceptions"]}
        ),
    }
