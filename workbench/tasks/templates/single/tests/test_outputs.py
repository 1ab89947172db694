"""The checks of this task: the reward is the share of these functions that pass.

Replace them. Each should stand for a result that deserves credit and fail on an untouched environment. Read the agent's
files by absolute path and run its programs as subprocesses: code of the agent's that is imported here could change the grade.
"""

import csv
from pathlib import Path

TOTALS = Path("/app/totals.csv")
EXPECTED = {"harbour": "120.00", "north": "20.50", "south": "20.00"}


def rows():
    return list(csv.reader(TOTALS.read_text().splitlines()))


def test_header_and_order():
    assert rows()[0] == ["shop", "total"]
    assert [row[0] for row in rows()[1:]] == sorted(EXPECTED)


def test_totals_without_cancellations():
    """north and harbour have a cancelled order each."""
    assert {row[0]: row[1] for row in rows()[1:]}["north"] == EXPECTED["north"]
    assert {row[0]: row[1] for row in rows()[1:]}["harbour"] == EXPECTED["harbour"]


def test_every_total():
    assert dict(rows()[1:]) == EXPECTED
