from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _results(tmp_path, monkeypatch):
    """Runs of tests go below tmp_path, and nothing of the environment that tests were started in reaches them."""
    monkeypatch.setenv("WORKBENCH_RESULTS", str(tmp_path / "results"))
    for name in ("WORKBENCH_RUN", "WORKBENCH_PROGRESS", "WORKBENCH_PROFILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def notebook(tmp_path) -> Callable[..., Path]:
    """Writes a notebook: its parameters cell, then code cells."""

    def write(parameters: str, *cells: str, name: str = "50_try") -> Path:
        def code(source: str, tags: tuple[str, ...] = ()) -> dict:
            return {
                "cell_type": "code",
                "execution_count": None,
                "metadata": {"tags": list(tags)},
                "outputs": [],
                "source": source,
            }

        title = {"cell_type": "markdown", "metadata": {}, "source": "# A try"}
        data = {
            "cells": [title, code(parameters, ("parameters",)), *map(code, cells)],
            "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
            "nbformat": 4,
            "nbformat_minor": 4,
        }
        path = tmp_path / f"{name}.ipynb"
        path.write_text(json.dumps(data))
        return path

    return write
