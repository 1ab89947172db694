from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench.runs.digest import code_digest, run_key
from workbench.runs.folder import new_run
from workbench.runs.grid import points
from workbench.runs.parameters import ParameterError
from workbench.runs.side_by_side import headline_numbers, side_by_side

PARAMETERS = 'profile: str = "micro"\nmodel: str = "a"\nseed: int = 0\nlayers: list[int] = [1]'


def test_every_combination_once_and_typed(notebook):
    found = points(notebook(PARAMETERS), {"model": ["a", "b"], "seed": ["0", "1", "2"]}, {"profile": "smoke"})
    assert [p.varied for p in found] == [{"model": m, "seed": s} for m in "ab" for s in range(3)]
    assert all(p.parameters["profile"] == "smoke" and p.parameters["layers"] == [1] for p in found)
    assert len({p.key for p in found}) == 6
    assert found[5].label == "model=b seed=2"


@pytest.mark.parametrize(
    ("grid", "given", "message"),
    [
        ({"sed": ["1"]}, {}, "did you mean 'seed'"),
        ({"seed": ["1", "x"]}, {}, "seed must be a whole number"),
        ({"seed": []}, {}, "has no values"),
        ({"seed": "12"}, {}, "must be a list of values"),
        ({"seed": ["1", "01"]}, {}, "seed=1 twice"),
        ({"seed": ["1"]}, {"seed": "2"}, "as one value and as a grid"),
        ({"profile": ["smoke", "smok"]}, {}, "did you mean 'smoke'"),
        ({"seed": list(range(200)), "model": [str(i) for i in range(200)]}, {}, "more than 10000"),
    ],
)
def test_a_wrong_grid_is_refused_whole(notebook, grid, given, message):
    with pytest.raises(ParameterError, match=message):
        points(notebook(PARAMETERS), grid, given)


def test_the_digest_is_of_sources_and_not_of_outputs(notebook):
    path = notebook(PARAMETERS, "print(1)")
    before = code_digest(path)
    data = json.loads(path.read_text())
    data["cells"][2] |= {"outputs": [{"output_type": "stream", "name": "stdout", "text": "1"}], "execution_count": 3}
    data["metadata"]["kernelspec"]["name"] = "other"
    path.write_text(json.dumps(data))
    assert code_digest(path) == before
    data["cells"][2]["source"] = ["print", "(2)"]
    path.write_text(json.dumps(data))
    assert code_digest(path) != before


def test_equal_runs_have_equal_keys_and_a_relative_path_is_another_file_elsewhere(tmp_path):
    key = lambda parameters, code="c", cwd="/": run_key("n", parameters, code, cwd)  # noqa: E731
    assert key({"a": 1, "b": [1.5]}) == key({"b": [1.5], "a": 1})
    assert len({key({"a": 1}), key({"a": "1"}), key({"a": 1}, "d"), key({"a": None}), key({"a": True})}) == 5
    here, there = tmp_path / "here", tmp_path / "there"
    (here / "tasks").mkdir(parents=True)
    (there / "tasks").mkdir(parents=True)
    assert key({"model": "a"}, cwd=str(here)) == key({"model": "a"}, cwd=str(there))
    assert key({"parents": ["tasks"]}, cwd=str(here)) != key({"parents": ["tasks"]}, cwd=str(there))
    assert key({"parents": str(here)}, cwd=str(here)) == key({"parents": str(here)}, cwd=str(there))
    assert key({"text": "x" * 5000 + "\0"})


def table(run, name: str, text: str) -> Path:
    path = run.path("tables", f"{name}.csv")
    path.write_text(text)
    return path


def test_headline_numbers_of_tables():
    run = new_run("n", {"seed": 1})
    table(run, "rates", "valid,share,name\n3,0.5,x\n")
    table(run, "pool", "id,reward,ok,note\n1,0.25,True,a\n2,,False,b\n3,0.75,True,\n")
    table(run, "empty", "")
    assert headline_numbers(run) == {
        "empty: rows": 0, "pool: rows": 3, "pool: reward (mean)": 0.5, "pool: ok (mean)": pytest.approx(2 / 3),
        "rates: rows": 1, "rates: valid": 3, "rates: share": 0.5,
    }  # fmt: skip


def test_side_by_side_names_what_differs():
    runs = [new_run("n", {"seed": seed, "profile": "smoke"}) for seed in (1, 2)]
    table(runs[0], "rates", "share\n0.5\n")
    runs[0].write_status("done", 0)
    rows = {row["what"]: row for row in side_by_side(runs)}
    assert rows["seed"] == {"what": "seed", "kind": "parameter", "values": [1, 2], "differs": True}
    assert "profile" not in rows
    assert rows["state"]["values"] == ["done", "interactive"]
    assert rows["rates: share"]["values"] == [0.5, None]
