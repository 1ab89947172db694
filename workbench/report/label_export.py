"""Labels as files for others: JSONL, CSV, and ATIF with the labels in each step's `extra`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from workbench.traces.labels import Label, LabelError, to_csv
from workbench.traces.trace import Trace


def write_jsonl(path: Path | str, labels: Iterable[Label]) -> Path:
    """One label a line."""
    return _written(path, "".join(json.dumps(label.to_row()) + "\n" for label in labels))


def write_csv(path: Path | str, labels: Iterable[Label]) -> Path:
    return _written(path, to_csv(labels))


def write_atif_folder(folder: Path | str, traces: Mapping[str, Trace], labels: Iterable[Label]) -> list[Path]:
    """One file a trace, named by its digest. traces: by digest. LabelError when there are none."""
    from workbench.traces.export import write_atif

    if not traces:
        raise LabelError("made of bare turns: give LabelWidget the traces to export them as ATIF")
    of_trace: dict[str, dict] = {digest: {} for digest in traces}
    for label in labels:
        of_trace[label.trace][label.key] = label
    return [
        write_atif(Path(folder) / f"{digest[:12]}.json", trace.info, trace.steps, of_trace[digest])
        for digest, trace in traces.items()
    ]


def _written(path: Path | str, text: str) -> Path:
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
