"""Traces: import and search speed, peak memory, the classifier, the journal of labels.

    python -m benchmarks.traces

The files are generated: Claude Code sessions whose tool results are lines of a log. `import` reads, replaces secrets and
writes the gzipped record; its peak is that of a process of its own, over what it has after a tiny import.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbench.traces.classify import default
from workbench.traces.labels import Label, LabelJournal, read_labels
from workbench.traces.reading import open_trace, read_trace
from workbench.traces.record import import_trace
from workbench.traces.search import search
from workbench.traces.turns import turns

BIG_MB, TRACES, LABELS = 100, 2000, 2000
_COMMANDS = (
    "ls -la",
    "cat a.py",
    "pytest -q",
    "pip install x",
    "cat > f <<'E'\nx\nE",
    "for s in 1 2; do python solve.py --seed $s; done",
)
_PEAK = """
import sys
from pathlib import Path
from workbench.traces.reading import open_trace
from workbench.traces.record import import_trace
def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
import_trace(open_trace(sys.argv[2]), Path(sys.argv[3]))
before = peak()
import_trace(open_trace(sys.argv[1]), Path(sys.argv[3]))
print(peak() - before)
"""


def session(path: Path, size: int, rng: random.Random) -> None:
    """A session of about `size` bytes."""
    words = [f"{rng.randrange(16**6):06x}" for _ in range(2000)]
    made, number = 0, 0
    with path.open("w") as file:
        while made < size:
            output = "\n".join(" ".join(rng.choices(words, k=12)) for _ in range(rng.randint(1, 60)))
            use = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": rng.choice(_COMMANDS)}}
            result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output}
            content = [{"type": "text", "text": "Next step."}, use]
            usage = {"input_tokens": 100, "output_tokens": 10}
            message = {"id": f"m{number}", "role": "assistant", "model": "m", "content": content, "usage": usage}
            parent = f"r{number - 1}" if number else None
            asked = {"type": "assistant", "uuid": f"a{number}", "parentUuid": parent, "message": message}
            told = {
                "type": "user",
                "uuid": f"r{number}",
                "parentUuid": f"a{number}",
                "message": {"role": "user", "content": [result]},
            }
            made += sum(file.write(json.dumps(entry | {"sessionId": "s"}) + "\n") for entry in (asked, told))
            number += 1


def timed(action: Callable[[], Any]) -> tuple[Any, float]:
    """(its result, seconds)."""
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start


def run() -> list[dict[str, object]]:
    """Rows with `what`, `seconds`, and a rate or size."""
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        return [*big(folder, rng), *many(folder, rng), *labels(folder)]


def big(folder: Path, rng: random.Random) -> list[dict[str, object]]:
    session(folder / "small.jsonl", 1000, rng)
    session(folder / "big.jsonl", BIG_MB << 20, rng)
    found, seconds = timed(lambda: import_trace(open_trace(folder / "big.jsonl"), folder / "out"))
    rows = [
        {
            "what": f"import of {BIG_MB} MiB, {found.turns['turns']} turns",
            "seconds": seconds,
            "mb_a_second": BIG_MB / seconds,
        }
    ]
    if Path("/proc/self/status").exists():
        command = [sys.executable, "-c", _PEAK, *(str(folder / n) for n in ("big.jsonl", "small.jsonl", "out2"))]
        peak = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        rows.append({"what": f"growth of the peak over {BIG_MB} MiB", "seconds": None, "growth_mb": peak})
    found_turns = turns(read_trace(found.path))[:20_000]
    _, seconds = timed(lambda: default().turns(found_turns))
    rows.append(
        {"what": f"classify {len(found_turns)} turns", "seconds": seconds, "turns_a_second": len(found_turns) / seconds}
    )
    return rows


def many(folder: Path, rng: random.Random) -> list[dict[str, object]]:
    for number in range(TRACES):
        session(folder / "one.jsonl", 50_000, rng)
        with (folder / "one.jsonl").open("a") as file:
            text = {"type": "text", "text": f"needle {number}"}
            message = {"id": "z", "role": "assistant", "content": [text]}
            file.write(json.dumps({"type": "assistant", "sessionId": "s", "message": message}) + "\n")
        import_trace(open_trace(folder / "one.jsonl"), folder / "many")
    rows = []
    for what, query, regex in (
        ("rare text", "needle 1234", False),
        ("no such text", "nowhere at all", False),
        ("a pattern", r"needle 12\d\d$", True),
    ):
        hits, seconds = timed(lambda query=query, regex=regex: list(search([folder / "many"], query, regex=regex)))
        rows.append({"what": f"search {TRACES} traces of 50 kB for {what}", "seconds": seconds, "hits": len(hits)})
    return rows


def labels(folder: Path) -> list[dict[str, object]]:
    journal = LabelJournal(folder / "labels.jsonl")
    _, seconds = timed(lambda: [journal.add(Label("t", n + 1, 0, "read", "a")) for n in range(LABELS)])
    rows = [
        {"what": f"write {LABELS} labels, each on the disk", "seconds": seconds, "ms_a_label": 1000 * seconds / LABELS}
    ]
    _, seconds = timed(lambda: read_labels(journal.path))
    return [*rows, {"what": f"read {LABELS} labels", "seconds": seconds}]


if __name__ == "__main__":
    for result in run():
        rest = ", ".join(f"{k} {v:.1f}" for k, v in result.items() if k not in ("what", "seconds"))
        timing = f"{result['seconds']:8.2f} s" if result["seconds"] is not None else " " * 10
        print(f"{timing}  {result['what']:<50} {rest}")
