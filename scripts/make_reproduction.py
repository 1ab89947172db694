"""Makes the table of docs/reproduction.md anew. `make_reproduction.py` writes; with --check it only says whether the page is current (exit 1)."""

from __future__ import annotations

import sys
from pathlib import Path

from workbench.report.paper_figures_page import page

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reproduction.md"


def main(arguments: list[str]) -> int:
    text = PAGE.read_text(encoding="utf-8")
    new = page(text, ROOT / "results")
    if "--check" in arguments:
        if new != text:
            print(f"{PAGE} is not current: run python scripts/make_reproduction.py", file=sys.stderr)
        return int(new != text)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
