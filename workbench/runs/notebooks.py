"""Runs a notebook headless, into a run folder, with checked parameters, live progress, and an honest exit code.

Exit codes: 0 done, 1 a cell failed or the kernel died, 130 and 143 stopped by SIGINT and SIGTERM. Wrong usage raises
ParameterError, NotebookError or RunError before anything is started.
"""

from __future__ import annotations

import difflib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench import paths
from workbench.runs.digest import code_digest, facts
from workbench.runs.folder import RUN_ENV, Run, find_run, list_runs, new_run, open_run
from workbench.runs.journal import FileLock
from workbench.runs.parameters import Parameter, ParameterError, check_parameters, read_parameters
from workbench.runs.profiles import PROFILE_ENV, profile_names
from workbench.runs.progress import PROGRESS_ENV, Follower


class NotebookError(ValueError):
    """No such notebook."""


@dataclass
class Stop:
    """Asks runs to stop; `numbers` are the signals that were caught."""

    event: threading.Event = field(default_factory=threading.Event)
    numbers: list[int] = field(default_factory=list)


def resolve_notebook(name: str | Path) -> Path:
    """A notebook by path, by name ("40_flywheel"), or by its number ("40"), in the checkout or in the installed package."""
    path = Path(name)
    if path.suffix == ".ipynb" and path.is_file():
        return path.resolve()
    known = {p.stem: p for p in sorted(paths.NOTEBOOKS.glob("*.ipynb"))}
    stem = path.name.removesuffix(".ipynb")
    found = [known[stem]] if stem in known else [p for s, p in known.items() if stem and s.split("_")[0] == stem]
    if len(found) == 1:
        return found[0]
    match = difflib.get_close_matches(stem, known, 1, 0.4)
    hint = f"did you mean {match[0]}? " if match else ""
    raise NotebookError(f"no notebook {str(name)!r}: {hint}There are {', '.join(known) or 'none'} in {paths.NOTEBOOKS}")


def run_notebook(
    notebook: str | Path,
    parameters: Mapping[str, Any] | None = None,
    *,
    show: Callable[[str], None] | None = None,
    started: Callable[[Run], None] | None = None,
) -> int:
    """Run a notebook in a new run folder and return its exit code.

    parameters: values by name; strings are parsed as the notebook's types. show: is given each line to print
    (stderr by default). started: is called with the run as soon as its folder is there.
    """
    path = resolve_notebook(notebook)
    values = full_parameters(path, parameters or {})
    run = new_run(path.stem, values, facts=facts(path, values, code_digest(path), str(Path.cwd())))
    if started:
        started(run)
    return execute(run, path, show)


def full_parameters(path: Path, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters of a notebook with these values checked and put in; ParameterError says what is wrong."""
    known = read_parameters(path)
    given = check_parameters(known, parameters, path.stem)
    if "profile" in known and "profile" not in given and os.environ.get(PROFILE_ENV):
        given["profile"] = os.environ[PROFILE_ENV]
    _check_profile(known, given)
    return {name: p.default for name, p in known.items()} | given


def _check_profile(known: Mapping[str, Parameter], given: Mapping[str, Any]) -> None:
    """An unknown profile is a wrong parameter, and not a cell that fails half a minute later."""
    name = given.get("profile", known["profile"].default) if "profile" in known else None
    if name and name not in profile_names():
        match = difflib.get_close_matches(str(name), profile_names(), 1)
        hint = f"; did you mean {match[0]!r}?" if match else ""
        raise ParameterError(f"no profile {name!r}: there are {', '.join(profile_names())}{hint}")


def resume_run(
    spec: str | Path, *, show: Callable[[str], None] | None = None, started: Callable[[Run], None] | None = None
) -> int:
    """Run a run's notebook again with the same parameters in the same folder: what its journal holds is not done again."""
    run = open_run(find_run(spec))
    path = notebook_of(run)
    check_parameters(read_parameters(path), run.params["parameters"], path.stem)
    if started:
        started(run)
    return execute(run, path, show)


def notebook_of(run: Run) -> Path:
    """The notebook that a run is of: the file that it was started from while that is there, else the one of its name."""
    source = Path(run.params.get("source", ""))
    return source if source.suffix == ".ipynb" and source.is_file() else resolve_notebook(run.notebook)


def latest_unfinished() -> tuple[Run | None, list[Run]]:
    """The newest run of a notebook that can be gone on with, and the newer ones that are finished or still at work."""
    passed = []
    for folder in reversed(list_runs()):
        run = open_run(folder)
        try:
            notebook_of(run)
        except NotebookError:
            continue  # of a command, such as `calibrate`
        state = run.state()
        if state["state"] != "done" and not state["alive"]:
            return run, passed
        passed.append(run)
    return None, passed


def execute(
    run: Run,
    path: Path,
    show: Callable[[str], None] | None = None,
    *,
    stop: Stop | None = None,
    lock: FileLock | None = None,
    at: Callable[[int, int], None] | None = None,
) -> int:
    """Run the notebook `path` with the parameters of `run`, into its folder. RunLocked when it is running already.

    stop: whom to obey instead of this process's signals. lock: the run's `runner.lock`, where the caller has it
    already. at: is told (cell, cells) as each cell begins.
    """
    from workbench.runs.kernel import Session  # papermill takes a second to import

    show = show or _to_stderr
    lock = lock or runner_lock(run)
    log = run.folder / "progress.log"
    env = {RUN_ENV: str(run.folder), PROGRESS_ENV: str(log), PROFILE_ENV: None}
    cwd = run.params.get("cwd", "")
    cwd = cwd if Path(cwd).is_dir() else str(Path.cwd())
    try:
        target = _fresh(run.folder / "executed.ipynb")
        session = Session(path, target, run.params["parameters"], cwd, lambda text: _show_lines(text, show), at)
        run.write_status("running")
        follower = Follower(log, show)
        try:
            with signals(stop) as asked:
                session.run(env, asked.event)
        finally:
            follower.close()
        state, code, message = _verdict(session, asked.numbers)
        run.write_status(state, code, message)  # before the lock is let go: nobody takes a done run for a killed one
    finally:
        lock.release()
    if message:
        show(message)
        show(f"The executed notebook is {session.target}; `workbench resume {run.folder}` goes on from the journal.")
    return code


def runner_lock(run: Run) -> FileLock:
    """Held by whoever runs a run's notebook. RunLocked when somebody does."""
    return FileLock(run.folder / "runner.lock")


def _verdict(session: Any, caught: list[int]) -> tuple[str, int, str]:
    """(state, exit code, message) of a session that ended."""
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    error = session.error
    if error is None:
        return "done", 0, ""
    if caught:
        return "interrupted", 128 + caught[0], f"Stopped by {signal.Signals(caught[0]).name}{_where(session)}."
    if isinstance(error, PapermillExecutionError):
        last = f"{error.ename}: {error.evalue}".strip().splitlines()
        text = last[0] if len(last) == 1 else f"{last[0]} … {last[-1]}"
        return "failed", 1, f"Failed{_where(session)}\n{text}"
    if isinstance(error, DeadKernelError):
        return "failed", 1, f"The kernel died{_where(session)}\nIt was killed or ran out of memory."
    return "failed", 1, f"The notebook could not be run: {type(error).__name__}: {error}"


def _where(session: Any) -> str:
    """ " in cell 4 of 9 (first line)" as numbered in the source notebook."""
    from workbench.runs.parameters import cell_source, read_notebook

    if session.cell is None:
        return " before its first cell"
    source = cell_source(session.cell)
    first = next((line.strip() for line in source.splitlines() if line.strip()), "")
    cells = read_notebook(session.source)["cells"]
    numbers = [i for i, c in enumerate(cells, 1) if c.get("cell_type") == "code" and cell_source(c) == source]
    number = f"cell {numbers[0]} of {len(cells)}" if numbers else "the injected parameters"
    return f" in {number} ({first})"


def _fresh(target: Path) -> Path:
    """Keep the executed notebook of an earlier attempt beside the new one."""
    if target.exists():
        number = len(list(target.parent.glob("executed.attempt*.ipynb"))) + 1
        target.rename(target.with_name(f"executed.attempt{number}.ipynb"))
    return target


@contextmanager
def signals(stop: Stop | None = None) -> Iterator[Stop]:
    """Turns SIGINT and SIGTERM into a Stop; leaves them alone when it is given one, and outside the main thread."""
    asked = stop or Stop()

    def handle(number: int, _: Any) -> None:
        asked.numbers.append(number)
        asked.event.set()

    if stop or threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _show_lines(text: str, show: Callable[[str], None]) -> None:
    from workbench.runs.progress import clean

    for line in text.splitlines():
        show(clean(line))


def _to_stderr(line: str) -> None:
    with suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)
