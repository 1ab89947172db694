"""Talks to the running service as its users would, and starts it once more from the agent's configuration."""

import json
import os
import re
import socket
import subprocess
import time
from pathlib import Path

import pytest

EXPECTED = json.loads(Path("/tests/expected.json").read_text(encoding="utf-8"))
SECRETS, DATA = EXPECTED["secrets"], EXPECTED["data"]
USERS = list(SECRETS)
READ = {"metrics": {"ana-1", "ana-2", "root-op"}, "flags": set(USERS), "sites": {"ingest", "ana-1", "ana-2"}, "audit": {"root-op"}}
WRITE = {"metrics": {"ingest"}, "flags": {"root-op"}, "sites": {"ana-1", "ana-2"}, "audit": set(USERS) - {"root-op"}}


class Client:
    def __init__(self, user=None, port=7311, patience=0.3, dead=lambda: None):
        end = time.monotonic() + patience
        while True:
            try:
                self.sock = socket.create_connection(("127.0.0.1", port), timeout=10)
                break
            except OSError:
                if time.monotonic() > end or dead() is not None:
                    raise AssertionError(f"nothing answers on port {port}") from None
                time.sleep(0.05)
        self.file = self.sock.makefile("rw", encoding="utf-8", newline="\n")
        self.greeting = self.file.readline().strip()
        if user:
            assert self("AUTH", user, SECRETS[user]) == "OK", f"{user} is not let in"

    def __call__(self, *words):
        self.file.write(" ".join(words) + "\n")
        self.file.flush()
        return self.file.readline(100_000).rstrip("\n")

    def close(self):
        self.file.close()
        self.sock.close()


@pytest.fixture()
def connect():
    made = []

    def new(*args, **kwargs):
        made.append(Client(*args, **kwargs))
        return made[-1]

    yield new
    for client in made:
        client.close()


def test_answers_under_its_name(connect):
    assert connect().greeting == "keyd depot ready"


def test_users_get_in_by_their_secrets_only(connect):
    for user in USERS:
        client = connect(user)
        assert client("AUTH", user, SECRETS[user] + "x") == "ERR auth"
        assert client("AUTH", user, user) == "ERR auth"
    client = connect()
    assert client("AUTH", "admin", "admin") == "ERR auth"
    assert client("COUNT", "flags") == "ERR denied"


def test_who_may_read(connect):
    got = {space: {u for u in USERS if connect(u)("COUNT", space).startswith("VALUE ")} for space in READ}
    assert got == READ


def test_who_may_write(connect):
    """By a value that is too large: only those who may write are told so, and nothing is written."""
    got = {space: {u for u in USERS if connect(u)("SET", space, "probe", "x" * 5000) == "ERR too-large"} for space in WRITE}
    assert got == WRITE


def test_limits(connect):
    writer, reader = connect("ingest"), connect("root-op")
    assert writer("SET", "metrics", "fits", "x" * 256) == "OK"
    assert writer("SET", "metrics", "grows", "x" * 257) == "ERR too-large"
    answers = [writer("SET", "metrics", f"k{i}", "1") for i in range(52)]
    held = int(reader("COUNT", "metrics").split()[1])
    assert held == 50
    assert answers[-1] == "ERR full"
    root = connect("root-op")
    free = 20 - int(root("COUNT", "flags").split()[1])
    assert [root("SET", "flags", f"new{i}", "on") for i in range(free + 1)] == ["OK"] * free + ["ERR full"]
    assert connect("ana-1")("SET", "audit", "note", "seen") == "OK"


def test_preloaded_data(connect):
    client = connect("ana-2")
    for space, values in DATA.items():
        for key, value in values.items():
            assert client("GET", space, key) == ("NONE" if value is None else f"VALUE {value}"), (space, key)


def test_secrets_lie_nowhere_in_clear():
    users = Path("/app/keyd/users")
    rows = [re.fullmatch(r"([a-z0-9-]+):pbkdf2-sha256\$(\d+)\$([0-9a-f]{32})\$[0-9a-f]{64}", line) for line in users.read_text().split("\n") if line]
    assert all(rows)
    assert {m[1] for m in rows} == set(USERS)
    assert users.stat().st_mode & 0o077 == 0
    for folder, _, names in os.walk("/app"):
        for name in names:
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink() and path.stat().st_size < 1_000_000:
                data = path.read_bytes()
                assert not any(s.encode() in data for s in SECRETS.values()), f"a secret in {path}"


def test_starts_again_from_its_configuration(connect):
    server = subprocess.Popen(["python3", "/tests/keyd.py", "-c", "/app/keyd/keyd.conf", "--port", "7399"], env={"PATH": os.environ["PATH"]})
    try:
        client = connect("root-op", port=7399, patience=20, dead=server.poll)
        assert client.greeting == "keyd depot ready"
        assert client("COUNT", "flags") == f"VALUE {sum(v is not None for v in DATA['flags'].values())}"
        assert client("COUNT", "metrics") == "VALUE 0"
    finally:
        server.kill()
        server.wait()
    assert re.search(r"^listen\s*[=:]\s*127\.0\.0\.1:7311\s*$", Path("/app/keyd/keyd.conf").read_text(), re.M)
