#!/bin/bash
set -euo pipefail
mkdir -p /app/out/files
python3 - <<'PY'
import json, re, struct
from pathlib import Path

OUT = Path("/app/out")


def packets(name, rank):
    data = Path("/app/captures", name).read_bytes()
    for end in "<>":
        magic, = struct.unpack_from(end + "I", data)
        if magic in (0xA1B2C3D4, 0xA1B23C4D):
            break
    unit = 1000 if magic == 0xA1B2C3D4 else 1
    at, n = 24, 0
    while at + 16 <= len(data):
        sec, frac, have, size = struct.unpack_from(end + "IIII", data, at)
        yield sec * 10**9 + frac * unit, rank, n, data[at + 16:at + 16 + have], size
        at, n = at + 16 + have, n + 1


def checksum(data):
    data += b"\0" * (len(data) % 2)
    s = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while s >> 16:
        s = (s & 65535) + (s >> 16)
    return s


def dissect(f, size):
    """What becomes of a frame, and (source, destination, seq, flags, payload) when it is used."""
    if len(f) < size:
        return "truncated", None
    at = 12
    for _ in range(2):
        if f[at:at + 2] in (b"\x81\x00", b"\x88\xa8"):
            at += 4
    ip = f[at + 2:]
    if f[at:at + 2] != b"\x08\x00" or len(ip) < 20 or ip[0] >> 4 != 4 or ip[9] != 6 or struct.unpack_from("!H", ip, 6)[0] & 0x3FFF:
        return "not-tcp", None
    head, length = (ip[0] & 15) * 4, struct.unpack_from("!H", ip, 2)[0]
    tcp = ip[head:length]
    if checksum(ip[:head]) != 0xFFFF or checksum(ip[12:20] + struct.pack("!HH", 6, len(tcp)) + tcp) != 0xFFFF:
        return "bad-checksum", None
    sport, dport, seq = struct.unpack_from("!HHI", tcp)
    a, b = (".".join(map(str, ip[k:k + 4])) for k in (12, 16))
    return "used", ((a, sport), (b, dport), seq, tcp[13], tcp[(tcp[12] >> 4) * 4:])


counts = dict.fromkeys(["truncated", "not-tcp", "bad-checksum", "used"], 0)
used = []
for *_, f, size in sorted([*packets("left.pcap", 0), *packets("right.pcap", 1)], key=lambda p: p[:3]):
    fate, packet = dissect(f, size)
    counts[fate] += 1
    if packet:
        used.append(packet)

clients, start = {}, {}
for src, dst, seq, flags, _ in used:
    if flags & 2:
        if not flags & 16:
            clients.setdefault(frozenset((src, dst)), (src, dst))
        start.setdefault((src, dst), seq)

held, ends = {}, {}
for src, dst, seq, flags, data in used:
    if (src, dst) not in start:
        continue
    at = (seq - start[src, dst] - 1 + 2**31) % 2**32 - 2**31  # where the payload begins; near the beginning even when the numbers wrapped
    if flags & 2:
        at += 1
    own = held.setdefault((src, dst), {})
    for i, byte in enumerate(data, at):
        if i >= 0:
            own.setdefault(i, byte)
    if flags & 1:
        ends.setdefault((src, dst), set()).add(at + len(data))


def data_of(way):
    own, out = held.get(way, {}), bytearray()
    while len(out) in own:
        out.append(own[len(out)])
    return bytes(out), len(out) in ends.get(way, ())


streams = []
for client, server in clients.values():
    (sent, done), (got, over) = data_of((client, server)), data_of((server, client))
    streams.append({"client": "%s:%d" % client, "server": "%s:%d" % server, "sent": len(sent), "received": len(got), "complete": done and over})
    at = 0
    while m := re.compile(rb"FILE (\d+) ([^\n/]+)\n").match(got, at):
        at = m.end() + int(m[1])
        if at > len(got):
            break
        (OUT / "files" / m[2].decode()).write_bytes(got[m.end():at])
(OUT / "streams.json").write_text(json.dumps(streams, indent=1))
(OUT / "packets.json").write_text(json.dumps(counts))
PY
