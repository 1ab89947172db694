#!/bin/bash
# Repairs the interval index only.
set -euo pipefail
cd /app
python3 - <<'PY'
from pathlib import Path


def edit(path, *pairs):
    text = Path(path).read_text()
    for old, new in pairs:
        assert text.count(old) == 1, (path, old)
        text = text.replace(old, new)
    Path(path).write_text(text)


# intervals
edit(
    "roomy/intervals.py",
    # a long booking may start arbitrarily far to the left: everything that starts before `end` is a candidate
    ("""        at = bisect_left(self.items, (start,))
        near = self.items[max(at - 1, 0) : at + 1]
""", """        near = self.items[: bisect_left(self.items, (end,))]
"""),
    ("            cursor = e\n", "            cursor = max(cursor, e)\n"),
)
PY
