"""One latent world opened up: its files, its declared damage, its workflow. Takes an environment's plain parts, returns tables and figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

from workbench.report.figures import label, new_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PREVIEW_BYTES, PREVIEW_CHARACTERS = 512, 100
CRITICAL, OTHER = "#D55E00", "#0072B2"


class HasStage(Protocol):
    """What is read of a stage (workbench.worlds.Stage)."""

    name: str
    kind: str
    work: int
    requires: tuple[str, ...]


class HasDefect(Protocol):
    """What is read of a declared corruption (workbench.worlds.Defect)."""

    kind: str
    path: str
    params: Mapping[str, Any]
    note: str


def preview(data: bytes) -> str:
    """The beginning of a file on one line: text as it is, anything else as hexadecimal bytes."""
    head = data[:PREVIEW_BYTES]
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        cut_short = len(data) > len(head) and error.start >= len(head) - 3
        text = head[: error.start].decode() if cut_short else ""
    if not head:
        return "(empty)"
    if not text or "\0" in text:
        return head[:24].hex(" ")
    line = " ⏎ ".join(part.strip() for part in text.splitlines() if part.strip())
    shown = "".join(c if c.isprintable() else "·" for c in line)
    return shown if len(shown) <= PREVIEW_CHARACTERS else shown[: PREVIEW_CHARACTERS - 1] + "…"


def files_table(public: Mapping[str, bytes], defects: Iterable[HasDefect] = ()) -> pd.DataFrame:
    """Every file that an agent gets: path, bytes, the kinds of its damage, its beginning."""
    import pandas as pd

    damage: dict[str, list[str]] = {}
    for defect in defects:
        damage.setdefault(defect.path, []).append(defect.kind)
    rows = [
        {"path": path, "bytes": len(data), "corruptions": ", ".join(damage.get(path, [])), "preview": preview(data)}
        for path, data in sorted(public.items())
    ]
    return pd.DataFrame(rows, columns=["path", "bytes", "corruptions", "preview"])


def defects_table(defects: Iterable[HasDefect]) -> pd.DataFrame:
    """The damage as declared: kind, file, note, and the parameters without what only the inverse needs."""
    import pandas as pd

    rows = []
    for defect in defects:
        told = {key: value for key, value in defect.params.items() if key != "undo"}
        text = ", ".join(f"{key}={value!r}" for key, value in told.items())
        shown = text if len(text) <= 160 else text[:159] + "…"
        rows.append({"kind": defect.kind, "file": defect.path, "note": defect.note, "parameters": shown})
    return pd.DataFrame(rows, columns=["kind", "file", "note", "parameters"])


def workflow_figure(stages: Sequence[HasStage], critical: Sequence[str]) -> tuple[Figure, pd.DataFrame]:
    """The workflow DAG, left to right by depth; the critical path, the structural horizon (Tev A.5), in its own colour."""
    import pandas as pd

    depth = _depths(stages)
    place = _places(stages, depth, critical)
    fig, ax = new_figure(f"Workflow: {len(stages)} stages, critical path {len(critical)}", "", "")
    fig.set_size_inches(max(5.2, 1.75 * (max(depth.values(), default=0) + 1)), 1.2 + 0.7 * _rows(place))
    steps = set(pairwise(critical))
    for stage in stages:
        for before in stage.requires:
            _arrow(ax, place[before], place[stage.name], (before, stage.name) in steps)
    for stage in stages:
        _box(ax, stage, place[stage.name], stage.name in critical)
    ax.set_axis_off()
    ax.set_xlim(-0.55, max(x for x, _ in place.values()) + 0.55)
    ax.set_ylim(min(y for _, y in place.values()) - 0.6, max(y for _, y in place.values()) + 0.6)
    rows = [
        {
            "stage": stage.name,
            "kind": stage.kind,
            "work": stage.work,
            "requires": ", ".join(stage.requires),
            "depth": depth[stage.name],
            "critical": stage.name in critical,
        }
        for stage in stages
    ]
    return fig, pd.DataFrame(rows)


def _depths(stages: Sequence[HasStage]) -> dict[str, int]:
    depth: dict[str, int] = {}
    for stage in stages:  # in topological order
        depth[stage.name] = max((depth[before] + 1 for before in stage.requires), default=0)
    return depth


def _places(
    stages: Sequence[HasStage], depth: Mapping[str, int], critical: Sequence[str]
) -> dict[str, tuple[float, float]]:
    """x by depth; in a column the critical stage stands in the middle row, the others below it."""
    columns: dict[int, list[str]] = {}
    for stage in sorted(stages, key=lambda s: s.name not in critical):
        columns.setdefault(depth[stage.name], []).append(stage.name)
    return {name: (float(x), -float(row)) for x, names in columns.items() for row, name in enumerate(names)}


def _rows(place: Mapping[str, tuple[float, float]]) -> int:
    return len({y for _, y in place.values()})


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], critical: bool) -> None:
    colour = CRITICAL if critical else "#999999"
    line = {"arrowstyle": "-|>", "color": colour, "lw": 2.0 if critical else 1.0, "shrinkA": 26, "shrinkB": 28}
    ax.annotate("", xy=end, xytext=start, arrowprops=line)


def _box(ax: Axes, stage: HasStage, place: tuple[float, float], critical: bool) -> None:
    name = label(stage.name).replace("-", "-\n", 1)
    colour = CRITICAL if critical else OTHER
    shape = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": colour, "lw": 1.4}
    ax.text(*place, f"{name}\nwork {stage.work}", ha="center", va="center", fontsize=6.5, bbox=shape)
