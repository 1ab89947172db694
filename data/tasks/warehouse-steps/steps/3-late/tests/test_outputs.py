import csv
import json
import os
import subprocess
from pathlib import Path

import pytest
from model import World, draw, read


def lines(*args):
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    done = subprocess.run(["python3", "/app/stock.py", *map(str, args)], capture_output=True, text=True, timeout=20, cwd="/", env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def tabbed(rows):
    return ["\t".join(map(str, r)) for r in rows]


@pytest.fixture(params=[5, 6, 7])
def world(request, tmp_path):
    early, bins = draw(request.param, 90, cancels=0.1)
    late, _ = draw(request.param + 100, 60, start=91, cancels=0.5, known=[e["id"] for e in early])
    options = []
    for name, events in (("a", early), ("b", late)):
        (tmp_path / name).write_text("".join(json.dumps(e) + "\n" for e in events))
        options += ["--events", tmp_path / name]
    (tmp_path / "bins").write_text(json.dumps(bins))
    return [*options, "--bins", tmp_path / "bins"], early + late, bins


def test_stock(world):
    options, events, bins = world
    assert lines(*options, "stock") == tabbed(World(events, bins).rows())
    assert lines(*options, "stock", "--at", "2031-03-07T12:00:00") == tabbed(World(events, bins, "2031-03-07T12:00:00").rows())


def test_refused_and_history(world):
    options, events, bins = world
    want = World(events, bins)
    assert lines(*options, "refused") == tabbed(want.refused)
    assert lines(*options, "history", "nut") == tabbed(h[1:] for h in want.history if h[0] == "nut")


def finals():
    bins = json.loads(Path("/tests/bins.json").read_text())
    before = World(read("/tests/events.jsonl"), bins)
    return before, World(read("/tests/events.jsonl", "/tests/late.jsonl"), bins)


def test_both_files_by_default():
    _, after = finals()
    assert lines("stock") == tabbed(after.rows())
    assert lines("refused") == tabbed(after.refused)


def test_corrections():
    before, after = (dict(((i, b), n) for i, b, n in w.rows()) for w in finals())
    want = [[i, b, str(before.get((i, b), 0)), str(after.get((i, b), 0))] for i, b in sorted({*before, *after}) if before.get((i, b), 0) != after.get((i, b), 0)]
    assert want
    rows = list(csv.reader(Path("/app/corrections.csv").read_text().splitlines()))
    assert rows == [["item", "bin", "before", "after"], *want]
