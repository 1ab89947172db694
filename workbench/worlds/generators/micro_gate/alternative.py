"""A table of all entries in SQLite; each report is one query over it."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Mapping
from contextlib import closing

RULES = {
    "clean": "old = 1",
    "stale": "old = 0",
    "double": "old = 1 AND text IS NOT (SELECT b.text FROM entry b WHERE b.lane = entry.lane AND b.old = 1 AND b.line = entry.line - 1)",
    "void": "old = 1 AND text NOT LIKE 'void%'",
}
ENDS = {"top": "line LIMIT 3", "seal": "line", "order": "text DESC"}


def _filled(tree: Mapping[str, bytes]) -> sqlite3.Connection:
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE entry (lane TEXT, old INTEGER, line INTEGER, text TEXT)")
    for path in sorted(set(tree) - {"input/note.txt"}):
        old = int(path.count("/") == 1)
        lane = path.rpartition("/")[2].partition(".")[0]
        rows = [(lane, old, number, text) for number, text in enumerate(str(tree[path], "utf-8").splitlines())]
        base.executemany("INSERT INTO entry VALUES (?, ?, ?, ?)", rows)
    return base


def solve(tree: Mapping[str, bytes]) -> dict[str, bytes]:
    words, reports = str(tree["input/note.txt"], "ascii").split(), {}
    with closing(_filled(tree)) as base:
        while words:
            report, lane, state = words.pop(0), words.pop(0), words.pop(0)
            query = f"SELECT text FROM entry WHERE lane = ? AND {RULES[state]} ORDER BY {ENDS[report]}"
            text = "".join(f"{row[0]}\n" for row in base.execute(query, (lane,)))
            if report == "seal":
                text = f"{hashlib.new('md5', text.encode(), usedforsecurity=False).hexdigest()}  -\n"
            reports[f"output/{report}.txt"] = text.encode()
    return reports
