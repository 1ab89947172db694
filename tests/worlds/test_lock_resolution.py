"""A registry of four packages, resolved by hand; every way to write a constraint."""

from __future__ import annotations

import json

import pytest

from workbench.worlds.generators.lock_resolution import alternative, model, reference

# (name, version, {dependency: constraint}); app needs a and c. a 2.0.0 wants b ^2, but c's only version wants b <2: back to a 1.10.0.
VERSIONS = [
    ("a", "1.9.0", {"b": "*"}), ("a", "1.10.0", {"b": "^1.0.0"}), ("a", "2.0.0", {"b": "^2.0.0"}), ("a", "3.0.0", {}),
    ("b", "1.0.0", {}), ("b", "1.2.0", {}), ("b", "2.0.0", {}), ("c", "1.0.0", {"b": "<2.0.0"}), ("d", "1.0.0", {}),
]  # fmt: skip


def line(name, version, needs):
    deps = [{"name": d, "req": c, "platform": "any"} for d, c in needs.items()]
    return json.dumps({"name": name, "vers": version, "python": ">=3.8", "deps": deps, "cksum": "?"}) + "\n"


LOST = ("b", "1.0.0")
TREE = {
    "input/project.toml": b'[project]\nname = "app"\npython = "3.11"\nplatform = "linux"\n[dependencies]\na = "*"\nc = ">=1.0"\n',
    "input/project.lock.json": b'[{"name": "a", "version": "2.0.0"}, {"name": "b", "version": "1.2.0"}, {"name": "d", "version": "1.0.0"}]',
    "input/registry/publish_log.csv": ("name,version,published,sha256\n" + "".join(f"{n}, {v},2024-01-01,{n}{v}\n" for n, v, _ in VERSIONS)).encode(),
    "input/registry/yank_log.csv": b"at,name,version,action\n02/01/2024 00:00:00,b,1.2.0,yank\n2024-01-01 00:00:00,b,1.0.0,yank\n2024-03-01 00:00:00,b,1.0.0,unyank\n",
    "input/registry/advisories.csv": b'id,name,affected,severity\nA1,a,">=3.0.0,<4.0.0",P2\nA2,c,*,LOW\n',
    "input/mirror/index.jsonl": line(*LOST, {}).encode(),
    "input/mirror/synced.txt": b"2024-01-01\n",
    **{f"input/index/{n}.jsonl": "".join(line(*v) for v in VERSIONS if v[0] == n and v[:2] != LOST).encode() for n in "abcd"},
}  # fmt: skip
TREE["input/index/d.jsonl"] += line("d", "9.0.0", {}).encode()  # never published


@pytest.mark.parametrize("solve", [lambda t: list(reference.solve(t))[-1][1], alternative.solve])
def test_four_packages_by_hand(solve):
    out = solve(TREE)
    lock = json.loads(out["output/lock.json"])
    assert [(p["name"], p["version"]) for p in lock["packages"]] == [("a", "1.10.0"), ("b", "1.0.0"), ("c", "1.0.0")]
    assert lock["install_order"] == ["b", "a", "c"]
    assert lock["packages"][1]["required_by"] == ["a", "c"]
    assert lock["packages"][0]["required_by"] == ["app"]
    assert json.loads(out["output/candidates.json"])["a"] == ["2.0.0", "1.10.0", "1.9.0"]
    assert [json.loads(x)["reasons"] for x in out["output/excluded.jsonl"].decode().splitlines()] == [
        "advisory",
        "yanked",
    ]
    assert out["output/changes.csv"].decode().splitlines()[1:] == [
        "a,downgraded,2.0.0,1.10.0,conflict",
        "b,downgraded,1.2.0,1.0.0,yanked",
        "c,added,,1.0.0,required",
        "d,removed,1.0.0,,unreachable",
    ]


@pytest.mark.parametrize(
    ("constraint", "yes", "no"),
    [
        ("^1.2.0", ["1.2.0", "1.10.0"], ["1.1.9", "2.0.0"]),
        ("^0.3.1", ["0.3.1", "0.3.9"], ["0.4.0", "0.3.0"]),
        ("~1.2.3", ["1.2.3", "1.2.10"], ["1.3.0", "1.2.2"]),
        (">=1.2,<2.0.0", ["1.2.0", "1.99.0"], ["2.0.0", "1.1.0"]),
        ("!=1.0.0", ["1.0.1"], ["1.0.0"]),
    ],
)
def test_constraints_mean_the_same_to_all_three(constraint, yes, no):
    for version, expected in [(v, True) for v in yes] + [(v, False) for v in no]:
        assert model.meets(model.key(version), constraint) is expected
        assert reference._meets(version, constraint) is expected
        assert alternative._holds(alternative._code(version), constraint) is expected
