"""Worked by hand: three services over twelve minutes, one change, one fault."""

from __future__ import annotations

from workbench.worlds.generators.incident_root_cause import alternative, reference, verify
from workbench.worlds.generators.incident_root_cause.answers import truth
from workbench.worlds.generators.incident_root_cause.scene import Change, World
from workbench.worlds.generators.incident_root_cause.world import render

START = 1_767_225_600  # 2026-01-01T00:00:00Z
# Minutes:     0123456789ab
BAD = {"db": "000110010000", "api": "000011100000", "web": "011100000011"}  # web's second run has two minutes only


def _world() -> World:
    metrics = tuple(tuple((900 if bit == "1" else 10, 5) for bit in BAD[n]) for n in ("db", "api", "web"))
    return World(
        "INC-hand",
        START,
        (("db", 100, 50), ("api", 100, 50), ("web", 100, 50)),
        (("api", "db", "hard"), ("web", "api", "soft")),
        metrics,
        (Change("CH-1", START + 60, "db", "deploy", "1.9.0", "1.10.0", "none"),),
        (("db", "1.9.0"),),
        (("api", "db", "1.10.0"),),
        ((), (), ((START + 30, "ERROR", "disk degraded code=E7"),)),
    )


def test_episodes_chain_and_decisions():
    answer = truth(_world(), ())
    # db is degraded at 3, 4 and 7: neighbours are 3 apart, so this is one episode; api begins within it and depends on it
    assert [tuple(e.values()) for e in answer["episodes"]] == [
        ("web", "2026-01-01T00:01:00Z", "2026-01-01T00:03:00Z", "3", ""),
        ("db", "2026-01-01T00:03:00Z", "2026-01-01T00:07:00Z", "3", ""),
        ("api", "2026-01-01T00:04:00Z", "2026-01-01T00:06:00Z", "3", "db"),
    ]
    web, db = answer["incidents"]
    assert web["trigger"] == {"kind": "fault", "reference": "E7"}
    assert web["rollback"] == {"safe": False, "reasons": ["no-change"]}
    assert (db["trigger"], db["blast_radius"], db["depth"], db["degraded_minutes"]) == ({"kind": "deploy", "reference": "CH-1"}, ["api", "db"], 1, 6)  # fmt: skip
    assert db["rollback"] == {"safe": False, "reasons": ["consumer-needs-newer"]}  # 1.10.0 is newer than 1.9.0


def test_both_solvers_find_the_same():
    tree = render(_world())
    answer = truth(_world(), ())
    for outputs in (list(reference.solve(tree))[-1][1], alternative.solve(tree)):
        assert set(verify.verify(answer, outputs).values()) == {1.0}
