"""Makes the table of docs/reproduction.md anew.

make_reproduction.py                 write the page
make_reproduction.py --check         only say whether it is current (exit 1 when not)
make_reproduction.py --publish RUN   first take a finished run's figures and tables into results/published (of 90_paper_figures its summary)
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from workbench.report.paper_figures_page import page
from workbench.runs import Run, find_run, open_run

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reproduction.md"
OF_A_MACHINE = ("cwd", "source")  # of params.json: paths that mean nothing elsewhere


def publish(spec: str, published: Path) -> Path:
    """Copy a finished run's figures (PNG and their data) and tables, without paths of this machine; of 90_paper_figures only the summary that
    the page needs. Returns the folder, which is made anew. ValueError when the run did not end well."""
    run = open_run(find_run(spec))
    state = run.state()["state"]
    if state not in ("done", "interactive"):  # of one in JupyterLab nobody but its user knows whether it is finished
        raise ValueError(f"{run.folder} is no finished run: {state}")
    wanted = (
        ("tables/summary.csv",)
        if run.notebook == "90_paper_figures"
        else ("figures/*.png", "figures/*.csv", "tables/*.csv")
    )
    found = [path for pattern in wanted for path in sorted(run.folder.glob(pattern))]
    if not found:
        raise ValueError(f"{run.folder} has nothing to publish: no {' or '.join(wanted)}")
    target = published / f"{run.notebook}-{run.profile}"
    shutil.rmtree(target, ignore_errors=True)
    for path in found:
        place = target / path.relative_to(run.folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        data = path.read_bytes()
        if path.suffix == ".csv":
            data = data.replace(str(run.folder).encode(), run.id.encode())
        place.write_bytes(data)
    (target / "params.json").write_text(json.dumps(plain_params(run), indent=1) + "\n", encoding="utf-8")
    return target


def plain_params(run: Run) -> dict[str, Any]:
    """params.json without what means something on this machine only."""
    params = json.loads((run.folder / "params.json").read_text(encoding="utf-8"))
    kept = {k: v for k, v in params.items() if k not in OF_A_MACHINE}
    kept["machine"] = {k: v for k, v in params.get("machine", {}).items() if k != "executable"}
    kept["parameters"] = {
        k: v for k, v in params["parameters"].items() if k != "runs"
    }  # folders; the summary says what they say
    return kept


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
