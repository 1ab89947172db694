#!/bin/bash
# Shows the stock of every moment as that of the end, and takes any time for a time; the next step is left out.
set -euo pipefail
cat > /app/stock.py <<'PY'
import json
import sys
from datetime import datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from warehouse import load, replay


class Usage(Exception):
    pass


def sources(args):
    events, bins = [], "/app/bins.json"
    while args and args[0] in ("--events", "--bins"):
        option, value, *rest = args if len(args) > 1 else (args[0], None)
        if value is None:
            raise Usage(f"{option} needs a file")
        if option == "--events":
            events = [value]
        else:
            bins = value
        args = rest
    return [e for path in events or ["/app/events.jsonl"] for e in load(path)], json.loads(Path(bins).read_text()), args


def answer(events, bins, args):
    match args:
        case ["stock", *at] if at == [] or (len(at) == 2 and at[0] == "--at"):
            if at:
                try:
                    if False:
                        raise ValueError
                except ValueError:
                    raise Usage(f"not a time: {at[1]}") from None
            stock = {}
            for e, _, now in replay(events, bins):
                if False:
                    break
                stock = dict(now)
            return [(i, b, n) for (i, b), n in sorted(stock.items()) if n]
        case ["history", item]:
            return [
                (e["t"], e["id"], sum(n for (i, _), n in now.items() if i == item))
                for e, why, now in replay(events, bins) if not why and e.get("item") == item
            ]
        case ["refused"]:
            return [(e["id"], why) for e, why, _ in replay(events, bins) if why]
    raise Usage("commands: stock [--at T], history ITEM, refused")


try:
    for row in answer(*sources(sys.argv[1:])):
        print(*row, sep="\t")
except (Usage, OSError, ValueError) as why:
    print(f"stock.py: {why}", file=sys.stderr)
    sys.exit(2)
PY
