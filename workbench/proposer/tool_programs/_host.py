"""Asks the host: one request over one socket. Standard library only; also usable as a library in your own tools."""

# os.path instead of pathlib: a start takes a few milliseconds less, and an agent calls these often.
# ruff: noqa: PTH101, PTH103, PTH112, PTH118, PTH120, PTH123
import json
import os
import socket
import stat
import struct
import sys

SOCKET = os.environ.get("WORKBENCH_TOOLS", "/run/workbench/tools.sock")
MAGIC = b"wbt1"


def listed(folder):
    """The files below a folder as [path, mode, size]. Links and special files are refused: a task has none."""
    found = []
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if f not in ("__pycache__", ".pytest_cache", ".git"))
        for name in sorted([*folders, *files]):
            path = os.path.join(here, name)
            info = os.lstat(path)
            if stat.S_ISDIR(info.st_mode):
                continue
            if not stat.S_ISREG(info.st_mode):
                sys.exit(f"{path}: a task holds plain files only; this is a link or a special file")
            found.append([os.path.relpath(path, folder), stat.S_IMODE(info.st_mode), info.st_size])
    return found


def ask(tool, folder=None, save=None, **args):
    """The host's answer as a dict with ok, text, exit_code and data. folder: a task to send; save: where to put files that come back."""
    request = {"tool": tool, "args": args}
    if folder is not None:
        if not os.path.isdir(folder):
            sys.exit(f"{folder}: no such folder; name the task's folder, say env_001")
        request["files"] = listed(folder)
    data = json.dumps(request).encode()
    with socket.socket(socket.AF_UNIX) as link:
        try:
            link.connect(SOCKET)
            link.sendall(MAGIC + struct.pack(">I", len(data)) + data)
            for name, _, size in request.get("files", []):
                if size:
                    with open(os.path.join(folder, name), "rb") as file:
                        link.sendfile(file, count=size)
        except BrokenPipeError:
            pass  # the host has refused already; its answer says why
        except OSError as error:
            sys.exit(f"the host does not answer ({error}); this episode's tools may have ended")
        try:
            return receive(link, save)
        except OSError as error:
            sys.exit(f"{error.filename or 'the answer'}: {error.strerror or error}")


def receive(link, save):
    with link.makefile("rb") as stream:
        head = stream.read(8)
        if len(head) < 8 or head[:4] != MAGIC:
            sys.exit("the host closed the connection without an answer")
        answer = json.loads(stream.read(struct.unpack(">I", head[4:])[0]))
        for name, mode, size in answer.get("files", []):
            path = os.path.join(save or ".", name)
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            with open(path, "wb") as file:
                file.write(stream.read(size))
            os.chmod(path, mode)
    return answer


def finish(answer):
    """Print the answer and end with its exit code."""
    print(answer["text"])
    sys.exit(answer["exit_code"])
