"""What only the bubblewrap back end promises: its walls, its layers, and work without root."""

from __future__ import annotations

import gc
import http.server
import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from workbench.sandboxes import BuildError, Limits, Mount, Network, SandboxError, base_layer, egress
from workbench.sandboxes.bubblewrap import Bubblewrap
from workbench.sandboxes.warden import calls

ROOT = Path(__file__).parents[2]
ORDINARY = 54321


@pytest.fixture(scope="module")
def backend():
    with Bubblewrap() as made:
        yield made


@pytest.fixture(scope="module")
def image(backend, tmp_path_factory):
    folder = tmp_path_factory.mktemp("environment")
    (folder / "Dockerfile").write_text("FROM python:3.13-slim\nWORKDIR /app\n")
    return backend.build(folder)


@pytest.fixture
def start(backend, image):
    boxes = []

    def begin(source=None, **options):
        boxes.append(backend.start(source or image, **options))
        return boxes[-1]

    begin.boxes = boxes
    yield begin
    for box in reversed(boxes):
        box.stop()


@pytest.fixture
def box(start):
    return start()


def python(box, code: str, **options):
    return box.exec(["python3", "-c", code], **options)


# ------------------------------------------------------------------------------ walls


CALLS = ("mount", "unshare", "setns", "keyctl", "add_key", "bpf", "perf_event_open", "userfaultfd", "io_uring_setup")


@pytest.mark.parametrize("name", CALLS)
def test_system_calls_that_reach_into_the_kernel_are_refused(box, name):
    number = calls.REFUSED[name][list(calls.ARCHITECTURES).index(os.uname().machine)]
    if number is None:
        pytest.skip(f"{name} does not exist on this architecture")
    code = f"import ctypes; c = ctypes.CDLL(None, use_errno=True); c.syscall({number}, 0, 0, 0, 0, 0); print(ctypes.get_errno())"
    assert python(box, code).stdout == "1\n", "EPERM"


def test_new_namespaces_and_terminal_input_are_refused(box):
    assert "Operation not permitted" in box.exec("unshare -U true").stderr
    clone = "import ctypes; print(ctypes.CDLL(None).syscall(56, 0x10000000 | 17, 0, 0, 0, 0))"
    assert os.uname().machine != "x86_64" or python(box, clone).stdout == "-1\n"
    inject = "import fcntl\ntry: fcntl.ioctl(0, 0x5412, b'x')\nexcept OSError as error: print(error.errno)"
    assert python(box, inject).stdout == "1\n"


def test_ordinary_programs_work_under_the_filter(box):
    assert (
        python(box, "import threading; t = threading.Thread(target=print, args=('ran',)); t.start()").stdout == "ran\n"
    )
    assert python(box, "import multiprocessing as m; print(m.Pool(2).map(abs, [-1, -2]))").stdout == "[1, 2]\n"


def test_privileges_are_few_and_cannot_grow(box):
    status = box.exec("cat /proc/self/status").stdout
    assert "NoNewPrivs:\t1" in status
    assert "Seccomp:\t2" in status
    assert "CapBnd:\t00000000000004fb" in status, "chown, dac_override, fowner, fsetid, kill, setgid, setuid, bind"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: an ordinary user's sandbox is that user")
def test_root_inside_is_nobody_outside(box, tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "secret").write_text("root's")
    (tmp_path / "secret").chmod(0o600)
    assert box.exec("cat /proc/self/uid_map").stdout.split()[1] not in ("0", "1000")
    box.exec("touch /app/mine; chmod 6755 /app/mine")
    assert (box.folder / "root/app/mine").stat().st_uid >= 0x10000


def test_nothing_of_the_hosts_own_is_visible(box):
    for path in (sys.prefix, "/etc/machine-id", str(ROOT / "pyproject.toml"), str(Path("/proc/self/exe").resolve())):
        if not path.startswith("/usr/"):
            assert not box.exec(["test", "-e", path]).ok, path
    assert box.exec("ls -A /root").stdout == ""
    assert set(box.exec("ls /usr/local/bin").stdout.split()) <= {
        "python",
        "python3",
        "pip",
        "pip3",
        f"python3.{sys.version_info[1]}",
    }
    names = [line.split("=")[0] for line in box.exec(["env"]).stdout.splitlines()]
    assert sorted(names) == ["HOME", "LANG", "PATH"]


def test_signals_to_everybody_reach_neither_the_sandbox_nor_the_host(box):
    box.exec("kill -9 1; kill -STOP 1; kill -9 -1")
    assert box.exec("echo alive").stdout == "alive\n"


def test_proc_shows_the_sandbox_only(box):
    assert box.exec("ls -d /proc/[0-9]* | wc -l").stdout.strip() in ("3", "4")
    assert not box.exec("ls /proc/1/root/work /proc/1/cwd/work 2>/dev/null").stdout


def test_warden_that_is_killed_ends_its_sandbox_alone(start, image, backend):
    first, second = start(), start()
    first.exec("sleep 100 &")
    first.slot.process.kill()
    with pytest.raises(SandboxError, match="warden"):
        first.exec("true")
    assert second.exec("echo alive").stdout == "alive\n"
    first.stop()
    assert start().exec("echo new").stdout == "new\n"


# ----------------------------------------------------------------------------- streams


def test_a_service_may_go_on_printing_after_its_command_returned(box):
    box.exec("(while :; do echo a line of output that nobody reads; echo x >> /app/alive; sleep 0.01; done) &")
    time.sleep(0.3)
    before = len(box.read("/app/alive"))
    time.sleep(0.3)
    assert len(box.read("/app/alive")) > before


def test_long_commands_and_environments_pass(box):
    line = "echo " + "x" * 100_000
    assert len(box.exec(line).stdout) > 60_000
    assert box.exec("echo ${#LONG}", env={"LONG": "y" * 120_000}).stdout == "120000\n"


def test_a_command_with_a_nul_byte_is_refused(box):
    with pytest.raises(ValueError, match="NUL"):
        box.exec(["echo", "a\0b"])


def test_background_disk_filler_is_stopped_between_commands(start):
    box = start(limits=Limits(disk_mb=32))
    box.exec("(i=0; while :; do i=$((i+1)); head -c 1000000 /dev/zero > /app/f$i; sleep 0.01; done) & sleep 0.1")
    sizes = [0]
    while len(sizes) < 20 and (len(sizes) < 3 or sizes[-1] != sizes[-2]):
        time.sleep(1.0)
        sizes.append(int(box.exec("du -sm /app").stdout.split()[0]))
    assert len(sizes) < 20, f"it writes on: {sizes}"


# ---------------------------------------------------------------------------- snapshots


def test_snapshots_of_snapshots_and_their_order(box, start):
    box.exec("echo 1 > /app/a; echo 1 > /app/b; mkdir /app/d; touch /app/d/old")
    second = start(box.snapshot())
    second.exec("echo 2 > /app/b; rm /app/a; rm -r /app/d; mkdir /app/d; touch /app/d/new; ln /app/b /app/hard")
    third = start(second.snapshot())
    assert third.exec("cat /app/b; ls /app /app/d; stat -c %h /app/b").stdout.split() == [
        "2", "/app:", "b", "d", "hard", "/app/d:", "new", "2",
    ]  # fmt: skip


def test_a_copied_snapshot_outlives_its_sandbox_and_is_removed_with_its_last_user(start, backend):
    box = start()
    box.exec("echo kept > /app/kept")
    saved = box.snapshot()
    box.stop()
    user = start(saved)
    assert user.exec("cat /app/kept").stdout == "kept\n"
    user.stop()
    del saved, user
    start.boxes.clear()
    gc.collect()
    assert not [path for path in backend.host.folder.iterdir() if path.name.startswith("snapshot")]


def test_a_sealed_snapshot_ends_with_its_sandbox(start):
    box = start()
    saved = box.snapshot(seal=True)
    box.stop()
    with pytest.raises(SandboxError, match="stopped"):
        start(saved)


def test_system_paths_that_became_links_or_vanished_come_from_the_image(box, start):
    box.exec(
        "mkdir /app/evil; cp /bin/false /app/evil/sh; rm -rf /etc/profile.d /root/.bashrc /tests; ln -s /app /tests;"
        "echo evil >> /etc/group; ln -s /app /opt/verifier; ln -s /app /solution; rm -rf /logs; ln -s /app /logs;"
        "echo evil > /usr/lib/evil; rm /usr/bin/awk; ln -sfn /app/evil /bin"
    )
    box.snapshot(seal=True)
    grader = start(box.snapshot(seal=True), trusted_system=True, verifier=True)
    assert grader.exec("readlink /bin; ls -d /etc/profile.d; test -e /usr/lib/evil; echo $?; awk 'BEGIN { print 7 }'").stdout.split() == [
        "usr/bin", "/etc/profile.d", "1", "7",
    ]  # fmt: skip
    assert not grader.exec("ls -A /tests /solution 2>/dev/null | grep evil").stdout
    assert grader.exec(["test", "-L", "/opt/verifier"]).exit_code == 1
    assert grader.exec(["/opt/verifier/bin/pytest", "--version"]).ok
    assert "evil" not in grader.exec(["cat", "/etc/group"]).stdout


def test_mounts_land_where_they_should_though_links_are_planted(box, start, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text("pass")
    (tmp_path / "tests").chmod(0o700)
    box.exec("rm -rf /tests /data; ln -s /usr/bin /tests; ln -s /etc /data")
    grader = start(
        box.snapshot(), mounts=[Mount(tmp_path / "tests", "/tests"), Mount(tmp_path / "tests", "/data/in/deep")]
    )
    assert grader.exec("ls /tests /data/in/deep").stdout.split() == [
        "/data/in/deep:",
        "test_a.py",
        "/tests:",
        "test_a.py",
    ]
    assert grader.exec("ls /usr/bin/test_a.py /etc/in").exit_code == 2


# ------------------------------------------------------------------------------- others


def test_deep_and_locked_trees_are_removed(start):
    box = start()
    python(box, "import os\nfor _ in range(1500):\n os.mkdir('d'); os.chdir('d')\nopen('f', 'w')", cwd="/app")
    box.exec("mkdir -p /app/locked/in; touch /app/locked/in/x; chmod 000 /app/locked/in /app/locked")
    folder = box.folder
    box.stop()
    assert not folder.exists()


FETCH = """
import sys, urllib.error, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
"""


@pytest.fixture
def web():
    """A server on this machine that answers with the path that it was asked for."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f"page {self.path}".encode())

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_allowlist_lets_through_what_is_listed_and_nothing_else(image, web):
    via = {"no_proxy": "", "NO_PROXY": ""}
    with (
        Bubblewrap(private_addresses=True) as backend,
        backend.start(image, network=Network("allowlist", ("localhost",))) as box,
    ):
        assert box.exec(["python3", "-c", FETCH, f"http://localhost:{web}/a?b=c"], env=via).stdout == "page /a?b=c\n"
        assert "403" in box.exec(["python3", "-c", FETCH, f"http://127.0.0.1:{web}/"], env=via).stdout
        assert not python(box, f"import socket; socket.create_connection(('127.0.0.1', {web}), timeout=2)").ok
        assert box.exec("tail -n +2 /proc/net/route").stdout == "", "no route but loopback's"
        tunnel = (
            "import socket; s = socket.create_connection(('127.0.0.1', 3128)); "
            f"s.sendall(b'CONNECT localhost:{web} HTTP/1.1\\r\\n\\r\\n'); print(s.recv(99).split()[1]); "
            "s.sendall(b'GET /t HTTP/1.0\\r\\n\\r\\n'); print(s.makefile('rb').read()[-7:])"
        )
        assert python(box, tunnel).stdout == "b'200'\nb'page /t'\n"


@pytest.mark.parametrize("network", [Network("allowlist", ("localhost",)), Network("public")])
def test_no_network_leads_to_private_addresses(start, web, network):
    box = start(network=network)
    ask = ["python3", "-c", FETCH, f"http://localhost:{web}/"]
    said = box.exec(ask, env={"no_proxy": "", "NO_PROXY": ""}).stdout
    assert said.startswith("403")
    assert "private address" in said
    assert not python(box, f"import socket; socket.create_connection(('127.0.0.1', {web}), timeout=2)").ok
    assert box.exec("tail -n +2 /proc/net/route").stdout == "", "no route but loopback's"


def test_public_lets_through_any_host(image, web):
    with Bubblewrap(private_addresses=True) as backend, backend.start(image, network=Network("public")) as box:
        ask = ["python3", "-c", FETCH, f"http://localhost:{web}/a"]
        assert box.exec(ask, env={"no_proxy": "", "NO_PROXY": ""}).stdout == "page /a\n"


def test_a_build_reaches_nothing_of_this_machine(backend, tmp_path, web):
    """A hostile Dockerfile must not find the researcher's own services: not on loopback, not through the proxy."""
    fetch = FETCH.replace("sys.argv[1]", f"'http://localhost:{web}/'") + "\nimport socket\n"
    fetch += f"try:\n    socket.create_connection(('127.0.0.1', {web}), timeout=2); print('reached')\nexcept OSError as e: print('no', e)\n"
    (tmp_path / "ask.py").write_text(fetch)
    lines = "FROM python:3.12-slim\nCOPY ask.py /ask.py\nRUN no_proxy= NO_PROXY= python3 /ask.py > /said 2>&1 || true\n"
    (tmp_path / "Dockerfile").write_text(lines)
    with backend.start(backend.build(tmp_path)) as box:
        said = box.read("/said").decode()
    assert said.startswith("403"), said
    assert "own address" in said
    assert "reached" not in said


@pytest.mark.parametrize(
    ("address", "reach", "refused"),
    [
        ("8.8.8.8", "internet", False),
        ("10.1.2.3", "internet", True),
        ("10.1.2.3", "network", False),
        ("127.0.0.1", "network", True),
        ("::1", "network", True),
        ("::ffff:127.0.0.1", "network", True),
        ("169.254.169.254", "network", True),
        ("0.0.0.0", "network", True),
        ("127.0.0.1", "all", False),
    ],
)
def test_where_a_name_may_lead(address, reach, refused):
    assert bool(egress.refusal(address, reach)) == refused


def test_slots_are_used_again_and_forget(start, backend):
    box = start()
    box.exec("echo secret > /app/secret; export A=1; sleep 50 &")
    slot = box.slot
    box.stop()
    again = start()
    assert again.slot is slot
    assert again.exec("ls -A /app; pgrep sleep").stdout == ""


def test_limits_hold_for_each_sandbox_by_itself(start):
    small, large = start(limits=Limits(memory_mb=96)), start(limits=Limits(memory_mb=512))
    hog = "x = b'x' * (200 << 20); print(len(x))"
    assert not python(small, hog).ok
    assert python(large, hog).stdout == f"{200 << 20}\n"


def test_capabilities_name_their_means(backend):
    limits = backend.capabilities().limits
    assert set(limits) == set(Limits.__dataclass_fields__)
    assert limits["memory_mb"] in ("cgroup v1", "cgroup v2") or "rlimit" in limits["memory_mb"]


def test_many_starts_leave_nothing(backend, image):
    def cycle(_):
        box = backend.start(image)
        box.exec(["true"])
        box.stop()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(cycle, range(20)))
        files, memory = len(list(Path("/proc/self/fd").iterdir())), resident()
        list(pool.map(cycle, range(60)))
    assert len(list(Path("/proc/self/fd").iterdir())) <= files
    assert resident() - memory < 20 << 20
    assert not [path for path in backend.host.folder.iterdir() if path.name.startswith("box")]


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# ------------------------------------------------------------------------- ordinary user


@pytest.fixture(scope="module")
def relocated(tmp_path_factory):
    """A copy of this Python that any user may run (ours may stand below a home that only root enters)."""
    folder = Path("/var/tmp") / f"workbench-test-{os.getpid()}"
    folder.mkdir()
    try:
        base_layer.copy_python(folder / "python")
        (folder / "home").mkdir()
        os.chown(folder / "home", ORDINARY, ORDINARY)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def readable_by_all(path: Path) -> bool:
    return all(parent.stat().st_mode & 0o005 == 0o005 for parent in [path, *path.parents])


@pytest.mark.slow
@pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root to become another user; as an ordinary user the suite runs as one"
)
def test_conformance_as_an_ordinary_user(relocated):
    packages = Path(pytest.__file__).parents[1]
    for place in (ROOT, packages):
        if not readable_by_all(place):
            pytest.skip(f"{place} is not readable for other users")
    environment = {
        "PATH": "/usr/bin:/bin", "HOME": str(relocated / "home"), "WORKBENCH_HOME": str(relocated / "home/state"),
        "LD_LIBRARY_PATH": str(relocated / "python/lib"), "PYTHONPATH": f"{ROOT}:{packages}", "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    done = subprocess.run(
        [relocated / "python/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", "-k", "not ordinary",
         "tests/sandboxes/test_conformance.py::TestBubblewrap", "tests/sandboxes/test_bubblewrap.py"],
        user=ORDINARY, group=ORDINARY, extra_groups=[], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
    assert " passed" in done.stdout


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("COPY my orders.csv /app/", 'For a name with spaces write a list: COPY ["my orders.csv", "…"]'),
        ("COPY our.csv /app/", "'our.csv' is not in environment/ (or .dockerignore leaves it out)"),
        ("RUN exit 4", "exit code 4; it printed nothing"),
        ("RUN echo why; exit 4", "exit code 4; the last lines of its output:\nwhy"),
        ("RUN echo ' unable to make backup link of x'; exit 100", "apt-get install --no-upgrade"),
    ],
)
def test_a_failed_build_says_what_to_do(backend, tmp_path, line, said):
    folder = tmp_path / "environment"
    folder.mkdir()
    (folder / "my orders.csv").write_text("shop\n")
    (folder / "Dockerfile").write_text(f"FROM python:3.13-slim\n{line}\n")
    with pytest.raises(BuildError) as caught:
        backend.build(folder)
    assert said in str(caught.value)
    assert caught.value.line == 2
