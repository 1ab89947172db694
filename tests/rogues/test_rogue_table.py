"""docs/rogues.md says what the cases say, and the cases hold what they should."""

from __future__ import annotations

from .cases import AGENTS, TASKS
from .table import PAGE, render


def test_the_page_is_the_table():
    assert PAGE.read_text(encoding="utf-8") == render(), "run: PYTHONPATH=tests python -m rogues.table"


def test_names_are_unique_and_every_case_names_its_source():
    for cases in (TASKS, AGENTS):
        assert len({case.name for case in cases}) == len(cases) >= 40
        assert all(case.source and case.kind for case in cases)
