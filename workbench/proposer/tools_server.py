"""One socket a proposer episode, served on the host. Whoever floods it slows down only itself."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from workbench.proposer.limits import Notes, Refused
from workbench.proposer.tools_wire import BadMessage, WireLimits, is_gone, receive, receive_files, send
from workbench.runs.temporary import prefix

SOCKET = "tools.sock"
MAX_TEXT = 24_000  # characters of an answer


@dataclass(frozen=True)
class Request:
    """One call. tool, args: as asked. scratch: a folder that goes with the call. folder: the task that came with it, written
    anew on the host; None without one. wanted: whether somebody still waits for the answer."""

    tool: str
    args: Mapping[str, Any]
    scratch: Path
    folder: Path | None = None
    wanted: Callable[[], bool] = lambda: True


@dataclass(frozen=True)
class Answer:
    """ok: the tool did its work (which may be to say that a task is broken). exit_code: of the program in the sandbox.
    folder: files to send back."""

    text: str
    ok: bool = True
    exit_code: int = 0
    data: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None

    def to_row(self) -> dict[str, Any]:
        return {"ok": self.ok, "text": self.text[:MAX_TEXT], "exit_code": self.exit_code, "data": dict(self.data)}


class ToolServer:
    """Listens in `folder` (which the sandbox sees) and gives every request to `handle`.

    connections: answered at once; more are turned away. total: of one episode; past it every connection is turned away.
    A turned-away connection costs its sender a pause: `accept` waits, and the backlog is short.
    """

    def __init__(
        self,
        handle: Callable[[Request], Answer],
        folder: Path,
        notes: Notes,
        *,
        limits: WireLimits = WireLimits(),
        connections: int = 4,
        total: int = 1_000,
    ):
        self.handle, self.notes, self.limits = handle, notes, limits
        self.connections, self.total, self.seen = connections, total, 0
        self.closing = threading.Event()
        self._living: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listening = _listen(folder)
        self._thread = threading.Thread(target=self._accept, name="proposer-tools", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """No call is answered any more; calls in flight find that nobody waits. Returns when all threads are done, or
        after ten seconds (a child that is being stopped)."""
        self.closing.set()
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._listening.close()
        with self._lock:
            for conn in self._living:
                with contextlib.suppress(OSError):
                    conn.shutdown(socket.SHUT_RDWR)
        until = time.monotonic() + 10
        while self._living and time.monotonic() < until:
            time.sleep(0.01)

    def _accept(self) -> None:
        while not self.closing.is_set():
            try:
                conn, _ = self._listening.accept()
            except OSError:
                if self.closing.is_set():
                    return
                time.sleep(0.1)  # out of descriptors: a moment for others to end
                continue
            self.seen += 1
            with self._lock:
                busy = len(self._living) >= self.connections or self.seen > self.total
                if not busy:
                    self._living.add(conn)
            if busy:
                self._turn_away(conn)
            else:
                threading.Thread(target=self._serve, args=(conn,), name="proposer-tool", daemon=True).start()

    def _turn_away(self, conn: socket.socket) -> None:
        self.notes.add("flood")
        why = (
            "too many calls at once"
            if self.seen <= self.total
            else f"all {self.total} connections of this episode are used"
        )
        with conn, contextlib.suppress(OSError):
            send(conn, Answer(f"refused: {why}", ok=False, exit_code=75).to_row(), self.limits)
        self.closing.wait(0.05)

    def _serve(self, conn: socket.socket) -> None:
        try:
            with conn, TemporaryDirectory(prefix=prefix("call")) as temporary:
                answer = self._answer(conn, Path(temporary))
                send(conn, answer.to_row(), self.limits, answer.folder)
        except OSError:
            pass  # the other end went away
        finally:
            with self._lock:
                self._living.discard(conn)

    def _answer(self, conn: socket.socket, temporary: Path) -> Answer:
        try:
            request, deadline = receive(conn, self.limits)
            args = request.get("args")
            folder = None
            if request.get("files") is not None:
                folder = temporary / "task"
                receive_files(conn, request["files"], folder, self.limits, deadline)
            wanted = lambda: not self.closing.is_set() and not is_gone(conn)  # noqa: E731
            args = args if isinstance(args, dict) else {}
            return self.handle(Request(request["tool"], args, temporary, folder, wanted))
        except BadMessage as error:
            self.notes.add(error.kind)
            return Answer(f"refused: {error}", ok=False, exit_code=64, data={"kind": error.kind})
        except Refused as error:
            if error.kind.startswith("over-"):
                self.notes.add(error.kind)
            return Answer(f"refused: {error}", ok=False, exit_code=75, data={"kind": error.kind})
        except OSError:
            raise
        except Exception as error:  # a fault of ours: it must not take the episode with it
            self.notes.add("host-error")
            sys.stderr.write(f"a proposer's tool failed:\n{traceback.format_exc()[-2000:]}\n")
            return Answer(f"the host failed ({type(error).__name__}); go on without this call", ok=False, exit_code=70)


def _listen(folder: Path) -> socket.socket:
    """A listening socket in `folder`, however long its path is (an address has at most 108 bytes)."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listening.bind(f"/proc/self/fd/{here}/{SOCKET}")
        (folder / SOCKET).chmod(0o666)  # the sandbox's root is another user here; the folder above is the host's alone
        listening.listen(16)
    except BaseException:
        listening.close()
        raise
    finally:
        os.close(here)
    return listening
