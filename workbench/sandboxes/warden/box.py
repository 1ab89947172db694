"""One sandbox: its overlays, its first process, the commands that enter it, and its end."""

# Names from hostile trees stay strings, and go to the kernel with descriptors.
# ruff: noqa: PTH104, PTH103
from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from pathlib import Path

import command
import files
import trees
from enter import STATE, SYSTEM
from linux import CLONE_NEWIPC, CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWUTS, clone_tree, protect_tree
from processes import Processes

_START_SECONDS = 20.0
# The first process says that it runs, then reaps orphans until the warden is gone (its standard input ends).
_INIT = "printf R >&3; exec 3>&-; while read -r _; do :; done"


class Box:
    def __init__(self, wanted: dict, fds: list[int]):
        self.wanted = wanted
        self.folder = f"{STATE}/{wanted['folder']}"
        self.fds = [os.dup(fd) for fd in fds]
        self.own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY)
        self.own_mounts = os.open("/proc/self/ns/mnt", os.O_RDONLY)
        self.bwrap = self.init = self.keep = self.proc = self.inside = self.child = self.network = None
        self.status, self.next_look = 0, 0.0
        self.namespaces = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET

    # ------------------------------------------------------------------ start

    def start(self) -> int:
        """Mount, wait until the sandbox itself says that it runs, then add the read-only mounts. Its pid on the host."""
        for name in ("root", "usr", "root.work", "usr.work"):
            os.makedirs(f"{self.folder}/{name}", exist_ok=True)
        info_r, info_w = os.pipe()
        ready_r, ready_w = os.pipe()
        stdin_r, self.keep = os.pipe()
        self.bwrap = os.fork()
        if self.bwrap == 0:
            self._exec_bwrap(info_w, ready_w, stdin_r)
        for fd in (info_w, ready_w, stdin_r):
            os.close(fd)
        self._await_ready(ready_r)
        pid = int(os.read(info_r, 4096).split(b'"child-pid":')[1].split(b",")[0].split(b"}")[0])
        os.close(info_r)
        self.init = os.pidfd_open(pid)
        self.inside = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY)
        self.proc = os.open(f"/proc/{pid}/root/proc", os.O_RDONLY | os.O_DIRECTORY)
        self.network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
        self.processes = Processes(self.init, self.proc, self.own_pids, self._reap)
        self._add_mounts()
        return pid

    def _await_ready(self, ready: int) -> None:
        seen, _, _ = select.select([ready], [], [], _START_SECONDS)
        if seen and os.read(ready, 1) == b"R":
            os.close(ready)
            return
        log = Path(f"{self.folder}/start.log").read_text(errors="replace")[-2000:].strip()
        raise RuntimeError(f"the sandbox did not start ({'it ended' if seen else 'no sign of life'}): {log}")

    def _exec_bwrap(self, info: int, ready: int, stdin: int) -> None:
        try:
            log = os.open(f"{self.folder}/start.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(stdin, 0)
            null = os.open("/dev/null", os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(log, 2)
            if self.wanted["network"] == "joined":
                os.setns(self.fds[0], CLONE_NEWNET)
            info, ready = os.dup(info), os.dup(ready)
            os.dup2(ready, 3)
            os.dup2(info, 4)
            os.set_inheritable(3, True)
            os.set_inheritable(4, True)
            arguments = self._arguments()
            os.execve(f"{STATE}/{self.wanted['bwrap']}", arguments, {})
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(127)

    def _arguments(self) -> list[str]:
        args = ["bwrap", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent"]
        if self.wanted["network"] == "none":
            args.append("--unshare-net")
        args += ["--as-pid-1", "--hostname", "sandbox", "--info-fd", "4", "--cap-drop", "ALL", "--clearenv"]
        for place, target in (("root", "/"), ("usr", "/usr")):
            below = [SYSTEM] if place == "usr" else []
            for source in below + [f"{STATE}/{layer}" for layer in self.wanted[place]]:
                args += ["--overlay-src", source]
            args += ["--overlay", f"{self.folder}/{place}", f"{self.folder}/{place}.work", target]
        # Files in /dev/shm are memory, and belong to no process: they get the sandbox's size, the rest of /dev nothing.
        args += ["--dev", "/dev", "--perms", "1777", "--size", str(self.wanted["memory"]), "--tmpfs", "/dev/shm"]
        return [*args, "--remount-ro", "/dev", "--proc", "/proc", "--chdir", "/", "/bin/bash", "--norc", "-c", _INIT]

    def _add_mounts(self) -> None:
        """Mounts are added from within, component by component, so that no planted link can move one elsewhere."""
        mounts = []
        for entry in self.wanted["mounts"]:
            if entry["fd"] is not None:
                tree = os.dup(self.fds[entry["fd"]])
            else:
                tree = clone_tree(entry["source"].replace("@state", STATE), recursive=True)
                protect_tree(tree, read_only=not entry["writable"])
            mounts.append((tree, entry["target"]))
        if not mounts:
            return
        with self.entered():
            for tree, target in mounts:
                files.attach(tree, target)
                os.close(tree)

    def entered(self) -> files.Entered:
        return files.Entered(self.inside, self.own_mounts)

    # --------------------------------------------------------------- commands

    def execute(self, wanted: dict, fds: list[int]) -> int:
        """Start a command; returns its pidfd. Only the fork is made into the process namespace: the child enters the rest."""
        os.setns(self.init, CLONE_NEWPID)
        try:
            self.child = os.fork()
            if self.child == 0:
                marker = self.processes.marker(wanted["number"])
                command.become(wanted, fds, self.init, self.namespaces, marker)
        finally:
            os.setns(self.own_pids, CLONE_NEWPID)
        return os.pidfd_open(self.child)

    def command_status(self) -> int:
        self._reap(0)
        return self.status

    def _reap(self, flags: int = os.WNOHANG) -> None:
        """Take the command's status when it has ended: until then a dead command still counts as a process."""
        if self.child is None:
            return
        pid, status = os.waitpid(self.child, flags)
        if pid:
            self.child = None
            code = os.waitstatus_to_exitcode(status)
            self.status = code if code >= 0 else 128 - code

    def usage(self) -> dict:
        """Bytes written to disk, resident bytes and the number of processes, at this moment."""
        names = self.processes.names()
        written = sum(trees.size(f"{self.folder}/{part}") for part in ("root", "usr"))
        on_disk, in_memory = self.processes.hidden(names)
        resident = self.processes.memory(names)
        return {"disk": written + on_disk, "memory": resident + in_memory, "processes": len(names)}

    def watch(self) -> None:
        """Between commands nobody asks: end background processes that have filled the disk."""
        if time.monotonic() > self.next_look and self.processes.names():
            begun = time.monotonic()
            if self.usage()["disk"] > self.wanted["disk"]:
                self.processes.kill_all()
            self.next_look = time.monotonic() + 20 * (time.monotonic() - begun)  # a large tree is looked at less often

    # ------------------------------------------------------------------ files

    def open_file(self, path: str) -> int:
        with self.entered():
            return files.open_regular(path)

    def list_tree(self, path: str, limit: int) -> tuple[dict, list[int]]:
        with self.entered():
            return files.list_tree(path, limit)

    def put(self, wanted: dict, fds: list[int]) -> None:
        with self.entered():
            files.put(wanted, fds)

    def copy_upper(self, target: str) -> None:
        for name in ("root", "usr"):
            trees.copy(f"{self.folder}/{name}", f"{STATE}/{target}/{name}")

    def make_mask(self, paths: list[str], target: str) -> None:
        """Turn the `paths` as they look in here into a layer that hides any other version of them."""
        with self.entered():
            present = files.gather(paths, "/.mask")
        layer = f"{STATE}/{target}/root"
        os.rename(f"{self.folder}/root/.mask", layer)
        trees.hide(layer, paths, present)

    def network_handles(self) -> list[int]:
        return [os.open("/proc/self/ns/user", os.O_RDONLY), os.dup(self.network)]

    def listen(self, port: int) -> int:
        """A socket that listens on the sandbox's loopback. A child makes it: who enters that network cannot return."""
        ours, theirs = socket.socketpair()
        child = os.fork()
        if child == 0:
            try:
                os.setns(self.network, CLONE_NEWNET)
                listening = socket.create_server(("127.0.0.1", port), backlog=128)
                socket.send_fds(theirs, [b"L"], [listening.fileno()])
            finally:
                os._exit(0)
        theirs.close()
        os.waitpid(child, 0)
        with ours:
            _, fds, _, _ = socket.recv_fds(ours, 1, 1)
        if not fds:
            raise OSError(f"cannot listen on port {port} in the sandbox")
        return fds[0]

    # -------------------------------------------------------------------- end

    def destroy(self) -> None:
        if self.init is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.init, signal.SIGKILL)
        elif self.bwrap:
            os.kill(self.bwrap, signal.SIGKILL)
        for child in (self.child, self.bwrap):
            if child:
                os.waitpid(child, 0)
        held = (self.init, self.inside, self.proc, self.keep, self.network, self.own_pids, self.own_mounts)
        for fd in (*held, *self.fds):
            if fd is not None:
                os.close(fd)
        trees.remove(self.folder, keep_top=True)
