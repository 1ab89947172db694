import json
from pathlib import Path

import pytest
from model import World, read

WANT = World(read("/tests/events.jsonl"), json.loads(Path("/tests/bins.json").read_text()))


@pytest.fixture()
def stock():
    data = json.loads(Path("/app/stock.json").read_text())
    return sorted([i, b, n] for i, bins in data.items() for b, n in bins.items())


@pytest.fixture()
def refused():
    return json.loads(Path("/app/refused.json").read_text())


def test_items_and_bins(stock):
    assert [r[:2] for r in stock] == [r[:2] for r in WANT.rows()]


def test_quantities(stock):
    assert stock == WANT.rows()


def test_which_are_refused(refused):
    assert sorted(r[0] for r in refused) == sorted(r[0] for r in WANT.refused)


def test_reasons_in_order(refused):
    assert refused == WANT.refused
