"""A leaderboard of one model and four items, scored by hand."""

from __future__ import annotations

import csv
import io
import json

import pytest

from workbench.worlds.generators.evaluation_audit import alternative, reference

LINES = [
    ("r-1", "a", 1, "Answer: yes", 900),
    ("r-1", "b", 1, "Answer: yes. On reflection, answer: (No).", 800),
    ("r-1", "c", 1, "no idea", 300),
    ("r-0", "a", 1, "Answer: yes", 500),
    ("r-9", "a", 1, "Answer: yes", 500),
]


@pytest.fixture
def tree() -> dict[str, bytes]:
    """Run r-1 repeats r-0; item b was corrected from yes to no; item d was never answered in the log, the archive has it."""
    protocol = {
        "benchmark": "Toy 1",
        "settings": {"prompt": "p1", "shots": 0, "temperature": "0.0"},
        "labels": {"quiz": ["yes", "no"]},
        "models": ["m"],
        "aliases": {"hub/m": "m"},
    }
    keys = ("run", "item", "attempt", "output", "confidence")
    return {
        "input/protocol.json": json.dumps(protocol).encode(),
        "input/runs.csv": b"run_id,model,task,seed,prompt,shots,temperature,finished\n"
        b"r-1,hub/m,quiz,1,p1,0,0.0,02/01/2025 00:00:00\nr-0,m,quiz,1,p1,0,0.0,2025-01-01 00:00:00\n",
        "input/gold/quiz.csv": b"item,label\na,yes\nb,yes\nc,no\nd,yes\n",
        "input/gold/errata.csv": b"task,item,old_label,new_label\nquiz,b,yes,no\n",
        "input/claims.csv": b"model,task,accuracy_percent\nm,quiz,50.00\n",
        "input/logs/m__quiz.jsonl": b"".join(
            json.dumps(dict(zip(keys, r, strict=True))).encode() + b"\n" for r in LINES
        ),
        "input/archive/m__quiz.csv": b'run,item,attempt,output,confidence\nr-1,d,1,"Well, ""yes"". Answer: yes",1000\n',
    }


def test_both_solvers_give_the_figures_of_paper_and_pencil(tree):
    for out in (list(reference.solve(tree))[-1][1], alternative.solve(tree)):
        rows = {
            path: list(csv.reader(io.StringIO(data.decode()))) for path, data in out.items() if path.endswith("csv")
        }
        # right: a, b, d of 4. F1(yes) = 4/(2+2) = 1, F1(no) = 2/(1+2). ECE = (|1-.9| + |1-.8| + |0-.3| + |1-1|)/4, of which the bin
        # from .9 holds a and d: |2 - 1.9| = .1.
        assert rows["output/staging/run_metrics.csv"][2] == "r-1,4,0,1,3,0.750000,0.833333,0.150000".split(",")
        assert rows["output/staging/run_metrics.csv"][1][:5] == ["r-0", "4", "3", "0", "1"]
        assert rows["output/parity.csv"][1] == "m,quiz,50.00,75.00,-25.00,mismatch,gold_before_errata".split(",")
        report = json.loads(out["output/report.json"])
        assert report["orphan_runs"] == ["r-9"]
        assert report["recovered_predictions"] == 1
        assert report["runs"] == {"counted": 1, "superseded": 1, "off_protocol": 0} | (
            {"off_protocol": 0} if "off_protocol" in report["runs"] else {}
        )
