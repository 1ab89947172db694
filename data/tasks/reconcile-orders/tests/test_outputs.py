"""Compares /app/out with the truth that the exports were made from (expected.json, see make_fixtures.py)."""

import csv
import json
from pathlib import Path

import pytest

OUT = Path("/app/out")
EXPECTED = json.loads(Path("/tests/expected.json").read_text(encoding="utf-8"))


def table(name, header):
    text = (OUT / name).read_bytes().decode("utf-8")
    assert "\r" not in text, f"{name}: line ends must be LF"
    rows = list(csv.reader(text.splitlines()))
    assert rows[0] == header, f"{name}: header {rows[0]}"
    return rows[1:]


@pytest.fixture()
def orders():
    return table("orders.csv", ["order_id", "customer", "date", "eur", "status", "source"])


@pytest.fixture()
def rejects():
    return table("rejects.csv", ["file", "line", "reason"])


def column(rows, i):
    return {r[0]: r[i] for r in rows}


def test_every_order_once_and_sorted(orders):
    assert [r[0] for r in orders] == [r[0] for r in EXPECTED["orders"]]


def test_source_follows_precedence(orders):
    assert column(orders, 5) == column(EXPECTED["orders"], 5)


def test_date_and_status_of_the_winner(orders):
    assert [(r[0], r[2], r[4]) for r in orders] == [(r[0], r[2], r[4]) for r in EXPECTED["orders"]]


def test_eur_amounts(orders):
    assert column(orders, 3) == column(EXPECTED["orders"], 3)


def test_customers(orders):
    assert column(orders, 1) == column(EXPECTED["orders"], 1)


def test_rejected_lines(rejects):
    assert [r[:2] for r in rejects] == [[f, str(n)] for f, n, _ in EXPECTED["rejects"]]


def test_reject_reasons(rejects):
    assert rejects == [[f, str(n), why] for f, n, why in EXPECTED["rejects"]]


def test_summary():
    assert json.loads((OUT / "summary.json").read_text(encoding="utf-8")) == EXPECTED["summary"]
