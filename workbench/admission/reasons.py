"""From trials to reasons: what was wrong, where, and what to do, in plain words."""

from __future__ import annotations

from workbench.admission import Reason, Stage
from workbench.tasks import Fault
from workbench.trials import Trial

NOOP_BELOW = 0.5  # AutoEnvScaling §3.2: an empty solution receives less than half
_TAIL = 1500  # characters of output quoted


def file_reasons(faults: list[Fault]) -> list[Reason]:
    return [Reason(f.kind, f"{f.where}: {f.message}" if f.where else f.message, "files") for f in faults]


def oracle_reason(trial: Trial) -> Reason | None:
    """None when the reference solution earned exactly 1."""
    if trial.outcome == "graded" and trial.reward == 1.0:
        return None
    stage: Stage = "build" if trial.reason in ("build", "build-unsupported") else "oracle"
    if trial.outcome != "graded":
        return Reason(trial.reason, _with_solution(trial, trial.message), stage)
    late = "; it was stopped when its time was up ([agent] timeout_sec)" if trial.ended_by == "time" else ""
    failed = [name for name, status in trial.tests.items() if status != "passed"]
    tests = f" These tests did not pass: {_names(failed)}." if failed else ""
    text = (
        f"the reference solution earned {trial.reward:g} instead of 1{late}.{tests} Make solution/solve.sh and tests/ "
        "agree. Programs and packages that it installs below /usr are not seen by the tests: install them in the Dockerfile"
    )
    return Reason("oracle-fails", _with_solution(trial, text) + verifier_tail(trial), "oracle")


def noop_reason(trial: Trial) -> Reason | None:
    """None when doing nothing was graded below NOOP_BELOW."""
    if trial.outcome != "graded" or trial.reward is None:
        text = f"with nothing done: {trial.message}\nThe tests must fail, not break, on an untouched workspace"
        return Reason(trial.reason, text, "noop")
    if trial.reward < NOOP_BELOW:
        return None
    passing = passed_tests(trial)
    tests = f" These tests already pass: {_names(passing)}." if passing else ""
    what = "every test passes untouched" if trial.reward == 1.0 else f"doing nothing earns {trial.reward:g}"
    text = f"{what}; it must earn less than {NOOP_BELOW}.{tests} Let tests check what the instruction asks to change"
    return Reason("noop-passes", text + verifier_tail(trial), "noop")


def flaky_reason(name: str, trials: list[Trial]) -> Reason | None:
    """None when every run of one agent was graded the same."""
    if len({(trial.outcome, trial.reward) for trial in trials}) == 1:
        return None
    earned = ", ".join(f"{t.reward:g}" if t.reward is not None else f"no reward ({t.reason})" for t in trials)
    changed = flaky_tests(trials)
    tests = f" These tests changed: {_names(changed)}." if changed else ""
    text = (
        f"the same {name} earned {earned} on fresh sandboxes.{tests} Take clocks, random numbers, order and races out"
    )
    return Reason("flaky", text, "repeat")


def flaky_tests(trials: list[Trial]) -> list[str]:
    """Names of tests whose status differed between trials."""
    names = {name for trial in trials for name in trial.tests}
    return sorted(name for name in names if len({trial.tests.get(name) for trial in trials}) > 1)


def passed_tests(trial: Trial) -> list[str]:
    return [name for name, status in trial.tests.items() if status == "passed"]


def verifier_tail(trial: Trial) -> str:
    output = trial.steps[-1].stdout.strip() if trial.steps else ""
    return f"\nThe verifier's output ended:\n{output[-_TAIL:]}" if output else ""


def _with_solution(trial: Trial, text: str) -> str:
    """Adds how the solution itself ended, when it ended badly."""
    turns = [turn for episode in trial.episodes for turn in episode.turns]
    bad = next((turn for turn in turns if turn.exit_code), None)
    if bad is None:
        return text
    return f"{text}\nsolve.sh ended with {bad.exit_code}; its output ended:\n{bad.observation.strip()[-_TAIL:]}"


def _names(names: list[str], limit: int = 8) -> str:
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
