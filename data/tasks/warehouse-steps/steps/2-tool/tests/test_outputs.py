import json
import os
import subprocess
from pathlib import Path

import pytest
from model import World, draw, read


def tool(*args):
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    return subprocess.run(["python3", "/app/stock.py", *map(str, args)], capture_output=True, text=True, timeout=20, cwd="/", env=env)


def lines(*args):
    done = tool(*args)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def tabbed(rows):
    return ["\t".join(map(str, r)) for r in rows]


@pytest.fixture(params=[3, 4])
def world(request, tmp_path):
    events, bins = draw(request.param, 150)
    (tmp_path / "e.jsonl").write_text("".join(json.dumps(e) + "\n" for e in events))
    (tmp_path / "b.json").write_text(json.dumps(bins))
    return ("--events", tmp_path / "e.jsonl", "--bins", tmp_path / "b.json"), events, bins


def test_stock_now_and_then(world):
    options, events, bins = world
    assert lines(*options, "stock") == tabbed(World(events, bins).rows())
    for t in ("2031-03-04T12:00:00", "2031-03-09T08:29:59", "2031-02-01T00:00:00", "2031-04-01T00:00:00"):
        assert lines(*options, "stock", "--at", t) == tabbed(World(events, bins, t).rows())


def test_history(world):
    options, events, bins = world
    history = World(events, bins).history
    for item in ("bolt", "gear", "nothing"):
        assert lines(*options, "history", item) == tabbed(h[1:] for h in history if h[0] == item)


def test_refused(world):
    options, events, bins = world
    assert lines(*options, "refused") == tabbed(World(events, bins).refused)


def test_files_by_default():
    want = World(read("/tests/events.jsonl"), json.loads(Path("/tests/bins.json").read_text()))
    assert lines("stock") == tabbed(want.rows())


def test_errors(tmp_path):
    assert tool("stock").returncode == 0
    for args in (("stock", "--at", "yesterday"), ("stock", "--at", "2031-13-01T00:00:00"), ("sell",), (), ("--events", tmp_path / "none", "stock")):
        done = tool(*args)
        assert (done.returncode, done.stdout) == (2, ""), args
        assert len(done.stderr.strip().splitlines()) == 1, args
