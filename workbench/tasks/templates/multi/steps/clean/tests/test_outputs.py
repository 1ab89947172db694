"""Checks of the first step. Replace them: see the notes in README.md."""

from pathlib import Path

VALID = Path("/app/valid.csv")


def test_header():
    assert VALID.read_text().splitlines()[0] == "shop,amount,state"


def test_orders():
    assert VALID.read_text().splitlines()[1:] == [
        "north,19.90,paid",
        "south,5.25,paid",
        "harbour,120.00,paid",
        "south,14.75,sent",
        "north,0.60,sent",
    ]
