"""What every sandbox back end must do, each behaviour once.

A back end's test class inherits from `Conformance` and names it (`spec`). Behaviour that a back end truthfully declares
missing (`Backend.capabilities()`) is skipped with that reason; nothing else is.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from workbench.sandboxes import BuildError, ExecResult, Limits, Mount, Network, SandboxError

DOCKERFILE = """\
FROM python:3.13-slim
ENV GREETING="hello there"
WORKDIR /app
COPY data.txt /app/data.txt
RUN mkdir -p /app/kept && echo kept > /app/kept/file && echo gone > /app/gone && chmod 600 /app/gone
"""

# A child that leaves the session, ignores TERM and HUP, and writes a byte every 0.05 s.
STUBBORN = """
import os, signal, sys, time
for _ in range(2):
    if os.fork():
        os._exit(0)
    os.setsid()
for fd in (0, 1, 2):
    os.dup2(os.open(os.devnull, os.O_RDWR), fd)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
while True:
    with open(sys.argv[1], "a") as file:
        file.write("x")
    time.sleep(0.05)
"""


def make_environment(folder: Path, dockerfile: str = DOCKERFILE) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Dockerfile").write_text(dockerfile)
    (folder / "data.txt").write_text("1\n2\n3\n")
    return folder


def stubborn(path: str) -> list[str]:
    return ["python3", "-c", STUBBORN, path]


def grows(box, path: str) -> bool:
    """Whether a file is still being written to."""
    before = box.exec(["stat", "-c", "%s", path])
    time.sleep(0.3)
    after = box.exec(["stat", "-c", "%s", path])
    return before.ok and after.ok and before.stdout != after.stdout


def eventually(question, seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if question():
            return True
        time.sleep(0.05)
    return False


def need_no_network(backend) -> None:
    if "no-network" not in backend.capabilities().networks:
        pytest.skip(f"{backend.name} declares that it has no `no-network` here")


def need_limit(backend, name: str) -> None:
    if not backend.capabilities().limits.get(name):
        pytest.skip(f"{backend.name} declares that nothing enforces {name} here")


class Conformance:
    spec = ""

    # ------------------------------------------------------------------ running commands
    def test_argv_is_run_as_it_is(self, shared):
        result = shared.exec(["printf", "%s|", "a b", "$HOME", "*", ""])
        assert (result.exit_code, result.stdout, result.stderr) == (0, "a b|$HOME|*||", "")

    def test_a_string_is_a_bash_line(self, shared):
        result = shared.exec("x=(3 4); echo ${x[1]} | tr 4 5; echo oops >&2")
        assert (result.stdout, result.stderr) == ("5\n", "oops\n")

    def test_starts_in_the_workdir_and_in_cwd_when_given(self, shared):
        assert shared.exec("pwd").stdout == "/app\n"
        assert shared.exec(["pwd"], cwd="/usr").stdout == "/usr\n"

    def test_cwd_that_is_missing_fails_the_command_and_not_the_sandbox(self, box):
        assert not box.exec("true", cwd="/no/such/folder").ok
        assert box.exec("true").ok

    def test_environment_is_the_images_and_what_is_added(self, shared):
        result = shared.exec("echo $GREETING, $ADDED", env={"ADDED": "a=b c"})
        assert result.stdout == "hello there, a=b c\n"
        assert shared.exec("echo [$ADDED]").stdout == "[]\n"

    def test_environment_given_at_start(self, start):
        assert start(env={"AT_START": "yes"}).exec("echo $AT_START $GREETING").stdout == "yes hello there\n"

    def test_nothing_of_the_hosts_environment_is_inherited(self, start, monkeypatch):
        monkeypatch.setenv("WORKBENCH_TEST_SECRET", "host-secret-value")
        box = start()
        assert "host-secret-value" not in box.exec("env; cat /proc/self/environ /proc/1/environ 2>/dev/null").stdout

    def test_exit_codes_and_signals(self, shared):
        assert [shared.exec(f"exit {n}").exit_code for n in (0, 1, 77, 255)] == [0, 1, 77, 255]
        assert shared.exec("kill -SEGV $$").exit_code == 139
        assert shared.exec("kill -TERM $$").exit_code == 143

    def test_a_command_that_does_not_exist(self, shared):
        assert shared.exec(["no-such-command-anywhere"]).exit_code in (126, 127)
        assert shared.exec("no-such-command-anywhere").exit_code == 127

    def test_standard_input(self, shared):
        assert shared.exec(["cat"], stdin=b"one\ntwo").stdout == "one\ntwo"
        assert shared.exec(["wc", "-c"], stdin=b"x" * 1_000_000).stdout.strip() == "1000000"
        assert shared.exec(["cat"]).stdout == "", "without stdin a reader sees its end, and does not hang"
        assert shared.exec(["true"], stdin=b"x" * 1_000_000).exit_code == 0, "not reading it is no error"

    def test_output_is_utf8_and_other_bytes_are_replaced(self, shared):
        result = shared.exec(r"printf 'gr\303\274n \xff\000end'")
        assert result.stdout == "grün \ufffd\0end"

    def test_long_output_keeps_head_and_tail_and_counts_the_rest(self, start):
        box = start(limits=Limits(output_bytes=1000))
        result = box.exec("echo first; head -c 200000 /dev/zero | tr '\\0' x; echo; echo last")
        assert result.truncated
        assert result.stdout.startswith("first\n")
        assert result.stdout.endswith("last\n")
        dropped = int(re.search(r"\[\.\.\. (\d+) bytes dropped \.\.\.\]", result.stdout)[1])
        kept = len(re.sub(r"\n?\[\.\.\. \d+ bytes dropped \.\.\.\]\n", "", result.stdout).encode())
        assert kept <= 1000
        assert dropped + kept == 200000 + len("first\n\nlast\n")

    def test_output_that_fits_is_whole(self, start):
        box = start(limits=Limits(output_bytes=1000))
        result = box.exec("head -c 1000 /dev/zero | tr '\\0' x")
        assert (len(result.stdout), result.truncated) == (1000, False)

    def test_200_mb_of_output_is_bounded(self, start):
        result = start().exec("head -c 200000000 /dev/zero; echo end", timeout=60)
        assert result.exit_code == 0
        assert result.truncated
        assert result.stdout.endswith("end\n")
        assert len(result.stdout) < 70_000

    def test_seconds_are_measured(self, shared):
        assert 0.3 <= shared.exec("sleep 0.3").seconds < 10

    def test_as_another_user(self, shared, backend):
        if not backend.capabilities().users:
            pytest.skip(f"{backend.name} declares that it cannot exec as another user here")
        assert shared.exec("id -u", user="nobody").stdout.strip() == "65534"
        assert not shared.exec("cat /app/gone", user="nobody").ok

    # ------------------------------------------------------------------------- time
    def test_timeout_kills_the_command_and_the_sandbox_lives_on(self, box):
        result = box.exec("echo before; sleep 60", timeout=0.7)
        assert (result.exit_code, result.killed_by) == (124, "time")
        assert result.stdout == "before\n"
        assert result.seconds < 30
        assert box.exec("echo after").stdout == "after\n"

    def test_timeout_reaches_children_that_left_the_session_and_ignore_signals(self, box):
        box.write("/app/stubborn.py", STUBBORN.encode())
        result = box.exec("trap '' TERM HUP INT; python3 stubborn.py /app/ticks; sleep 60", timeout=1.5)
        assert result.killed_by == "time"
        assert box.exec("test -s /app/ticks").ok, "the child did run"
        assert not grows(box, "/app/ticks")

    def test_timeout_spares_what_an_earlier_command_left_running(self, box):
        box.exec("nohup sh -c 'while :; do echo x >>/app/service; sleep 0.1; done' >/dev/null 2>&1 &")
        assert box.exec("sleep 60", timeout=0.7).killed_by == "time"
        assert grows(box, "/app/service")

    def test_default_timeout_comes_from_the_limits(self, start):
        assert start(limits=Limits(command_seconds=0.7)).exec("sleep 60").killed_by == "time"

    def test_returns_when_the_command_ends_although_a_child_holds_its_output(self, box):
        begun = time.monotonic()
        result = box.exec("sleep 45 & echo started")
        assert (result.exit_code, result.stdout) == (0, "started\n")
        assert time.monotonic() - begun < 20

    def test_a_background_service_lives_between_commands(self, box):
        box.exec("cd /app && nohup python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 &")
        ask = "python3 -c 'import urllib.request as u; print(u.urlopen(\"http://127.0.0.1:8123/data.txt\").read())'"
        assert eventually(lambda: "1\\n2\\n3" in box.exec(ask).stdout)

    # ------------------------------------------------------------------------ files
    def test_write_and_read_bytes(self, shared):
        data = bytes(range(256)) * 100
        shared.write("/app/deep/er/file.bin", data)
        assert shared.read("/app/deep/er/file.bin") == data
        shared.write("/app/empty", b"")
        assert shared.read("/app/empty") == b""

    def test_write_sets_the_mode_and_replaces(self, shared):
        shared.write("/app/tool", b"#!/bin/sh\necho old\n", mode=0o755)
        shared.write("/app/tool", b"#!/bin/sh\necho ran\n", mode=0o755)
        assert shared.exec(["/app/tool"]).stdout == "ran\n"

    def test_put_a_file(self, shared, tmp_path):
        (tmp_path / "run.sh").write_text("#!/bin/sh\necho put\n")
        (tmp_path / "run.sh").chmod(0o750)
        shared.put(tmp_path / "run.sh", "/srv/new/run.sh")
        assert shared.exec(["/srv/new/run.sh"]).stdout == "put\n"
        assert shared.exec(["stat", "-c", "%a", "/srv/new/run.sh"]).stdout == "750\n"

    def test_put_a_folders_contents(self, shared, tmp_path):
        (tmp_path / "a" / "b").mkdir(parents=True)
        (tmp_path / "a" / "b" / "c.txt").write_text("c")
        (tmp_path / "a" / "link").symlink_to("b/c.txt")
        shared.put(tmp_path / "a", "/srv/folder")
        assert shared.exec("cat /srv/folder/b/c.txt /srv/folder/link").stdout == "cc"
        (tmp_path / "a" / "second").write_text("s")
        shared.put(tmp_path / "a", "/srv/folder")
        assert shared.exec("ls /srv/folder").stdout.split() == ["b", "link", "second"], "merged, not nested"

    def test_get_a_file_and_a_folder(self, shared, tmp_path):
        shared.exec("mkdir -p /srv/out/sub; echo x > /srv/out/sub/x; echo y > /srv/out/y; chmod 755 /srv/out/y")
        shared.get("/srv/out/y", tmp_path / "single")
        assert (tmp_path / "single").read_text() == "y\n"
        shared.get("/srv/out", tmp_path / "tree")
        assert (tmp_path / "tree" / "sub" / "x").read_text() == "x\n"
        assert os.access(tmp_path / "tree" / "y", os.X_OK)

    def test_get_and_read_say_when_it_is_not_there(self, shared, tmp_path):
        with pytest.raises(FileNotFoundError):
            shared.get("/app/nothing", tmp_path / "x")
        with pytest.raises(FileNotFoundError):
            shared.read("/app/nothing")

    def test_get_leaves_links_and_special_files_out(self, shared, tmp_path):
        shared.exec("mkdir -p /srv/bad; cd /srv/bad; ln -s /etc/passwd p; ln -s / root; mkfifo pipe; echo ok > ok")
        shared.exec(["python3", "-c", "import socket; socket.socket(socket.AF_UNIX).bind('/srv/bad/sock')"])
        shared.get("/srv/bad", tmp_path / "bad")
        kinds = {p.name: stat.S_IFMT(p.lstat().st_mode) for p in (tmp_path / "bad").iterdir()}
        assert kinds == {"ok": stat.S_IFREG}

    def test_read_and_get_refuse_a_link_out(self, box, tmp_path):
        secret = tmp_path / "secret"
        secret.write_text("host file")
        box.exec(["ln", "-s", str(secret), "/app/link"])
        box.exec(["ln", "-s", str(tmp_path), "/app/door"])
        with pytest.raises(ValueError, match=r"."):
            box.read("/app/link")
        with pytest.raises(ValueError, match=r"."):
            box.get("/app/link", tmp_path / "copy")
        for name in ("/app/door/secret", "/app/door/../secret"):
            with pytest.raises((FileNotFoundError, ValueError)):
                box.read(name)

    def test_writes_never_follow_a_link_out(self, box, tmp_path):
        (tmp_path / "in").write_text("x")
        outside = tmp_path / "outside"
        outside.mkdir()
        outside.chmod(0o777)
        tmp_path.chmod(0o755)
        box.exec(["ln", "-s", str(outside), "/app/door"])
        for act in (lambda: box.write("/app/door/w", b"x"), lambda: box.put(tmp_path / "in", "/app/door/p")):
            with contextlib.suppress(ValueError, OSError, SandboxError):
                act()
        assert list(outside.iterdir()) == []

    @pytest.mark.parametrize("what", ["pipe", "folder", "device", "big"])
    def test_read_refuses_what_is_no_small_regular_file(self, shared, what):
        shared.exec("mkdir -p /srv/odd/folder; cd /srv/odd; [ -p pipe ] || mkfifo pipe; truncate -s 600M big")
        path = {"device": "/dev/zero"}.get(what, f"/srv/odd/{what}")
        with pytest.raises((ValueError, FileNotFoundError)):
            shared.read(path)

    def test_get_refuses_too_many_bytes(self, shared, tmp_path):
        shared.exec("mkdir -p /srv/many; head -c 3000 /dev/zero > /srv/many/a; truncate -s 600M /srv/many/sparse")
        with pytest.raises(ValueError, match=r"bytes"):
            shared.get("/srv/many", tmp_path / "many", max_bytes=1_000_000)
        with pytest.raises(ValueError, match=r"bytes"):
            shared.get("/srv/many/a", tmp_path / "a", max_bytes=2999)
        assert sum(p.stat().st_blocks for p in tmp_path.rglob("*")) * 512 < 2_000_000

    # -------------------------------------------------------------------- snapshots
    def test_a_snapshot_holds_files_and_not_later_writes(self, box, start):
        box.exec("echo one > /app/state; rm /app/gone; echo more >> /app/data.txt")
        saved = box.snapshot()
        box.exec("echo two > /app/state; echo late > /app/late")
        fork = start(saved)
        try:
            assert fork.exec("cat /app/state /app/data.txt; ls /app").stdout.split() == [
                "one", "1", "2", "3", "more", "data.txt", "kept", "state",
            ]  # fmt: skip
        finally:
            fork.stop()
        assert box.exec("cat /app/state").stdout == "two\n", "the first sandbox goes on"

    def test_two_sandboxes_from_one_snapshot_do_not_see_each_other(self, box, start):
        box.exec("echo one > /app/state")
        saved = box.snapshot()
        first, second = start(saved), start(saved)
        try:
            first.exec("echo changed > /app/state; rm -rf /app/kept")
            assert second.exec("cat /app/state /app/kept/file").stdout == "one\nkept\n"
        finally:
            first.stop()
            second.stop()

    def test_a_snapshot_carries_no_process(self, box, start):
        box.exec(stubborn("/app/ticks"))
        assert eventually(lambda: box.exec("test -s /app/ticks").ok)
        fork = start(box.snapshot())
        try:
            assert not grows(fork, "/app/ticks")
        finally:
            fork.stop()

    def test_sealing_ends_everything_and_keeps_the_files(self, box, start):
        box.exec(stubborn("/app/ticks"))
        box.exec("echo one > /app/state; rm -r /app/kept; mkdir /app/kept; echo new > /app/kept/new")
        saved = box.snapshot(seal=True)
        with pytest.raises(SandboxError):
            box.exec("true")
        for trusted in (False, True):
            fork = start(saved, trusted_system=trusted)
            try:
                assert fork.exec("cat /app/state; ls /app/kept; test -e /app/gone && echo gone").stdout.split() == [
                    "one", "new", "gone",
                ]  # fmt: skip
                assert not grows(fork, "/app/ticks")
            finally:
                fork.stop()

    @pytest.mark.parametrize("seal", [False, True])
    def test_trusted_system_takes_programs_from_the_image_and_files_from_the_snapshot(self, box, start, seal):
        box.exec(
            "printf '#!/bin/sh\\necho forged\\n' > /usr/bin/forged; chmod 755 /usr/bin/forged; cp /usr/bin/forged /bin/ls;"
            "mkdir -p /usr/local/bin /root/.config /tests /logs/verifier /opt/tool; cp /usr/bin/forged /usr/local/bin/python3;"
            "echo 'echo forged' >> /etc/profile; echo 'x:0:0::/:/bin/sh' >> /etc/passwd; echo evil > /tests/test_x.py;"
            "echo 1 > /logs/verifier/reward.txt; echo /evil.so > /etc/ld.so.preload.off; echo set > /etc/app.conf;"
            "echo mine > /app/mine; chmod 640 /app/mine; rm /app/gone; mkdir -p /srv/a/b; echo c > /srv/a/b/c;"
            "ln -s /srv/a /app/link; echo t > /opt/tool/t"
        )
        fork = start(box.snapshot(seal=seal), trusted_system=True)
        try:
            assert fork.exec("forged; python3 -c 'print(1)'").stdout == "1\n"
            assert "forged" not in fork.exec("ls /; cat /etc/profile; cat /etc/passwd").stdout
            assert fork.exec("ls /tests /logs/verifier /usr/local/bin/python3.forged 2>/dev/null").stdout.replace(
                "/tests:", "").replace("/logs/verifier:", "").split() == []  # fmt: skip
            assert fork.exec("cat /app/mine /app/link/b/c /etc/app.conf /opt/tool/t /app/kept/file").stdout.split() == [
                "mine", "c", "set", "t", "kept",
            ]  # fmt: skip
            assert fork.exec("stat -c %a /app/mine; test -e /app/gone; echo $?").stdout.split() == ["640", "1"]
        finally:
            fork.stop()

    def test_a_folder_turned_into_a_link_does_not_lead_into_the_system(self, box, start):
        box.exec("rm -r /app/kept; ln -s /usr/bin /app/kept; mv /app/data.txt /app/data; ln -s /etc /srv/etc")
        fork = start(box.snapshot(), trusted_system=True)
        try:
            assert (
                fork.exec("readlink /app/kept; python3 -c 'print(1)'; cat /app/data").stdout == "/usr/bin\n1\n1\n2\n3\n"
            )
            assert fork.exec("test -e /app/data.txt").exit_code == 1
        finally:
            fork.stop()

    # --------------------------------------------------------------------- verifier
    def test_the_verifiers_packages_are_for_verifiers_only(self, start):
        agent = start()
        assert not agent.exec("test -e /opt/verifier/bin/python").ok
        assert not agent.exec("/opt/verifier/bin/python -m pytest --version").ok

    def test_pytest_runs_isolated_in_a_verifier(self, start):
        grader = start(verifier=True)
        grader.write("/tests/test_one.py", b"def test_good():\n    assert 1\ndef test_bad():\n    assert 0\n")
        result = grader.exec(
            ["/opt/verifier/bin/python", "-I", "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "/tests"]
        )
        assert result.exit_code == 1, result.output
        assert "1 failed, 1 passed" in result.stdout
        ctrf = grader.exec(["/opt/verifier/bin/python", "-I", "-c", "import ctrf"])
        assert ctrf.ok, ctrf.output
        assert not grader.exec("echo x > /opt/verifier/new").ok

    def test_verifier_image_without_a_dockerfile(self, backend, tmp_path, start):
        (tmp_path / "tests").mkdir()
        image = backend.build(tmp_path / "tests", verifier=True)
        box = start(image, verifier=True)
        assert box.exec(["/opt/verifier/bin/python", "-I", "-c", "import pytest"]).ok

    # ----------------------------------------------------------------------- mounts
    def test_mounts_are_read_only_unless_writable(self, start, tmp_path):
        for name in ("ro", "rw"):
            (tmp_path / name).mkdir()
            (tmp_path / name).chmod(0o777)
            (tmp_path / name / "seen").write_text(name)
        tmp_path.chmod(0o755)
        (tmp_path / "file").write_text("a file")
        box = start(mounts=[Mount(tmp_path / "ro", "/mnt/ro"), Mount(tmp_path / "rw", "/mnt/rw", writable=True),
                            Mount(tmp_path / "file", "/mnt/file")])  # fmt: skip
        assert box.exec("cat /mnt/ro/seen /mnt/rw/seen /mnt/file").stdout == "rorwa file"
        for command in ("echo x > /mnt/ro/new", "echo x >> /mnt/ro/seen", "rm /mnt/ro/seen", "echo x > /mnt/file",
                        "mount -o remount,rw /mnt/ro", "umount /mnt/ro"):  # fmt: skip
            assert not box.exec(command).ok, command
        assert (tmp_path / "ro" / "seen").read_text() == "ro"
        assert box.exec("echo new > /mnt/rw/new").ok
        assert (tmp_path / "rw" / "new").read_text() == "new\n"

    # ---------------------------------------------------------------------- network
    def test_no_network_has_loopback_only(self, shared, backend):
        need_no_network(backend)
        probe = """
import socket
with open("/proc/net/dev") as file:
    print(sorted(line.split(":")[0].strip() for line in file.readlines()[2:] if not line.strip().startswith(("lo", "tunl", "sit", "ip6", "gre", "erspan", "ifb"))))
for address in (("1.1.1.1", 53), ("10.255.255.53", 53), ("172.17.0.1", 22)):
    try:
        socket.create_connection(address, timeout=1).close(); print("reached", address)
    except OSError:
        pass
"""
        assert shared.exec(["python3", "-c", probe]).stdout.strip() == "[]"

    def test_no_network_does_not_reach_the_hosts_loopback(self, shared, backend):
        need_no_network(backend)
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            probe = f"import socket; socket.create_connection(('127.0.0.1', {port}), timeout=1)"
            assert not shared.exec(["python3", "-c", probe]).ok

    def test_abstract_sockets_of_the_host_are_out_of_reach(self, shared, backend):
        need_no_network(backend)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("\0workbench-conformance")
            server.listen()
            probe = "import socket; socket.socket(socket.AF_UNIX).connect('\\0workbench-conformance')"
            assert not shared.exec(["python3", "-c", probe]).ok

    def test_a_grader_can_share_a_living_sandboxs_network(self, start, backend):
        if any("share_network" in note for note in backend.capabilities().notes):
            pytest.skip(f"{backend.name} declares that it cannot share a network")
        service = start()
        service.exec("nohup python3 -m http.server 8124 --bind 127.0.0.1 >/dev/null 2>&1 &")
        grader = start(share_network=service)
        ask = "python3 -c 'import urllib.request as u; print(u.urlopen(\"http://127.0.0.1:8124/data.txt\").status)'"
        assert eventually(lambda: grader.exec(ask).stdout == "200\n")
        assert "http.server" not in grader.exec("cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -v grep").stdout

    def test_networks_that_are_not_declared_are_refused(self, start, backend):
        for mode in ("public", "allowlist"):
            if mode not in backend.capabilities().networks:
                with pytest.raises((BuildError, SandboxError)):
                    start(network=Network(mode, ("example.com",)))

    # ----------------------------------------------------------------------- limits
    def test_memory_limit_ends_the_hog_and_not_the_sandbox(self, start, backend):
        need_limit(backend, "memory_mb")
        box = start(limits=Limits(memory_mb=128))
        result = box.exec(["python3", "-c", "x = [bytes(b'x' * 1000000) for _ in range(600)]; print(len(x))"])
        assert not result.ok
        assert "600" not in result.stdout
        if backend.capabilities().limits["memory_mb"].startswith(("cgroup", "docker")):
            assert result.killed_by == "memory"
        assert box.exec("echo alive").stdout == "alive\n"

    def test_process_limit(self, start, backend):
        need_limit(backend, "processes")
        box = start(limits=Limits(processes=40))
        fork = """
import os, time
made = 0
try:
    for _ in range(200):
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)
        made += 1
except OSError:
    pass
print(made)
"""
        result = box.exec(["python3", "-c", fork], timeout=20)
        assert int(result.stdout or 0) <= 48, result  # the sandbox's own few processes may come on top
        box.kill_all()
        assert box.exec("echo alive").stdout == "alive\n"

    def test_a_fork_bomb_is_contained(self, start, backend):
        need_limit(backend, "processes")
        box = start(limits=Limits(processes=64))
        box.exec("b() { b | b & }; b; sleep 60", timeout=1.5)
        box.kill_all()
        assert box.exec("echo alive").stdout == "alive\n"

    def test_cpu_limit(self, start, backend):
        need_limit(backend, "cpus")
        box = start(limits=Limits(cpus=0.5))
        burn = (
            "import time\nend = time.monotonic() + 1.6\nwhile time.monotonic() < end: pass\nprint(time.process_time())"
        )
        assert float(box.exec(["python3", "-c", burn]).stdout) < 1.25

    def test_disk_limit(self, start, backend):
        need_limit(backend, "disk_mb")
        box = start(limits=Limits(disk_mb=64))
        write = (
            "for i in $(seq 60); do head -c 10000000 /dev/zero > /app/f$i || exit 9; sleep 0.1; done; echo wrote all"
        )
        result = box.exec(write, timeout=60)
        assert "wrote all" not in result.stdout
        assert result.killed_by in (None, "disk")
        box.exec("rm -f /app/f*")
        assert box.exec("echo alive").stdout == "alive\n"

    # ---------------------------------------------------------------------- endings
    def test_kill_all_reaches_every_daemon(self, box):
        box.write("/app/stubborn.py", STUBBORN.encode())
        box.exec("python3 stubborn.py /app/one; nohup setsid python3 stubborn.py /app/two & (sleep 99 &) ; sleep 0.2")
        assert eventually(lambda: box.exec("test -s /app/one -a -s /app/two").ok)
        assert box.kill_all() >= 3
        assert not grows(box, "/app/one")
        assert not grows(box, "/app/two")
        assert box.kill_all() == 0
        assert box.exec("echo alive").stdout == "alive\n"

    def test_kill_all_does_not_need_the_sandboxs_programs(self, box):
        box.exec(stubborn("/app/ticks"))
        box.exec(
            "cp /bin/true /tmp/t; for p in kill pkill ps sleep; do cp -f /tmp/t $(command -v $p) 2>/dev/null; done; true"
        )
        assert box.kill_all() >= 1
        assert not grows(box, "/app/ticks")

    def test_stop_may_be_called_twice_and_ends_the_sandbox(self, start):
        box = start()
        box.stop()
        box.stop()
        for act in (
            lambda: box.exec("true"),
            lambda: box.read("/app/data.txt"),
            lambda: box.write("/x", b""),
            box.snapshot,
        ):
            with pytest.raises(SandboxError):
                act()

    def test_nothing_of_a_stopped_sandbox_runs_on(self, start, tmp_path):
        (tmp_path / "shared").mkdir()
        (tmp_path / "shared").chmod(0o777)
        tmp_path.chmod(0o755)
        box = start(mounts=[Mount(tmp_path / "shared", "/shared", writable=True)])
        box.exec(stubborn("/shared/ticks"))
        ticks = tmp_path / "shared" / "ticks"
        assert eventually(ticks.exists)
        box.stop()
        size = ticks.stat().st_size
        time.sleep(0.3)
        assert ticks.stat().st_size == size

    def test_clean_spares_the_living(self, box, backend):
        backend.clean()
        assert box.exec("echo alive").stdout == "alive\n"

    # ---------------------------------------------------------------------- building
    def test_image_says_what_it_is(self, image):
        assert image.workdir == "/app"
        assert image.env["GREETING"] == "hello there"
        assert image.user in ("root", "0")
        assert list(image.stands_for) == ["python:3.13-slim"]
        assert image.key

    def test_building_the_same_bytes_gives_the_same_key(self, backend, image, tmp_path):
        again = backend.build(make_environment(tmp_path / "elsewhere"))
        assert again.key == image.key
        (tmp_path / "elsewhere" / "data.txt").write_text("changed")
        assert backend.build(tmp_path / "elsewhere").key != image.key

    @pytest.mark.parametrize(
        ("dockerfile", "line"),
        [
            ("FROM python:3.13-slim\n\nRUN true\nRUN echo marker-in-log && exit 7\n", 4),
            ("FROM python:3.13-slim\n# a comment\nCOPY missing.txt /app/\n", 3),
            ("FROM python:3.13-slim\nFETCH x\n", 2),
            ("FROM no-such-image-anywhere:1.2.3\n", 1),
        ],
        ids=["run", "copy", "instruction", "from"],
    )
    def test_a_build_error_names_the_line(self, backend, tmp_path, dockerfile, line):
        with pytest.raises(BuildError) as caught:
            backend.build(make_environment(tmp_path, dockerfile))
        assert caught.value.line == line, str(caught.value)
        if "marker-in-log" in dockerfile:
            assert "marker-in-log" in caught.value.log

    def test_a_folder_without_a_dockerfile_is_a_build_error(self, backend, tmp_path):
        with pytest.raises(BuildError, match="Dockerfile"):
            backend.build(tmp_path)

    def test_user_of_the_image(self, backend, tmp_path, start):
        if not backend.capabilities().users:
            pytest.skip(f"{backend.name} declares that it cannot exec as another user here")
        text = "FROM python:3.13-slim\nWORKDIR /work\nRUN chown 65534:65534 /work\nUSER nobody\n"
        image = backend.build(make_environment(tmp_path, text))
        box = start(image)
        assert box.exec("id -un").stdout == "nobody\n"
        box.write("/work/file", b"x")
        assert box.exec("echo more >> /work/file; cat /work/file").stdout == "xmore\n"

    # ------------------------------------------------------------------- many, and the host
    def test_eight_at_once(self, start, image):
        def one(number: int) -> ExecResult:
            box = start(image)
            try:
                box.exec(f"echo {number} > /app/number")
                return box.exec("sleep 0.2; cat /app/number; ls /app")
            finally:
                box.stop()

        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(one, range(8)))
        assert [r.stdout.split()[0] for r in results] == [str(n) for n in range(8)]

    def test_the_hosts_files_are_not_there(self, shared, tmp_path):
        (tmp_path / "secret").write_text("host file")
        paths = [str(tmp_path / "secret"), str(Path(__file__).resolve()), str(Path.home() / ".bash_history")]
        for path in paths:
            assert not shared.exec(["test", "-e", path]).ok, path

    def test_the_hosts_processes_are_not_there(self, shared):
        listed = shared.exec("cat /proc/[0-9]*/cmdline | tr '\\0' ' '").stdout
        assert "pytest" not in listed
        assert not shared.exec(["kill", "-0", str(os.getpid())]).ok or os.getpid() < 50

    def test_root_inside_has_no_power_outside(self, shared):
        for command in ("mount -t tmpfs none /mnt", "mknod /tmp/sda b 8 0 && head -c1 /tmp/sda", "sysctl -w kernel.hostname=x",
                        "echo 1 > /proc/sys/kernel/sysrq", "chroot /proc/1/root true && ls /proc/1/root/work"):  # fmt: skip
            assert not shared.exec(command).ok, command
