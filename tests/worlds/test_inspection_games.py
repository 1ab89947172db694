"""Games solved with paper and pencil."""

from __future__ import annotations

import json
from fractions import Fraction as F

import pytest

from workbench.worlds.generators.inspection_games import alternative, answers, reference

# Matching with stakes: value (3*2 - 0*0) / (3 + 2) = 6/5; the inspector plays 2/5, 3/5, so does the intruder.
DIAGONAL = [[3, 0], [0, 2]]
SADDLE = [[4, 2], [3, 1]]


@pytest.mark.parametrize(
    ("game", "value", "rows", "columns"),
    [
        (DIAGONAL, F(6, 5), [F(2, 5), F(3, 5)], [F(2, 5), F(3, 5)]),
        (SADDLE, F(2), [1, 0], [0, 1]),
        ([[3, 0, 9], [0, 2, 9]], F(6, 5), [F(2, 5), F(3, 5)], [F(2, 5), F(3, 5), 0]),
    ],
)
def test_three_roads_to_one_equilibrium(game, value, rows, columns):
    assert answers.solve([[F(v) for v in row] for row in game]) == (value, rows, columns)
    assert alternative._equilibrium(game) == (value, rows, columns)
    named = {f"r{i}": {f"c{j}": F(v) for j, v in enumerate(row)} for i, row in enumerate(game)}
    solved, x, y = reference._simplex(named)
    assert (solved, list(x.values()), list(y.values())) == (value, rows, columns)


def test_a_game_with_many_equilibria_is_refused():
    assert answers.solve([[F(1), F(1)], [F(1), F(1)]]) is None


def test_elimination_goes_in_rounds():
    game = [[F(v) for v in row] for row in [[3, 0, 4], [0, 2, 3], [-1, -1, 5]]]
    assert answers.eliminate(game) == ([([], [2]), ([2], [])], [0, 1], [0, 1])


@pytest.fixture
def tree() -> dict[str, bytes]:
    """One site: route R-1 costs 1, stakes are 8, chances 1/2, 0, 0, 1/4 by four trials a pair; T-1 is swapped, and corrected."""
    site = {"hours": 3, "routes": {"R-1": 1, "R-2": 0}, "entries": {"E-1": 8, "E-2": 8}}
    told = {"port": "P", "available_hours": 4, "outcomes": {"yes": ["Y"], "no": ["N"]}, "sites": {"Quay": site}}
    lines, hits = ["trial_id,route,entry,detected"], {("R-1", "E-1"): 2, ("R-2", "E-2"): 1}
    for route in ("R-1", "R-2"):
        for entry in ("E-1", "E-2"):
            for n in range(4):
                outcome = "Y" if n < hits.get((route, entry), 0) else "no"
                lines.append(f"T-{len(lines)},{route},{entry},{outcome}")
    lines[1] = "T-1,E-1,R-1,no"  # swapped, and wrong: the correction says yes
    lines += [lines[2], "T-99,R-9,E-1,yes"]
    return {
        "input/sites.json": json.dumps(told).encode(),
        "input/trials/Quay.csv": "\n".join(lines).encode(),
        "input/corrections.csv": b"trial_id,detected\nT-1,Y\n",
    }


def test_both_solvers_estimate_and_solve_a_site(tree):
    for out in (list(reference.solve(tree))[-1][1], alternative.solve(tree)):
        # payoffs 3, -1, 0, 2: value (3*2 + 1*0) / (3 + 2 + 1) = 1, routes (2 - 0)/6 and (3 + 1)/6, entries (2 + 1)/6 and 3/6
        assert [line.split(",")[3:] for line in out["output/staging/payoffs.csv"].decode().split()[1:]] == [
            ["2", "4", "3"], ["0", "4", "-1"], ["0", "4", "0"], ["1", "4", "2"],
        ]  # fmt: skip
        assert json.loads(out["output/equilibria.json"])["Quay"] == {
            "value": "1",
            "routes": {"R-1": "1/3", "R-2": "2/3"},
            "entries": {"E-1": "1/2", "E-2": "1/2"},
        }
        assert {line.split(",")[4] for line in out["output/certificate.csv"].decode().split()[1:]} == {"0"}
        coverage = json.loads(out["output/coverage.json"])
        assert (coverage["sites"], coverage["unused_hours"], coverage["mixed"]) == (["Quay"], 1, ["Quay"])
