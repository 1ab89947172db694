"""Grades the workspace of an exported world: /logs/verifier/reward.json and ctrf.json. Standard library only.

reward: the weighted mean of the components. passed: 1 when every component is exactly 1 and the outputs are none of the sealed
stale ones. Runs in the grader's own sandbox; the outputs are hostile: links are not followed, sizes are capped.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent
LOGS = Path(os.environ.get("WORKBENCH_LOGS", "/logs/verifier"))
WORKSPACE = os.environ.get("WORKBENCH_WORKSPACE", "/app")
MAX_BYTES, MAX_FILES, MAX_DEPTH = 64 << 20, 5000, 20
sys.path[:0] = [str(TESTS), str(TESTS / "lib")]


def read_tree(root: str, top: str) -> dict[str, bytes]:
    """Regular files below root/top by their path below root. Too many or too large: nothing at all."""
    found: dict[str, bytes] = {}
    total, todo = 0, [top]
    if not stat.S_ISDIR(os.lstat(f"{root}/{top}").st_mode):
        return {}
    while todo:
        below = todo.pop()
        with os.scandir(f"{root}/{below}") as entries:
            for entry in entries:
                info = entry.stat(follow_symlinks=False)
                name = f"{below}/{entry.name}"
                if stat.S_ISDIR(info.st_mode) and name.count("/") < MAX_DEPTH:
                    todo.append(name)
                elif stat.S_ISREG(info.st_mode):
                    total += info.st_size
                    if total > MAX_BYTES or len(found) >= MAX_FILES:
                        return {}
                    fd = os.open(f"{root}/{name}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                    with os.fdopen(fd, "rb") as file:
                        found[name] = file.read(MAX_BYTES)
    return found


def digest(tree: dict[str, bytes]) -> str:
    """Equal for equal trees: what the sealed stale outputs are known by."""
    out = hashlib.sha256()
    for name in sorted(tree):
        out.update(f"{name}\0{len(tree[name])}\0".encode() + tree[name])
    return out.hexdigest()


def main() -> None:
    import verify

    truth = json.loads((TESTS / "truth.json").read_bytes())
    stale = json.loads((TESTS / "hidden_suite.json").read_bytes())["stale"]
    try:
        tree = read_tree(WORKSPACE, "output")
    except OSError:
        tree = {}
    scores = dict.fromkeys(verify.COMPONENTS, 0.0)
    try:
        if tree:
            scores |= {name: float(value) for name, value in verify.verify(truth, tree).items()}
    except Exception as error:  # whatever hostile files do to a verifier, they earn nothing by it
        print(f"the verifier failed on these outputs: {type(error).__name__}: {error}"[:500])
    if digest(tree) in stale.values():
        scores = dict.fromkeys(scores, 0.0)
    total = sum(verify.COMPONENTS.values())
    passed = all(value == 1.0 for value in scores.values())
    reward = 1.0 if passed else sum(verify.COMPONENTS[name] * scores[name] for name in scores) / total
    tests = [
        {"name": name, "status": "passed" if value == 1.0 else "failed", "duration": 0}
        for name, value in scores.items()
    ]
    failed = sum(test["status"] == "failed" for test in tests)
    summary = {"tests": len(tests), "passed": len(tests) - failed, "failed": failed, "pending": 0, "skipped": 0, "other": 0,
               "start": 0, "stop": 0}  # fmt: skip
    ctrf = {"results": {"tool": {"name": "world"}, "summary": summary, "tests": tests}}
    (LOGS / "ctrf.json").write_text(json.dumps(ctrf))
    (LOGS / "reward.json").write_text(json.dumps({"reward": min(reward, 1.0), "passed": int(passed)}))
    for name, value in scores.items():
        print(f"{name}: {value:.4g}")


if __name__ == "__main__":
    main()
