"""Writes ../environment/in and expected.json. The truth is drawn first and then spoilt, so nothing here parses a file."""

import json
import random
import unicodedata
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path

R = random.Random(20310305)
HERE = Path(__file__).parent
OUT = HERE.parent / "environment" / "in"
OUT.mkdir(parents=True, exist_ok=True)
FIRST = ["Ana", "Bjørn", "Chloé", "Dvir", "Eke", "Fátima", "Göran", "Hui", "Iñes", "Jörg", "Kofi", "Lúcia"]
LAST = ["Arden", "Brücke", "Castaño", "Dupré", "Eriksen", "Falk", "Grønn", "Hübner"]
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
GERMAN = {"paid": "bezahlt", "open": "offen", "void": "storniert"}
FILES = ["shop", "web", "phone"]
NAMES = {"shop": "shop.csv", "web": "web.csv", "phone": "phone.tsv"}

rates = {}
for cur, base in (("USD", 9134), ("GBP", 11725), ("SEK", 875)):
    day = date(2031, 1, 3 if cur != "SEK" else 20)
    while day.year == 2031:
        rates[cur, day] = Decimal(base + R.randrange(-base // 30, base // 30)) / 10000
        day += timedelta(days=R.choice([3, 4, 7]))
(OUT / "rates.csv").write_text(
    "date,currency,eur\n" + "".join(f"{d},{c},{v}\n" for (c, d), v in sorted(rates.items(), key=lambda i: R.random()))
)


def rate(cur, day):
    if cur == "EUR":
        return Decimal(1)
    days = [d for c, d in rates if c == cur and d <= day]
    return rates[cur, max(days)] if days else None


def group(n, sep):
    return f"{n:,}".replace(",", sep)


def amount(f, v):
    whole, cents = divmod(abs(int(v * 100)), 100)
    sign = "-" if v < 0 else ""
    if f == "shop":
        return f"{sign}{group(whole, R.choice([',', '']))}.{cents:02}"
    if f == "web":
        return f"{sign}{group(whole, R.choice(['.', '']))},{cents:02}"
    return f"{whole}.{cents:02}{'-' if v < 0 else ''}"


def when(f, d):
    return {"shop": d.isoformat(), "web": d.strftime("%d.%m.%Y"), "phone": f"{d.day} {MONTHS[d.month - 1]} {d.year}"}[f]


def oid(n):
    return R.choice([f"ORD-{n:05}", f"ord {n}", f"#{n}", str(n), f" Ord-{n:04} "])


def cased(s):
    return R.choice([s, s.upper(), s.capitalize()])


lines = {f: [] for f in FILES}  # (id text, name, date text, amount text, currency, status text), and the truth or a reason


def add(f, truth, reason=None, **spoil):
    n, name, d, v, cur, st = truth
    raw = {
        "id": oid(n), "name": name, "date": when(f, d), "amount": amount(f, v), "cur": cur,
        "st": cased(GERMAN[st] if f == "web" else st), **spoil,
    }  # fmt: skip
    lines[f].append((raw, truth, reason))


def person():
    name = f"{R.choice(FIRST)} {R.choice(LAST)}"
    return name


for n in R.sample(range(1, 99999), 170):
    used = R.choices([["shop"], ["web"], ["phone"], ["shop", "web"], ["web", "phone"], FILES], [3, 3, 2, 4, 3, 4])[0]
    name, day = person(), date(2031, 1, 1) + timedelta(days=R.randrange(365))
    for f in used:
        cur = R.choices(["EUR", "USD", "GBP", "SEK"], [3, 3, 2, 1])[0]
        v = Decimal(R.choice([R.randrange(500, 9000), R.randrange(100000, 2500000)])) / 100
        if R.random() < 0.1:
            v = -v
        st = R.choices(["paid", "open", "void"], [5, 2, 3])[0]
        shown = name if R.random() > 0.25 else ""
        d = day + timedelta(days=R.choice([0, 0, 1])) if day < date(2031, 12, 30) else day
        truth = (n, shown, d, v, cur, st)
        if R.random() < 0.12:  # an earlier line of the same file, to be forgotten
            add(f, (n, "Old Entry", d, v + 1, cur, "paid"))
        add(f, truth, "bad-currency" if rate(cur, d) is None else None)
    if R.random() < 0.10:
        f = used[0]
        kind = R.choice(["bad-id", "bad-date", "bad-amount", "bad-currency", "two"])
        t = (n, name, day, Decimal("10.00"), "EUR", "paid")
        bad_day = {"shop": "2031-02-29", "web": "31.04.2031", "phone": "30 Feb 2031"}[f]
        bad_amount = {"shop": "12,34.00", "web": "1.23,00", "phone": "12,50"}[f]
        if kind == "bad-id":
            add(f, t, kind, id=R.choice(["n/a", "ORD-123456", "ORD-"]))
        elif kind == "bad-date":
            add(f, t, kind, date=R.choice([bad_day, when(f, day.replace(year=2030, day=5))]))
        elif kind == "bad-amount":
            add(f, t, kind, amount=R.choice([bad_amount, "", "ten"]))
        elif kind == "bad-currency":
            add(f, t, kind, cur=R.choice(["XAU", "usd?", ""]))
        else:
            add(f, t, "bad-date", date=bad_day, amount="?", cur="XAU")
# a half cent that must go down, and one that must go up
add("shop", (99990, "Half Down", date(2031, 6, 1), Decimal("0.50"), "EUR", "paid"))
rates_half = {"TST": Decimal("0.25")}
with (OUT / "rates.csv").open("a") as fh:
    fh.write("2031-05-30,TST,0.25\n2031-06-02,TST,9.99\n")
rates["TST", date(2031, 5, 30)] = Decimal("0.25")
rates["TST", date(2031, 6, 2)] = Decimal("9.99")
add("web", (99991, "Half Even", date(2031, 6, 1), Decimal("0.10"), "TST", "paid"))  # 0.025 → 0.02
add("phone", (99992, "Half Odd", date(2031, 6, 1), Decimal("0.30"), "TST", "open"))  # 0.075 → 0.08

standing, rejects = {}, []
for f in FILES:
    groups, order = {}, []
    for item in lines[f]:  # shuffle, keeping the lines of one order in their order
        key = item[1][0]
        groups.setdefault(key, []).append(item)
        order.append(key)
    R.shuffle(order)
    lines[f] = [groups[k].pop(0) for k in order]
    for i, (_, truth, reason) in enumerate(lines[f], 2):
        if reason:
            rejects.append([NAMES[f], i, reason])
        else:
            standing.setdefault(truth[0], {})[f] = truth


def blur(s):
    s = s.replace(" ", R.choice([" ", "  "]))
    return R.choice(["", " "]) + s


def dump(f, head, sep, cols, enc, eol, nfd=False):
    rows = [sep.join(head)]
    for raw, _, _ in lines[f]:
        r = dict(raw, name=blur(raw["name"]) if raw["name"] else R.choice(["", " "]))
        if nfd and R.random() < 0.5:
            r["name"] = unicodedata.normalize("NFD", r["name"])
        rows.append(sep.join(f'"{r[c]}"' if sep in r[c] else r[c] for c in cols))
    (OUT / NAMES[f]).write_bytes((eol.join(rows) + eol).encode(enc))


dump("shop", ["Order ID", "Customer", "Placed", "Amount", "Currency", "Status"], ",", ["id", "name", "date", "amount", "cur", "st"], "utf-8-sig", "\r\n", nfd=True)  # fmt: skip
dump("web", ["id", "kunde", "datum", "betrag", "waehrung", "status"], ";", ["id", "name", "date", "amount", "cur", "st"], "utf-8", "\n", nfd=True)  # fmt: skip
dump("phone", ["status", "placed", "order", "name", "currency", "amount"], "\t", ["st", "date", "id", "name", "cur", "amount"], "latin-1", "\n")  # fmt: skip

orders, totals = [], {}
for n, rows in sorted(standing.items()):
    have = [f for f in FILES if f in rows]
    live = [f for f in have if rows[f][5] != "void"]
    src = (live or have)[0]
    _, name, d, v, cur, st = rows[src]
    name = name or next((rows[f][1] for f in have if rows[f][1]), "UNKNOWN")
    eur = (v * rate(cur, d)).quantize(Decimal("0.01"), ROUND_HALF_EVEN)
    orders.append([f"ORD-{n:05}", name, d.isoformat(), f"{eur:.2f}", st, src])
    c, e = totals.get(st, (0, Decimal(0)))
    totals[st] = c + 1, e + eur
kinds = {}
for r in rejects:
    kinds[r[2]] = kinds.get(r[2], 0) + 1
expected = {
    "orders": orders, "rejects": sorted(rejects),
    "summary": {"orders": len(orders), "rejects": kinds, "by_status": {s: {"count": c, "eur": f"{e:.2f}"} for s, (c, e) in totals.items()}},
}  # fmt: skip
(HERE / "expected.json").write_text(json.dumps(expected, ensure_ascii=False, indent=0) + "\n")
