from __future__ import annotations

import math

import pandas as pd
import pytest
from report_rows import admission

from workbench.runs import new_run


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_RESULTS", str(tmp_path / "results"))
    for name in ("WORKBENCH_RUN", "WORKBENCH_PROGRESS", "WORKBENCH_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with new_run("40_try") as run:
        yield run


@pytest.fixture
def admissions() -> pd.DataFrame:
    return pd.DataFrame(
        [
            admission("good", "admitted", solver=(0.0, 1.0, 0.5, 0.5)),
            admission("no-build", "build", kind="build"),
            admission("weak", "noop", kind="noop-passes"),
            admission("easy", "calibration", kind="too-easy", solver=(1.0, 1.0, 1.0, 1.0)),
            admission("broken", "oracle", infra=True, admitted=None, validated=False, reward=math.nan),
        ]
    )
