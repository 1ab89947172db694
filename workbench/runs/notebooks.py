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
from pathlib import Path
from typing import Any

from workbench import paths
from workbench.runs.folder import RUN_ENV, Run, find_run, new_run, open_run
from workbench.runs.journal import FileLock
from workbench.runs.parameters import Parameter, ParameterError, check_parameters, read_parameters
from workbench.runs.profiles import PROFILE_ENV, profile_names
from workbench.runs.progress import PROGRESS_ENV, Follower


class NotebookError(ValueError):
    """No such notebook."""


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
    known = read_parameters(path)
    given = check_parameters(known, parameters or {}, path.stem)
    if "profile" in known and "profile" not in given and os.environ.get(PROFILE_ENV):
        given["profile"] = os.environ[PROFILE_ENV]
    _check_profile(known, given)
    run = new_run(path.stem, {name: p.default for name, p in known.items()} | given)
    if started:
        started(run)
    return execute(run, path, show)


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
    path = resolve_notebook(run.notebook)
    check_parameters(read_parameters(path), run.params["parameters"], path.stem)
    if started:
        started(run)
    return execute(run, path, show)


def execute(run: Run, path: Path, show: Callable[[str], None] | None = None) -> int:
    """Run the notebook `path` with the parameters of `run`, into its folder. RunLocked when it is running already."""
    from workbench.runs.kernel import Session  # papermill takes a second to import

    show = show or _to_stderr
    lock = FileLock(run.folder / "runner.lock")
    log = run.folder / "progress.log"
    cwd = run.params.get("cwd", "")
    session = Session(
        path,
        _fresh(run.folder / "executed.ipynb"),
        run.params["parameters"],
        cwd if Path(cwd).is_dir() else str(Path.cwd()),
        lambda text: _show_lines(text, show),
    )
    env = {RUN_ENV: str(run.folder), PROGRESS_ENV: str(log), PROFILE_ENV: None}
    run.write_status("running")
    follower = Follower(log, show)
    stop = threading.Event()
    try:
        with _signals(stop) as caught:
            session.run(env, stop)
    finally:
        follower.close()
        lock.release()
    state, code, message = _verdict(session, caught)
    run.write_status(state, code, message)
    if message:
        show(message)
        show(f"The executed notebook is {session.target}; `workbench resume {run.folder}` goes on from the journal.")
    return code


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
def _signals(stop: threading.Event) -> Iterator[list[int]]:
    """Turns SIGINT and SIGTERM into `stop`; gives the list of what was caught. A no-op outside the main thread."""
    caught: list[int] = []

    def handle(number: int, _: Any) -> None:
        caught.append(number)
        stop.set()

    if threading.current_thread() is not threading.main_thread():
        yield caught
        return
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield caught
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
