#!/bin/bash
# Clean orders, but neither the rejects nor the summary.
set -euo pipefail
mkdir -p /app/out
python3 - <<'PY'
import csv, io, json, re, unicodedata
from datetime import date
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path

IN, OUT = Path("/app/in"), Path("/app/out")
MONTHS = {m: i for i, m in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}
STATUS = {"bezahlt": "paid", "offen": "open", "storniert": "void"}
SOURCES = {
    "shop": ("shop.csv", "utf-8-sig", ",", ["id", "name", "date", "amount", "cur", "status"]),
    "web": ("web.csv", "utf-8", ";", ["id", "name", "date", "amount", "cur", "status"]),
    "phone": ("phone.tsv", "latin-1", "\t", ["status", "date", "id", "name", "cur", "amount"]),
}
DATE = {"shop": r"(?P<y>\d{4})-(?P<m>\d\d)-(?P<d>\d\d)", "web": r"(?P<d>\d\d)\.(?P<m>\d\d)\.(?P<y>\d{4})",
        "phone": r"(?P<d>\d{1,2}) (?P<m>[A-Z][a-z]{2}) (?P<y>\d{4})"}
AMOUNT = {"shop": r"-?(\d+|\d{1,3}(,\d{3})+)(\.\d+)?", "web": r"-?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?", "phone": r"\d+(\.\d+)?-?"}

rates = {}
for row in csv.DictReader((IN / "rates.csv").open()):
    rates.setdefault(row["currency"], []).append((date.fromisoformat(row["date"]), Decimal(row["eur"])))

def parse_date(src, text):
    m = re.fullmatch(DATE[src], text)
    if not m:
        return None
    month = MONTHS.get(m["m"]) if src == "phone" else int(m["m"])
    try:
        day = date(int(m["y"]), month, int(m["d"]))
    except (TypeError, ValueError):
        return None
    return day if day.year == 2031 else None

def parse_amount(src, text):
    if not re.fullmatch(AMOUNT[src], text):
        return None
    if src == "shop":
        return Decimal(text.replace(",", ""))
    if src == "web":
        return Decimal(text.replace(".", "").replace(",", "."))
    return -Decimal(text[:-1]) if text.endswith("-") else Decimal(text)

def rate(cur, day):
    if cur == "EUR":
        return Decimal(1)
    known = [r for r in rates.get(cur, []) if r[0] <= day]
    return max(known)[1] if known else None

rejects, standing = [], {}
for src, (name, enc, sep, cols) in SOURCES.items():
    text = (IN / name).read_bytes().decode(enc)
    for line, row in enumerate(csv.reader(io.StringIO(text, newline=""), delimiter=sep), 1):
        if line == 1:
            continue
        rec = {k: v.strip() for k, v in zip(cols, row)}
        digits = "".join(re.findall(r"\d", rec["id"]))
        day, amount = parse_date(src, rec["date"]), parse_amount(src, rec["amount"])
        reason = None
        if not 1 <= len(digits) <= 5:
            reason = "bad-id"
        elif day is None:
            reason = "bad-date"
        elif amount is None:
            reason = "bad-amount"
        elif (factor := rate(rec["cur"], day)) is None:
            reason = "bad-currency"
        if reason:
            rejects.append((name, line, reason))
            continue
        status = rec["status"].lower()
        customer = unicodedata.normalize("NFC", " ".join(rec["name"].split()))
        eur = (amount * factor).quantize(Decimal("0.01"), ROUND_HALF_EVEN)
        standing.setdefault(f"ORD-{int(digits):05}", {})[src] = (customer, day, eur, STATUS.get(status, status))

orders = []
for oid in sorted(standing):
    rows = standing[oid]
    have = [s for s in SOURCES if s in rows]
    src = next((s for s in have if rows[s][3] != "void"), have[0])
    customer, day, eur, status = rows[src]
    customer = customer or next((rows[s][0] for s in have if rows[s][0]), "UNKNOWN")
    orders.append([oid, customer, day.isoformat(), f"{eur:.2f}", status, src])

def write(name, head, rows):
    with (OUT / name).open("w", newline="", encoding="utf-8") as f:
        w = csv.writer(f, lineterminator="\n")
        w.writerow(head)
        w.writerows(rows)

write("orders.csv", ["order_id", "customer", "date", "eur", "status", "source"], orders)
summary = {"orders": len(orders), "rejects": {}, "by_status": {}}
for _, _, reason in rejects:
    summary["rejects"][reason] = summary["rejects"].get(reason, 0) + 1
for status in {o[4] for o in orders}:
    own = [o for o in orders if o[4] == status]
    summary["by_status"][status] = {"count": len(own), "eur": f"{sum(Decimal(o[3]) for o in own):.2f}"}
PY
