"""The state of a running flywheel as facts, as text, as static HTML, and as a figure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from workbench.report.live_state import LiveState, mean, short
from workbench.report.live_watch import clock
from workbench.report.widget import esc, html_table, show

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

LINES = {
    "reward": "solver's reward",
    "valid": "valid answers",
    "admitted": "admitted answers",
    "useful": "useful groups",
    "pool": "active environments",
}
COLOURS = {"reward": "#0072B2", "valid": "#E69F00", "admitted": "#009E73", "useful": "#D55E00", "pool": "#CC79A7"}
SMOOTH = 9  # points of the trailing mean that is drawn
TRIAL_COLUMNS = ("trial", "task", "agent", "outcome", "reward")


def facts(state: LiveState, left: str = "", now: float = math.nan) -> list[list[str]]:
    """[[name, value, what it counts], …], in the order in which people look."""
    v, recent = state.verdicts, list(state.rewards)
    pool = {k: n for k, n in sorted(state.pool.items()) if n}
    priced = f"{state.unpriced} records without a known price" if state.unpriced else ""
    quiet = max(0.0, now - state.latest)
    silence = "" if math.isnan(quiet) else f"last record {clock(quiet)} ago"
    left, _, counted = left.rstrip(")").partition(" (")
    rows = [
        [
            "reward",
            show(mean(recent)),
            f"mean of the solver's last {len(recent)} attempts" if recent else "no attempt yet",
        ],
        ["validity", _share(v["valid"], v["all"]), "of the answers with a verdict are valid (§3.2)"],
        ["admitted", _share(v["admitted"], v["all"]), "of the answers with a verdict"],
        ["useful groups", _share(state.useful, state.groups), "of the groups have rewards that differ"],
        ["pool", show(pool.get("active", 0)), ", ".join(f"{n} {k}" for k, n in pool.items() if k != "active")],
        ["cost", f"${state.usd:,.4f}".rstrip("0").rstrip("."), " · ".join(filter(None, [priced, _tokens(state)]))],
        ["time left", left or "not known", " · ".join(filter(None, [counted, f"ran for {_age(state)}"]))],
        ["records", f"{sum(state.counts.values()):,}", " · ".join(filter(None, [silence, _faults(state)]))],
    ]
    return [[name, short(value), short(note)] for name, value, note in rows]


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} % ({part} of {whole})" if whole else "–"


def _tokens(state: LiveState) -> str:
    read, written = state.tokens
    return f"{read:,} tokens read, {written:,} written" if read or written else ""


def _age(state: LiveState) -> str:
    """From the first record to the last one."""
    return "–" if math.isnan(state.first) else clock(state.latest - state.first)


def _faults(state: LiveState) -> str:
    found = {
        "attempts lost to infrastructure": state.infra,
        "records too long to read": state.too_long,
        "records not understood": state.counts["not understood"],
    }
    return ", ".join(f"{n} {what}" for what, n in found.items() if n)


def series(state: LiveState) -> list[dict[str, Any]]:
    """[{"name", "label", "values", "last", "top"}, …] of the lines with at least one point. All but the pool are smoothed."""
    made = []
    for name, label in LINES.items():
        values = state.lines[name].values
        if name != "pool":
            values = trailing(values, SMOOTH)
        if values:
            top = max(1.0, max(values)) if name == "pool" else 1.0
            made.append({"name": name, "label": label, "values": values, "last": show(values[-1]), "top": top})
    return made


def trailing(values: list[float], window: int) -> list[float]:
    return [math.fsum(part) / len(part) for i in range(len(values)) if (part := values[max(0, i + 1 - window) : i + 1])]


def text(title: str, standing: str, state: LiveState, left: str, now: float, width: int = 110) -> str:
    """A terminal's page: facts, the last rejection, the last numbers."""
    lines = [f"{title}  {standing}"]
    lines += [f"  {name:<14} {value:<22} {note}"[:width] for name, value, note in facts(state, left, now)]
    if state.rejected:
        one = state.rejected[0]
        lines += [
            f"  last rejected  {one['task']} at {one['stage']}: {one['kinds']}"[:width],
            f"                 {one['why']}"[:width],
        ]
    for kind, numbers in state.last.items():
        lines.append(f"  {kind:<14} {', '.join(f'{k} {show(v)}' for k, v in numbers.items())}"[:width])
    return "\n".join(lines)


def html(title: str, standing: str, state: LiveState, rows: list[list[Any]], left: str, now: float) -> str:
    """Without scripts, every text escaped."""
    told = html_table(
        ["what", "value", "of"], [dict(zip(["what", "value", "of"], f, strict=True)) for f in facts(state, left, now)]
    )
    drawn = "".join(
        f'<div class="wb-spark"><div>{esc(s["label"])} {esc(s["last"])}</div>{spark(s)}</div>' for s in series(state)
    )
    refused = html_table(["task", "stage", "kinds", "why"], state.rejected) if state.rejected else "<p>none yet</p>"
    trials = html_table(TRIAL_COLUMNS, [dict(zip(TRIAL_COLUMNS, r[1:], strict=True)) for r in rows])
    last = "".join(
        f"<p><b>last {esc(kind)}</b> {esc(', '.join(f'{k} {show(v)}' for k, v in numbers.items()))}</p>"
        for kind, numbers in state.last.items()
    )
    return (
        f'<div class="wb-view wb-live"><p><b>{esc(title)}</b> {esc(standing)}</p>{told}<div class="wb-tables">{drawn}</div>{last}'
        f"<p><b>rejected, latest first</b></p>{refused}<p><b>latest trials</b></p>{trials}</div>"
    )


def spark(one: dict[str, Any], width: int = 200, height: int = 44) -> str:
    """A line as a drawing for static HTML; it holds numbers only."""
    values, top = one["values"], one["top"]
    across = (width - 4) / max(len(values) - 1, 1)
    at = lambda v: 2 + (height - 4) * (1 - min(max(v / top, 0.0), 1.0))  # noqa: E731
    points = " ".join(f"{2 + i * across:.1f},{at(v):.1f}" for i, v in enumerate(values))
    shape = f'<polyline points="{points}" fill="none" stroke="{COLOURS[one["name"]]}" stroke-width="1.5"/>'
    if len(values) == 1:
        shape = f'<circle cx="4" cy="{at(values[0]):.1f}" r="2.5" fill="{COLOURS[one["name"]]}"/>'
    label = esc(f"{one['label']}: {len(values)} points, last {one['last']}, from 0 to {show(top)}")
    return f'<svg width="{width}" height="{height}" role="img" aria-label="{label}"><title>{label}</title>{shape}</svg>'


def figure(title: str, state: LiveState, left: str, now: float) -> tuple[Figure, pd.DataFrame]:
    """Facts above the lines. The table has line, point, value."""
    import matplotlib.style
    import pandas as pd
    from matplotlib.figure import Figure

    from workbench.report.figures import STYLE

    drawn = series(state)
    with matplotlib.style.context(STYLE):
        fig = Figure(figsize=(8.4, 4.6))
        grid = fig.add_gridspec(2, 1, height_ratios=(1.1, 1))
        head = fig.add_subplot(grid[0])
        head.axis("off")
        head.set_title(_plain(title))
        for i, (name, value, note) in enumerate(facts(state, left, now)):
            y = 0.93 - i * 0.125
            for x, words, weight in ((0, name, "bold"), (0.17, value, "normal"), (0.45, note, "normal")):
                head.text(x, y, _plain(words)[:90], transform=head.transAxes, fontsize=8, fontweight=weight)
        row = grid[1].subgridspec(1, max(len(drawn), 1))
        for i, one in enumerate(drawn):
            axes = fig.add_subplot(row[i])
            marker = "o" if len(one["values"]) == 1 else None
            axes.plot(one["values"], color=COLOURS[one["name"]], linewidth=1.2, marker=marker)
            axes.set_title(f"{one['label']}\n{one['last']}", fontsize=8)
            axes.set_ylim(0, one["top"] * 1.05)
            axes.set_xticks([])
    rows = [[s["name"], i, v] for s in drawn for i, v in enumerate(s["values"])]
    return fig, pd.DataFrame(rows, columns=["line", "point", "value"])


def _plain(words: str) -> str:
    """matplotlib reads dollar signs as formulas."""
    return words.replace("$", r"\$")
