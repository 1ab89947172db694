"""Writes ../environment/captures and expected.json. Streams are drawn first, then cut into packets, spoilt and shared out."""

import hashlib
import json
import random
import struct
from pathlib import Path

R = random.Random(1883)
HERE = Path(__file__).parent
OUT = HERE.parent / "environment" / "captures"
OUT.mkdir(parents=True, exist_ok=True)
T0 = 1_930_000_000 * 10**6  # microseconds
packets = []  # (time, frame, original length, taps)
counts = {"truncated": 0, "not-tcp": 0, "bad-checksum": 0, "used": 0}
clock = set()


def moment(t):
    while t in clock:
        t += 1
    clock.add(t)
    return t


def total(data):
    if len(data) % 2:
        data += b"\0"
    s = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while s >> 16:
        s = (s & 0xFFFF) + (s >> 16)
    return ~s & 0xFFFF


def frame(src, dst, seq, flags, data=b"", ack=0, bad=None, frag=0, proto=6, tags=None):
    options = b"\x02\x04\x05\xb4" if flags & 2 else R.choice([b"", b"\x01\x01\x08\x0a" + bytes(8)])
    tcp = bytearray(struct.pack("!HHIIBBHHH", src[1], dst[1], seq % 2**32, ack % 2**32, (20 + len(options)) // 4 << 4, flags, 4096, 0, 0) + options + data)
    a, b = (bytes(map(int, x[0].split("."))) for x in (src, dst))
    struct.pack_into("!H", tcp, 16, total(a + b + struct.pack("!BBH", 0, 6, len(tcp)) + bytes(tcp)))
    if bad == "tcp":
        tcp[R.randrange(20, len(tcp)) if len(tcp) > 20 else 14] ^= 4
    extra = R.choice([b"", b"", b"\x07\x03\x04\x00"])
    ip = bytearray(struct.pack("!BBHHHBBH4s4s", 0x45 + len(extra) // 4, 0, 20 + len(extra) + len(tcp), R.randrange(65536), frag, 64, proto, 0, a, b) + extra)
    struct.pack_into("!H", ip, 10, total(bytes(ip)))
    if bad == "ip":
        ip[8] ^= 1
    vlan = R.choice([b"", b"", b"\x81\x00\x00\x07", b"\x88\xa8\x00\x02\x81\x00\x00\x07"]) if tags is None else tags
    out = R.randbytes(12) + vlan + b"\x08\x00" + bytes(ip + tcp)
    return out + R.randbytes(max(0, 60 - len(out)))


def put(t, data, kind="used", cut=0, taps=None):
    taps = taps or R.choice(["l", "r", "lr"])
    for tap in taps:
        packets.append((moment(t + R.randrange(3)), data[: len(data) - cut], len(data), tap))
        counts[kind] += 1


def objects(n):
    """n files for one server to send, as bytes and as (end, name, content)."""
    out, list_ = b"", []
    for _ in range(n):
        name, content = R.choice(NAMES), R.randbytes(R.choice([0, 1, 300, 2000, 6000]))
        out += b"FILE %d %s\n" % (len(content), name.encode()) + content
        list_.append((len(out), name, content))
    return out, list_


NAMES = [f"{a}-{b}.bin" for a in ("map", "log", "key", "img") for b in range(5)]
streams, files = [], {}
for k in range(26):
    t = T0 + k * 40_000_000
    c, s = (f"10.0.{k % 3}.{R.randrange(2, 250)}", 40000 + k), (f"10.9.0.{R.randrange(1, 5)}", R.choice([80, 21, 7000]))
    isn = [R.choice([R.randrange(2**32), 2**32 - R.randrange(1, 1500)]) for _ in "cs"]
    reply, held = objects(R.randrange(0, 4))
    fate = R.choice(["fine", "fine", "fine", "hole", "no-fin", "half-object", "lost-syn"]) if k else "fine"
    if fate == "half-object":
        reply += b"FILE 500 half.bin\n" + R.randbytes(123)
    data = [b"GET " + R.randbytes(R.randrange(0, 400)), reply]
    ends = [(c, s), (s, c)]
    if fate != "lost-syn":
        put(t, frame(c, s, isn[0], 2))
        put(t + 50, frame(s, c, isn[1], 18, ack=isn[0] + 1))
    if R.random() < 0.2:  # a SYN that is sent again
        if fate != "lost-syn":
            put(t + 3_000, frame(c, s, isn[0], 2))
    have = [len(data[0]), len(data[1])]
    for d in (0, 1):
        cuts = sorted({0, len(data[d]), *(R.randrange(len(data[d]) + 1) for _ in range(len(data[d]) // 500 + 1))})
        parts = [(a, b) for a, b in zip(cuts, cuts[1:])]
        hole = None
        if fate == "hole" and d == 1 and len(parts) > 2:
            hole = R.randrange(1, len(parts) - 1)
            have[1] = parts[hole][0]
        when = {}
        for i, (a, b) in enumerate(parts):
            at = when[i] = t + 1_000_000 * (d + 1) + i * 20_000 + R.choice([0, 0, 90_000, -15_000])
            args = (*ends[d], isn[d] + 1 + a, 16, data[d][a:b])
            if i == hole:
                way = R.choice(["lost", "bad", "cut"])
                if way == "bad":
                    put(at, frame(*args, bad=R.choice(["tcp", "ip"])), "bad-checksum")
                elif way == "cut":
                    put(at, frame(*args), "truncated", cut=R.randrange(1, 20))
                continue
            if R.random() < 0.15:
                put(at - 9_000, frame(*args, bad=R.choice(["tcp", "ip"])), "bad-checksum")
            if R.random() < 0.1:
                put(at - 8_000, frame(*args), "truncated", cut=R.randrange(1, 40))
            put(at, frame(*args))
            if R.random() < 0.25:  # sent again later with other contents: the first version counts
                other = bytes(x ^ 0x55 for x in data[d][a:b])
                put(at + 5_000_000, frame(*ends[d], isn[d] + 1 + a, 16, other))
            if i and i - 1 != hole and R.random() < 0.2:  # overlaps the one before, which stands
                lap = R.randrange(1, parts[i - 1][1] - parts[i - 1][0] + 1)
                put(max(at, when[i - 1]) + 2_000_000, frame(*ends[d], isn[d] + 1 + a - lap, 24, R.randbytes(lap) + data[d][a:b]))
        if not (fate == "no-fin" and d == 0):
            put(t + 9_000_000 + d, frame(*ends[d], isn[d] + 1 + len(data[d]), 17))
        if R.random() < 0.2:
            put(t + 9_500_000, frame(*ends[d], isn[d] + 1 + len(data[d]), 4))
    if fate == "lost-syn":
        continue
    streams.append({"client": f"{c[0]}:{c[1]}", "server": f"{s[0]}:{s[1]}", "sent": have[0], "received": have[1], "complete": have[1] == len(data[1]) and fate != "no-fin"})
    files.update({name: content for end, name, content in held if end <= have[1]})
for i in range(60):  # what is no TCP over IPv4
    t = T0 + R.randrange(26 * 40_000_000)
    a, b = ("10.0.0.1", R.randrange(1024, 9999)), ("10.9.0.1", 80)
    put(t, R.choice([
        frame(a, b, 5, 24, b"FILE 3 udp.bin\nabc", proto=17), frame(a, b, 5, 24, b"more", frag=0x2000), frame(a, b, 5, 24, b"later", frag=7),
        R.randbytes(12) + b"\x08\x06" + bytes(46), R.randbytes(12) + b"\x86\xdd" + b"\x60" + bytes(60),
        frame(a, b, 5, 2, tags=b"\x81\x00\x00\x01" * 3),
    ]), "not-tcp")  # fmt: skip
packets.sort(key=lambda p: p[0])
for tap, name, end, magic, unit in (("l", "left", "<", 0xA1B2C3D4, 1), ("r", "right", ">", 0xA1B23C4D, 1000)):
    out = struct.pack(end + "IHHiIII", magic, 2, 4, 0, 0, 65535, 1)
    for t, data, size, on in packets:
        if on == tap:
            out += struct.pack(end + "IIII", t // 10**6, t % 10**6 * unit, len(data), size) + data
    (OUT / f"{name}.pcap").write_bytes(out)
expected = {"streams": streams, "packets": counts, "files": {n: hashlib.sha256(c).hexdigest() for n, c in sorted(files.items())}}
(HERE / "expected.json").write_text(json.dumps(expected, indent=0) + "\n")
