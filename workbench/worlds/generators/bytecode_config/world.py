"""The public contract of the implant family: files, damage, truth and prompt (Tev Table 6, 9.5: config extraction, key checks)."""

from __future__ import annotations

import hashlib
import json
import struct
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from workbench.worlds import Defect, Output, Prompt, Spec, Stage, Tree, Workflow
from workbench.worlds.draw import Draw
from workbench.worlds.formats import csv_table
from workbench.worlds.generators.bytecode_config.scene import (
    Instruction,
    Sample,
    World,
    check,
    key_of,
    keystream,
    make,
    pack,
    run,
)

__all__ = ["SPEC", "World", "check", "make", "plan", "prompt", "recover", "render", "truth", "workflow"]
SOURCES = ("sample", "source", "sha256", "isa")
LISTING = ("sample", "offset", "mnemonic", "a", "operand", "reachable")
CHECKS = ("id", "sample", "verdict", "steps")
SPEC = Spec(
    name="bytecode_config",
    revision=1,
    domain="9.5",
    title="Configurations out of stripped bytecode",
    summary="Pick intact samples, disassemble and run their bytecode, decrypt their configurations, judge serial numbers.",
    outputs=(
        Output("output/staging/sources.csv", "csv", "which file stands for each sample", dict.fromkeys(SOURCES, "string")),
        Output("output/staging/disassembly.csv", "csv", "every instruction", dict.fromkeys(LISTING, "string")),
        Output("output/configs.json", "json", "keys and configurations", {"samples": [{"sample": "string", "key": "string", "config": {"<field>": "string, integer or list of strings"}}]}),
        Output("output/keychecks.csv", "csv", "verdict on every serial number", dict.fromkeys(CHECKS, "string")),
        Output("output/report.json", "json", "the family at a glance", {"case": "string", "repaired": ["string"], "campaigns": {"<campaign>": ["string"]}, "c2": {"<host>": "integer"}, "accepted": {"<sample>": "integer"}, "last_kill_date": "date"}),
    ),
    workflow_stages=("verify", "disassemble", "execute", "decrypt", "report"),
    artifact_roles=("binary", "specification", "manifest", "log"),
    relation_types=("checksum", "instruction-encoding", "precedence", "lookup"),
    source_kind="reverse-engineering",
)  # fmt: skip
DOC = """KVM container, little-endian
  0  4 bytes  "KVM1"
  4  u16      instruction set (column of opcodes.csv)
  6  u16      entry of the key routine, byte offset into the code
  8  u16      entry of the serial number routine, byte offset into the code
 10  u16      length of the code
 12  u32      length of the data
 16  code, then data, then u32 CRC-32 (zlib) of everything before it

Machine: registers r0..r7, 32 bits unsigned, 0 at the start; arithmetic wraps. An instruction is 6 bytes: u8 opcode, u8 a, u32 operand x.
  LDI  r[a] = x                 MOV  r[a] = r[x]              ADD  r[a] += r[x]
  XOR  r[a] ^= r[x]             MUL  r[a] *= r[x]             ROL  rotate r[a] left by x bits
  SUBI r[a] -= x                JNZ  if r[a] != 0: go to code byte offset x
  IN   r[a] = input word x      CEQ  r[a] = 1 if r[a] == r[x] else 0
  HLT  stop; the result is r0
Key routine: no input; its result is the 32-bit key.
Serial number routine: input words 0, 1, 2 are the three hexadecimal groups; result 1 accepts, 0 rejects.
Data: byte i is XORed with the top byte of state i+1, where state 0 is the key and state n+1 = (state n * 1664525 + 1013904223) mod 2^32.
Plain data: records of u8 tag, u16 length, value, one after another to the end. fields.csv names the tags; others are filler.
Types: ascii; u32 (little-endian integer); date (u32 seconds since 1970, written YYYY-MM-DD); ipv4 (4 bytes, dotted); hex (lower case).
"""


def workflow(world: World) -> Workflow:
    count, code = len(world.samples), sum(len(s.code) for s in world.samples)
    return Workflow((
        Stage("choose-sources", "verify", count),
        Stage("disassemble", "disassemble", code, ("choose-sources",)),
        Stage("derive-keys", "execute", count, ("disassemble",)),
        Stage("decrypt-configs", "decrypt", sum(len(s.tlv) for s in world.samples), ("derive-keys",)),
        Stage("judge-serials", "execute", len(world.serials), ("disassemble",)),
        Stage("report", "report", 5, ("decrypt-configs", "judge-serials")),
    ))  # fmt: skip


def render(world: World) -> dict[str, bytes]:
    tree, digests = {}, []
    for sample in world.samples:
        data = pack(sample, {row[0]: row[sample.isa] for row in world.opcodes})
        tree[f"input/samples/{sample.name}.kvm"] = data
        digests.append((sample.name, hashlib.sha256(data).hexdigest(), len(data)))
        if sample.name in world.mirrored:
            tree[f"input/mirror/{sample.name}.kvm"] = data
    journal = [{"event": "collected", "sample": n, "sha256": d, "size": s} for n, d, s in digests]
    tree["input/journal.jsonl"] = ("\n".join(map(json.dumps, journal)) + "\n").encode()
    tree["input/manifest.csv"] = csv_table.table(("sample", "sha256", "size"), digests)
    tree["input/case.json"] = json.dumps({"case": world.case}).encode() + b"\n"
    tree["input/spec/machine.txt"] = DOC.encode()
    tree["input/spec/opcodes.csv"] = csv_table.table(("mnemonic", "isa_1", "isa_2"), world.opcodes)
    tree["input/spec/fields.csv"] = csv_table.table(("tag", "name", "type", "repeatable"), world.fields)
    tree["input/serials.csv"] = csv_table.table(("id", "sample", "serial"), world.serials)
    return tree


def _sample(name: str, data: bytes, opcodes: list[list[str]]) -> Sample:
    _, isa, init, entry, code_size, data_size = struct.unpack_from("<4sHHHHI", data)
    names = {int(row[isa]): row[0] for row in opcodes}
    code: tuple[Instruction, ...] = tuple(
        (names[o], a, x) for o, a, x in struct.iter_unpack("<BBI", data[16 : 16 + code_size])
    )
    plain, at, tlv = keystream(run(code, init)[0], data[16 + code_size : 16 + code_size + data_size]), 0, []
    while at < len(plain):
        tag, size = struct.unpack_from("<BH", plain, at)
        tlv.append((tag, plain[at + 3 : at + 3 + size].hex()))
        at += 3 + size
    return Sample(name, isa, init, entry, code, tuple(tlv))


def recover(tree: Tree) -> World:
    def rows(path: str) -> list[list[str]]:
        return csv_table.rows(tree[path])

    opcodes = rows("input/spec/opcodes.csv")
    return World(
        json.loads(tree["input/case.json"])["case"],
        tuple((m, int(a), int(b)) for m, a, b in opcodes),
        tuple((int(t), n, k, r) for t, n, k, r in rows("input/spec/fields.csv")),
        tuple(_sample(p[14:-4], tree[p], opcodes) for p in sorted(tree) if p.startswith("input/samples/")),
        tuple(p[13:-4] for p in sorted(tree) if p.startswith("input/mirror/")),
        tuple((i, s, k) for i, s, k in rows("input/serials.csv")),
    )


def plan(world: World, draw: Draw) -> tuple[Defect, ...]:
    sizes = {p: len(d) for p, d in render(world).items()}
    hurt = draw.sample(world.mirrored, 2)

    def rot(path: str) -> Defect:
        offsets = sorted(draw.sample(range(16, sizes[path] - 4), draw.integer(1, 4)))
        return Defect(
            "bit_rot",
            path,
            {"offsets": offsets, "masks": [1 << draw.integer(0, 7) for _ in offsets]},
            "bits of a sample flipped in storage",
        )

    must = [rot(f"input/samples/{name}.kvm") for name in hurt[: draw.integer(1, 2)]]
    others = [s for s in world.mirrored if s not in hurt]
    swap = draw.sample(range(len(world.opcodes)), 2)
    old = [[swap[0], "isa_1", world.opcodes[swap[1]][1]], [swap[1], "isa_1", world.opcodes[swap[0]][1]]]
    rows = sorted(draw.sample(range(len(world.serials)), 4))
    more = [
        Defect("stale_copy", "input/spec/opcodes.csv", {"copy": "input/spec/opcodes.draft.csv", "edits": old}, "an early reading of the opcode numbers"),
        Defect("truncated_file", "input/manifest.csv", {"lines": draw.integer(1, 3)}, "the manifest was cut; the journal has all"),
        Defect("duplicate_records", "input/serials.csv", {"rows": rows}, "some serial numbers were filed twice"),
        Defect("whitespace_noise", "input/serials.csv", {"column": "serial", "rows": rows}, "blanks were pasted along"),
        *[rot(f"input/mirror/{name}.kvm") for name in others[:1]],
    ]  # fmt: skip
    chosen = draw.sample(range(len(more)), draw.integer(0, len(more)))
    order = {"whitespace_noise": 0}
    return tuple(sorted([*must, *(more[i] for i in sorted(chosen))], key=lambda d: order.get(d.kind, 1)))


def _value(kind: str, raw: bytes) -> Any:
    if kind == "u32":
        return int.from_bytes(raw, "little")
    if kind == "date":
        return datetime.fromtimestamp(int.from_bytes(raw, "little"), UTC).strftime("%Y-%m-%d")
    return {"ascii": lambda: raw.decode(), "ipv4": lambda: ".".join(map(str, raw)), "hex": raw.hex}[kind]()


def config_of(world: World, sample: Sample) -> dict[str, Any]:
    known = {tag: (name, kind, many) for tag, name, kind, many in world.fields}
    out: dict[str, Any] = {}
    for tag, value in sample.tlv:
        if tag in known:
            name, kind, many = known[tag]
            item = _value(kind, bytes.fromhex(value))
            out[name] = [*out.get(name, []), item] if many == "yes" else item
    return out


def reachable(sample: Sample) -> set[int]:
    todo, seen = [sample.init // 6, sample.check // 6], set()
    while todo:
        at = todo.pop()
        if at not in seen:
            seen.add(at)
            name, _, x = sample.code[at]
            todo += ([] if name == "HLT" else [at + 1]) + ([x // 6] if name == "JNZ" else [])
    return seen


def truth(world: World, defects: tuple[Defect, ...]) -> dict[str, Any]:
    rotten = {d.path[14:-4] for d in defects if d.kind == "bit_rot" and d.path.startswith("input/samples/")}
    by_name = {s.name: s for s in world.samples}
    sources, listing, configs, campaigns, hosts = [], [], [], {}, Counter()
    for s in world.samples:
        data = pack(s, {row[0]: row[s.isa] for row in world.opcodes})
        place = "mirror" if s.name in rotten else "samples"
        sources.append(dict(zip(SOURCES, (s.name, place, hashlib.sha256(data).hexdigest(), str(s.isa)), strict=True)))
        live = reachable(s)
        listing += [
            dict(zip(LISTING, (s.name, str(6 * i), m, str(a), str(x), "yes" if i in live else "no"), strict=True))
            for i, (m, a, x) in enumerate(s.code)
        ]
        config = config_of(world, s)
        configs.append({"sample": s.name, "key": f"{key_of(s):08x}", "config": config})
        campaigns.setdefault(config["campaign"], []).append(s.name)
        hosts.update(config["c2"])
    checks, accepted = [], Counter({s.name: 0 for s in world.samples})
    for number, name, serial in world.serials:
        result, steps = run(by_name[name].code, by_name[name].check, [int(w, 16) for w in serial.split("-")])
        accepted[name] += result
        checks.append(dict(zip(CHECKS, (number, name, "accept" if result else "reject", str(steps)), strict=True)))
    report = {
        "case": world.case, "repaired": sorted(rotten), "campaigns": campaigns, "c2": dict(hosts), "accepted": dict(accepted),
        "last_kill_date": max(c["config"]["kill_date"] for c in configs),
    }  # fmt: skip
    return {"sources": sources, "disassembly": listing, "configs": configs, "keychecks": checks, "report": report}


def prompt(world: World, defects: tuple[Defect, ...]) -> Prompt:
    return Prompt(
        goal="Samples of one implant family, stripped bytecode of a small virtual machine, must be read: find an intact copy of each, disassemble it, derive its key by running it, decrypt its configuration, and say which serial numbers it accepts.",
        inputs={
            "input/samples/*.kvm": "the samples, one file each",
            "input/mirror/*.kvm": "copies of some of them",
            "input/manifest.csv": "SHA-256 and size of each sample as collected",
            "input/journal.jsonl": "log of the collection",
            "input/spec/": "the machine, its opcode numbers, the configuration's fields",
            "input/serials.csv": "serial numbers to judge, each for one sample",
            "input/case.json": "the case",
        },
        requirements=(
            "A copy is intact when its SHA-256 is the collected one. sources.csv: one row per sample, sorted by sample; source is `samples` or `mirror`, sha256 lower case, isa the instruction set of the header.",
            "disassembly.csv: every 6-byte instruction of the intact copy's code, in order of sample, then offset (bytes from the start of the code); mnemonic as in opcodes.csv; a and operand in decimal as encoded. reachable: `yes` when control flow from either entry can get there (JNZ may go both ways), else `no`.",
            "configs.json: by sample; key is eight lower-case hexadecimal digits; config maps the names of fields.csv to decoded values. A repeatable field is a list in order of appearance, even of one; tags that fields.csv does not name are dropped; a field that is absent is left out.",
            "keychecks.csv: one row per serial number id, in order of first appearance in serials.csv; blanks around a serial number mean nothing, repeated ids count once. verdict `accept` or `reject`; steps is the number of executed instructions of the serial number routine, HLT included.",
            "report.json: repaired lists the samples taken from the mirror, sorted; campaigns maps each to its samples, sorted; c2 maps each host (as written, with port) to the number of its appearances in configurations; accepted maps every sample to its number of accepted serial number ids; last_kill_date is the latest.",
        ),
        authority=(
            "The intact copy in samples/ is preferred to that in mirror/.",
            "Samples that the manifest lacks are described by the journal.",
            "opcodes.csv is in force; drafts beside it are not.",
        ),
    )
