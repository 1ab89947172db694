"""Makes the table of docs/reproduction.md anew.

make_reproduction.py                 write the page
make_reproduction.py --check         only say whether it is current (exit 1 when not)
make_reproduction.py --publish RUN   first take the summary of a run of 90_paper_figures into results/published
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from workbench.report.paper_figures_page import page
from workbench.runs import find_run, open_run

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reproduction.md"
OF_A_MACHINE = ("cwd", "source")  # of params.json: paths that mean nothing elsewhere


def publish(spec: str, published: Path) -> Path:
    """Copy what the page needs of a run, without paths of this machine; returns the folder. ValueError when it is no such run."""
    run = open_run(find_run(spec))
    summary = run.folder / "tables" / "summary.csv"
    if run.notebook != "90_paper_figures" or not summary.is_file():
        raise ValueError(f"{run.folder} is no finished run of 90_paper_figures: it has no tables/summary.csv")
    target = published / f"90_paper_figures-{run.profile}"
    (target / "tables").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(summary, target / "tables" / "summary.csv")
    params = json.loads((run.folder / "params.json").read_text(encoding="utf-8"))
    kept = {k: v for k, v in params.items() if k not in OF_A_MACHINE}
    kept["machine"] = {k: v for k, v in params.get("machine", {}).items() if k != "executable"}
    kept["parameters"] = {
        k: v for k, v in params["parameters"].items() if k != "runs"
    }  # folders; the summary says what they say
    (target / "params.json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return target


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--publish"] and len(arguments) == 2:
        print(publish(arguments[1], ROOT / "results" / "published"))
    elif arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    text = PAGE.read_text(encoding="utf-8")
    new = page(text, ROOT / "results")
    if arguments == ["--check"]:
        if new != text:
            print(f"{PAGE} is not current: run python scripts/make_reproduction.py", file=sys.stderr)
        return int(new != text)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
