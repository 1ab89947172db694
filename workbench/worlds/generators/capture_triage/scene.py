"""A data theft seen from the wire: an office network's captures beside its DNS, sign-in and upload logs.

One client fetches a key from a command server by regular beacons and uploads an encrypted document in parts; some other client's account is
guessed. Everything an analyst concludes follows from the frames and the logs (Tev Table 6, 9.5: packet triage, incident forensics).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from workbench.worlds import Tier, WorldError
from workbench.worlds.draw import Draw
from workbench.worlds.formats import pcap

SIZES: Mapping[str, tuple[int, int, int, int, int]] = {  # clients, plain sessions, beacons, parts, capture files
    "unit": (5, 22, 5, 4, 8),
    "small": (9, 80, 8, 7, 11),
    "full": (18, 300, 14, 14, 18),
}
MSS = 536  # bytes of payload a segment
STEP_US = 1500
RESOLVER = "10.0.0.53"
WORDS = "amber basil cedar delta ember fjord grove heron iris juniper kestrel larch maple nectar onyx poplar quartz raven".split()
NAMES = "ana bruno carla dario edith felix greta hugo ines jonas karla luis mara nils olga pavel rosa sven tilda vera".split()


@dataclass(frozen=True)
class Session:
    client: str
    port: int
    server: str
    start_us: int
    request: str
    response: str
    kept: bool  # whether the upload log kept its body


@dataclass(frozen=True)
class World:
    case: str
    sites: tuple[tuple[str, str, str], ...]  # domain, address, "yes" when allowed
    indicators: tuple[tuple[str, str, str], ...]  # domain, added_on, retired_on
    hosts: tuple[tuple[str, str, str], ...]  # address, MAC, owner
    dns: tuple[tuple[int, str, str, str], ...]  # second, client, query, answer
    auth: tuple[tuple[int, str, str, str], ...]  # second, source address, user, result
    sessions: tuple[Session, ...]
    files: int


def utc(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def cipher(data: bytes, key: bytes) -> bytes:
    return bytes(b ^ key[i % len(key)] for i, b in enumerate(data))


def reply(status: str, body: str) -> str:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}"


def _document(draw: Draw, lines: int) -> str:
    rows = [
        f"{draw.choice(NAMES)}.{draw.choice(WORDS)},{draw.hexadecimal(8)},{draw.number(100, 90000, 2):.2f}"
        for _ in range(lines)
    ]
    return "account,reference,balance\n" + "\n".join(rows) + "\n"


def make(draw: Draw, tier: Tier) -> World:
    clients, plain, beacons, parts, files = SIZES[tier]
    start = 1_767_225_600 + 86_400 * draw.integer(10, 300) + 3600 * draw.integer(6, 12)
    net = f"10.{draw.integer(1, 250)}.{draw.integer(1, 250)}"
    tails = draw.sample(range(10, 240), clients)
    hosts = tuple((f"{net}.{t}", f"02:{draw.hexadecimal(2)}:00:00:{t:02x}:01", name) for t, name in zip(tails, draw.sample(NAMES, clients), strict=True))  # fmt: skip
    shared = f"203.0.113.{draw.integer(1, 200)}"  # one address serves the command server and an innocent site
    sites, words = [], draw.sample(WORDS, 8)
    for at, word in enumerate(words):
        address = shared if at in (0, 2) else f"198.51.100.{10 * at + draw.integer(0, 9)}"
        sites.append((f"{word}-{draw.hexadecimal(6)}.example", address, "yes" if at in (3, 4, 5, 6) else "no"))
    command, drop, innocent, backup = sites[0], sites[1], sites[2], sites[3]
    day, long_ago = utc(start)[:10], utc(start - 86_400 * draw.integer(30, 200))[:10]
    indicators = [(command[0], long_ago, ""), (innocent[0], long_ago, utc(start - 86_400 * draw.integer(2, 9))[:10])]
    indicators += [(sites[7][0], utc(start + 86_400 * 3)[:10], "")]  # added after the day of the captures
    indicators += [(f"{draw.choice(WORDS)}-{draw.hexadecimal(6)}.example", long_ago, "") for _ in range(2 + clients)]
    span = 4 * 3600
    ports = iter(draw.sample(range(20000, 60000), plain + beacons + parts + 4))
    seconds = iter(draw.sample(range(60, span), plain + parts + 4))
    dns: list[tuple[int, str, str, str]] = []
    sessions: list[Session] = []

    def visit(
        client: str, site: tuple[str, str, str], second: int, request: str, response: str, kept: bool = False
    ) -> None:
        dns.append((start + second - draw.integer(2, 15), client, site[0], site[1]))
        sessions.append(Session(client, next(ports), site[1], (start + second) * 1_000_000 + draw.integer(0, 899_999), request, response, kept))  # fmt: skip

    victim, thief = hosts[0][0], hosts[1][0]
    for at in range(plain):
        client = draw.choice(hosts)[0]
        site = innocent if at == 0 else draw.choice(sites[2:])
        body = draw.hexadecimal(8) + " " + " ".join(draw.choice(WORDS) for _ in range(draw.integer(20, 160)))
        if site == backup and draw.chance(0.5):
            text = f"POST /backup/{draw.hexadecimal(6)} HTTP/1.1\r\nHost: {site[0]}\r\n\r\n{body}"
            visit(client, site, next(seconds), text, reply("201 Created", "stored"), draw.chance(0.5))
        else:
            text = f"GET /{draw.choice(WORDS)}/{draw.hexadecimal(6)} HTTP/1.1\r\nHost: {site[0]}\r\n\r\n"
            visit(client, site, next(seconds), text, reply(draw.choice(["200 OK", "200 OK", "404 Not Found"]), body))
    key = draw.hexadecimal(16)
    period, first = draw.integer(300, 840), draw.integer(30, 200)
    for at in range(beacons):  # no Host line: only the DNS log tells the domain
        task = f"task {draw.hexadecimal(6)} key={key}" if at == 1 else f"idle {draw.hexadecimal(6)}"
        visit(thief, command, first + at * period + draw.integer(0, 1), f"GET /b/{draw.hexadecimal(10)} HTTP/1.0\r\n\r\n", reply("200 OK", task))  # fmt: skip
    name = f"{draw.choice(WORDS)}-{draw.hexadecimal(4)}.csv"
    data = _document(draw.fork("document"), 12 * parts).encode()
    sealed = cipher(data, bytes.fromhex(key))
    size = -(-len(sealed) // parts)
    chunks = [base64.b64encode(sealed[i * size : (i + 1) * size]).decode() for i in range(parts)]
    failed = draw.integer(0, parts - 1)
    kept = set(draw.sample(range(parts), 2))
    order = draw.shuffled(range(parts))
    for part, second in zip([failed, *order], sorted([next(seconds) for _ in range(parts + 1)]), strict=True):
        first_try = part == failed and not any(f"X-Part: {part + 1}/" in s.request for s in sessions)
        body = draw.hexadecimal(len(chunks[part]) // 2) if first_try else chunks[part]
        text = f"POST /u/{name} HTTP/1.1\r\nHost: {drop[0]}\r\nX-Part: {part + 1}/{parts}\r\n\r\n{body}"
        status = reply("503 Busy", "later") if first_try else reply("201 Created", "ok")
        visit(thief, drop, second, text, status, not first_try and part in kept)
    auth = _sign_ins(draw.fork("auth"), start, hosts, victim)
    sessions.sort(key=lambda s: (s.start_us, s.client))
    world = World(f"IR-{draw.hexadecimal(8)}", tuple(sorted(sites)), tuple(draw.shuffled(indicators)), hosts, tuple(sorted(dns)), auth, tuple(sessions), files)  # fmt: skip
    if day != utc(start + span)[:10]:
        raise WorldError("the captures of a case lie within one day")
    return world


def _sign_ins(
    draw: Draw, start: int, hosts: tuple[tuple[str, str, str], ...], victim: str
) -> tuple[tuple[int, str, str, str], ...]:
    rows = []
    for address, _, owner in hosts:
        rows += [(start + 7 * draw.integer(0, 2000), address, owner, "success") for _ in range(4)]
        rows += [(start + 7 * draw.integer(0, 2000) + 1, address, owner, "failure") for _ in range(2)]
    at = start + 7 * draw.integer(200, 1500) + 3
    for _ in range(draw.integer(5, 8)):
        rows.append((at, victim, hosts[2][2], "failure"))
        at += draw.integer(10, 60)
    return tuple(sorted({*rows, (at, victim, hosts[2][2], "success")}))


def check(world: World) -> None:
    if len({(s.client, s.port) for s in world.sessions}) != len(world.sessions):
        raise WorldError("two sessions share a client's address and port")
    if len({h[0] for h in world.hosts}) != len(world.hosts) or not world.files:
        raise WorldError("hosts need different addresses")


def packets_of(session: Session, mac: str) -> list[pcap.Packet]:
    """The session's frames: handshake, request and response in segments, two closing frames."""
    up = down = session.port * 7919 % 2**31
    time = session.start_us
    out: list[pcap.Packet] = []

    def send(from_client: bool, flags: int, payload: bytes = b"") -> None:
        nonlocal up, down, time
        ends = (session.client, session.port, session.server, 80) if from_client else (session.server, 80, session.client, session.port)  # fmt: skip
        seq, ack = (up, down) if from_client else (down, up)
        own = mac or "02:00:00:00:00:01"
        macs = (own, "02:ff:00:00:00:01") if from_client else ("02:ff:00:00:00:01", own)
        out.append(pcap.Packet(time, *ends, payload, pcap.TCP, seq, ack, flags, *macs, len(out)))
        moved = len(payload) + (1 if flags & (pcap.SYN | pcap.FIN) else 0)
        up, down = (up + moved, down) if from_client else (up, down + moved)
        time += STEP_US

    send(True, pcap.SYN)
    send(False, pcap.SYN | pcap.ACK)
    for from_client, text in ((True, session.request), (False, session.response)):
        data = text.encode()
        for at in range(0, len(data), MSS):
            send(from_client, pcap.ACK | pcap.PSH, data[at : at + MSS])
    send(True, pcap.FIN | pcap.ACK)
    send(False, pcap.FIN | pcap.ACK)
    return out
