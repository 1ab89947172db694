"""From a fresh fork of the warden to the command that was asked for. Nothing here returns."""

# Names from hostile trees stay strings, and go to the kernel with descriptors.
# ruff: noqa: PTH123
from __future__ import annotations

import contextlib
import os
import resource
import signal
from pathlib import Path

import seccomp
from linux import drop_capabilities

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def become(wanted: dict, fds: list[int], init: int, namespaces: int, marker: int) -> None:
    """Enter the sandbox that `init` (a pidfd) belongs to, give up what a command may not have, and execute it.

    wanted: argv, cwd, env, user, users (can the map hold others than root), rlimits. fds: stdin, stdout, stderr.
    """
    status = 126
    try:
        os.setsid()
        for number, fd in enumerate(fds[:3]):
            os.dup2(os.dup(fd), number)
        _prefer_for_oom()
        os.setns(init, namespaces)
        os.umask(0o022)
        _limit(wanted["rlimits"], marker)
        uid, gid, groups, home = _identity(wanted["user"], wanted["users"])
        environment = {"PATH": _PATH, "LANG": "C.UTF-8", "HOME": home, **wanted["env"]}
        drop_capabilities()
        if wanted["users"]:
            os.setgroups(groups)
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
        os.chdir(wanted["cwd"])
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        seccomp.install(one_user=not wanted["users"])
        status = 127
        os.environ.clear()  # execvpe looks PATH up in the environment that it is given
        os.execvpe(wanted["argv"][0], wanted["argv"], environment)
    except FileNotFoundError as error:
        what = "no such program" if status == 127 else _plain(error)
        os.write(2, f"sandbox: {wanted['argv'][0]}: {what}\n".encode(errors="replace"))
    except BaseException as error:
        os.write(2, f"sandbox: {wanted['argv'][0]}: {_plain(error)}\n".encode(errors="replace"))
    finally:
        os._exit(status)


def _plain(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {os.fsdecode(error.filename)}" if error.filename else error.strerror
    return str(error)


def _prefer_for_oom() -> None:
    with contextlib.suppress(OSError):  # when memory runs out, commands go, not the warden
        Path("/proc/self/oom_score_adj").write_text("1000")


def _limit(limits: dict, marker: int) -> None:
    resource.setrlimit(resource.RLIMIT_MSGQUEUE, (marker, marker))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name, value in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(kind)[1]
        value = value if hard < 0 else min(value, hard)
        resource.setrlimit(kind, (value, value))


def _rows(path: str) -> list[list[str]]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return []
    with open(fd, errors="replace") as file:
        return [line.split(":") for line in file.read(1 << 20).splitlines() if line.count(":") >= 3]


def _identity(user: str, users: bool) -> tuple[int, int, list[int], str]:
    """(uid, gid, supplementary groups, home) of "name", "name:group", "uid" or "uid:gid", by the sandbox's own files."""
    name, _, group = user.partition(":")
    row = next((r for r in _rows("/etc/passwd") if len(r) >= 6 and name in (r[0], r[2]) and r[2].isdigit()), None)
    if row is None and not name.isdigit():
        raise ValueError(f"no user {name!r} in the sandbox's /etc/passwd")
    uid, gid = (int(row[2]), int(row[3])) if row else (int(name), int(name))
    home = row[5] if row else "/"
    members = [r for r in _rows("/etc/group") if r[2].isdigit()]
    groups = [int(r[2]) for r in members if row and row[0] in r[3].split(",")]
    if group:
        found = next((int(r[2]) for r in members if group in (r[0], r[2])), int(group) if group.isdigit() else None)
        if found is None:
            raise ValueError(f"no group {group!r} in the sandbox's /etc/group")
        gid, groups = found, []
    return (uid, gid, groups, home) if users else (0, 0, [], home)
