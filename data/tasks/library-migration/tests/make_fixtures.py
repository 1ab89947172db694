"""Writes ../environment/db/legacy.db and expected.json from people, books and loans that are drawn first."""

import json
import random
import sqlite3
from datetime import date, timedelta
from pathlib import Path

R = random.Random(9)
HERE = Path(__file__).parent
DB = HERE.parent / "environment" / "db" / "legacy.db"
FIRST, LAST = ["Ada", "Bela", "Cleo", "Dino", "Ebba", "Faye"], ["Moor", "Nagy", "Oduya", "Pires", "Quist", "Rao", "Sund"]


def check13(s):
    return str(-sum(int(c) * (3 if i % 2 else 1) for i, c in enumerate(s)) % 10)


def check10(s):
    r = -sum(int(c) * (10 - i) for i, c in enumerate(s)) % 11
    return "X" if r == 10 else str(r)


def spell(core, form):
    """An ISBN whose nine middle digits are `core`, with hyphens and spaces somewhere."""
    s = core + check10(core) if form == 10 else "978" + core + check13("978" + core)
    s = "".join(c + R.choice(["", "", "", "-", " "]) for c in s[:-1]) + s[-1]
    return s.lower() if R.random() < 0.3 else s


ids = iter(R.sample(range(1, 900), 400))
rejects, members, patrons, person_of = [], [], {}, {}
for n in range(60):
    email = f"{R.choice(FIRST).lower()}.{n}@example.org"
    rows = []
    for _ in range(R.choice([1, 1, 1, 2, 3])):
        i = next(ids)
        name = R.choice(["", f"{R.choice(FIRST)} {R.choice(LAST)}"]) if rows else f"{R.choice(FIRST)} {R.choice(LAST)}"
        up = date(2030, 1, 1) + timedelta(days=R.randrange(6) * 30)
        joined = date(2020, 1, 1) + timedelta(days=R.randrange(3000))
        rows.append((i, name, up.isoformat(), joined.isoformat()))
        shown = R.choice(["{}", " {}", "{} "]).format("".join(c.upper() if R.random() < 0.2 else c for c in email))
        members.append((i, f" {name} " if name and R.random() < 0.3 else name, shown, joined.isoformat(), up.isoformat()))
    pid = min(r[0] for r in rows)
    patrons[pid] = (email, max((r for r in rows if r[1]), key=lambda r: (r[2], r[0]))[1], min(r[3] for r in rows))
    for r in rows:
        person_of[r[0]] = pid
for bad in ("", "  ", "nobody", None):
    i = next(ids)
    members.append((i, "Lost Soul", bad, "2022-02-02", "2030-01-01"))
    rejects.append(("members", i, "no-email"))

ids = iter(R.sample(range(1, 900), 400))
AUTHORS = [f"{f} {last}" for f in FIRST for last in LAST[:4]] + ["Plato", "Zoë van Ek"]
books, legacy_books, book_of, written = {}, [], {}, {}
for n in range(70):
    core = f"{R.randrange(10**9):09}"
    rows = []
    for _ in range(R.choice([1, 1, 1, 2])):
        i, title = next(ids), f"Book {n} {R.choice(['', 'again', 'II'])}".strip()
        names = R.sample(AUTHORS, R.randrange(1, 4))
        rows.append((i, title, names))
        shown = []
        for a in names + ([names[0]] if R.random() < 0.2 else []):
            first, _, last = a.partition(" ")
            shown.append(R.choice([a, f"{last}, {first}", f" {last} ,  {first}"]) if last else a)
        legacy_books.append((i, title, spell(core, R.choice([10, 13])), R.choice([";", " ; "]).join(shown)))
        book_of[i] = None
    bid = min(r[0] for r in rows)
    _, title, names = next(r for r in rows if r[0] == bid)
    books[bid] = ("978" + core + check13("978" + core), title)
    written[bid] = list(dict.fromkeys(names))
    for r in rows:
        book_of[r[0]] = bid
for k in range(8):
    core, i = f"{R.randrange(10**9):09}", next(ids)
    good = "978" + core + check13("978" + core)
    bad = [good[:-1] + str((int(good[-1]) + 1) % 10), core + ("1" if check10(core) != "1" else "2"), good[:-1], good + "1", "", "97X" + good[3:], core[:5] + "X" + core[6:] + "0", None][k]
    legacy_books.append((i, "Broken", bad, "Plato"))
    rejects.append(("books", i, "bad-isbn"))

ids = iter(R.sample(range(1, 5000), 900))
loans, kept = [], []


def show(d):
    return R.choice([d.isoformat(), d.strftime("%d/%m/%Y")])


members_of, books_of = {}, {}
for m, p in person_of.items():
    members_of.setdefault(p, []).append(m)
for b, p in book_of.items():
    books_of.setdefault(p, []).append(b)
lost_member, lost_book = [r[1] for r in rejects if r[0] == "members"], [r[1] for r in rejects if r[0] == "books"]
for bid in books:
    day = date(2029, 1, 1) + timedelta(days=R.randrange(40))
    for _ in range(R.randrange(1, 7)):
        pid = R.choice(list(patrons))
        i, back = next(ids), day + timedelta(days=R.randrange(0, 40))
        out = R.random() < 0.06
        loans.append((i, R.choice(members_of[pid]), R.choice(books_of[bid]), show(day), R.choice([None, ""]) if out else show(back)))
        kept.append((i, pid, bid, day.isoformat(), None if out else back.isoformat()))
        if (back - day).days > 2 and R.random() < 0.3:  # begins inside
            j = next(ids)
            loans.append((j, R.choice(members_of[pid]), R.choice(books_of[bid]), show(day + timedelta(days=R.randrange(1, (back - day).days))), show(back + timedelta(days=90))))
            rejects.append(("loans", j, "overlap"))
        if out:
            j = next(ids)
            loans.append((j, R.choice(members_of[pid]), R.choice(books_of[bid]), show(day + timedelta(days=400)), None))
            rejects.append(("loans", j, "overlap"))
            break
        if R.random() < 0.15:
            j = next(ids)
            why, m, b, t, u = R.choice([
                ("no-patron", R.choice([99999, *lost_member]), 88888, "x", "y"), ("no-book", R.choice(members_of[pid]), R.choice([88888, *lost_book]), "x", None),
                ("bad-date", R.choice(members_of[pid]), R.choice(books_of[bid]), R.choice(["31/04/2029", "2029-02-30", "04-05-2029", None]), None),
                ("bad-date", R.choice(members_of[pid]), R.choice(books_of[bid]), show(day), show(day - timedelta(days=1))),
                ("no-patron", None, R.choice(books_of[bid]), show(day), None),
            ])  # fmt: skip
            loans.append((j, m, b, t, u))
            rejects.append(("loans", j, why))
        day = back + timedelta(days=R.choice([0, 0, 5, 30]))
        if day == back and (kept[-1][3] == kept[-1][4]):
            day += timedelta(days=1)
# two loans of one day: the smaller id is first, and a loan of no days leaves the book free
R.shuffle(members), R.shuffle(legacy_books), R.shuffle(loans)
names = {a: i for i, a in enumerate(sorted({a for v in written.values() for a in v}), 1)}
DB.unlink(missing_ok=True)
con = sqlite3.connect(DB)
con.executescript("CREATE TABLE members (id, name, email, joined, updated); CREATE TABLE books (id, title, isbn, authors); CREATE TABLE loans (id, member, book, taken, returned);")
con.executemany("INSERT INTO members VALUES (?,?,?,?,?)", members)
con.executemany("INSERT INTO books VALUES (?,?,?,?)", legacy_books)
con.executemany("INSERT INTO loans VALUES (?,?,?,?,?)", loans)
con.commit()
con.close()
totals = {p: [0, 0] for p in patrons}
for _, p, _, t, u in kept:
    totals[p][0] += 1
    totals[p][1] += (date.fromisoformat(u) - date.fromisoformat(t)).days if u else 0
expected = {
    "patrons": sorted([i, *v] for i, v in patrons.items()), "books": sorted([i, *v] for i, v in books.items()),
    "authors": sorted([i, a] for a, i in names.items()),
    "book_authors": sorted([b, names[a], k] for b, v in written.items() for k, a in enumerate(v, 1)),
    "loans": sorted(map(list, kept)), "rejects": sorted(map(list, rejects)), "patron_totals": sorted([p, *v] for p, v in totals.items()),
}  # fmt: skip
(HERE / "expected.json").write_text(json.dumps(expected, ensure_ascii=False) + "\n")
