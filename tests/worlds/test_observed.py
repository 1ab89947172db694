"""The three axes that rollouts fill."""

from __future__ import annotations

import pytest

from workbench.worlds.coverage import AXES, UNOBSERVED
from workbench.worlds.observed import failure, observed, outcome, relabelled, reward_band


def row(
    reward=0.0, passed=False, submitted=True, ended_by="submit", phi=0.5, progress=(0.5,), outcome="graded"
) -> dict:
    return {"reward": reward, "passed": passed, "submitted": submitted, "ended_by": ended_by, "phi": phi, "progress": progress,
            "outcome": outcome}  # fmt: skip


def test_no_rollout_that_counts_leaves_the_axes_unobserved():
    assert set(observed([])["reward_band"] + observed([row(outcome="infra")])["failure_category"]) == {UNOBSERVED}


@pytest.mark.parametrize(
    ("mean", "band"), [(0.0, "0"), (0.1, "<0.25"), (0.25, "0.25-0.75"), (0.75, "0.25-0.75"), (0.9, ">0.75"), (1.0, "1")]
)
def test_bands(mean, band):
    assert reward_band(mean) == band


def test_outcomes_and_failures():
    complete = row(1.0, True, False, "turns", 1.0, (1.0, 1.0))
    assert (outcome(complete), failure(complete)) == ("complete-unsubmitted", "not-submitted")
    assert (outcome(row(1.0, True, phi=1.0)), outcome(row())) == ("passed", "submitted-incomplete")
    assert outcome(row(submitted=False, ended_by="context")) == "ended-context"
    assert [failure(row(phi=p, progress=g)) for p, g in ((0.0, ()), (0.2, (0.4, 0.2)), (0.4, (0.4,)), (None, ()))] == [
        "nothing-right", "regressed", "stalled", "ungraded"]  # fmt: skip


def test_labels_keep_their_other_axes():
    labels = {
        axis: (UNOBSERVED,) if axis in ("reward_band", "outcome_category", "failure_category") else ("x",)
        for axis in AXES
    }
    found = relabelled(labels, [row(1.0, True, phi=1.0, progress=(1.0,)), row()])
    assert found["reward_band"] == ("0.25-0.75",)
    assert found["outcome_category"] == ("passed", "submitted-incomplete")
    assert found["failure_category"] == ("stalled",)
    assert found["subdomain"] == ("x",)
    assert observed([row(1.0, True, phi=1.0)])["failure_category"] == ("none",)
