"""The flywheel with learning: real tiny weights, real sandboxes; it learns, its arms differ, and a killed run goes on as if nothing was."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.training.learning_parts import VALUES, parents, tiny_policy
from workbench.proposer import get_proposer
from workbench.runs.folder import new_run, open_run
from workbench.training.collect import InfraBroken
from workbench.training.learning import LearningSettings
from workbench.training.pprs import VARIANTS
from workbench.training.setup_learning import make_learning


@pytest.fixture(scope="module")
def tasks(tmp_path_factory) -> Path:
    return parents(tmp_path_factory.mktemp("parents"))


def learning(folder: Path, tasks: Path, run=None, **values):
    run = run or new_run("40_flywheel", {}, results=folder).begin()
    made = make_learning(run, {**VALUES, "parents": str(tasks), **values}, policy=tiny_policy())
    made.say = lambda text: None
    return made


def close(made) -> None:
    made.policy.close()
    made.run.close()


def test_the_solver_learns_and_both_roles_train(tmp_path, tasks):
    made = learning(tmp_path, tasks, steps=7, proposer_every=3, group=6)
    made.learn()
    rows = made.run.rows("update")
    assert [r["step"] for r in rows] == list(range(1, len(rows) + 1))
    assert rows[-1]["solver_reward"] > rows[0]["solver_reward"] + 0.1
    assert any(r["update"]["proposer_tokens"] > 0 for r in rows), "a proposer group that varies enters the update"
    proposed = next(r["proposer"] for r in rows if r["proposer"])
    assert proposed["asked"] == proposed["verdicts"] == 4
    assert -1 <= proposed["mean_reward"] <= 1
    assert len(made.run.rows("admission")) == sum(r["proposer"]["verdicts"] for r in rows if r["proposer"])
    accepted = [name for r in rows for name in r["collect"]["groups"]]
    assert len(accepted) == len(set(accepted)), "no group trains twice"
    close(made)


def test_static_pool_never_proposes_and_no_proposer_training_never_trains_it(tmp_path, tasks):
    static = learning(tmp_path / "a", tasks, arm="static-pool", proposer_every=1, review_every=1, steps=2)
    static.learn()
    assert not static.run.rows("assignment")
    assert not static.run.rows("review")
    assert len(static.state.pool) == 2
    close(static)
    untrained = learning(tmp_path / "b", tasks, arm="no-proposer-training", proposer_every=1, steps=3)
    untrained.learn()
    assert untrained.run.rows("admission")
    assert all(r["update"]["proposer_tokens"] == 0 for r in untrained.run.rows("update"))
    close(untrained)


def test_an_assignment_without_feedback_says_nothing_of_the_solver(tmp_path, tasks):
    made = learning(tmp_path, tasks, arm="no-feedback", proposer_every=1, steps=2)
    made.learn()
    (row,) = made.run.rows("assignment")
    assert (row["pass_rate"], row["failure"], row["failures"], row["evidence"]) == (0.5, "not shown", {}, [])
    close(made)


class Watching:
    """The world proposer with fixed weights, which reads the rollouts of each round."""

    name = "watching"

    def __init__(self):
        self.inner, self.read = get_proposer("world", generators=["micro_shelf"], tiers=("micro",)), []

    def refresh(self, past):
        self.read.append([(p.id, len(p.trials), sum(len(t.episodes) for t in p.trials)) for p in past])

    def propose(self, assignment, target, *, seed, feedback=""):
        return self.inner.propose(assignment, target, seed=seed, feedback=feedback)


def test_an_external_proposer_is_refreshed_with_trajectories_and_never_trained(tmp_path, tasks):
    made = learning(tmp_path, tasks, arm="external", proposer_every=1, steps=2, proposer_group=2)
    made.roles.external, made.roles.keep_episodes = Watching(), True
    made.learn()
    assert made.roles.external.read[0][0][1:] == (4, 4)
    assert all(r["update"]["proposer_tokens"] == 0 for r in made.run.rows("update"))
    assert made.run.rows("update")[1]["proposer"]["malformed"] == 0
    close(made)


@pytest.mark.parametrize("reward", VARIANTS)
def test_shaped_rewards_train_the_solver_turn_by_turn(tmp_path, tasks, reward):
    made = learning(tmp_path, tasks, reward=reward, progress=False, group=6, steps=1, groups=1)
    assert made.roles.progress == (reward != "terminal"), "what a reward needs is graded"
    made.learn()
    (row,) = made.run.rows("update")
    assert row["update"]["solver_tokens"] > 0
    rollouts = [r for r in made.run.rows("rollout") if r["group"] in row["collect"]["groups"]]
    assert len({r["passed"] and r["submitted"] for r in rollouts}) == 2, (
        "without a potential it is the strict pass that varies"
    )
    close(made)


def test_a_pool_that_teaches_nothing_stops_with_the_reason_and_is_evaluated(tmp_path, tasks):
    made = learning(tmp_path, tasks, group=2, cap=2, groups=2, evaluate_on=str(tasks), max_tokens=1, steps=2)
    made.policy.sampling = made.policy.sampling.__class__(max_tokens=1)
    made.policy.model.format.text = lambda ids, stop=(): "I do nothing."
    made.learn()
    (stop,) = made.run.rows("stop")
    assert "0 of 2 groups vary after 2 were begun (cap 2); dropped: 2 no-variation" in stop["reason"]
    assert made.outcome()[tasks.name]["verdict"] in ("no detectable change", "nothing to compare")
    close(made)


def test_a_run_that_goes_on_is_evaluated_at_its_beginning_and_its_end_only(tmp_path, tasks):
    def stop():
        raise KeyboardInterrupt

    made = learning(tmp_path, tasks, steps=2, evaluate_on=str(tasks), arm="static-pool")
    with pytest.raises(KeyboardInterrupt):
        made.learn(stop)
    folder = made.run.folder
    close(made)
    again = learning(tmp_path, tasks, run=open_run(folder).begin(), steps=2, evaluate_on=str(tasks), arm="static-pool")
    again.learn()
    rows = again.run.rows("evaluation")
    assert [r["step"] for r in rows] == [0, 2]
    close(again)


def test_broken_infrastructure_stops_the_step(tmp_path, tasks):
    made = learning(tmp_path, tasks, group=8, groups=4, cap=8, retries=0)
    made.policy.close()  # the engine is gone
    with pytest.raises(InfraBroken, match=r"of the last \d+ rollouts were ended by infrastructure; the last: model: "):
        made.learn()
    assert all(r["outcome"] == "infra" for r in made.run.rows("rollout"))
    made.run.close()


def test_settings_that_make_no_sense_are_refused(tmp_path, tasks):
    with pytest.raises(ValueError, match="fraction"):
        LearningSettings(reward="best")
    with pytest.raises(ValueError, match="no arm 'fast'"):
        learning(tmp_path, tasks, arm="fast")
    with pytest.raises(ValueError, match="could never be filled"):
        learning(tmp_path, tasks, groups=9, cap=2)


# -- killed anywhere ------------------------------------------------------------------------------------------------------


def lives(run_folder: Path, tasks: Path, *places: str) -> list[list[str]]:
    """[place, exit code] of each life of a run, in processes of their own."""
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "tests.training.killed_learning", str(run_folder), str(tasks), *places]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert " 1\n" not in done.stdout, done.stderr[-3000:]
    return [line.split() for line in done.stdout.splitlines()]


def weights_of(run) -> bytes:
    newest = (run.folder / "checkpoints" / (run.folder / "checkpoints" / "latest").read_text()) / "model.safetensors"
    return newest.read_bytes()


def essence(run) -> list[dict]:
    """What each step came to, without clocks."""
    latest = {r["step"]: r for r in run.rows("update")}
    keep = ("loss", "grad_norm", "tokens", "version", "solver_tokens", "proposer_tokens")
    return [
        {"groups": r["collect"]["groups"], "reward": r["solver_reward"], "pool": r["pool"], "proposer": r["proposer"], **{k: r["update"][k] for k in keep}}
        for _, r in sorted(latest.items())
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_anywhere_a_serial_run_takes_the_same_steps(tmp_path, tasks):
    whole = new_run("40_flywheel", {}, results=tmp_path / "whole")
    cut = tmp_path / "cut" / whole.folder.name
    shutil.copytree(whole.folder, cut)  # the same run id: proposals are drawn with it
    assert lives(whole.folder, tasks, "end") == [["end", "0"]]
    places = ["rollout:4", "saved:1", "update:1", "rollout:9"]
    assert lives(cut, tasks, *places, "end") == [*([p, str(-signal.SIGKILL)] for p in places), ["end", "0"]]
    one, other = open_run(whole.folder), open_run(cut)
    assert json.dumps(essence(one)) == json.dumps(essence(other))
    assert weights_of(one) == weights_of(other)
    resumed = other.rows("resume")
    assert len(resumed) >= 2, "a run that goes on says so"
    assert sum(r["groups"] for r in resumed) > 0, "and counts the groups that restart"
