"""What only the docker back end does: its egress, its two ways to kill, leftovers, builds, and the script for CI."""

from __future__ import annotations

import contextlib
import http.server
import io
import os
import signal
import subprocess
import sys
import tarfile
import threading
import time
import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.sandboxes import BuildError, Mount, Network, SandboxError, SandboxOverrun, get_backend
from workbench.sandboxes.docker_egress import allowed
from workbench.sandboxes.docker_files import read_single, unpack
from workbench.sandboxes.docker_images import bases, read_context
from workbench.sandboxes.docker_local import LocalFiles
from workbench.sandboxes.docker_owner import dead, owner
from workbench.sandboxes.docker_processes import Killer, Process, of_command, parse_stat
from workbench.sandboxes.docker_snapshots import is_system
from workbench.sandboxes.docker_streams import Capture

from .conformance import eventually, grows, make_environment, stubborn

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "docker_engine.sh"


# ------------------------------------------------------------------------ without an engine
@given(chunks=st.lists(st.binary(max_size=40), max_size=20), limit=st.integers(0, 64))
@settings(max_examples=200, deadline=None)
def test_capture_keeps_head_and_tail_exactly(chunks, limit):
    capture, data = Capture(limit), b"".join(chunks)
    for chunk in chunks:
        capture.feed(chunk)
    head = data[: limit // 2]
    if len(data) <= limit:
        assert (capture.dropped, capture.text()) == (0, data.decode("utf-8", "replace"))
    else:
        tail = data[-(limit - limit // 2) :] if limit else b""
        assert capture.dropped == len(data) - limit
        gap = f"\n[... {capture.dropped} bytes dropped ...]\n"
        assert capture.text() == head.decode("utf-8", "replace") + gap + tail.decode("utf-8", "replace")


@pytest.mark.parametrize(
    ("host", "hosts", "expected"),
    [
        ("example.com", ("example.com",), True),
        ("EXAMPLE.com.", ("example.com",), True),
        ("a.example.com", ("example.com",), False),
        ("a.b.example.com", ("*.example.com",), True),
        ("example.com", ("*.example.com",), False),
        ("evilexample.com", ("*.example.com", "example.com"), False),
        ("example.com.evil.net", ("example.com", "*.example.com"), False),
        ("", ("*.example.com",), False),
    ],
)
def test_allowed_hosts(host, hosts, expected):
    assert allowed(host, hosts) is expected


def hostile_tar(*members: tuple[str, bytes, bytes, str]) -> list[bytes]:
    """name, type, data, link → chunks of an archive that tarfile would not write by itself."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, kind, data, link in members:
            member = tarfile.TarInfo(name)
            member.type, member.size, member.linkname = kind, len(data), link
            tar.addfile(member, io.BytesIO(data))
    return [buffer.getvalue()]


@pytest.mark.parametrize(
    "member",
    [
        ("top/../../outside", tarfile.REGTYPE, b"x", ""),
        ("/outside", tarfile.REGTYPE, b"x", ""),
        ("outside", tarfile.REGTYPE, b"x", ""),
        ("top/link", tarfile.SYMTYPE, b"", "/etc/passwd"),
        ("top/hard", tarfile.LNKTYPE, b"", "../../secret"),
        ("top/device", tarfile.BLKTYPE, b"", ""),
        ("top/pipe", tarfile.FIFOTYPE, b"", ""),
    ],
    ids=lambda m: m[0],
)
def test_unpacking_a_hostile_archive_writes_nothing_else(tmp_path, member):
    (tmp_path / "secret").write_text("s")
    chunks = hostile_tar(("top", tarfile.DIRTYPE, b"", ""), member, ("top/good", tarfile.REGTYPE, b"ok", ""))
    unpack(chunks, tmp_path / "in" / "target", max_bytes=100, what="x")
    found = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*"))
    assert found == ["in", "in/target", "in/target/good", "secret"]


def test_a_link_planted_by_an_earlier_member_is_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    chunks = hostile_tar(
        ("top", tarfile.DIRTYPE, b"", ""),
        ("top/door", tarfile.SYMTYPE, b"", str(outside)),
        ("top/door/file", tarfile.REGTYPE, b"x", ""),
    )
    unpack(chunks, tmp_path / "target", max_bytes=100, what="x")
    assert list(outside.iterdir()) == []
    with pytest.raises(ValueError, match="link"):
        unpack(hostile_tar(("l", tarfile.SYMTYPE, b"", "/etc")), tmp_path / "t", max_bytes=9, what="l")
    with pytest.raises(ValueError, match="regular"):
        read_single(hostile_tar(("l", tarfile.SYMTYPE, b"", "/etc/passwd")), max_bytes=9, what="l")


def test_stat_lines_with_hostile_names():
    line = "77 (a) S 1) R 12 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 0 0"
    assert parse_stat(line) == Process(77, 12, 4242, "R")
    assert parse_stat("OCI runtime exec failed: no such file") is None


def test_a_commands_tree_is_told_from_an_older_services():
    init, idle, service = Process(1, 0, 10, "S"), Process(7, 1, 11, "S"), Process(20, 1, 50, "S")
    worker = Process(90, 20, 210, "S")  # forked by the service while the command ran
    command, child, orphan = Process(80, 0, 200, "S"), Process(81, 80, 201, "S"), Process(82, 1, 202, "S")
    processes = [init, idle, service, worker, command, child, orphan]
    assert sorted(of_command(processes, 1, 200)) == [80, 81, 82]


def test_owner_labels():
    assert not dead(owner())
    pid, start, where, host = owner().split("|")
    assert dead(f"{pid}|{int(start) + 1}|{where}|{host}"), "the number now belongs to another process"
    assert dead(f"{2**22 + 7}|1|{where}|{host}")
    assert not dead(f"{pid}|1|another-machine|another-host"), "another machine's things are not ours to remove"
    assert not dead("")


def test_system_paths_do_not_catch_their_neighbours():
    assert is_system("/usr/bin/x")
    assert is_system("/tests")
    assert not is_system("/usrlocal")
    assert not is_system("/app/usr/x")


def test_contexts_are_keyed_by_content(tmp_path):
    first = read_context(make_environment(tmp_path / "a"))
    second = make_environment(tmp_path / "b")
    os.utime(second / "data.txt", (1, 1))
    assert read_context(second).key == first.key
    (second / "data.txt").chmod(0o755)
    assert read_context(second).key != first.key
    (second / ".dockerignore").write_text("# comment\nignored\n")
    before = read_context(second).key
    (second / "ignored").write_text("x")
    assert read_context(second).key == before


def test_bases_know_stages_arguments_and_platforms(tmp_path):
    text = "ARG V=3.13\nFROM --platform=linux/amd64 python:${V}-slim AS one\nFROM one AS two\nFROM scratch\nCOPY --from=two / /\n"
    assert bases(read_context(make_environment(tmp_path, text))) == [("python:3.13-slim", 2)]


def test_no_engine_is_infrastructure_and_says_what_to_do():
    from workbench.sandboxes.docker import Docker

    with pytest.raises(SandboxError, match="DOCKER_HOST"):
        Docker("unix:///no/such/socket")


def test_the_script_says_how_it_is_used_and_why_it_cannot():
    assert subprocess.run(["sh", SCRIPT], capture_output=True, check=False).returncode == 2
    if os.getuid() == 0 and not Path("/var/run/docker.sock").exists():
        without = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "WORKBENCH_HOME": "/nonexistent"}
        result = subprocess.run(
            ["sh"], input=SCRIPT.read_bytes().replace(b"command=${1:-}", b"command=start"), env=without, user=65534,
            group=65534, extra_groups=[], capture_output=True, check=False, cwd="/",
        )  # fmt: skip
        assert result.returncode == 3
        assert b"root" in result.stderr


# --------------------------------------------------------------------------- with an engine
FETCH = """
import socket, sys, urllib.error, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
except OSError as error:
    print("failed", error)
"""


@pytest.fixture
def web():
    """A server of this machine's loopback."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = f"page {self.path} of {self.headers['Host']}".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()


@pytest.mark.docker
class TestDockerOnly:
    spec = "docker"

    def test_allowlist_lets_through_what_is_listed_and_nothing_else(self, image, web):
        from workbench.sandboxes.docker import Docker

        backend = Docker(private_addresses=True)  # the test's server is on this machine
        box = backend.start(image, network=Network("allowlist", ("localhost",)))
        try:
            via = {"no_proxy": "", "NO_PROXY": ""}
            port = web.rpartition(":")[2]
            assert (
                box.exec(["python3", "-c", FETCH, web + "/a?b=c"], env=via).stdout
                == f"page /a?b=c of localhost:{port}\n"
            )
            refused = box.exec(["python3", "-c", FETCH, f"http://127.0.0.1:{port}/"], env=via).stdout
            assert refused.startswith("403 ")
            assert "allowed hosts" in refused
            tunnel = (
                "import socket; s = socket.create_connection(('127.0.0.1', 3128)); "
                f"s.sendall(b'CONNECT localhost:{port} HTTP/1.1\\r\\n\\r\\n'); print(s.recv(99).split()[1]); "
                "s.sendall(b'GET /t HTTP/1.0\\r\\n\\r\\n'); print(s.makefile('rb').read()[-20:])"
            )
            assert "b'200'" in box.exec(["python3", "-c", tunnel]).stdout
            assert "page /t" in box.exec(["python3", "-c", tunnel]).stdout
            direct = f"import socket; socket.create_connection(('127.0.0.1', {port}), timeout=2)"
            assert not box.exec(["python3", "-c", direct]).ok, "no way around the proxy"
            names = "open('/proc/net/route').read().count(chr(10)), len(open('/proc/net/dev').readlines())"
            assert box.exec(["python3", "-c", f"print(*({names}))"]).stdout.split()[0] == "1", "no route but loopback's"
        finally:
            box.stop()

    def test_allowlist_does_not_lead_to_private_addresses(self, start, web):
        box = start(network=Network("allowlist", ("localhost", "127.0.0.1")))
        said = box.exec(["python3", "-c", FETCH, web], env={"no_proxy": "", "NO_PROXY": ""}).stdout
        assert said.startswith("403 ")
        assert "private address" in said

    def test_killing_through_a_helper_container(self, box):
        """As on engines of another machine, or without root: processes are killed from the pristine image."""
        box._killer.local = False
        box.exec(stubborn("/app/ticks"))
        box.exec("nohup sleep 99 >/dev/null 2>&1 &")
        assert box.exec("cp /bin/true /bin/sleep; exec 3</dev/zero; cat <&3 >/dev/null", timeout=1).killed_by == "time"
        assert grows(box, "/app/ticks"), "older processes live on"
        assert box.kill_all() >= 2
        assert not grows(box, "/app/ticks")
        assert box.kill_all() == 0

    @pytest.mark.parametrize("local", [True, False], ids=["own-machine", "engine"])
    def test_files_travel_alike_past_the_engine_and_over_it(self, backend, box, start, tmp_path, local):
        if local and not box._killer.local:
            pytest.skip("needs root on the engine's machine")
        tree = tmp_path / "tree"
        (tree / "new/deep").mkdir(parents=True)
        (tree / "new/deep/run").write_text("#!/bin/sh\necho ran\n")
        (tree / "new/deep/run").chmod(0o750)
        (tree / "new/link").symlink_to("deep/run")
        box.exec(
            "mkdir -p /srv/was/folder; ln -s /srv/was /srv/door; echo old >/srv/file; ln -s /etc/passwd /srv/target"
        )
        if not local:
            box._files = LocalFiles(0, lambda pid: False)
        box.put(tree, "/srv/a/b")
        box.put(tree / "new/deep/run", "/srv/was/folder/x")
        box.write("/srv/door/through", b"kept inside")
        box.write("/srv/target", b"no passwd")
        assert box.exec("/srv/a/b/new/link; stat -c '%a %u %n' /srv/a/b/new/deep/run /srv/was/folder/x; readlink /srv/a/b/new/link").stdout == (
            "ran\n750 0 /srv/a/b/new/deep/run\n750 0 /srv/was/folder/x\ndeep/run\n"
        )  # fmt: skip
        assert box.read("/srv/door/through") == box.read("/srv/was/through") == b"kept inside"
        assert box.read("/srv/target") == b"no passwd"
        assert box.exec("grep -c no.passwd /etc/passwd").stdout == "0\n"
        for path, error in [("/srv/none", FileNotFoundError), ("/srv/none/none", FileNotFoundError), ("/srv", ValueError),
                            ("/dev/null", ValueError), ("/srv/a/b/new/link", ValueError), ("/", ValueError)]:  # fmt: skip
            with pytest.raises(error):
                box.read(path)
        box.exec("mkfifo /srv/pipe; head -c 2000 /dev/zero >/srv/big")
        with pytest.raises(ValueError, match="regular"):
            box.read("/srv/pipe")
        with pytest.raises(ValueError, match="2,000"):
            box.read("/srv/big", max_bytes=1999)

    @pytest.mark.parametrize("local", [True, False], ids=["own-machine", "engine"])
    def test_a_sealed_snapshot_is_restored_alike(self, backend, box, monkeypatch, local):
        if local and not box._killer.local:
            pytest.skip("needs root on the engine's machine")
        box.exec(
            "rm gone; rm -r kept; mkdir kept; echo y >kept/new; ln kept/new kept/twin; ln -s /nowhere kept/link; mkfifo kept/pipe;"
            "mkdir -p /srv/n/m; echo f >/srv/n/m/f; chmod 4711 /srv/n/m/f; chown 7:8 /srv/n/m/f; touch -d @1000000000 /srv/n/m/f;"
            "echo bad >/usr/bad; echo '1.2.3.4 localhost' >/etc/hosts; python3 -c 'import os\nfor _ in range(150): os.mkdir(\"d\"); os.chdir(\"d\")'"
        )
        saved = box.snapshot(seal=True)
        if not local:
            saved.handle.upper = None
            monkeypatch.setattr(Killer, "files", lambda self: LocalFiles(0, lambda pid: False))
        grader = backend.start(saved, trusted_system=True)
        try:
            found = grader.exec(
                "ls /app/kept; cat kept/new; readlink kept/link; stat -c '%h' kept/twin; stat -c '%a %u %g %Y' /srv/n/m/f;"
                "ls gone /usr/bad 2>/dev/null; grep -c 1.2.3.4 /etc/hosts; find d -type d | wc -l"
            )
        finally:
            grader.stop()
        assert found.stdout.split() == "link new twin y /nowhere 2 711 7 8 1000000000 0 150".split()

    def test_no_network_is_a_loopback_of_its_own(self, backend, box, start):
        names = "sed 1,2d /proc/net/dev | cut -d: -f1; getent hosts localhost >/dev/null && readlink /proc/self/ns/net"
        one, other = box.exec(names).stdout.split(), start().exec(names).stdout.split()
        assert one[0] == other[0] == "lo"
        assert len(one) == len(other) == 2
        assert len({one[1], other[1], str(Path("/proc/self/ns/net").readlink())}) == 3

    def test_a_fork_bomb_that_outruns_a_loop_is_frozen_first(self, start):
        box = start()
        box.exec("b() { b | b & }; b; sleep 60", timeout=1)
        assert box.kill_all() >= 0
        assert box.exec("ls -d /proc/[0-9]* | wc -l").stdout.split()[0].isdigit()

    def test_kill_9_of_the_host_ends_the_container_and_clean_removes_it(self, backend, box, tmp_path):
        shared = tmp_path / "shared"
        shared.mkdir()
        code = (
            "import sys, time; from pathlib import Path; from workbench.sandboxes import *\n"
            "b = get_backend('docker'); i = b.build(Path(sys.argv[1]))\n"
            "s = b.start(i, mounts=[Mount(Path(sys.argv[2]), '/shared', writable=True)], label='run-of-the-dead')\n"
            "s.exec('nohup sh -c \"while :; do echo x >>/shared/ticks; sleep 0.05; done\" >/dev/null 2>&1 &')\n"
            "print(s.container, flush=True); time.sleep(600)\n"
        )
        folder = make_environment(tmp_path / "environment")
        host = subprocess.Popen(
            [sys.executable, "-c", code, folder, shared], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        try:
            container = host.stdout.readline().strip()
            assert eventually((shared / "ticks").exists)
            assert not [line for line in backend.clean() if "run-of-the-dead" in line], "its host lives"
        finally:
            os.kill(host.pid, signal.SIGKILL)
            host.wait()
            host.stdout.close()
        api = backend._client.api
        assert eventually(lambda: not api.inspect_container(container)["State"]["Running"]), "nothing runs on"
        assert any("run-of-the-dead" in line for line in backend.clean())
        assert container not in {c["Id"] for c in api.containers(all=True)}
        assert box.exec("echo alive").stdout == "alive\n"

    def test_stop_leaves_no_container_network_or_volume(self, backend, tmp_path):
        api = backend._client.api

        def present():
            volumes = {v["Name"] for v in api.volumes()["Volumes"] or []}
            return {c["Id"] for c in api.containers(all=True)}, {n["Id"] for n in api.networks()}, volumes

        image = backend.build(make_environment(tmp_path, "FROM python:3.13-slim\nVOLUME /data\nWORKDIR /app\n"))
        before = present()
        box = backend.start(image, network=Network("allowlist", ("example.com",)), verifier=True)
        saved = box.snapshot()
        backend.start(saved, trusted_system=True).stop()
        backend.start(saved).stop()
        box.stop()
        assert present() == before

    def test_snapshot_images_go_with_the_snapshot(self, backend, box):
        tags = lambda: {t for i in backend._client.images.list() for t in i.tags if t.startswith("workbench/snapshot")}  # noqa: E731
        before = tags()
        saved = box.snapshot()
        assert len(tags() - before) == 1
        del saved
        assert tags() <= before

    def test_both_ways_to_find_changes_agree(self, box, monkeypatch):
        from workbench.sandboxes import docker_changes

        box.exec(
            "rm gone; echo x >> data.txt; rm -r kept; mkdir kept; echo y > kept/new; mkdir -p /srv/n/m; touch /srv/n/m/f;"
            "ln -s /usr /srv/link; rm -r /usr/share/man /usr/share/info; ln -s /tmp /usr/share/info; chmod 700 /opt"
        )
        api, fast = box._api, docker_changes.changes(box._client, box.container)
        slow = {c["Path"]: c["Kind"] for c in api.diff(box.container)}
        monkeypatch.setattr(docker_changes.os, "geteuid", lambda: 1000)
        assert docker_changes.changes(box._client, box.container) == slow
        # a folder made anew is MODIFIED or DELETED to the engine, by its version; nothing else may differ
        assert set(fast) ^ set(slow) <= {"/app/kept/file"}
        assert {p for p in set(fast) & set(slow) if fast[p] != slow[p]} <= {
            "/app/kept",
            "/usr/share/info",
            "/app/kept/new",
        }

    @pytest.mark.parametrize("ruin", ["rm -rf /opt /etc /root /logs", "rm -rf --no-preserve-root / 2>/dev/null; true"])
    def test_deleted_folders_leave_the_graders_system_and_mounts(self, backend, box, ruin):
        box.exec(ruin)
        grader = backend.start(box.snapshot(seal=True), trusted_system=True, verifier=True)
        assert grader.exec(["/opt/verifier/bin/python", "-I", "-c", "import pytest"], cwd="/").ok
        assert grader.read("/etc/passwd").startswith(b"root:")
        assert not grader.exec(["ls", "/etc/hostname.kept", "/root/.profile.kept"], cwd="/").ok
        grader.stop()

    def test_a_path_over_a_file_is_not_there(self, box, tmp_path):
        box.exec("rm -rf /logs; echo > /logs")
        with pytest.raises(FileNotFoundError):
            box.get("/logs/artifacts", tmp_path / "out")

    def test_the_verifiers_python_looks_into_the_working_folder_last(self, start):
        grader = start(verifier=True)
        grader.write("/app/json.py", b"print('stolen')")
        grader.write("/app/pytest.py", b"print('stolen')")
        for argv in (["-c", "import json; print(json.__file__)"], ["-m", "pytest", "--version"]):
            assert "stolen" not in grader.exec(["/opt/verifier/bin/python", *argv], cwd="/app").output

    @pytest.mark.parametrize(("depth", "name", "carried"), [(1400, "d", True), (1200, "deeper", False)])
    def test_a_tree_deeper_than_the_stack_or_a_path_is_its_makers_doing(self, backend, box, depth, name, carried):
        dig = f"import os\nos.chdir('/app')\nfor _ in range({depth}): os.mkdir('{name}'); os.chdir('{name}')"
        assert box.exec(["python3", "-c", dig]).ok
        expected = contextlib.nullcontext() if carried else pytest.raises(SandboxOverrun, match="nested too deep")
        with expected:
            backend.start(box.snapshot(seal=True), trusted_system=True, verifier=True).stop()

    def test_a_sealed_snapshot_is_gone_after_stop(self, backend, box):
        saved = box.snapshot(seal=True)
        box.stop()
        for trusted in (False, True):
            with pytest.raises(SandboxError):
                backend.start(saved, trusted_system=trusted).stop()

    def test_a_build_that_takes_too_long_is_stopped(self, backend, tmp_path):
        begun, mark = time.monotonic(), uuid.uuid4().hex
        with pytest.raises(BuildError, match="build timeout") as caught:
            backend.build(make_environment(tmp_path, f"FROM python:3.13-slim\nRUN sleep 61 # {mark}\n"), timeout=1.5)
        assert caught.value.line == 2
        assert time.monotonic() - begun < 40
        commands = lambda: [c["Command"] for c in backend._client.api.containers(all=True, trunc=False)]  # noqa: E731
        assert eventually(lambda: not any(mark in c for c in commands())), "the engine stopped the step too"

    def test_capabilities_are_dropped_and_privileges_cannot_be_gained(self, box):
        status = box.exec("grep -E 'CapBnd|NoNewPrivs' /proc/self/status").stdout.split()
        bounding = int(status[1], 16)
        for name, number in (("SYS_ADMIN", 21), ("NET_ADMIN", 12), ("NET_RAW", 13), ("SYS_PTRACE", 19), ("MKNOD", 27)):
            assert not bounding >> number & 1, name
        assert status[3] == "1"

    def test_a_public_network_is_not_the_hosts(self, backend, start, web):
        if "public" not in backend.capabilities().networks:
            pytest.skip("this engine runs without its bridge")
        box = start(network=Network("public"))
        assert "failed" in box.exec(["python3", "-c", FETCH, web]).stdout
        assert "eth0" in box.exec("cat /proc/net/dev").stdout

    def test_the_engine_script_finds_the_running_engine(self):
        result = subprocess.run(["sh", SCRIPT, "status"], capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr

    def test_mount_of_one_source_at_two_places(self, start, tmp_path):
        (tmp_path / "f").write_text("x")
        box = start(mounts=[Mount(tmp_path / "f", "/one"), Mount(tmp_path / "f", "/two")])
        assert box.exec("cat /one /two").stdout == "xx"


def test_get_backend_opens_docker_by_name():
    with contextlib.suppress(SandboxError):  # without an engine it says so, tested above
        assert get_backend("docker").name == "docker"
