"""Failures are clustered by failed tests and kind of error, whatever numbers, paths and names an attempt made up."""

from __future__ import annotations

import pytest

from workbench.proposer.failures import cluster, error_of, failure_of, normalise, quote_of
from workbench.traces import Episode, Turn
from workbench.trials import Grade, Trial


def trial(
    id: str, *, reward=0.0, tests=None, stdout="", seen="", ended_by="submit", outcome="graded", reason=""
) -> Trial:
    episode = Episode(
        "terminal", (Turn(0, "", "ls", "early: command not found"), *[Turn(n, "", "x", seen) for n in (1, 2, 3)])
    )
    return Trial(id=id, run_id="r", time=0.0, task="t", digest="d", agent="terminal", model="m", backend="b", outcome=outcome,
                 reward=reward, reason=reason, ended_by=ended_by, steps=(Grade(reward, tests=tests or {}, stdout=stdout),),
                 episodes=(episode,))  # fmt: skip


@pytest.mark.parametrize(
    ("stdout", "kind"),
    [
        ("E   FileNotFoundError: [Errno 2] No such file or directory: '/app/out.csv'", "no such file"),
        ("bash: line 3: jq: command not found", "command not found"),
        ("ModuleNotFoundError: No module named 'pandas'", "module missing"),
        ("E       KeyError: 'total'", "KeyError"),
        ("json.decoder.JSONDecodeError: Expecting value", "JSONDecodeError"),
        ("E   AssertionError: assert 3 == 4", ""),
        ("all is well", ""),
    ],
)
def test_kind_of_error(stdout, kind):
    assert error_of(trial("a", stdout=stdout))[0] == kind


def test_the_verifier_is_believed_before_the_last_turns_and_those_before_nothing_else():
    both = trial("a", stdout="KeyError: 'x'", seen="rm: Permission denied")
    assert error_of(both) == ("KeyError", "KeyError: 'x'")
    assert error_of(trial("a", stdout="1 failed", seen="a\nrm: /x: Permission denied\nb")) == (
        "permission denied", "rm: /x: Permission denied",
    )  # fmt: skip
    assert error_of(trial("a", stdout="1 failed", seen="fine"))[0] == ""  # the first turn is no last turn


def test_alike_up_to_numbers_paths_and_quotes():
    tests = [{"test_row[3]": "failed"}, {"test_row[17]": "failed"}, {"test_other": "failed"}]
    said = ["FileNotFoundError: '/tmp/a1/x'", "FileNotFoundError: '/home/u/y.txt'", "FileNotFoundError: 'z'"]
    found = cluster(trial(str(n), tests=t, stdout=s) for n, (t, s) in enumerate(zip(tests, said, strict=True)))
    assert [(f.count, f.trials, f.words) for f in found] == [
        (2, ("0", "1"), "failed test_row[3]; no such file"),
        (1, ("2",), "failed test_other; no such file"),
    ]
    assert found[0].quote == said[0]
    assert normalise("at /tmp/q/1.txt line 33: got 0x7ffe 'abc' 2.5") == "at <path> line <n>: got <n> <text> <n>"


def test_what_passed_or_does_not_count_is_no_failure():
    assert cluster([trial("a", reward=1.0), trial("b", reward=None, outcome="infra", reason="docker")]) == []
    assert failure_of(trial("c", reward=0.0, outcome="policy", reason="verifier-crash")) == "verifier-crash"


def test_a_quote_without_an_error_names_a_failed_test_and_is_clean():
    hostile = trial("a", tests={"total": "failed"}, stdout="ok count\n\x1b[2Jfailed total: got 3\nend")
    assert quote_of(hostile) == "\\x1b[2Jfailed total: got 3"
    assert len(quote_of(trial("a", stdout="x" * 10_000))) <= 240
