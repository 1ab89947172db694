"""The warden: a small process that owns one sandbox at a time on the host's behalf.

Started as `python -I -S <this folder> SOCKET_FD` and told what to do over that socket (see `wire`). It lives in its
cgroups and in a user namespace of its own, so that it has no power over the host while it handles hostile files.
When the host goes away, however it dies, the socket ends, and the warden kills and removes what it owns.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys

import enter
import trees
import wire
from box import Box

_WATCH_MS = 500  # between commands: background processes may write too


class Warden:
    """Serves one request at a time; only a command's end is reported unasked."""

    def __init__(self, link: socket.socket):
        self.link = link
        self.poll = select.poll()
        self.poll.register(link, select.POLLIN)
        self.host = os.pidfd_open(os.getppid())  # the socket may outlive the host in a process that it forked
        self.poll.register(self.host, select.POLLIN)
        self.box: Box | None = None
        self.draining: set[int] = set()
        self.running: int | None = None  # pidfd of the command in progress

    def serve(self) -> None:
        while True:
            found = self.poll.poll(_WATCH_MS if self.box and self.running is None else None)
            if not found and self.box:
                self.box.watch()
            for fd, _ in found:
                if fd == self.link.fileno():
                    if not self.handle():
                        return
                elif fd == self.host:
                    return
                elif fd == self.running:
                    self.report_end()
                elif fd in self.draining:
                    self.drain(fd)

    def handle(self) -> bool:
        request = wire.receive(self.link)
        if request is None:
            return False
        message, fds = request
        try:
            answer, out = getattr(self, "on_" + message.pop("op"))(fds=fds, **message)
        except Exception as error:
            answer, out = {"error": f"{type(error).__name__}: {error}", "errno": getattr(error, "errno", None)}, []
        finally:
            wire.close(fds)
        wire.send(self.link, answer, out)
        wire.close(out)
        return True

    def on_create(self, fds: list[int], **wanted: object) -> tuple[dict, list[int]]:
        self.box = Box(wanted, fds)
        try:
            return {"pid": self.box.start()}, []
        except BaseException:
            self.on_destroy(fds=[])
            raise

    def on_exec(self, fds: list[int], **wanted: object) -> tuple[dict, list[int]]:
        self.running = self.box.execute(wanted, fds)
        self.poll.register(self.running, select.POLLIN)
        return {"started": True}, []

    def report_end(self) -> None:
        self.poll.unregister(self.running)
        status = self.box.command_status()
        os.close(self.running)
        self.running = None
        wire.send(self.link, {"ended": status}, [])

    def on_drain(self, fds: list[int]) -> tuple[dict, list[int]]:
        """Keep reading what a background process prints, or its next write would end it."""
        for fd in fds:
            kept = os.dup(fd)
            os.set_blocking(kept, False)
            self.draining.add(kept)
            self.poll.register(kept, select.POLLIN)
        return {}, []

    def drain(self, fd: int) -> None:
        try:
            if os.read(fd, 1 << 20):
                return
        except BlockingIOError:
            return
        self.stop_draining(fd)

    def stop_draining(self, fd: int) -> None:
        self.poll.unregister(fd)
        self.draining.discard(fd)
        os.close(fd)

    def on_kill(self, fds: list[int], number: int) -> tuple[dict, list[int]]:
        return {"killed": self.box.processes.kill_since(number)}, []

    def on_kill_all(self, fds: list[int]) -> tuple[dict, list[int]]:
        return {"killed": self.box.processes.kill_all()}, []

    def on_freeze(self, fds: list[int]) -> tuple[dict, list[int]]:
        return {"frozen": self.box.processes.freeze()}, []

    def on_thaw(self, fds: list[int]) -> tuple[dict, list[int]]:
        self.box.processes.thaw()
        return {}, []

    def on_usage(self, fds: list[int]) -> tuple[dict, list[int]]:
        return self.box.usage(), []

    def on_open(self, fds: list[int], path: str) -> tuple[dict, list[int]]:
        return {}, [self.box.open_file(path)]

    def on_list(self, fds: list[int], path: str, limit: int) -> tuple[dict, list[int]]:
        return self.box.list_tree(path, limit)

    def on_put(self, fds: list[int], **wanted: object) -> tuple[dict, list[int]]:
        self.box.put(wanted, fds)
        return {}, []

    def on_copy_upper(self, fds: list[int], target: str) -> tuple[dict, list[int]]:
        self.box.copy_upper(target)
        return {}, []

    def on_mask(self, fds: list[int], paths: list[str], target: str) -> tuple[dict, list[int]]:
        self.box.make_mask(paths, target)
        return {}, []

    def on_network(self, fds: list[int]) -> tuple[dict, list[int]]:
        return {}, self.box.network_handles()

    def on_listen(self, fds: list[int], port: int) -> tuple[dict, list[int]]:
        return {}, [self.box.listen(port)]

    def on_remove(self, fds: list[int], path: str) -> tuple[dict, list[int]]:
        trees.remove(f"{enter.STATE}/{path}")
        return {}, []

    def on_destroy(self, fds: list[int]) -> tuple[dict, list[int]]:
        for fd in list(self.draining):
            self.stop_draining(fd)
        if self.running is not None:
            self.poll.unregister(self.running)
            os.close(self.running)
            self.running = None
        box, self.box = self.box, None
        if box is not None:
            box.destroy()
        return {}, []


def main() -> None:
    link = socket.socket(fileno=int(sys.argv[1]))
    link.set_inheritable(False)
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)  # a Ctrl-C in the host's terminal is the host's to handle
    warden = Warden(link)
    try:
        enter.enter(link)
        warden.serve()
    except ConnectionError:
        pass
    except OSError as error:  # before the first sandbox: this machine forbids something that is needed
        wire.send(link, {"error": f"OSError: {error}"}, [])
    finally:
        warden.on_destroy(fds=[])


main()
