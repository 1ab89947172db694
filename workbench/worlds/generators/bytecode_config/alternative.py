"""Reads the family by compiling: every program becomes a table of closures over its registers, and facts go through SQL."""

from __future__ import annotations

import csv
import datetime
import hashlib
import io
import itertools
import json
import sqlite3
from array import array
from collections.abc import Callable, Iterator, Mapping
from typing import Any

LOW = 0xFFFFFFFF
Step = Callable[[], int | None]


def _compile(code: memoryview, names: Mapping[int, str], r: array[int], words: list[int]) -> list[Step]:
    """One closure per instruction, which gives the place of the next one, or None to stop."""

    def jump(a: int, x: int, after: int) -> Step:
        return lambda: x // 6 if r[a] else after

    def move(a: int, value: Callable[[], int], after: int) -> Step:
        def step() -> int:
            r[a] = value() & LOW
            return after

        return step

    steps: list[Step] = []
    for at in range(len(code) // 6):
        op, a = names[code[6 * at]], code[6 * at + 1]
        x = int.from_bytes(code[6 * at + 2 : 6 * at + 6], "little")
        values: dict[str, Callable[[], int]] = {
            "LDI": lambda x=x: x,
            "MOV": lambda x=x: r[x],
            "ADD": lambda a=a, x=x: r[a] + r[x],
            "XOR": lambda a=a, x=x: r[a] ^ r[x],
            "MUL": lambda a=a, x=x: r[a] * r[x],
            "ROL": lambda a=a, x=x: r[a] * (1 << x) + (r[a] >> (32 - x)),
            "SUBI": lambda a=a, x=x: r[a] + (1 << 32) - x,
            "IN": lambda x=x: words[x],
            "CEQ": lambda a=a, x=x: 1 - bool(r[a] ^ r[x]),
        }
        steps.append(
            (lambda: None) if op == "HLT" else jump(a, x, at + 1) if op == "JNZ" else move(a, values[op], at + 1)
        )
    return steps


def _execute(steps: list[Step], entry: int, r: array[int]) -> tuple[int, int]:
    r[:] = array("Q", [0] * 8)
    at: int | None = entry // 6
    for count in itertools.count(1):
        at = steps[at]()
        if at is None:
            return r[0], count
    raise AssertionError("unreachable")


def _reachable(db: sqlite3.Connection, sample: str, entries: tuple[int, int]) -> set[int]:
    query = """WITH RECURSIVE live(at) AS (VALUES (?), (?) UNION
      SELECT e.target FROM live JOIN edge e ON e.source = live.at AND e.sample = ?) SELECT at FROM live"""
    return {at for (at,) in db.execute(query, (*entries, sample))}


def _fields(plain: bytes) -> Iterator[tuple[int, bytes]]:
    stream = io.BytesIO(plain)
    while head := stream.read(3):
        yield head[0], stream.read(head[1] | head[2] << 8)


DECODERS: dict[str, Callable[[bytes], Any]] = {
    "ascii": lambda raw: raw.decode(),
    "hex": bytes.hex,
    "ipv4": lambda raw: "{}.{}.{}.{}".format(*raw),
    "u32": lambda raw: int.from_bytes(raw, "little"),
    "date": lambda raw: str(datetime.date(1970, 1, 1) + datetime.timedelta(seconds=int.from_bytes(raw, "little"))),
}


def _lines(data: bytes) -> list[list[str]]:
    return list(csv.reader(data.decode().splitlines()))[1:]


def _table(header: str, rows: list[Any]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header.split(), *rows])
    return out.getvalue().encode()


def solve(tree: Mapping[str, bytes]) -> dict[str, bytes]:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE edge(sample TEXT, source INTEGER, target INTEGER)")
    digests = {hashlib.sha256(d).hexdigest(): d for p, d in tree.items() if p.endswith(".kvm")}
    wanted = {(r["sample"], r["sha256"]) for r in map(json.loads, tree["input/journal.jsonl"].decode().splitlines())}
    fields = {int(t): (n, DECODERS[k], m == "yes") for t, n, k, m in _lines(tree["input/spec/fields.csv"])}
    sources, listing, configs, machines = [], [], [], {}
    for name, digest in sorted(wanted):
        path = f"input/samples/{name}.kvm"
        own = path in tree and hashlib.sha256(tree[path]).hexdigest() == digest
        data = memoryview(digests[digest])
        isa, init, check, size = (int.from_bytes(data[i : i + 2], "little") for i in (4, 6, 8, 10))
        sources.append((name, "samples" if own else "mirror", digest, isa))
        names = {int(row[isa]): row[0] for row in _lines(tree["input/spec/opcodes.csv"])}
        code, r, words = data[16 : 16 + size], array("Q", [0] * 8), [0, 0, 0]
        decoded = [
            (6 * i, names[code[6 * i]], code[6 * i + 1], int.from_bytes(code[6 * i + 2 : 6 * i + 6], "little"))
            for i in range(size // 6)
        ]
        db.executemany(
            "INSERT INTO edge VALUES (?,?,?)", [(name, at, at + 6) for at, op, _, _ in decoded if op != "HLT"]
        )
        db.executemany("INSERT INTO edge VALUES (?,?,?)", [(name, at, x) for at, op, _, x in decoded if op == "JNZ"])
        live = _reachable(db, name, (init, check))
        listing += [(name, *row, "yes" if row[0] in live else "no") for row in decoded]
        steps = _compile(code, names, r, words)
        key, _ = _execute(steps, init, r)
        states = itertools.accumulate(
            range(len(data) - 20 - size), lambda s, _: (s * 1664525 + 1013904223) & LOW, initial=key
        )
        plain = bytes(b ^ s >> 24 for b, s in zip(data[16 + size : -4], itertools.islice(states, 1, None), strict=True))
        config: dict[str, Any] = {}
        for tag, raw in _fields(plain):
            if tag in fields:
                title, decode, many = fields[tag]
                config[title] = [*config.get(title, ()), decode(raw)] if many else decode(raw)
        configs.append({"config": config, "key": key.to_bytes(4, "big").hex(), "sample": name})
        machines[name] = (steps, check, r, words)
    serials = {
        number: (name, "".join(text.split())) for number, name, text in reversed(_lines(tree["input/serials.csv"]))
    }
    checks = []
    for number, (name, text) in reversed(serials.items()):
        steps, check, r, words = machines[name]
        words[:] = (int(text[i : i + 8], 16) for i in (0, 9, 18))
        good, count = _execute(steps, check, r)
        checks.append((number, name, ("reject", "accept")[good], count))
    return {
        "output/staging/sources.csv": _table("sample source sha256 isa", sources),
        "output/staging/disassembly.csv": _table("sample offset mnemonic a operand reachable", listing),
        "output/configs.json": json.dumps({"samples": configs}).encode(),
        "output/keychecks.csv": _table("id sample verdict steps", _in_order(checks, tree)),
        "output/report.json": json.dumps(_report(tree, sources, configs, checks)).encode(),
    }  # fmt: skip


def _in_order(checks: list[Any], tree: Mapping[str, bytes]) -> list[Any]:
    """By first appearance of the id."""
    first: dict[str, int] = {}
    for place, row in enumerate(_lines(tree["input/serials.csv"])):
        first.setdefault(row[0], place)
    return sorted(checks, key=lambda check: first[check[0]])


def _report(
    tree: Mapping[str, bytes], sources: list[Any], configs: list[dict[str, Any]], checks: list[Any]
) -> dict[str, Any]:
    hosts = sorted(h for c in configs for h in c["config"]["c2"])
    return {
        "accepted": {c["sample"]: sum(k[1:3] == (c["sample"], "accept") for k in checks) for c in configs},
        "c2": {host: len(list(group)) for host, group in itertools.groupby(hosts)},
        "campaigns": {
            n: [c["sample"] for c in configs if c["config"]["campaign"] == n]
            for n in {c["config"]["campaign"] for c in configs}
        },
        "case": json.loads(tree["input/case.json"])["case"],
        "last_kill_date": sorted(c["config"]["kill_date"] for c in configs)[-1],
        "repaired": [name for name, place, *_ in sources if place == "mirror"],
    }
