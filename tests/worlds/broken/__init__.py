"""Generators that are broken on purpose: one small change to the scaffold each, so that exactly one gate has to refuse it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from workbench.worlds.scaffold import TEMPLATE

Patch = tuple[str, str, str]  # (file, text, other text); the text stands there exactly once


@dataclass(frozen=True)
class Broken:
    """What was broken, which gate must catch it, and words that its message must hold."""

    name: str
    gate: str
    patches: tuple[Patch, ...]
    says: str


def _function(file: str, name: str) -> str:
    """The text of one of the scaffold's functions."""
    source = (TEMPLATE / file).read_text()
    found = next(n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef) and n.name == name)
    return ast.get_source_segment(source, found) or ""


VERIFY_IMPORT = "from workbench.worlds.formats import hostile\n"
SUMMARY = '"summary": float(hostile.same(truth["summary"], summary)),'
STOCK_HEADER = '["sku", "quantity", "value_cents"]'
STOCK = f'"stock": _table(tree, "output/stock.csv", {STOCK_HEADER}, truth["stock"]),'

BROKEN = (
    # stock answers for the summary, so a wrong summary still fails the task, but the component named summary pays for another thing
    Broken(
        "wrong_credit",
        "reward_causality",
        (
            ("verify.py", SUMMARY, f'"summary": _table(tree, "output/stock.csv", {STOCK_HEADER}, truth["stock"]),'),
            ("verify.py", STOCK, STOCK.removesuffix(",") + ' * float(hostile.same(truth["summary"], summary)),'),
        ),
        "component 'summary' stays 1",
    ),
    Broken(
        "pays_for_form",
        "exploit_resistance",
        (
            (
                "verify.py",
                SUMMARY,
                '"summary": max(float(hostile.same(truth["summary"], summary)), 0.1 * (type(summary) is dict)),',
            ),
        ),
        "probe minimal_schema_valid: verify.py pays",
    ),
    Broken(
        "progress_for_form",
        "exploit_resistance",
        (
            ("progress.py", '("ledger", 4, ()),', '("ledger", 4, ()),\n    ("readable", 1, ()),'),
            (
                "progress.py",
                '"ledger": _overlap(ledger, wrote),',
                '"ledger": _overlap(ledger, wrote),\n        "readable": float("output/movements.csv" in tree),',
            ),
        ),
        "probe minimal_schema_valid: Phi",
    ),
    Broken(
        "grader_that_raises",
        "exploit_resistance",
        (("progress.py", "except (UnicodeDecodeError, csv.Error):", "except csv.Error:"),),
        "raised UnicodeDecodeError",
    ),
    Broken(
        "verifier_runs_the_reference",
        "role_independence",
        (
            (
                "verify.py",
                VERIFY_IMPORT,
                VERIFY_IMPORT
                + "from workbench.worlds.generators.verifier_runs_the_reference import reference as _reference\n",
            ),
        ),
        "verify.py line 9 imports reference: the code closures",
    ),
    Broken(
        "imports_by_name",
        "role_independence",
        (("verify.py", VERIFY_IMPORT, VERIFY_IMPORT + '\n_OTHER = __import__("js" + "on")\n'),),
        "verify.py line 10 uses __import__",
    ),
    # no import and no forbidden word: only running it shows that a grader reads a file of the host
    Broken(
        "reads_the_host",
        "role_independence",
        (
            ("progress.py", "    wrote, counted, told", "    sorted(Path('/etc').iterdir())\n    wrote, counted, told"),
            ("progress.py", "import json\n", "import json\nfrom pathlib import Path\n"),
        ),
        "progress.py did os.",
    ),
    Broken(
        "pasted_grader",
        "role_independence",
        (("verify.py", "def verify(", _function("progress.py", "_records") + "\n\n\ndef verify("),),
        "word for word",
    ),
    Broken(
        "solvers_disagree",
        "solver_agreement",
        (("alternative.py", "WHERE day LIKE", "WHERE day LIKE '0_/__/____' AND day LIKE"),),
        "reference and alternative disagree: output/movements.csv: line",
    ),
    Broken(
        "phi_forgets_the_stock",
        "progress_validity",
        (
            (
                "progress.py",
                '"stock": _overlap(stock, counted) * (1.0 if counted == sorted(counted) else 0.9),',
                '"stock": float(wrote == ledger),',
            ),
        ),
        "Phi stays 1 when output/stock.csv is deleted",
    ),
    Broken(
        "phi_falls",
        "progress_validity",
        (
            (
                "progress.py",
                '"ledger": _overlap(ledger, wrote),',
                '"ledger": _overlap(ledger, wrote) * (0.5 if counted and not told else 1.0),',
            ),
        ),
        "Phi falls from 0.5 to 0.4",
    ),
    Broken(
        "only_these_bytes",
        "metamorphic_invariance",
        (
            (
                "verify.py",
                SUMMARY,
                '"summary": float(hostile.same(truth["summary"], summary) and b": " in tree["output/summary.json"] and b"    " not in tree["output/summary.json"]),',
            ),
        ),
        "rewrite 'spaced json' changes the grade of summary",
    ),
    Broken(
        "stale_passes",
        "metamorphic_invariance",
        (("hidden.py", "[m for m in world.movements if not m.day.startswith(last)]", "world.movements"),),
        "the stale output 'last month left out' passes",
    ),
    Broken(
        "few_worlds",
        "six_seed_diversity",
        (
            (
                "world.py",
                "    items, per_month = SIZES[tier]\n",
                '    items, per_month = SIZES[tier]\n    draw = Draw("layout", draw.integer(0, 2))\n',
            ),
        ),
        "distinct worlds: draw names",
    ),
    Broken(
        "tells_the_total",
        "public_contract_hygiene",
        (
            (
                "world.py",
                '"Rebuild the ledger, count the stock, and value it."',
                'f"Rebuild the ledger; the stock is worth {sum(row[2] for row in _stock(world)):,} cents."',
            ),
        ),
        "the prompt tells",
    ),
)
