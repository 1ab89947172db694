"""Writes ../environment/data/recording.bin and expected.json: records are laid out by hand, so offsets are known without parsing."""

import json
import random
import struct
import zlib
from pathlib import Path

R = random.Random(55)
HERE = Path(__file__).parent
NAMES = {1: "text", 2: "samples", 3: "packed", 4: "link"}


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def zigzag(x):
    return varint(2 * x if x >= 0 else -2 * x - 1)


def payload(kind, value):
    if kind == 1:
        return value.encode()
    if kind == 2:
        steps = [b - a for a, b in zip([0, *value], value)]
        return bytes([len(value)]) + struct.pack("<f", 0.25) + b"".join(map(zigzag, steps))
    if kind == 3:
        bits = sum(v << (12 * i) for i, v in enumerate(value))
        return struct.pack("<H", len(value)) + bits.to_bytes((12 * len(value) + 7) // 8, "little")
    return struct.pack("<IB", *value)


def seal(body):
    return b"\xd5\x5d" + body + struct.pack("<I", zlib.crc32(body))


def record(seq, kind, data):
    return seal(varint(seq) + bytes([kind]) + varint(len(data)) + data)


WORDS = "valve pump Ölstand größer drift naïve 温度 cold start ready 🛠 check".split()


def draw(seq):
    kind = R.choice([1, 1, 2, 2, 3, 4])
    if kind == 1:
        return kind, " ".join(R.choices(WORDS, k=R.randrange(0, 30)))
    if kind == 2:
        return kind, [R.choice([R.randrange(-40, 40), R.randrange(-(2**30), 2**30)]) for _ in range(R.randrange(1, 40))]
    if kind == 3:
        return kind, [R.randrange(4096) for _ in range(R.choice([0, 1, 2, 7, 40, 133]))]
    return kind, [R.randrange(0, 420), R.randrange(256)]


out = bytearray(b"RLOG" + struct.pack("<HH", 3, 5))
out += struct.pack("<I", zlib.crc32(bytes(out)) ^ 1)  # the header's own CRC is damaged, which must not matter
kept, lost, damaged, dup = [], [], 0, 0


def junk(data):
    global damaged
    out.extend(data)
    damaged += len(data)


for seq in range(400):
    kind, value = draw(seq)
    data = payload(kind, value)
    if seq in (60, 61):  # a whole valid record (of a number that will be lost) inside a payload: data, not a record
        kind, value = 1, "x" + record(301, 1, b"inner").decode("latin-1")
        data = value.encode()
        if seq == 61:  # as packed bits the inner record stands there byte for byte
            inner = b"\0\0\0" + record(301, 1, b"inner!") + b"\0" * 8
            inner = inner[: len(inner) // 3 * 3]
            bits = int.from_bytes(inner, "little")
            kind, value = 3, [bits >> (12 * i) & 4095 for i in range(len(inner) * 2 // 3)]
            data = payload(kind, value)
            assert inner in data
    rec = record(seq, kind, data)
    fate = R.random()
    if seq in (100, 240):  # wrong payload, right CRC
        junk(record(seq, 1, b"ok \xff\xfe"))
    elif seq == 101:
        junk(record(seq, 2, payload(2, [1, 2, 3]) + b"\0"))
    elif seq == 102:
        junk(record(seq, 9, b"abc"))
    elif seq == 103:
        junk(record(seq, 3, struct.pack("<H", 1) + b"\x34\xf2"))  # an unused bit is set
    elif seq == 104:
        junk(record(seq, 1, b"z" * 4097))
    elif seq == 105:  # seq in two bytes more than needed
        junk(seal(bytes([105 | 128, 128, 0]) + b"\x01\x02hi"))
    elif seq == 301 or 330 <= seq <= 333:
        pass  # cut out
    elif fate < 0.10:  # a flipped bit
        bad = bytearray(rec)
        bad[R.randrange(len(bad))] ^= 1 << R.randrange(8)
        junk(bad)
    elif fate < 0.14:  # the tail cut off: the next mark follows at once
        junk(rec[: R.randrange(1, len(rec) - 1)])
    else:
        if fate < 0.18:
            junk(R.choice([b"\xd5", b"\xd5\x5d", b"\xd5\xd5", b"\xd5\x5d\xff\xff\xff\xff\xff\xff", R.randbytes(9)]))
        kept.append({"offset": len(out), "seq": seq, "kind": NAMES[kind], "value": value})
        out += rec
        if fate > 0.96:  # written again later, with other contents
            out += record(seq, 1, b"again")
            dup += 1
junk(b"\xd5\x5d\x90\x03\x01\x80")  # cut in the middle of a record
have = {k["seq"] for k in kept}
for s in range(max(have) + 1):
    if s not in have:
        if lost and lost[-1][1] == s - 1:
            lost[-1][1] = s
        else:
            lost.append([s, s])
sums = {}
for k in kept:
    v = k["value"]
    n = len(v) if k["kind"] == "text" else int(v[0] in have) if k["kind"] == "link" else sum(v)
    sums[k["kind"]] = sums.get(k["kind"], 0) + n
data = HERE.parent / "environment" / "data"
data.mkdir(parents=True, exist_ok=True)
(data / "recording.bin").write_bytes(out)
report = {"recovered": len(kept), "duplicates": dup, "lost": lost, "damaged_bytes": damaged, "sums": sums}
(HERE / "expected.json").write_text(json.dumps({"records": kept, "report": report}, ensure_ascii=False) + "\n")
