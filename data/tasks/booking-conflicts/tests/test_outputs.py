"""Runs the agent's package as a program, from a copy, and compares it with the README's rules."""

import json
import os
import random
import shutil
import subprocess

import pytest

DAY = "2031-05-05T"


@pytest.fixture(scope="session")
def code(tmp_path_factory):
    home = tmp_path_factory.mktemp("code")
    shutil.copytree("/app/roomy", home / "roomy", symlinks=True)
    return home


@pytest.fixture()
def roomy(code, tmp_path):
    db = tmp_path / "db.json"

    def call(*lines, args=("batch",)):
        done = subprocess.run(
            ["python3", "-m", "roomy", str(db), *args], input="\n".join(lines), text=True, capture_output=True,
            cwd=code, timeout=20, env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        assert done.returncode in (0, 1), done.stderr
        call.status = done.returncode
        return done.stdout.splitlines()

    call.db = db
    return call


def add(room, start, end, name="x", tentative=False):
    return f"add {room} {DAY}{start} {DAY}{end} {name}" + (" --tentative" if tentative else "")


def gaps(*pairs):
    return [f"{DAY}{a} {DAY}{b}" for a, b in pairs]


def test_firm_bookings_never_overlap_behind_tentative_ones(roomy):
    got = roomy(
        add("red", "09:00", "17:00"), add("red", "10:00", "10:30", tentative=True), add("red", "11:00", "11:30", tentative=True),
        add("red", "12:00", "13:00"), add("red", "08:00", "09:00"), add("red", "17:00", "18:00"), add("red", "08:30", "17:30"),
        add("blue", "12:00", "13:00"),
    )  # fmt: skip
    assert got == ["1", "2", "3", "error: conflict with 1", "4", "5", "error: conflict with 1", "6"]


def test_conflict_beyond_the_next_booking(roomy):
    got = roomy(
        add("red", "10:00", "10:15", tentative=True), add("red", "10:20", "10:30", tentative=True), add("red", "11:00", "12:00"),
        add("red", "09:00", "11:00"), add("red", "09:00", "11:01"), add("red", "08:00", "12:30"),
    )  # fmt: skip
    assert got == ["1", "2", "3", "4", "error: conflict with 3", "error: conflict with 3"]


def test_refused_move_changes_nothing(roomy):
    got = roomy(
        add("red", "09:00", "10:00"), add("red", "11:00", "12:00"), f"move 1 {DAY}11:30 {DAY}12:30", add("red", "09:30", "09:45"),
        f"move 1 {DAY}10:00 {DAY}11:00", add("red", "09:00", "10:00"), "list red",
    )  # fmt: skip
    assert got[:6] == ["1", "2", "error: conflict with 2", "error: conflict with 1", "ok", "3"]
    assert got[6:] == [f"3 red {DAY}09:00 {DAY}10:00 firm x", f"1 red {DAY}10:00 {DAY}11:00 firm x", f"2 red {DAY}11:00 {DAY}12:00 firm x"]


def test_tentative_moves_freely_and_confirms_once(roomy):
    got = roomy(
        add("red", "09:00", "10:00"), add("red", "12:00", "13:00", tentative=True), f"move 2 {DAY}09:15 {DAY}09:45",
        "confirm 2", f"move 2 {DAY}10:00 {DAY}11:00", "confirm 2", "confirm 2", "confirm 1", add("red", "10:30", "10:45"), "confirm 9",
    )  # fmt: skip
    assert got == ["1", "2", "ok", "error: conflict with 1", "ok", "ok", "ok", "ok", "error: conflict with 2", "error: no booking 9"]


def test_free_with_nested_bookings(roomy):
    got = roomy(
        add("red", "09:00", "17:00"), add("red", "10:00", "10:30", tentative=True), add("red", "17:00", "17:30"),
        f"free red {DAY}08:00 {DAY}19:00",
    )  # fmt: skip
    assert got[3:] == gaps(("08:00", "09:00"), ("17:30", "19:00"))


def test_free_stays_inside_the_window(roomy):
    got = roomy(
        add("red", "06:00", "07:00"), add("red", "10:00", "11:00"), add("red", "13:00", "18:00"),
        f"free red {DAY}08:00 {DAY}14:00", f"free red {DAY}13:30 {DAY}15:00", f"free blue {DAY}08:00 {DAY}09:00",
    )  # fmt: skip
    assert got[3:] == gaps(("08:00", "10:00"), ("11:00", "13:00"), ("08:00", "09:00"))


def test_refused_commands_use_no_number_and_are_written_nowhere(roomy):
    roomy(add("red", "09:00", "10:00"))
    before = json.loads(roomy.db.read_text())
    assert roomy(args=("add", "red", f"{DAY}09:30", f"{DAY}11:00", "y")) == ["error: conflict with 1"]
    assert roomy.status == 1
    assert json.loads(roomy.db.read_text()) == before
    assert roomy(args=("add", "red", f"{DAY}10:00", f"{DAY}11:00", "y")) == ["2"]
    assert roomy.status == 0


class Model:
    """The README's rules in the dullest way: minutes, lists, no index."""

    def __init__(self):
        self.rows, self.n = {}, 0

    def hit(self, room, s, e, but=None):
        return min((n for n, (r, a, b, firm) in self.rows.items() if r == room and firm and n != but and a < e and s < b), default=None)

    def step(self, op):
        kind, *a = op
        if kind == "add":
            room, s, e, firm = a
            if firm and (h := self.hit(room, s, e)):
                return [f"error: conflict with {h}"]
            self.n += 1
            self.rows[self.n] = (room, s, e, firm)
            return [str(self.n)]
        if kind == "free":
            room, s, e = a
            taken = [t for t in range(s, e) if any(r == room and x <= t < y for r, x, y, _ in self.rows.values())]
            open_ = [t for t in range(s, e) if t not in taken]
            edges = [t for t in open_ if t - 1 not in open_], [t + 1 for t in open_ if t + 1 not in open_]
            return [f"{clock(x)} {clock(y)}" for x, y in zip(*edges)]
        n = a[0]
        if n not in self.rows:
            return [f"error: no booking {n}"]
        room, s, e, firm = self.rows[n]
        if kind == "cancel":
            del self.rows[n]
        elif kind == "confirm":
            if h := self.hit(room, s, e, n):
                return [f"error: conflict with {h}"]
            self.rows[n] = (room, s, e, True)
        else:
            if firm and (h := self.hit(room, a[1], a[2], n)):
                return [f"error: conflict with {h}"]
            self.rows[n] = (room, a[1], a[2], firm)
        return ["ok"]


def clock(t):
    return f"{DAY}{8 + t // 4:02}:{t % 4 * 15:02}"


def text(op):
    kind, *a = op
    if kind == "add":
        return f"add {a[0]} {clock(a[1])} {clock(a[2])} n" + ("" if a[3] else " --tentative")
    return " ".join([kind, str(a[0]), *(clock(t) for t in a[1:])])


def test_long_random_sessions_across_restarts(roomy):
    for seed in range(6):
        rng, model, ops = random.Random(seed), Model(), []
        for _ in range(120):
            s = rng.randrange(0, 40)
            e = s + rng.choice([1, 2, 3, 4, 12])
            n = rng.randrange(1, 25)
            room = rng.choice(["red", "blue"])
            ops.append(rng.choices([
                ("add", room, s, e, rng.random() < 0.5), ("move", n, s, e), ("confirm", n), ("cancel", n), ("free", room, s, e + 8),
            ], [5, 4, 2, 1, 2])[0])  # fmt: skip
        got = roomy(*map(text, ops[:60])) + roomy(*map(text, ops[60:]))
        assert got == [line for op in ops for line in model.step(op)]
        roomy.db.unlink()
