"""Writes ../environment/logs and expected.json: the intrusion is drawn first, the logs are written from it."""

import json
import random
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from urllib.parse import quote

R = random.Random(814)
HERE = Path(__file__).parent
OUT = HERE.parent / "environment" / "logs"
OUT.mkdir(parents=True, exist_ok=True)
T0 = datetime(2031, 8, 14, 0, 0, tzinfo=UTC)
USERS = [f"{a}{b}" for a in ("mira", "tomas", "ines", "olek", "suri", "dag") for b in ("", "2", "_adm")]
HOME = {u: f"198.51.100.{i + 10}" for i, u in enumerate(USERS)}
auth, access, egress = [], [], []


def sid():
    return f"{R.getrandbits(40):010x}"


def login(t, user, ok, addr, session="-"):
    local = t.astimezone(timezone(timedelta(hours=2)))
    auth.append((t, f"{local:%b %d %H:%M:%S} portal auth[{R.randrange(400, 9000)}]: {'accepted' if ok else 'failed'} password for {user} from {addr} session {session}"))


def request(t, session, method, path, status, real, spoof=(), size=None):
    off = R.choice([0, 0, 0, 2, -3])
    stamp = t.astimezone(timezone(timedelta(hours=off)))
    xff = ", ".join([*spoof, real])
    access.append((t, f'10.0.0.5 - {session} [{stamp:%d/%b/%Y:%H:%M:%S} {off:+03d}00] "{method} {path} HTTP/1.1" {status} {size or R.randrange(200, 9000)} "{xff}"'))


def out(t, proc, dst, n):
    egress.append((t, f"{int((t.timestamp() + 41) * 1000)}\t{proc}\t{dst}\t{n}"))


def at(h, m, s=0, ms=0):
    return T0 + timedelta(hours=h, minutes=m, seconds=s, milliseconds=ms)


PAGES = ["/", "/inbox", "/files/report.pdf", "/files/logo.png", "/search?q=a+b", "/upload?name=photo.jpg", "/settings"]
for u in USERS:  # ordinary days: logins, a few typing mistakes, browsing from home
    for _ in range(R.randrange(2, 5)):
        t = at(R.choice([0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11]), R.randrange(60), R.randrange(60))
        for k in range(R.choice([0, 0, 1, 2])):
            login(t - timedelta(seconds=20 * (k + 1)), u, False, HOME[u])
        s = sid()
        login(t, u, True, HOME[u], s)
        for _ in range(R.randrange(4, 12)):
            t += timedelta(seconds=R.randrange(2, 90))
            p = R.choice(PAGES)
            request(t, s, "POST" if p.startswith("/upload") else "GET", p, 201 if p.startswith("/upload") else R.choice([200, 200, 304, 404]), HOME[u])

# a scanner that never gets in
for i in range(160):
    login(at(4, 0, i), R.choice([*USERS, "root", "admin", "test"]), False, "203.0.113.77")
# a forgetful user: six failures, then in, from the usual address
for i in range(6):
    login(at(6, 30, i * 20), "olek", False, HOME["olek"])
s = sid()
login(at(6, 33), "olek", True, HOME["olek"], s)
request(at(6, 33, 4), s, "GET", "/inbox", 200, HOME["olek"])
request(at(6, 34, 4), s, "POST", "/upload?name=minutes%20of%20may.php", 403, HOME["olek"])
# a traveller: six failures, then in, from an address that a colleague uses too
for i in range(7):
    login(at(7, 10, i * 15), "dag2", False, "192.0.2.200")
s = sid()
login(at(7, 12, 30), "dag2", True, "192.0.2.200", s)
request(at(7, 12, 40), s, "GET", "/inbox", 200, HOME["dag_adm"], ["192.0.2.200"])
# failures spread over more than ten minutes: only four of them count, and the address is new
for i, m in enumerate([40, 42, 45, 51, 52, 53, 54]):
    login(at(5, m), "suri2", False, "192.0.2.9")
s = sid()
login(at(5, 55, 1), "suri2", True, "192.0.2.9", s)
request(at(5, 55, 30), s, "GET", "/inbox", 200, "203.0.113.150")

# the intrusion
V, REAL, SECOND, LIE = "ines_adm", "203.0.113.91", "203.0.113.118", HOME["ines_adm"]
IN = at(8, 17, 32)
fails = [IN - timedelta(seconds=x) for x in (700, 640, 600, 555, 430, 300, 201, 90, 31, 8)]
for t in fails:
    login(t, V, False, LIE)
S = sid()
login(IN, V, True, LIE, S)
request(IN + timedelta(seconds=3), S, "GET", "/settings", 200, REAL, [LIE])
request(IN + timedelta(seconds=40), S, "POST", "/upload?name=x.php", 403, REAL, [LIE])
request(IN + timedelta(seconds=71), S, "POST", "/upload?name=holiday%20%2d%20b%C3%BCro.php", 201, REAL, [LIE, "10.1.1.1"])
request(IN + timedelta(seconds=80), S, "GET", "/files/holiday%20-%20buero.php", 404, REAL, [LIE])
FILE = "holiday - büro.php"
calls = []
for i, (m, who, sess, status) in enumerate([(20, REAL, S, 200), (24, REAL, S, 200), (31, SECOND, "-", 500), (32, SECOND, "-", 200), (58, SECOND, "-", 200), (77, REAL, "-", 200)]):
    t = at(8, 0) + timedelta(minutes=m, seconds=7 * i)
    path = "/files/" + [quote(FILE), "holiday%20-%20b%c3%bcro.php", quote(FILE)][i % 3] + ["?c=id", "?c=tar+%2Fsrv", "", "?c=ls"][i % 4]
    request(t, sess, "GET" if i % 2 else "POST", path, status, who, [LIE] if i % 2 else [HOME["mira"], "127.0.0.1"])
    if status == 200:
        calls.append(t)
    else:
        out(t + timedelta(seconds=1), "php-fpm", "203.0.113.240", 7777)  # not after a counting call
EXF = {}
USUAL = ["198.51.100.250", "198.51.100.251"]
for i in range(140):  # ordinary connections, some of them right after a call
    t = at(R.randrange(0, 12), R.randrange(60), R.randrange(60), R.randrange(1000))
    out(t, R.choice(["php-fpm", "chronyd", "backupd"]), R.choice(USUAL), R.randrange(100, 90000))
for d in USUAL:
    out(at(1, 1), "php-fpm", d, 512)
for i, t in enumerate(calls):
    for dst, ms, n in (("203.0.113.240", 900, 40960 + i), ("203.0.113.9", 5000, 7000 + 13 * i), ("203.0.113.9", 5001, 99999), ("203.0.113.240", -20, 31337)):
        out(t + timedelta(milliseconds=ms), "php-fpm", dst, n)
        if 0 <= ms <= 5000:
            EXF[dst] = EXF.get(dst, 0) + n
    out(t + timedelta(milliseconds=700), "php-fpm", USUAL[0], 2222)
    out(t + timedelta(milliseconds=800), "curl", "203.0.113.240", 5555)
# a destination that php-fpm used once, at night, for an update: it is not the intruder's
out(at(2, 2), "php-fpm", "203.0.113.30", 90)
out(calls[1] + timedelta(seconds=2), "php-fpm", "203.0.113.30", 123456)
# the -20 ms line before the first call would make 203.0.113.240 a known destination: it starts 20 ms too early, so drop it there
first = int((calls[0].timestamp() + 41) * 1000) - 20
egress = [e for e in egress if not e[1].startswith(f"{first}\tphp-fpm\t203.0.113.240\t31337")]

for name, rows in (("auth.log", auth), ("access.log", access), ("egress.log", egress)):
    (OUT / name).write_text("".join(line + "\n" for _, line in sorted(rows)), encoding="utf-8")


def z(t):
    return t.strftime("%Y-%m-%dT%H:%M:%SZ")


expected = {
    "account": V, "login": z(IN), "session": S, "failed_before": sum(t >= IN - timedelta(minutes=10) for t in fails),
    "addresses": sorted([REAL, SECOND]), "file": FILE, "calls": [z(t) for t in calls], "exfiltrated": EXF,
}  # fmt: skip
(HERE / "expected.json").write_text(json.dumps(expected, ensure_ascii=False, indent=1) + "\n")
