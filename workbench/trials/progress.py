"""Phi after every turn: a resident grader in a sandbox of its own, and a sandbox that is watched (Tev §3.2).

The agent's files are read from outside while its processes stand still, and handed as bytes to a grader that holds the
task's scorer and its truth; the agent sees neither, and nothing of the agent's runs there. Only what changed is read again.
"""

from __future__ import annotations

import json
import socket
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from workbench.runs.temporary import prefix
from workbench.sandboxes import Backend, ExecResult, Image, Limits, Mount, Sandbox, SandboxError
from workbench.sandboxes.changes import Watcher
from workbench.tasks import Step
from workbench.tasks.progress import Contract, ProgressError, load_contract, potential
from workbench.traces import Episode, Turn
from workbench.trials.setting import TRUSTED_PATH

SCORE = Path(__file__).with_name("inside") / "score.py"
LOOK_SECONDS = 10.0  # for one look; a workspace that takes longer scores nothing this turn
MAX_REPLY = 1 << 20
_LIFE = 7 * 24 * 3600.0
_INSIDE = "/run/progress"


class ProgressGrader:
    """Grades one sandbox's workspace as often as asked. Use as a context manager."""

    def __init__(
        self,
        contract: Contract,
        step: Step,
        sandbox: Sandbox,
        backend: Backend,
        image: Image,
        *,
        limits: Limits,
        label: str = "",
    ):
        self.contract, self.step, self.sandbox = contract, step, sandbox
        self.watcher = Watcher(sandbox, contract.workspace, contract.paths, max_bytes=contract.max_bytes)
        self._start = {"backend": backend, "image": image, "limits": limits, "label": label}
        self.grader: Sandbox | None = None
        self.link: socket.socket | None = None
        self.thread: threading.Thread | None = None
        self.ended: ExecResult | Exception | None = None
        self.seconds: list[float] = []  # of each look, wall clock
        self.notes: list[str] = []  # why a look scored nothing, first of a kind only

    def __enter__(self) -> ProgressGrader:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def phi(self) -> float:
        """Phi of the workspace now, in [0, 1]; 0 when it cannot be graded (too large, a scorer that fails on it: see `notes`).
        Raises SandboxError when infrastructure failed."""
        began = time.monotonic()
        try:
            return potential(self.contract.nodes, self._scores())
        except (ProgressError, ValueError) as error:
            self._forget()
            if (note := f"{type(error).__name__}: {error}"[:300]) not in self.notes:
                self.notes.append(note)
            return 0.0
        finally:
            self.seconds.append(time.monotonic() - began)

    def _scores(self) -> dict[str, float]:
        changed, gone = self.watcher.look()
        if self.link is None:
            self._open()
        assert self.link is not None
        head = {"changed": [[path, len(data)] for path, data in changed.items()], "gone": gone}
        try:
            self.link.sendall(json.dumps(head).encode() + b"\n" + b"".join(changed.values()))
            reply = self._line()
        except TimeoutError:
            self._close()
            raise ProgressError(f"the scorer did not answer within {LOOK_SECONDS:g} s") from None
        except OSError as error:
            ended = self.ended
            self._close()
            raise ProgressError(f"the scorer ended: {getattr(ended, 'output', error) or error}"[-300:]) from None
        answer = json.loads(reply)
        if "error" in answer:
            raise ProgressError(f"the scorer failed: {answer['error']}")
        return answer["scores"]

    def _line(self) -> bytes:
        reply, until = b"", time.monotonic() + LOOK_SECONDS
        while not reply.endswith(b"\n"):
            self.link.settimeout(max(until - time.monotonic(), 0.001))
            data = self.link.recv(1 << 16)
            if not data:
                raise ConnectionError("it closed the connection")
            reply += data
            if len(reply) > MAX_REPLY:
                raise ProgressError("the scorer answered more than 1 MiB")
        return reply

    def _open(self) -> None:
        """Start the grader's sandbox and wait until its scorer calls: at the first look, and after a scorer that hung."""
        folder = tempfile.TemporaryDirectory(prefix=prefix("progress"))
        with folder, socket.socket(socket.AF_UNIX) as listener:
            place = Path(folder.name)
            place.chmod(0o755)
            listener.bind(str(place / "s"))
            (place / "s").chmod(0o666)
            listener.listen(1)
            backend: Backend = self._start["backend"]
            mounts = (
                Mount(self.step.tests, "/tests"),
                Mount(SCORE, "/opt/progress/score.py"),
                Mount(place, _INSIDE, writable=True),
            )
            self.grader = backend.start(
                self._start["image"],
                limits=self._start["limits"],
                mounts=mounts,
                verifier=True,
                label=self._start["label"],
            )
            self.ended = None
            self.thread = threading.Thread(target=self._serve, args=(self.grader,), daemon=True)
            self.thread.start()
            self.link = self._accept(listener)

    def _accept(self, listener: socket.socket) -> socket.socket:
        listener.settimeout(0.1)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with suppress(TimeoutError):
                return listener.accept()[0]
            if isinstance(self.ended, Exception):
                raise SandboxError(f"the progress grader's sandbox failed: {self.ended}")
            if self.ended is not None:
                output = self.ended.output
                self._close()
                raise ProgressError(f"{self.contract.program} could not be loaded: {output[-300:]}")
        raise SandboxError("the progress grader did not start within 60 s")

    def _serve(self, grader: Sandbox) -> None:
        contract = self.contract
        command = [
            "python3",
            "-I",
            "/opt/progress/score.py",
            f"{_INSIDE}/s",
            "/tests",
            contract.program,
            contract.truth or "",
        ]
        env = {"PATH": TRUSTED_PATH, "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            self.ended = grader.exec(command, cwd="/", env=env, user="root", timeout=_LIFE)
        except Exception as error:
            self.ended = error

    def _forget(self) -> None:
        """Grader and watcher start anew: what one of them has seen the other may have not."""
        self._close()

    def _close(self) -> None:
        self.watcher.forget()
        if self.link is not None:
            self.link.close()
            self.link = None
        if self.grader is not None:
            self.grader.stop()
            self.grader = None
        if self.thread is not None:
            self.thread.join(timeout=10)
            self.thread = None

    def stop(self) -> None:
        self._close()


class Watched:
    """A sandbox as its agent sees it; Phi is graded after each command, and before the first."""

    def __init__(self, sandbox: Sandbox, grader: ProgressGrader):
        self._sandbox, self._grader = sandbox, grader
        self.phis: list[float] = []  # after each command

    def exec(self, *args: object, **options: object) -> ExecResult:
        result = self._sandbox.exec(*args, **options)
        self.phis.append(self._grader.phi())
        return result

    def __getattr__(self, name: str) -> object:
        return getattr(self._sandbox, name)


def per_turn(turns: Sequence[Turn], phis: Sequence[float], last: float) -> tuple[Turn, ...]:
    """Turns with their progress: after a command what was graded then, after words alone what stood before; the last one what
    stood at the end, when nothing ran any more. An agent whose turns are not one command each (a coding agent is one command
    in all) gets the last value on its last turn, and None before."""
    commands = [turn for turn in turns if turn.command is not None]
    if len(commands) != len(phis):
        graded = [replace(turn, progress=None) for turn in turns]
    else:
        found, now, graded = iter(phis), 0.0, []
        for turn in turns:
            now = next(found) if turn.command is not None else now
            graded.append(replace(turn, progress=now))
    return (*graded[:-1], replace(graded[-1], progress=last)) if graded else ()


def with_progress(episode: Episode, watched: Watched, last: float) -> Episode:
    return replace(episode, turns=per_turn(episode.turns, watched.phis, last))


def contract_of(step: Step) -> Contract | None:
    """The step's progress contract, None without one. Raises ProgressError for a malformed one."""
    return load_contract(step.tests)
