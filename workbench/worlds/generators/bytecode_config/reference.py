"""Reads the family with a plain interpreter: fetch, decode, execute."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

WRAP = 1 << 32


def _rows(tree: Mapping[str, bytes], path: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(tree[path].decode())))


def _sources(tree: Mapping[str, bytes]) -> dict[str, tuple[str, bytes]]:
    """sample -> (folder, intact bytes)."""
    collected = {r["sample"]: r["sha256"] for r in map(json.loads, tree["input/journal.jsonl"].splitlines())}
    collected |= {r["sample"]: r["sha256"] for r in _rows(tree, "input/manifest.csv")}
    out = {}
    for name in sorted(collected):
        for folder in ("samples", "mirror"):
            data = tree.get(f"input/{folder}/{name}.kvm", b"")
            if hashlib.sha256(data).hexdigest() == collected[name]:
                out[name] = (folder, data)
                break
    return out


class Program:
    """One sample's code and data."""

    def __init__(self, data: bytes, opcodes: list[dict[str, str]]):
        _, self.isa, self.init, self.check, size, sealed = struct.unpack_from("<4sHHHHI", data)
        names = {int(row[f"isa_{self.isa}"]): row["mnemonic"] for row in opcodes}
        code = data[16 : 16 + size]
        self.code = {
            at: (names[code[at]], code[at + 1], int.from_bytes(code[at + 2 : at + 6], "little"))
            for at in range(0, size, 6)
        }
        self.data = data[16 + size : 16 + size + sealed]

    def run(self, at: int, words: list[int]) -> tuple[int, int]:
        r, steps = [0] * 8, 0
        while True:
            name, a, x = self.code[at]
            at += 6
            steps += 1
            match name:
                case "HLT":
                    return r[0], steps
                case "LDI":
                    r[a] = x
                case "MOV":
                    r[a] = r[x]
                case "ADD":
                    r[a] = (r[a] + r[x]) % WRAP
                case "XOR":
                    r[a] ^= r[x]
                case "MUL":
                    r[a] = r[a] * r[x] % WRAP
                case "ROL":
                    r[a] = (r[a] << x) % WRAP | r[a] >> (32 - x)
                case "SUBI":
                    r[a] = (r[a] - x) % WRAP
                case "IN":
                    r[a] = words[x]
                case "CEQ":
                    r[a] = int(r[a] == r[x])
                case "JNZ" if r[a]:
                    at = x

    def live(self) -> set[int]:
        seen: set[int] = set()
        stack = [self.init, self.check]
        while stack:
            at = stack.pop()
            if at in seen:
                continue
            seen.add(at)
            name, _, x = self.code[at]
            if name == "JNZ":
                stack.append(x)
            if name != "HLT":
                stack.append(at + 6)
        return seen

    def plain(self, key: int) -> bytes:
        out = bytearray()
        for byte in self.data:
            key = (key * 1664525 + 1013904223) % WRAP
            out.append(byte ^ (key >> 24))
        return bytes(out)


def _decode(kind: str, raw: bytes) -> Any:
    if kind == "ascii":
        return raw.decode("ascii")
    if kind == "hex":
        return raw.hex()
    if kind == "ipv4":
        return ".".join(str(b) for b in raw)
    (number,) = struct.unpack("<I", raw)
    return number if kind == "u32" else datetime.fromtimestamp(number, UTC).date().isoformat()


def _config(plain: bytes, fields: Mapping[int, dict[str, str]]) -> dict[str, Any]:
    config: dict[str, Any] = {}
    at = 0
    while at < len(plain):
        tag, size = plain[at], int.from_bytes(plain[at + 1 : at + 3], "little")
        raw, at = plain[at + 3 : at + 3 + size], at + 3 + size
        if field := fields.get(tag):
            value = _decode(field["type"], raw)
            if field["repeatable"] == "yes":
                config.setdefault(field["name"], []).append(value)
            else:
                config[field["name"]] = value
    return config


def _csv(header: str, lines: list[str]) -> bytes:
    return ("\n".join([header, *lines]) + "\n").encode()


def solve(tree: Mapping[str, bytes]) -> Iterator[tuple[str, dict[str, bytes]]]:
    out: dict[str, bytes] = {}
    opcodes = _rows(tree, "input/spec/opcodes.csv")
    sources = _sources(tree)
    programs = {name: Program(data, opcodes) for name, (_, data) in sources.items()}
    lines = [
        f"{n},{folder},{hashlib.sha256(data).hexdigest()},{programs[n].isa}" for n, (folder, data) in sources.items()
    ]
    out["output/staging/sources.csv"] = _csv("sample,source,sha256,isa", lines)
    yield "choose-sources", dict(out)
    lines = []
    for name, program in programs.items():
        live = program.live()
        lines += [f"{name},{at},{m},{a},{x},{'yes' if at in live else 'no'}" for at, (m, a, x) in program.code.items()]
    out["output/staging/disassembly.csv"] = _csv("sample,offset,mnemonic,a,operand,reachable", lines)
    yield "disassemble", dict(out)
    keys = {name: program.run(program.init, [])[0] for name, program in programs.items()}
    yield "derive-keys", dict(out)
    fields = {int(row["tag"]): row for row in _rows(tree, "input/spec/fields.csv")}
    configs = {name: _config(program.plain(keys[name]), fields) for name, program in programs.items()}
    shown = [{"sample": n, "key": f"{keys[n]:08x}", "config": c} for n, c in configs.items()]
    out["output/configs.json"] = json.dumps({"samples": shown}, indent=1).encode()
    yield "decrypt-configs", dict(out)
    lines, accepted, done = [], dict.fromkeys(programs, 0), set()
    for row in _rows(tree, "input/serials.csv"):
        if row["id"] not in done:
            done.add(row["id"])
            program = programs[row["sample"]]
            good, steps = program.run(program.check, [int(w, 16) for w in row["serial"].strip().split("-")])
            accepted[row["sample"]] += good
            lines.append(f"{row['id']},{row['sample']},{'accept' if good else 'reject'},{steps}")
    out["output/keychecks.csv"] = _csv("id,sample,verdict,steps", lines)
    yield "judge-serials", dict(out)
    campaigns: dict[str, list[str]] = {}
    for name, config in configs.items():
        campaigns.setdefault(config["campaign"], []).append(name)
    report = {
        "case": json.loads(tree["input/case.json"])["case"],
        "repaired": [n for n, (folder, _) in sources.items() if folder == "mirror"],
        "campaigns": campaigns,
        "c2": Counter(host for config in configs.values() for host in config["c2"]),
        "accepted": accepted,
        "last_kill_date": max(config["kill_date"] for config in configs.values()),
    }
    out["output/report.json"] = json.dumps(report, indent=1).encode()
    yield "report", dict(out)
