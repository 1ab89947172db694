"""Tasks that go through the gate on real sandboxes: each fault at its stage, with a reason that helps."""

from __future__ import annotations

import json
import threading

import pytest
from trials.small_tasks import A, B, Commands, Counting, Journal, write

from workbench.admission.admit import admit, admit_many, proposer_reward
from workbench.admission.calibration import Calibration, calibrate
from workbench.admission.review import Reviewer, load_rubric
from workbench.models import Reply
from workbench.sandboxes import SandboxError
from workbench.tasks import load_task

R = "/logs/verifier/reward.txt"


def kinds(admission):
    return [(reason.stage, reason.kind) for reason in admission.reasons]


def test_a_sound_task(tmp_path, backend):
    journal = Journal(tmp_path / "run")
    found = admit(write(tmp_path / "t"), backend, run=journal)
    assert found.reasons == ()
    assert (found.stage, found.valid_paper, found.validated, found.admitted, found.reward) == (
        "admitted",
        True,
        True,
        None,
        None,
    )
    assert found.rewards == {"oracle": [1.0, 1.0], "noop": [0.0, 0.0]}
    assert list(found.seconds) == ["files", "build", "oracle", "noop", "repeat"]
    assert found.report["solution_in_image"] == {}
    assert [kind for kind, _ in journal.rows] == ["trial"] * 4 + ["admission"]
    json.dumps(found.to_row())


@pytest.mark.parametrize(
    ("files", "stage", "kind", "words"),
    [
        ({"instruction.md": None}, "files", "missing-file", "instruction.md"),
        ({"environment/Dockerfile": "FROM python:3.13-slim\nRUN echo so far; false\n"}, "build", "build", "2"),
        ({"solution/solve.sh": "#!/bin/bash\necho alpha > /app/a.txt\necho oops >&2; exit 4\n"}, "oracle", "oracle-fails", "oops"),
        ({"tests/test.sh": "#!/bin/bash\necho broken; exit 2\n"}, "oracle", "verifier-crash", "broken"),
        ({"tests/test.sh": f"#!/bin/bash\necho 1.5 > {R}\n"}, "oracle", "reward-out-of-range", "1.5"),
        ({"tests/test.sh": f"#!/bin/bash\necho 1 > {R}\n"}, "noop", "noop-passes", "every test passes"),
        ({"tests/test.sh": f"#!/bin/bash\n[ -e /app/b.txt ] && echo 1 > {R} || echo 0.6 > {R}\n"}, "noop", "noop-passes", "0.6"),
        ({"tests/test.sh": f"#!/bin/bash\ncat /app/b.txt || exit 1\necho 1 > {R}\n"}, "noop", "verifier-crash", "nothing done"),
    ],
)  # fmt: skip
def test_each_fault_has_its_stage_and_reason(tmp_path, backend, files, stage, kind, words):
    found = admit(write(tmp_path / "t", files), backend)
    assert kinds(found) == [(stage, kind)]
    assert found.stage == stage
    assert words in found.reasons[0].message
    assert (found.valid_paper, found.validated, found.admitted, found.reward) == (False, False, False, -1.0)
    assert not found.infra


def test_a_flaky_task_is_valid_in_the_papers_sense_only(tmp_path, backend):
    # The first of two runs of the oracle passes: the verifier asks a number that differs from sandbox to sandbox.
    count = tmp_path / "count"
    count.write_text("")

    class EverySecond(Counting):
        def start(self, image, **options):
            sandbox = super().start(image, **options)
            if options.get("verifier"):
                count.write_text(count.read_text() + "x")
                sandbox.write("/srv/number", str(len(count.read_text())).encode())
            return sandbox

    script = f"#!/bin/bash\n[ -e /app/b.txt ] && [ $(cat /srv/number) -lt 3 ] && echo 1 > {R} || echo 0 > {R}\n"
    found = admit(write(tmp_path / "t", {"tests/test.sh": script}), EverySecond(backend))
    assert kinds(found) == [("repeat", "flaky")]
    assert "oracle earned 1, 0" in found.reasons[0].message
    assert (found.valid_paper, found.validated, found.reward) == (True, False, -1.0)
    once = admit(tmp_path / "t", backend, repeats=1)
    assert "repeat" not in once.seconds


def test_copies_of_solution_and_tests_in_the_image(tmp_path, backend):
    solve = "#!/bin/bash\nset -e\ncd /app\necho alpha > /app/a.txt   # a line of its own\necho beta  > /app/b.txt\ntrue && true\n"
    hidden = "FROM python:3.13-slim\nWORKDIR /app\nCOPY hello.txt notes/x.txt /srv/\n"
    leak = {"solution/solve.sh": solve, "environment/notes/x.txt": "notes\n" + solve, "environment/Dockerfile": hidden}
    found = admit(write(tmp_path / "t", leak), backend)
    assert kinds(found) == [("noop", "solution-in-image")]
    assert "x.txt repeats solution/solve.sh" in found.reasons[0].message
    assert set(found.report["solution_in_image"]) == {"environment/notes/x.txt", "/srv/x.txt"}
    assert found.valid_paper
    made = "FROM python:3.13-slim\nWORKDIR /app\nCOPY hello.txt /app/\nRUN mkdir /old && printf '%s\\n' " + " ".join(
        f"'{line}'" for line in solve.splitlines()
    ) + " > /old/history\n"  # fmt: skip
    found = admit(write(tmp_path / "u", {"solution/solve.sh": solve, "environment/Dockerfile": made}), backend)
    assert "/old/history" in found.report["solution_in_image"]
    assert kinds(found) == [("noop", "solution-in-image")]
    tests = load_task(tmp_path / "t").steps[0].tests / "test.sh"
    found = admit(write(tmp_path / "v", {"environment/hello.txt": tests.read_text()}), backend)
    assert kinds(found) == [("noop", "tests-in-image")]


def test_a_long_line_in_the_image_is_reported_only(tmp_path, backend):
    line = "awk '{ total += $1 } END { print total }' /app/hello.txt > /dev/null"
    files = {
        "solution/solve.sh": f"#!/bin/bash\n{line}\necho alpha > /app/a.txt\necho beta > /app/b.txt\n",
        "environment/hello.txt": f"usage:\n  {line}\n",
    }
    found = admit(write(tmp_path / "t", files), backend)
    assert found.validated
    assert found.report["solution_in_image"] == {"environment/hello.txt": 1, "/app/hello.txt": 1}


def test_verifier_strength_is_reported(tmp_path, backend):
    half = tmp_path / "half.sh"
    half.write_text("echo alpha > /app/a.txt\n")
    files = {"solution/partial/wrong.sh": "echo gamma > /app/a.txt\n"}
    found = admit(write(tmp_path / "t", files), backend, repeats=1, partials=[half])
    assert found.report["partials"] == {"wrong": 0.0, "half": 0.5}


def test_contamination(tmp_path, backend):
    words = "sort the seventeen ledgers by their closing balance then write the three largest names into a file"
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / "one.md").write_text(words)
    found = admit(write(tmp_path / "t", {"instruction.md": f"Please {words}.\n"}), backend, held_out=tmp_path / "held")
    assert kinds(found) == [("contamination", "contamination")]
    assert (found.valid_paper, found.validated, found.reward) == (True, False, -1.0)
    sound = admit(write(tmp_path / "u"), backend, held_out=tmp_path / "held", repeats=1)
    assert sound.validated
    assert sound.report["contamination"]["hit"] is False
    with pytest.raises(FileNotFoundError):
        admit(tmp_path / "u", backend, held_out=tmp_path / "no-such-folder")


class Says:
    name = "says"

    def __init__(self, text):
        self.text = text

    def reply(self, messages, sampling=None):
        return Reply(self.text)


def test_review(tmp_path, backend):
    answer = {c.name: {"outcome": "pass", "evidence": "seen"} for c in load_rubric().criteria}
    path = write(tmp_path / "t")
    found = admit(path, backend, repeats=1, review=Reviewer(Says(json.dumps(answer))))
    assert found.validated
    assert found.report["review"]["rubric"] == "harbor-default"
    answer["typos"] = {"outcome": "fail", "evidence": "alpha is misspelt"}
    found = admit(path, backend, repeats=1, review=Reviewer(Says(json.dumps(answer))))
    assert kinds(found) == [("review", "review")]
    assert (found.valid_paper, found.validated, found.reward) == (True, False, -1.0)
    found = admit(path, backend, repeats=1, review=Reviewer(Says("fine by me")))
    assert found.infra
    assert (found.stage, found.reward, found.admitted) == ("review", None, None)
    assert "review-unreadable" in found.reasons[0].message


def solver(rewards):
    """A solver whose rollout i earns rewards[i] (0, 0.5 or 1)."""
    return lambda i: Commands(*{0: (), 0.5: (A,), 1: (A, B)}[rewards[i % len(rewards)]], name="solver")


@pytest.mark.parametrize(
    ("rewards", "admitted", "reward", "n", "kind"),
    [
        ([0, 0.5, 1, 0.5], True, 1.0, 4, None),
        ([0, 0, 0.5, 0.5], True, 1.0, 8, None),
        ([0], False, -0.25, 4, "too-hard"),
        ([1], False, -0.25, 4, "too-easy"),
        ([0.5], False, -0.25, 4, "no-spread"),
        ([0, 0.5, 0, 0, 0, 0, 0, 0], False, -0.25, 8, "too-hard"),
    ],
)
def test_calibration(tmp_path, backend, rewards, admitted, reward, n, kind):
    found = admit(write(tmp_path / "t"), backend, repeats=1, calibrate=Calibration(solver(rewards)))
    assert (found.validated, found.admitted, found.reward) == (True, admitted, reward)
    assert len(found.rewards["solver"]) == n
    assert [k for _, k in kinds(found)] == ([kind] if kind else [])
    assert 0 <= found.report["calibration"]["posterior"] <= 1
    assert ("diagnostic" in found.report["calibration"]) is (kind == "too-hard")


def test_the_diagnostic_rollout_sees_the_solution_and_counts_nowhere(tmp_path, backend):
    told = []

    class Listens(Commands):
        def run(self, task, step, sandbox, budget):
            told.append(step.instruction)
            return super().run(task, step, sandbox, budget)

    result = calibrate(load_task(write(tmp_path / "t")), backend, Calibration(lambda i: Listens(), workers=1))
    assert [("echo alpha > /app/a.txt" in text) for text in told] == [False] * 4 + [True]
    assert result.diagnostic is not None
    assert (result.n, len(result.trials), result.mean) == (4, 4, 0.0)


def test_rollouts_that_infrastructure_ended_are_replaced_and_not_counted(tmp_path, backend):
    counting = Counting(backend, lambda number: SandboxError("lost") if number in (2, 3) else None)
    task = load_task(write(tmp_path / "t"))
    result = calibrate(task, counting, Calibration(solver([0, 1, 0, 1]), workers=1))
    assert result.rewards == (0.0, 1.0, 0.0, 1.0)
    assert sum(trial.outcome == "infra" for trial in result.trials) == 2
    assert result.keep is True
    counting = Counting(backend, lambda number: SandboxError("lost"))
    result = calibrate(task, counting, Calibration(solver([0]), workers=1))
    assert result.keep is None
    assert [reason.kind for reason in result.reasons] == ["too-few"]


def test_failed_infrastructure_is_no_verdict(tmp_path, backend):
    counting = Counting(backend, lambda number: SandboxError("host is gone"))
    found = admit(write(tmp_path / "t"), counting)
    assert found.infra
    assert (found.stage, found.reward, found.admitted) == ("oracle", None, None)
    assert "host is gone" in found.reasons[0].message
    assert len(found.trials) == 3
    counting = Counting(backend, lambda number: SandboxError("lost") if number == 1 else None)
    assert admit(tmp_path / "t", counting, repeats=1).validated


def test_many_side_by_side(tmp_path, backend):
    paths = [write(tmp_path / f"t{i}", {"instruction.md": None} if i == 2 else {}) for i in range(6)]
    seen = []
    found = admit_many(paths, backend, workers=3, on_result=seen.append, repeats=1)
    assert [a.validated for a in found] == [True, True, False, True, True, True]
    assert found[0].task == "small/t0"
    assert {a.id for a in seen} == {a.id for a in found}
    cancel = threading.Event()
    cancel.set()
    assert all(a.infra for a in admit_many(paths[:2], backend, cancel=cancel))


@pytest.mark.parametrize(
    ("validated", "admitted", "infra", "reward"),
    [
        (False, False, False, -1.0),
        (True, False, False, -0.25),
        (True, True, False, 1.0),
        (True, None, False, None),
        (False, None, True, None),
        (True, None, True, None),
    ],
)
def test_equation_2(validated, admitted, infra, reward):
    assert proposer_reward(validated=validated, admitted=admitted, infra=infra) == reward
