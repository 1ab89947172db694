"""Every notebook as a person runs it: opened in JupyterLab, run from the menu with profile smoke, and looked at."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from . import lab
from .lab import Page

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SHOTS = ROOT / "results" / "browser"  # ignored by git
QUICK = "00_check_machine"
MOST_SECONDS = 1500  # of one notebook; a busy machine is slow


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    work = tmp_path_factory.mktemp("notebooks") / "work"
    work.mkdir()
    for path in NOTEBOOKS:
        shutil.copy(path, work)
    return work


@pytest.fixture(scope="module")
def address(work):
    """A server of its own: its kernels take the smoke profile, and write their runs beside the notebooks."""
    before = dict(os.environ)
    os.environ |= {"WORKBENCH_PROFILE": "smoke", "WORKBENCH_RESULTS": str(work / "results")}
    for name in ("WORKBENCH_RUN", "WORKBENCH_PROGRESS"):
        os.environ.pop(name, None)
    try:
        with lab.jupyterlab(work.parent / "lab", work) as address:
            yield address
    finally:
        os.environ.clear()
        os.environ.update(before)


def run_all(page: Page) -> None:
    """Run → Run All Cells, with the mouse."""
    page.sees(".lm-MenuBar-item")
    page.js(
        "const item = [...document.querySelectorAll('.lm-MenuBar-item')].find((i) => i.textContent.trim() === 'Run');"
        "item.id = 'the-run-menu';"
    )
    page.click("#the-run-menu")
    page.click('.lm-Menu-item[data-command="runmenu:run-all"]')


def saved(page: Page, path: Path) -> list[dict[str, Any]]:
    """The code cells as they are on the disk after Ctrl+S."""
    before = path.stat().st_mtime_ns
    page.keys(("control", "s"))
    page.waits(lambda: path.stat().st_mtime_ns != before, "the saved notebook")
    time.sleep(0.5)
    return [
        c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code" and "".join(c["source"]).strip()
    ]


def finished(page: Page, path: Path) -> list[dict[str, Any]]:
    """The code cells once none is waiting; AssertionError with the error when a cell failed."""
    deadline = time.monotonic() + MOST_SECONDS
    while time.monotonic() < deadline:
        if page.ready():
            cells = saved(page, path)
            errors = [o for c in cells for o in c["outputs"] if o["output_type"] == "error"]
            assert not errors, "\n".join(f"{e['ename']}: {e['evalue']}"[:2000] for e in errors)
            if all(c["execution_count"] for c in cells):
                return cells
        time.sleep(2)
    raise AssertionError(f"{path.name} did not end in {MOST_SECONDS} s: {page.text('.jp-Notebook')[-2000:]}")


@pytest.mark.timeout(MOST_SECONDS + 400)
@pytest.mark.parametrize(
    "name", [p.stem if p.stem == QUICK else pytest.param(p.stem, marks=pytest.mark.slow) for p in NOTEBOOKS]
)
def test_a_notebook_runs_from_the_menu(driver, address, work, name):
    page = Page(driver)
    page.open(address.format(f"{name}.ipynb"))
    run_all(page)
    cells = finished(page, work / f"{name}.ipynb")
    last = "".join("".join(o.get("text", "")) for o in cells[-1]["outputs"])
    assert str(work / "results" / name) in last, f"its last cell names its run folder, not {last!r}"
    page.js("document.querySelector('.jp-Notebook').parentElement.scrollTo(0, 0)")
    SHOTS.mkdir(parents=True, exist_ok=True)
    driver.save_screenshot(str(SHOTS / f"{name}.png"))
    for cell in cells:
        for output in cell["outputs"]:
            html = "".join(output.get("data", {}).get("text/html", ""))
            assert "<script" not in html.replace('<script type="text/', ""), "a widget's static HTML holds no script"
