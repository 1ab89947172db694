"""Runs the reference solution of an exported world in the working directory: input/ -> output/. Standard library only."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "lib")]


def main() -> None:
    import reference

    public = {path.as_posix(): path.read_bytes() for path in sorted(Path("input").rglob("*")) if path.is_file()}
    *_, (_, outputs) = reference.solve(public)
    for name, data in outputs.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


if __name__ == "__main__":
    main()
