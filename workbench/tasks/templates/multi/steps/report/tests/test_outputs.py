"""Checks of the second step. Replace them: see the notes in README.md."""

from pathlib import Path

BEST = Path("/app/best.txt")


def test_shop():
    assert BEST.read_text().split()[0] == "harbour"


def test_sum():
    assert BEST.read_text().strip() == "harbour 120.00"
