"""`workbench worlds …`: what people and machines read, and exit codes."""

from __future__ import annotations

import json

import pytest

from workbench.cli import main
from workbench.cli.parser import UsageError
from workbench.cli.worlds import seeds_of
from workbench.tasks import load_task
from workbench.worlds import catalog


def rows(capsys) -> list[dict]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_list(capsys):
    assert main(["worlds", "list", "--json"]) == 0
    found = rows(capsys)
    assert [r["generator"] for r in found] == list(catalog.names())
    assert all(r["outputs"] and r["components"] and r["nodes"] for r in found)
    assert main(["worlds", "list"]) == 0
    assert "retail_warehouse" in capsys.readouterr().out


def test_new_then_gates_say_what_is_missing(tmp_path, monkeypatch, capsys):
    assert main(["worlds", "new", "brand_new", "--to", str(tmp_path)]) == 0
    assert f"WORKBENCH_GENERATORS={tmp_path}" in capsys.readouterr().out
    monkeypatch.setenv(catalog.GENERATORS_ENV, str(tmp_path))
    assert main(["worlds", "gates", "brand_new", "--seeds", "1", "--tier", "unit", "--json"]) == 1
    found = rows(capsys)
    assert [r["gate"] for r in found if not r["passed"]] == ["similarity_gate"]
    assert {"gate", "generator", "seed", "tier", "passed", "failure_class", "messages", "seconds"} == set(found[0])
    (tmp_path / "brand_new" / "hidden.py").unlink()
    catalog._load.cache_clear()
    assert main(["worlds", "gates", "brand_new"]) == 1
    assert "lacks hidden.py" in capsys.readouterr().out
    assert main(["worlds", "list"]) == 1
    assert "lacks hidden.py" in capsys.readouterr().out


def test_gates_for_people(capsys):
    assert main(["worlds", "gates", "micro_shelf", "--seeds", "1,2"]) == 0
    out = capsys.readouterr().out
    assert "role_independence" in out
    assert "2 of 2 passed" in out


def test_export(tmp_path, capsys):
    assert (
        main(["worlds", "export", "micro_shelf", str(tmp_path / "t"), "--seed", "3", "--tier", "micro", "--json"]) == 0
    )
    [row] = rows(capsys)
    assert row["task_id"].startswith("micro_shelf-r")
    assert load_task(row["task"]).instruction
    assert main(["worlds", "export", "micro_shelf", str(tmp_path / "t"), "--tier", "micro"]) == 2
    assert "is not an empty folder" in capsys.readouterr().err


def test_corpus_coverage_and_overlap(tmp_path, capsys):
    out = str(tmp_path / "c")
    assert (
        main(["worlds", "corpus", out, "--size", "3", "--tier", "micro", "--generator", "micro_shelf", "-j", "1"]) == 0
    )
    assert "3 environments, 0 rejected" in capsys.readouterr().out
    assert main(["worlds", "coverage", out]) == 0
    shown = capsys.readouterr().out
    assert "reward_band, outcome_category, failure_category: unobserved" in shown
    assert "balance over domain: 1.00" in shown
    assert main(["worlds", "coverage", out, "--json"]) == 0
    [row] = rows(capsys)
    assert row["covered_pairs"] + len(row["uncovered"]) == row["valid_pairs"]
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / "one.md").write_text("a held-out text about something else entirely")
    assert main(["worlds", "overlap", out, str(tmp_path / "held"), "--json"]) == 0
    assert [(r["calibration"], r["hits_8_gram"]) for r in rows(capsys)] == [(False, 0), (True, 0)]


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["gates", "no_such"], "no generator 'no_such'"),
        (["gates", "micro_shelf", "--tier", "full"], "has no tier full"),
        (["gates", "micro_shelf", "--seeds", "x"], "seeds 'x'"),
        (["export", "no_such", "out"], "no generator 'no_such'"),
        (["export", "micro_shelf", "out", "--tier", "full"], "has no tier 'full'"),
        (["new", "Not A Name"], "is no generator's name"),
        (["new", "micro_shelf"], "there is a generator"),
        (["corpus", "out", "--size", "1", "--generator", "no_such"], "no generator 'no_such'"),
        (["coverage", "nowhere"], "is no corpus"),
        (["overlap", "nowhere", "x"], "is no corpus"),
    ],
)
def test_wrong_usage_says_what_to_do(command, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["worlds", *command]) == 2
    assert says in capsys.readouterr().err


def test_seeds():
    assert seeds_of("3") == [3]
    assert seeds_of("1,4,9-11") == [1, 4, 9, 10, 11]
    with pytest.raises(UsageError, match="1-20"):
        seeds_of("5-1")
