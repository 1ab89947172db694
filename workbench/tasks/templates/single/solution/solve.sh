#!/bin/sh
# The reference solution: it must earn a reward of exactly 1. Replace it together with the tests.
set -eu
python3 - <<'PY'
import csv
from collections import defaultdict

totals = defaultdict(float)
with open("/app/orders.csv", newline="") as file:
    for order in csv.DictReader(file):
        if order["state"] != "cancelled":
            totals[order["shop"]] += float(order["amount"])
with open("/app/totals.csv", "w") as file:
    print("shop,total", file=file)
    for shop in sorted(totals):
        print(f"{shop},{totals[shop]:.2f}", file=file)
PY
