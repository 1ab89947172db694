"""The one progress bar. A widget in JupyterLab, a bar in a terminal, plain lines where nobody watches.

`$WORKBENCH_PROGRESS` decides when it is set: "plain" for lines on stderr, else the path of a file that lines are
appended to (the notebook runner sets it and shows the lines as they come: a kernel has no terminal).
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

PROGRESS_ENV = "WORKBENCH_PROGRESS"
SECONDS_BETWEEN_LINES = 2.0
QUIET_SECONDS = 15.0  # after which a count that has not moved is shown again: it is at work


class Progress:
    """Counts things done. Iterate over it, or call it (or `update`) from any thread when one more is done.

    label: what is counted. total: how many there are; None when unknown. Usable as a context manager.
    """

    def __init__(self, iterable: Iterable[Any] | None = None, label: str = "", total: int | None = None):
        if total is None and iterable is not None and hasattr(iterable, "__len__"):
            total = len(iterable)  # type: ignore[arg-type]
        self.label, self.total, self.count = label, total, 0
        self._items = iterable
        self._lock = threading.Lock()
        self._started, self._shown_at, self._shown = time.monotonic(), 0.0, -1
        self._open = True
        self._bar = _bar(label, total)
        if self._bar is None:
            self._line("")
        threading.Thread(target=_beat, args=(weakref.ref(self),), daemon=True, name="progress beat").start()

    def update(self, n: int = 1, note: str = "") -> None:
        """n more are done; `note` says something about the last, in a few words."""
        with self._lock:
            self.count += n
            if self._bar is not None:
                if note:
                    self._bar.set_postfix_str(clean(note), refresh=False)
                self._bar.update(n)
            elif self.count == self.total or time.monotonic() - self._shown_at >= SECONDS_BETWEEN_LINES:
                self._line(note)

    __call__ = update

    def close(self) -> None:
        with self._lock:
            if self._open and self._bar is not None:
                self._bar.close()
            elif self._open and self._shown != self.count:
                self._line("")
            self._open = False

    def beat(self) -> bool:
        """Show the same count again, with its time, when nothing was shown for QUIET_SECONDS; False when all is done."""
        with self._lock:
            if not self._open or (self.total is not None and self.count >= self.total):
                return False
            if self._bar is not None:
                self._bar.refresh()
            elif time.monotonic() - self._shown_at >= QUIET_SECONDS:
                self._line("")
            return True

    def __iter__(self) -> Iterator[Any]:
        with self:
            for item in self._items or ():
                yield item
                self.update()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _line(self, note: str) -> None:
        self._shown, self._shown_at = self.count, time.monotonic()
        write_line(describe(self.label, self.count, self.total, self._shown_at - self._started, note))


def _beat(of: weakref.ref[Progress]) -> None:
    """Until the progress is done, or nobody holds it any more."""
    while True:
        time.sleep(QUIET_SECONDS / 3)
        counter = of()
        if counter is None or not counter.beat():
            return
        del counter


def progress(iterable: Iterable[Any] | None = None, label: str = "", total: int | None = None) -> Progress:
    """`for x in progress(items, "trials"): …`, or `with progress(label="trials", total=12) as step: … step()`."""
    return Progress(iterable, label, total)


def say(message: str) -> None:
    """One plain line for whoever watches: the runner's terminal, or stderr."""
    write_line(clean(message))


def describe(label: str, count: int, total: int | None, seconds: float, note: str = "") -> str:
    """`[label] 3/12 25% 0:41, 2:03 left: note`."""
    parts = [f"[{clean(label)}]" if label else "", f"{count}/{total}" if total is not None else str(count)]
    if total:
        parts.append(f"{100 * count // total}%")
    left = f", {_clock(seconds / count * (total - count))} left" if total and 0 < count < total else ""
    line = " ".join(p for p in (*parts, _clock(seconds)) if p) + left
    return f"{line}: {clean(note)}" if note else line


def clean(text: str) -> str:
    """One line without control characters: a name from a sandbox must not steer the terminal that shows it."""
    return "".join(c if c.isprintable() else " " for c in str(text)).strip()[:300]


def write_line(line: str) -> None:
    """Append a line to the runner's file when there is one, else to stderr. Progress never ends the work it reports."""
    target = os.environ.get(PROGRESS_ENV, "")
    with contextlib.suppress(OSError, ValueError):
        if target not in ("", "plain"):
            fd = os.open(target, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                os.write(fd, (line + "\n").encode(errors="replace"))
            finally:
                os.close(fd)
        else:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _bar(label: str, total: int | None) -> Any:
    """A tqdm bar, or None where plain lines are right."""
    if os.environ.get(PROGRESS_ENV):
        return None
    if in_kernel():
        from tqdm.notebook import tqdm

        with contextlib.suppress(ImportError):  # no ipywidgets in this kernel
            return tqdm(desc=clean(label), total=total)
        return None
    if sys.stderr.isatty():
        from tqdm import tqdm as terminal

        return terminal(desc=clean(label), total=total, dynamic_ncols=True, file=sys.stderr)
    return None


def in_kernel() -> bool:
    """Whether this code runs in a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return type(shell).__name__ == "ZMQInteractiveShell"


class Follower:
    """Calls `show(line)` for each line that is appended to a file, from a thread of its own, until closed."""

    def __init__(self, path: Path, show: Any, interval: float = 0.1):
        self.path, self.show, self.interval = path, show, interval
        self._offset = path.stat().st_size if path.exists() else 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True, name="progress")
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._stop.wait(self.interval):
            self._read()
        self._read()

    def _read(self) -> None:
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._offset += len(line)
                self.show(clean(line.decode(errors="replace")))
