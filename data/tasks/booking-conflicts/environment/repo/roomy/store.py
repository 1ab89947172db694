"""The bookings, their file, and the rules."""

import json
from pathlib import Path

from roomy.intervals import Track


class Refused(Exception):
    """A command that the rules do not allow."""


class Store:
    def __init__(self, path):
        self.path = Path(path)
        self.bookings = {}
        self.next = 1
        self.tracks = {}
        if self.path.exists():
            data = json.loads(self.path.read_text())
            self.next = data["next"]
            for b in data["bookings"]:
                self.bookings[b["number"]] = b
                self._track(b["room"]).insert(b["start"], b["end"], b["number"], b["firm"])

    def save(self):
        rows = [self.bookings[n] for n in sorted(self.bookings)]
        self.path.write_text(json.dumps({"next": self.next, "bookings": rows}, indent=1))

    def _track(self, room):
        return self.tracks.setdefault(room, Track())

    def _get(self, number):
        if number not in self.bookings:
            raise Refused(f"no booking {number}")
        return self.bookings[number]

    def _check(self, room, start, end):
        hit = self._track(room).conflicts(start, end)
        if hit:
            raise Refused(f"conflict with {hit[0]}")

    def add(self, room, start, end, name, firm=True):
        number = self.next
        self.next += 1
        if firm:
            self._check(room, start, end)
        self.bookings[number] = {"number": number, "room": room, "start": start, "end": end, "name": name, "firm": firm}
        self._track(room).insert(start, end, number, firm)
        return number

    def confirm(self, number):
        b = self._get(number)
        self._check(b["room"], b["start"], b["end"])
        b["firm"] = True

    def move(self, number, start, end):
        b = self._get(number)
        track = self._track(b["room"])
        track.remove(number)
        self._check(b["room"], start, end)
        b["start"], b["end"] = start, end
        track.insert(start, end, number, b["firm"])

    def cancel(self, number):
        b = self._get(number)
        del self.bookings[number]
        self._track(b["room"]).remove(number)

    def free(self, room, start, end):
        return self._track(room).gaps(start, end)

    def listed(self, room=None):
        rows = [b for b in self.bookings.values() if room is None or b["room"] == room]
        return sorted(rows, key=lambda b: (b["room"], b["start"], b["number"]))
