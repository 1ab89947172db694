"""The labelling widget with 2,000 turns: opening it (target: under 2 s) and handling a key (target: under 50 ms); the search view.

    python -m benchmarks.labelling

`python` is the widget alone: from traces in memory to a widget, and from a message of the front end to the answer with the
label on the disk. `browser` is JupyterLab in a headless Chromium, where there is one: from the keys that run the cell to the
drawn widget (the traces are read in an earlier cell), and from a key to the frame that shows the next turn.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from workbench.report.label_widget import LabelWidget
from workbench.report.trace_search import TraceSearch
from workbench.traces.reading import read_trace

TURNS, PER_TRACE, KEYS = 2_000, 100, 200
TRACES = 3_000

# When a key went down: listens before the widget is there, which keeps its keys to itself.
LISTEN = 'window.down = 0; window.addEventListener("keydown", () => { window.down = performance.now(); }, true);'
# In which frame the place in the trace has changed.
WATCH = """
window.times = [];
new MutationObserver(() => {
  const from = window.down;
  window.down = 0;
  if (from) requestAnimationFrame(() => { window.times.push(performance.now() - from); });
}).observe(document.querySelector(".wb-label .wb-place"), { childList: true, characterData: true, subtree: true });
"""


def write_traces(folder: Path, traces: int, turns: int, seed: int = 0) -> list[Path]:
    """ATIF files with `turns` tool calls each, 5 to 60 lines of output a call."""
    rng = random.Random(seed)
    words = [f"{rng.randrange(16**6):06x}" for _ in range(2000)]
    return [_write_trace(folder / f"trace-{number:04d}.json", turns, rng, words) for number in range(traces)]


def _write_trace(path: Path, turns: int, rng: random.Random, words: list[str]) -> Path:
    steps: list[dict[str, Any]] = [{"step_id": 1, "source": "user", "message": "Make the tests pass."}]
    for i in range(turns):
        command = rng.choice(("cat notes.txt", "make -j2", "pytest -q", "cat > a.py <<'E'\nx = 1\nE"))
        seen = "\n".join(" ".join(rng.choices(words, k=10)) for _ in range(rng.randint(5, 60)))
        call = {"tool_call_id": "c", "function_name": "bash", "arguments": {"command": command}}
        result = {"results": [{"source_call_id": "c", "content": seen}]}
        steps.append({"step_id": i + 2, "source": "agent", "message": "", "tool_calls": [call], "observation": result})
    agent = {"name": "terminal", "version": "1", "model_name": "m"}
    path.write_text(
        json.dumps({"schema_version": "ATIF-v1.8", "session_id": path.stem, "agent": agent, "steps": steps})
    )
    return path


def run() -> list[dict]:
    """Rows with `what` and measured values in milliseconds or seconds, with their targets."""
    with tempfile.TemporaryDirectory(prefix="bench-labelling-") as folder:
        root = Path(folder)
        (root / "work").mkdir()
        paths = write_traces(root / "work", TURNS // PER_TRACE, PER_TRACE)
        return [*_python(paths, root / "labels"), *_browser(root), *_search(root / "many")]


def _python(paths: list[Path], journal: Path) -> list[dict]:
    start = time.perf_counter()
    traces = [read_trace(path) for path in paths]
    read = time.perf_counter() - start
    start = time.perf_counter()
    widget = LabelWidget(traces, journal, "ada")
    opened = time.perf_counter() - start
    sent = len(json.dumps(widget.get_state(["fixed", "view"])))
    keys = []
    for i in range(KEYS):
        start = time.perf_counter()
        widget.handle(
            {"do": "label", "label": ("read", "write", "test")[i % 3], "index": widget.index, "token": str(i)}
        )
        keys.append(1000 * (time.perf_counter() - start))
    size = f"{TURNS:,} turns"
    return [
        {"what": f"python: read {len(paths)} traces, {size}", "seconds": read},
        {"what": f"python: widget of {size}", "seconds": opened, "target_seconds": 2.0, "sent_kB": sent / 1000},
        {"what": "python: a label, on the disk", **_spread(keys), "target_ms": 50},
    ]


def _spread(values: list[float]) -> dict[str, float]:
    """Median, 95th percentile and largest, in milliseconds."""
    return {
        "median_ms": statistics.median(values),
        "p95_ms": statistics.quantiles(values, n=20)[-1],
        "max_ms": max(values),
        "n": len(values),
    }


def _browser(root: Path) -> list[dict]:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # the harness is the tests'
    from browser import lab

    if reason := lab.missing():
        return [{"what": "browser", "skipped": reason}]
    cells = (
        "from pathlib import Path\nfrom workbench.report.label_widget import LabelWidget\n"
        "from workbench.traces.reading import read_trace\n"
        "traces = [read_trace(p) for p in sorted(Path().glob('trace-*.json'))]\n'read'",
        "LabelWidget(traces, 'labels', 'ada')",
    )
    lab.write_notebook(root / "work" / "label.ipynb", *cells)
    with lab.jupyterlab(root / "lab", work=root / "work") as server, lab.chromium(root / "lab") as driver:
        page = lab.Page(driver)
        page.open(server.format("label.ipynb"))
        page.run_first()
        page.sees(".jp-OutputArea-output pre")
        page.js(LISTEN)
        page.click(".jp-Notebook .jp-Cell:nth-of-type(2) .cm-content")
        start = time.perf_counter()
        page.keys(("control", "enter"))
        page.sees(".wb-label .wb-now")
        opened = time.perf_counter() - start
        keys = _typed(page, lab)
    return [
        {"what": f"browser: widget of {TURNS:,} turns", "seconds": opened, "target_seconds": 2.0},
        {"what": "browser: from a key to the frame with the next turn", **_spread(keys), "target_ms": 50},
    ]


def _typed(page: Any, lab: Any) -> list[float]:
    """Milliseconds of KEYS labels, each typed when the one before has been shown."""
    page.click(".wb-label .wb-place")
    page.js(WATCH)
    for i in range(KEYS):
        page.keys("rwt"[i % 3])
        lab.eventually(lambda n=i: len(page.js("return window.times")) > n, f"the answer to key {i}")
    return page.js("return window.times")


def _search(folder: Path) -> list[dict]:
    folder.mkdir()
    paths = write_traces(folder, TRACES, 20, seed=1)
    size = sum(path.stat().st_size for path in paths) / 1e6
    rare = json.loads(paths[TRACES // 2].read_text())["steps"][3]["observation"]["results"][0]["content"][:40]
    rows = []
    for name, query in (("in one turn", rare), ("in no turn", "zzqq"), ("in most turns, the first 200", "notes.txt")):
        view, start = TraceSearch(folder), time.perf_counter()
        found = len(view.find(query))
        seconds = time.perf_counter() - start
        rows.append({"what": f"search {TRACES:,} traces ({size:.0f} MB): {name}", "seconds": seconds, "found": found})
    return rows


if __name__ == "__main__":
    for row in run():
        print(
            f"{row.pop('what'):<60}",
            "  ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items()),
        )
