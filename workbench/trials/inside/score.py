"""The resident progress grader, inside a sandbox of its own: answers each request with the scores of the workspace.

Started as `python -I score.py SOCKET TESTS PROGRAM TRUTH`. A request is one line, {"changed": [[path, bytes], ...], "gone": [path, ...]},
and then those bytes; the workspace is a dictionary in memory, hostile in every byte. A scorer that fails scores nothing.
Standard library only.
"""

from __future__ import annotations

import importlib.util
import json
import socket
import sys
from pathlib import Path


def load(tests: str, program: str):
    """The task's scorer; its own folder and `lib/` beside it can be imported from."""
    sys.path[:0] = [tests, f"{tests}/lib"]
    spec = importlib.util.spec_from_file_location("progress", f"{tests}/{program}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["progress"] = module
    spec.loader.exec_module(module)
    return module


def main(where: str, tests: str, program: str, truth: str) -> None:
    answer = json.loads(Path(tests, truth).read_bytes()) if truth else None
    scorer = load(tests, program)
    link = socket.socket(socket.AF_UNIX)
    link.connect(where)
    stream = link.makefile("rb")
    tree: dict[str, bytes] = {}
    for line in stream:
        request = json.loads(line)
        for path in request["gone"]:
            tree.pop(path, None)
        for path, size in request["changed"]:
            tree[path] = stream.read(size)
        try:
            scores = {str(name): float(value) for name, value in scorer.score(answer, dict(tree)).items()}
            reply = json.dumps({"scores": scores}, allow_nan=False)
        except Exception as error:  # hostile files may break a scorer in any way: the host decides what that is worth
            reply = json.dumps({"error": f"{type(error).__name__}: {error}"[:500]})
        link.sendall(reply.encode() + b"\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
