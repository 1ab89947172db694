"""`workbench runs`: list, compare and open runs."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from workbench.cli.parser import UsageError
from workbench.cli.show import json_line, message, table
from workbench.runs.folder import Run, RunError, find_run, list_runs, open_run

MOST_COLUMNS = 6  # runs beside each other; more are put below each other


def main(arguments: argparse.Namespace) -> int:
    """`runs [NOTEBOOK]`, `runs compare RUN RUN…`, `runs open RUN`, `runs live RUN`."""
    words = arguments.words
    try:
        if words[:1] == ["compare"]:
            return _compare(arguments, words[1:])
        if words[:1] == ["open"]:
            return _open(arguments, words[1:])
        if words[:1] == ["live"]:
            return _live(arguments, words[1:])
    except RunError as error:
        raise UsageError(str(error)) from None
    if len(words) > 1:
        raise UsageError("give one notebook, or: compare RUN RUN…, or: open RUN, or: live RUN")
    return _list(arguments, words[0] if words else None)


def _list(arguments: argparse.Namespace, notebook: str | None) -> int:
    """Newest first: where, when, which profile, what became of it, how many records."""
    rows = []
    for folder in reversed(list_runs()):
        if notebook not in (None, folder.parent.name) or len(rows) == arguments.last:
            continue
        run = open_run(folder)
        if _wanted(run, arguments):
            rows.append(_row(run))
    if arguments.json:
        for row in rows:
            json_line(row)
    elif rows:
        when = lambda row: time.strftime("%Y-%m-%d %H:%M", time.localtime(row["time"]))  # noqa: E731
        table((when(r), r["profile"] or "-", r["state"], f"{r['records']} records", r["run"]) for r in rows)
    else:
        of = f" of {notebook}" if notebook else ""
        if arguments.state or arguments.values or arguments.batch:
            print(f"no runs{of} are like that: `workbench runs` lists all", file=sys.stderr)
        else:
            print(f"no runs{of} yet: workbench run {notebook or '40_flywheel'}", file=sys.stderr)
    return 0


def _wanted(run: Run, arguments: argparse.Namespace) -> bool:
    if arguments.batch and not str(run.params.get("batch", "")).startswith(arguments.batch):
        return False
    if any(str(run.params["parameters"].get(name)) != value for name, value in arguments.values):
        return False
    return not arguments.state or run.state()["state"] in arguments.state


def _row(run: Run) -> dict[str, Any]:
    state = run.state()
    return {
        "run": str(run.folder),
        "notebook": run.notebook,
        "time": run.params["time"],
        "profile": run.profile,
        "parameters": run.params["parameters"],
        "batch": run.params.get("batch"),
        "state": state["state"],
        "message": state["message"],
        "records": sum(run.kinds().values()),
    }


def _compare(arguments: argparse.Namespace, names: list[str]) -> int:
    from workbench.runs.side_by_side import side_by_side

    runs = [open_run(folder) for name in names for folder in _folders(name)]
    if len(runs) < 2:
        raise UsageError("compare needs two runs, or a batch: workbench runs compare RUN RUN…")
    rows = side_by_side(runs)
    if arguments.json:
        for i, run in enumerate(runs):
            values = {kind: {r["what"]: r["values"][i] for r in rows if r["kind"] == kind} for kind in _kinds(rows)}
            json_line({"run": str(run.folder), "notebook": run.notebook, **values})
        return 0
    equal = [r for r in rows if not r["differs"]]
    shown = [["run", *(run.id for run in runs)]]
    shown += [[r["what"], *map(_cell, r["values"])] for r in rows if r["differs"]]
    table(shown if len(runs) <= MOST_COLUMNS else zip(*shown, strict=True))
    if equal:
        print(f"equal: {', '.join(f'{r["what"]} {_cell(r["values"][0])}' for r in equal)}")
    return 0


def _kinds(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["kind"] for row in rows))


def _folders(name: str) -> list[Any]:
    """The folder of a run, or those of a batch's runs."""
    if not name.startswith("batch-"):
        return [find_run(name)]
    found = [f for f in list_runs() if str(open_run(f).params.get("batch", "")).startswith(name)]
    if not found:
        raise RunError(f"no runs of a batch {name!r}: `workbench runs --json` names the batch of each run")
    return found


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _open(arguments: argparse.Namespace, names: list[str]) -> int:
    """Print a run's folder; with --open also show it in a browser, when there is one."""
    if len(names) != 1:
        raise UsageError("open needs one run: workbench runs open RUN")
    folder = find_run(names[0])
    if arguments.json:
        json_line({**_row(open_run(folder)), "files": sorted(p.name for p in folder.iterdir())})
    else:
        print(folder)
    if arguments.open:
        import webbrowser

        try:
            webbrowser.get().open(folder.as_uri())
        except webbrowser.Error:
            message("no browser on this machine: copy the folder, or `make lab` and open it there")
    return 0


def _live(arguments: argparse.Namespace, names: list[str]) -> int:
    """Follow a run until it is over; one page where nobody watches (a pipe, --json)."""
    from workbench.report.live import follow, terminal

    if len(names) != 1:
        raise UsageError("live needs one run: workbench runs live RUN")
    if arguments.json:
        view = follow(names[0], watch=False).view
        facts = {name: {"value": value, "note": note} for name, value, note in view.seen["facts"]}
        json_line(
            {"run": str(view.run.folder), "state": view.standing["state"], **facts, "rejected": view.seen["rejected"]}
        )
        return 0
    try:
        terminal(names[0])
    except KeyboardInterrupt:
        print(file=sys.stderr)
    return 0
