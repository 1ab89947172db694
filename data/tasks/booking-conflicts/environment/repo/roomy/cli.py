"""Command line: parse, call the store, print."""

import shlex
import sys
from datetime import datetime

from roomy.store import Refused, Store


def stamp(text):
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M").strftime("%Y-%m-%dT%H:%M")
    except ValueError:
        raise Refused(f"not a time: {text}") from None


def window(start, end):
    start, end = stamp(start), stamp(end)
    if start >= end:
        raise Refused("the end is not after the start")
    return start, end


def number(text):
    if not text.isdigit():
        raise Refused(f"not a number: {text}")
    return int(text)


def run(store, words):
    """One command; the lines to print."""
    match words:
        case ["add", room, start, end, name, *flags] if flags in ([], ["--tentative"]):
            return [str(store.add(room, *window(start, end), name, firm=not flags))]
        case ["confirm", n]:
            store.confirm(number(n))
            return ["ok"]
        case ["move", n, start, end]:
            store.move(number(n), *window(start, end))
            return ["ok"]
        case ["cancel", n]:
            store.cancel(number(n))
            return ["ok"]
        case ["free", room, start, end]:
            return [f"{s} {e}" for s, e in store.free(room, *window(start, end))]
        case ["list", *room] if len(room) < 2:
            return [
                f"{b['number']} {b['room']} {b['start']} {b['end']} {'firm' if b['firm'] else 'tentative'} {b['name']}"
                for b in store.listed(*room)
            ]
    raise Refused("unknown command: " + " ".join(words))


def main(argv):
    if len(argv) < 2:
        print("usage: roomy DB COMMAND ...", file=sys.stderr)
        return 2
    store, status = Store(argv[0]), 0
    commands = [shlex.split(line) for line in sys.stdin if line.strip()] if argv[1:] == ["batch"] else [argv[1:]]
    for words in commands:
        try:
            for line in run(store, words):
                print(line)
        except Refused as why:
            print(f"error: {why}")
            status = 0 if argv[1] == "batch" else 1
    store.save()
    return status
