"""A notebook's kernel under papermill: this very interpreter, its own environment, and a way to stop it.

Papermill and nbclient are imported here, so import this module lazily.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from papermill import execute_notebook
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, papermill_engines
from traitlets.config import Config

from workbench.runs.journal import FileLock
from workbench.runs.leftovers import PREFIX, sweep

GRACE_SECONDS = 15.0  # between asking a kernel to stop and killing it


class ThisInterpreter(AsyncKernelManager):
    """Starts `sys.executable`, whatever kernels are (or are not) registered on this machine under `python3`."""

    @property
    def kernel_spec(self) -> KernelSpec:
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=argv, display_name="Python 3", language="python", interrupt_mode="signal")


INJECTED = "injected-parameters"  # papermill's tag of the cell that it adds


class _Client(PapermillNotebookClient):
    """Shows what cells print as it comes, and tells `session` which kernel and which cell are running."""

    session: Session

    def execute_cell(self, cell: Any, cell_index: int, *args: Any, **kwargs: Any) -> Any:
        self.session.cell = cell
        if self.session.at:
            injected = [n for n, c in enumerate(self.nb.cells) if INJECTED in c.metadata.get("tags", [])]
            before = sum(n < cell_index for n in injected)
            self.session.at(
                max(cell_index - before, 0), len(self.nb.cells) - len(injected)
            )  # as the source counts them
        return super().execute_cell(cell, cell_index, *args, **kwargs)

    def log_output_message(self, output: Any) -> None:
        if output.output_type == "stream":
            self.session.show("".join(output.text))


class _Engine(NBClientEngine):
    @classmethod
    def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, session: Session, **kwargs: Any) -> Any:
        client = _Client(
            nb_man,
            kernel_name=kernel_name,
            kernel_manager_class=ThisInterpreter,
            timeout=None,
            startup_timeout=kwargs["start_timeout"],
            log_output=True,
            config=Config({"ConnectionFileMixin": session.connection}),
        )
        client.session = session
        session.client = client
        return client.execute(env=session.env, cwd=session.cwd)


papermill_engines.register("workbench", _Engine)


class Session:
    """One execution of one notebook in a thread, so that the main thread stays free for signals.

    show: is given what cells print. at: is told (cell, cells) as each cell begins. env: added to the kernel's
    environment; None takes a variable away.
    """

    def __init__(
        self,
        source: Path,
        target: Path,
        parameters: Mapping[str, Any],
        cwd: str,
        show: Callable[[str], None],
        at: Callable[[int, int], None] | None = None,
    ):
        self.source, self.target, self.parameters = source, target, dict(parameters)
        self.cwd, self.show, self.at = cwd, show, at
        self.env: dict[str, str] = {}
        self.connection: dict[str, str] = {}
        self.client: _Client | None = None
        self.cell: Any = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="notebook", daemon=True)

    def run(self, env: Mapping[str, str | None], stop: threading.Event) -> None:
        """Execute to the end, or until `stop` is set: the running cell gets KeyboardInterrupt, then the kernel is killed
        when it is still there after GRACE_SECONDS. `error` holds what went wrong."""
        sweep()
        with tempfile.TemporaryDirectory(prefix=PREFIX) as private:
            lock = FileLock(Path(private) / "lock")
            # a profile of its own: nothing of the user's start-up files, and no need for a writable home;
            # sockets in a folder that only this user enters: no other process of the machine can listen in
            merged = {**os.environ, "IPYTHONDIR": f"{private}/ipython", "JUPYTER_RUNTIME_DIR": private, **env}
            self.connection = {"transport": "ipc", "ip": f"{private}/s", "connection_file": f"{private}/kernel.json"}
            self.env = {k: v for k, v in merged.items() if v is not None}
            self._thread.start()
            asked = 0.0
            while self._thread.is_alive():
                self._thread.join(0.1)
                if stop.is_set() and not asked and self._signal(signal.SIGINT):
                    asked = time.monotonic()
                if asked and time.monotonic() - asked > GRACE_SECONDS:
                    self._signal(signal.SIGKILL)
            lock.release()

    def _run(self) -> None:
        try:
            execute_notebook(
                self.source,
                self.target,
                parameters=self.parameters,
                engine_name="workbench",
                kernel_name="python3",
                language="python",
                progress_bar=False,
                log_output=True,
                start_timeout=120,
                session=self,
            )
        except BaseException as error:
            self.error = error

    def _signal(self, number: int) -> bool:
        """Signal the kernel (SIGKILL: and its process group); False while there is none."""
        manager = self.client.km if self.client else None
        pid = getattr(getattr(manager, "provisioner", None), "pid", None)
        if pid is None:
            return False
        with suppress(ProcessLookupError):
            if number == signal.SIGKILL:
                os.killpg(pid, number)  # jupyter_client starts a kernel as the leader of its own session
            else:
                os.kill(pid, number)
        return True
