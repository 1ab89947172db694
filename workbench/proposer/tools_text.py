"""The words in which tools answer a proposer: cleaned, bounded, and with what to do."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.agents.protocol import shorten
from workbench.proposer.tools_server import Answer
from workbench.statistics import mean_std
from workbench.trials import Trial, plain

SHOWN = 6_000  # characters of one output


def verdict(which: str, trial: Trial) -> Answer:
    """What `validate` says: the reward, each test, and the verifier's last words."""
    good = trial.reward == 1.0 if which == "oracle" else trial.reward is not None and trial.reward < 0.5
    want = "exactly 1" if which == "oracle" else "below 0.5"
    number = "none" if trial.reward is None else f"{trial.reward:g}"
    lines = [f"reward={number} ({which}; wanted {want}): {'OK' if good else 'NOT OK'}"]
    if trial.outcome != "graded":
        lines.append(f"{trial.outcome}: {trial.reason}: {trial.message[:2000]}")
    lines += [f"  {status}: {name}" for name, status in list(trial.tests.items())[:100]]
    if not good:
        lines += [f"verifier printed:\n{shown(grade.stdout, 3_000)}" for grade in trial.steps]
        lines += [f"solution printed:\n{shown(turn.observation, 2_000)}" for e in trial.episodes for turn in e.turns]
    data = {"reward": trial.reward, "outcome": trial.outcome, "tests": dict(list(trial.tests.items())[:200])}
    return Answer(plain("\n".join(lines)), exit_code=0 if good else 1, data=data)


def rewards(trials: Sequence[Trial]) -> Answer:
    """What `solver_model` says: rewards in order, mean, population standard deviation, and how each attempt ended."""
    earned = [t.reward for t in trials if t.counts and t.reward is not None]
    if not earned:
        reasons = "; ".join(f"{t.outcome}: {t.reason}: {t.message[:200]}" for t in trials)
        return Answer(f"no attempt came to an end: {plain(reasons)[:2000]}", False, 74)
    mean, std = mean_std(earned)
    lines = [
        f"rewards {' '.join(f'{r:.3f}' for r in earned)}  mean {mean:.3f}  std {std:.3f}  ({trials[0].model or 'solver'})"
    ]
    for i, trial in enumerate(trials):
        failed = [name for name, status in trial.tests.items() if status != "passed"]
        lines.append(
            f"  attempt {i}: {trial.turns} turns, ended by {trial.ended_by}; failed: {', '.join(failed[:8]) or '-'}"
        )
    return Answer(plain("\n".join(lines)), data={"rewards": earned, "mean": mean, "std": std})


def shown(text: str, limit: int = SHOWN) -> str:
    """Words from a child as an agent may see them: no control characters, the middle of a long text left out."""
    return shorten(plain(text), limit)
