"""Harness optimization: memory and tools change, versions are kept, and what is fixed stays fixed whatever is tried."""

from __future__ import annotations

from workbench.agents import Budget
from workbench.agents.script import ScriptedAgent
from workbench.proposer.harness import HarnessProposer
from workbench.proposer.optimize import optimize
from workbench.proposer.store import HarnessStore

PAST = [
    {"assignment": "r1-a000", "reward": -1.0, "first_reward": -1.0, "stage": "oracle", "reasons": ["oracle-fails"], "turns": 3,
     "messages": ["it earned 0"], "episode": {"turns": [{"text": "x", "command": "y", "observation": "NOT OK"}]}},
]  # fmt: skip
BUDGET = Budget(turns=9, tokens=1000, seconds=120, command_seconds=30)


def edit(commands, backend, tmp_path):
    store = HarnessStore(tmp_path / "store")
    harness = HarnessProposer(ScriptedAgent(commands), backend=backend, store=store)
    try:
        return optimize(harness, PAST, round=1, seed=0, budget=BUDGET), store
    finally:
        harness.close()


def test_it_reads_its_rewards_and_edits_what_is_its_own(backend, tmp_path):
    commands = ["cat past_rewards/index.jsonl past_rewards/logs/*", "grep -c oracle-fails past_rewards/index.jsonl > memory/lessons.md",
                "mkdir memory/skills; echo 'validate first' > memory/skills/mine.md; rm tools/README.md"]  # fmt: skip
    found, store = edit(commands, backend, tmp_path)
    assert '"reward": -1.0' in found.episode.turns[0].observation
    assert "NOT OK" in found.episode.turns[0].observation
    assert (found.started, found.version, found.fixed, found.kept) == (0, 1, True, "")
    assert found.changed == ("memory/lessons.md", "memory/skills/mine.md", "tools/README.md")
    assert "+validate first" in found.diff
    assert (store.path(1) / "memory/lessons.md").read_text() == "1\n"
    assert (store.path(0) / "tools/README.md").is_file()
    assert store.latest.source == "optimize-after-round-1"


def test_fixed_checks_stay_fixed(backend, tmp_path):
    commands = ["echo x > checks/README.md; echo y > skills/create_task.md; rm -rf checks skills past_rewards; mv checks c",
                "umount /workspace/checks; mount -t tmpfs x /workspace/checks; echo z > checks/README.md"]  # fmt: skip
    found, _ = edit(commands, backend, tmp_path)
    assert found.fixed
    assert (found.started, found.version, found.changed, found.diff) == (0, 0, (), "")
    assert "Read-only file system" in found.episode.turns[0].observation


def test_links_and_too_much_are_not_kept(backend, tmp_path):
    found, store = edit(["ln -s /etc/passwd memory/p"], backend, tmp_path)
    assert (found.version, found.kept.startswith("memory:")) == (0, True)
    found, store = edit(["head -c 9000000 /dev/zero > tools/z"], backend, tmp_path)
    assert found.kept
    assert store.latest.number == 0
