"""Half-open intervals of one room, kept sorted by start."""

from bisect import bisect_left, insort


class Track:
    """The bookings of one room. Items are (start, end, number, firm)."""

    def __init__(self):
        self.items = []

    def insert(self, start, end, number, firm):
        insort(self.items, (start, end, number, firm))

    def remove(self, number):
        for i, item in enumerate(self.items):
            if item[2] == number:
                return self.items.pop(i)
        raise KeyError(number)

    def conflicts(self, start, end):
        """Numbers of the firm bookings that overlap [start, end)."""
        at = bisect_left(self.items, (start,))
        near = self.items[max(at - 1, 0) : at + 1]
        return sorted(number for s, e, number, firm in near if firm and s < end and start < e)

    def gaps(self, start, end):
        """Maximal free stretches inside [start, end)."""
        out, cursor = [], start
        for s, e, _, _ in self.items:
            if s >= end:
                break
            if s > cursor:
                out.append((cursor, s))
            cursor = e
        if cursor < end:
            out.append((cursor, end))
        return out
