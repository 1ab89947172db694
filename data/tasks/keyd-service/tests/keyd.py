"""keyd: a small key-value service. See MANUAL.md."""

import argparse
import configparser
import hashlib
import hmac
import re
import socketserver
import stat
import sys
import threading
from pathlib import Path

MIN_ITERATIONS = 5_000
NAME = re.compile(r"[a-z][a-z0-9-]*")


class ConfigError(Exception):
    pass


def load_users(path):
    if not path.is_file():
        raise ConfigError(f"users: no file {path}")
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise ConfigError(f"users: {path} may be read by others (mode 600 is needed)")
    users, salts = {}, set()
    for n, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip():
            continue
        m = re.fullmatch(r"([a-z][a-z0-9-]*):pbkdf2-sha256\$(\d+)\$([0-9a-f]{32})\$([0-9a-f]{64})", line)
        if not m:
            raise ConfigError(f"users, line {n}: not name:pbkdf2-sha256$iterations$salt$hash")
        if int(m[2]) < MIN_ITERATIONS:
            raise ConfigError(f"users, line {n}: fewer than {MIN_ITERATIONS} iterations")
        if m[1] in users or m[3] in salts:
            raise ConfigError(f"users, line {n}: name or salt used twice")
        users[m[1]] = int(m[2]), bytes.fromhex(m[3]), bytes.fromhex(m[4])
        salts.add(m[3])
    return users


def load_state(path):
    data = path.read_bytes()
    body, mark, digest = data.rpartition(b"#sha256=")
    if not mark or digest.strip().decode("ascii", "replace") != hashlib.sha256(body).hexdigest():
        raise ConfigError(f"{path}: the check sum is missing or wrong")
    values, last = {}, ""
    for line in body.decode("utf-8").splitlines():
        key, tab, value = line.partition("\t")
        if not tab or key <= last:
            raise ConfigError(f"{path}: lines must be key<tab>value, sorted by key: {line!r}")
        values[key] = value
        last = key
    return values


def words(text):
    return {w.strip() for w in text.split(",") if w.strip()}


class Keyd:
    def __init__(self, conf):
        self.lock = threading.Lock()
        cp = configparser.ConfigParser(interpolation=None)
        if not cp.read(conf):
            raise ConfigError(f"no file {conf}")
        base = Path(conf).parent
        try:
            host, _, port = cp["server"]["listen"].rpartition(":")
            self.address, self.name = (host, int(port)), cp["server"]["name"]
            self.users = load_users(base / cp["server"]["users"])
            self.max_value = int(cp["server"]["max_value"])
            state = base / cp["server"]["state"]
        except (KeyError, ValueError) as e:
            raise ConfigError(f"[server]: {e}") from None
        groups = {}
        for name, text in cp.items("groups") if cp.has_section("groups") else ():
            groups[name] = words(text)
            if unknown := groups[name] - set(self.users):
                raise ConfigError(f"[groups] {name}: unknown user {min(unknown)}")
        self.spaces = {}
        for section in cp.sections():
            if not section.startswith("space "):
                continue
            name, options = section[6:], cp[section]
            if not NAME.fullmatch(name):
                raise ConfigError(f"[{section}]: not a name")
            if unknown := set(options) - {"readers", "writers", "quota", "preload"}:
                raise ConfigError(f"[{section}]: unknown option {min(unknown)}")
            allowed = {}
            for role in ("readers", "writers"):
                allowed[role] = set()
                for w in words(options.get(role, "")):
                    if w.startswith("@") and w[1:] in groups:
                        allowed[role] |= groups[w[1:]]
                    elif w in self.users:
                        allowed[role].add(w)
                    else:
                        raise ConfigError(f"[{section}] {role}: unknown {w}")
            values = load_state(state / f"{name}.kv") if options.getboolean("preload", False) else {}
            self.spaces[name] = allowed["readers"], allowed["writers"], int(options.get("quota", 1000)), values

    def auth(self, user, secret):
        iterations, salt, want = self.users.get(user, (MIN_ITERATIONS, b"\0" * 16, b""))
        return hmac.compare_digest(hashlib.pbkdf2_hmac("sha256", secret.encode(), salt, iterations), want)

    def command(self, session, line):
        verb, *rest = line.split(" ", 3)
        if verb == "AUTH" and len(rest) == 2:
            session["user"] = rest[0] if self.auth(*rest) else None
            return "OK" if session["user"] else "ERR auth"
        if verb not in ("GET", "SET", "COUNT") or len(rest) != {"GET": 2, "SET": 3, "COUNT": 1}[verb]:
            return "ERR command"
        if rest[0] not in self.spaces:
            return "ERR space"
        readers, writers, quota, values = self.spaces[rest[0]]
        if session.get("user") not in (writers if verb == "SET" else readers):
            return "ERR denied"
        with self.lock:
            if verb == "COUNT":
                return f"VALUE {len(values)}"
            if verb == "GET":
                return f"VALUE {values[rest[1]]}" if rest[1] in values else "NONE"
            if len(rest[2].encode()) > self.max_value:
                return "ERR too-large"
            if rest[1] not in values and len(values) >= quota:
                return "ERR full"
            values[rest[1]] = rest[2]
            return "OK"


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(f"keyd {self.server.keyd.name} ready\n".encode())
        session = {}
        while line := self.rfile.readline(65536):
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            if text == "QUIT":
                break
            self.wfile.write((self.server.keyd.command(session, text) + "\n").encode())


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads = True, True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-c", "--config", default=Path(__file__).with_name("keyd.conf"))
    parser.add_argument("--check", action="store_true", help="read everything, start nothing")
    parser.add_argument("--port", type=int, help="instead of the configured one")
    args = parser.parse_args()
    try:
        keyd = Keyd(args.config)
    except (ConfigError, configparser.Error, OSError, ValueError) as why:
        sys.exit(f"keyd: {why}")
    if args.check:
        print("keyd: configuration is sound")
        return
    with Server((keyd.address[0], args.port or keyd.address[1]), Handler) as server:
        server.keyd = keyd
        server.serve_forever()


if __name__ == "__main__":
    main()
