#!/bin/bash
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
# store
edit(
    "roomy/store.py",
    ("""        number = self.next
        self.next += 1
        if firm:
            self._check(room, start, end)
""", """        if firm:
            self._check(room, start, end)
        number = self.next
        self.next += 1
"""),
    ("""    def _check(self, room, start, end):
        hit = self._track(room).conflicts(start, end)
""", """    def _check(self, room, start, end, moving=None):
        hit = [n for n in self._track(room).conflicts(start, end) if n != moving]
"""),
    ("""        self._check(b["room"], b["start"], b["end"])
        b["firm"] = True
""", """        self._check(b["room"], b["start"], b["end"], moving=number)
        b["firm"] = True
        track = self._track(b["room"])
        track.remove(number)
        track.insert(b["start"], b["end"], number, True)
"""),
    ("""        track.remove(number)
        self._check(b["room"], start, end)
        b["start"]""", """        if b["firm"]:
            self._check(b["room"], start, end, moving=number)
        track.remove(number)
        b["start"]"""),
)
PY
