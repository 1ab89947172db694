"""The fraction verifier, run for real: what it grades, what it refuses to grade, and what has no hold on it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.tasks.verifier import (
    MAX_CTRF_BYTES,
    STATUSES,
    VERIFIER_PATH,
    VERIFIER_TEMPLATE,
    CtrfError,
    is_managed,
    parse_ctrf,
)

ONE_OF_TWO = "def test_a(): pass\ndef test_b(): assert False\n"


class Bench:
    """A folder for tests, one for logs, and a workspace to run from. No root needed: the script's two fixed paths are
    replaced by these."""

    def __init__(self, root: Path):
        self.tests, self.logs, self.workspace = root / "tests", root / "logs", root / "workspace"
        self.tests.mkdir()
        self.workspace.mkdir()
        text = VERIFIER_TEMPLATE.replace("/logs/verifier", str(self.logs))
        self.script = self.tests / "test.sh"
        self.script.write_text(text.replace("/opt/verifier/bin/python", sys.executable))
        self.script.chmod(0o755)

    def run(self, source: str | None = None, **env: str) -> subprocess.CompletedProcess:
        if source is not None:
            (self.tests / "test_outputs.py").write_text(source)
        return subprocess.run(
            [self.script], cwd=self.workspace, env={**os.environ, **env}, capture_output=True, text=True, timeout=60
        )

    @property
    def reward(self) -> str | None:
        file = self.logs / "reward.txt"
        return file.read_text() if file.is_file() else None

    def ctrf(self) -> dict[str, str]:
        return parse_ctrf((self.logs / "ctrf.json").read_bytes())


@pytest.fixture
def bench(tmp_path) -> Bench:
    return Bench(tmp_path)


def test_only_a_plain_pass_counts(bench):
    source = """
import pytest
def test_passes(): pass
def test_fails(): assert False
@pytest.mark.skip
def test_skipped(): pass
@pytest.mark.xfail
def test_xfails(): assert False
@pytest.mark.xfail
def test_xpasses(): pass
@pytest.fixture
def before(): raise ValueError
def test_set_up(before): pass
@pytest.fixture
def after():
    yield
    raise ValueError
def test_tear_down(after): pass
@pytest.mark.parametrize("n", [1, 2, 3])
def test_each(n): assert n < 3
"""
    result = bench.run(source)
    assert result.returncode == 0, result.stderr
    assert float(bench.reward) == 3 / 10
    assert bench.reward.endswith("\n")
    found = {name.partition("::")[2]: status for name, status in bench.ctrf().items()}
    assert found == {
        "test_passes": "passed", "test_fails": "failed", "test_skipped": "skipped", "test_xfails": "other",
        "test_xpasses": "other", "test_set_up": "failed", "test_tear_down": "failed",
        "test_each[1]": "passed", "test_each[2]": "passed", "test_each[3]": "failed",
    }  # fmt: skip
    summary = json.loads((bench.logs / "ctrf.json").read_text())["results"]["summary"]
    assert (summary["tests"], summary["passed"], summary["failed"], summary["skipped"], summary["other"]) == (
        10,
        3,
        4,
        1,
        2,
    )
    assert "3 of 10 tests passed" in result.stdout


@pytest.mark.parametrize(("source", "reward"), [("def test_a(): pass\n", 1.0), ("def test_a(): assert 0\n", 0.0)])
def test_all_and_nothing(bench, source, reward):
    assert bench.run(source).returncode == 0
    assert float(bench.reward) == reward


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("", "collected no test"),
        ("def check_a(): pass\n", "collected no test"),
        (None, "collected no test"),
        ("import nothing_of_this_name\ndef test_a(): pass\n", "could not import"),
        ("def test_a(:\n", "could not import"),
        ("import os\ndef test_a(): os._exit(0)\n", "ended before"),
        ("import os\ndef test_a(): os.kill(os.getpid(), 9)\n", "no reward was written"),
        ("import pytest\ndef test_a(): pass\ndef test_b(): pytest.exit('bye', returncode=0)\n", "1 of 2 tests"),
        ("import sys\nsys.exit(0)\n", "no reward was written"),
        ("def test_a(): raise KeyboardInterrupt\n", "interrupted"),
    ],
)
def test_a_run_without_an_end_is_no_score(bench, source, words):
    result = bench.run(source)
    assert result.returncode != 0
    assert bench.reward is None
    assert words in result.stderr


def test_a_missing_pytest_is_said(bench, tmp_path):
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    bench.script.write_text(
        VERIFIER_TEMPLATE.replace("/logs/verifier", str(bench.logs)).replace("/opt/verifier", "/nowhere")
    )
    result = bench.run(ONE_OF_TWO, PATH=f"{bare}/bin:/usr/bin:/bin")
    assert result.returncode != 0
    assert "no pytest" in result.stderr


def test_without_the_graders_layer_python3_of_the_path_is_used(bench):
    bench.script.write_text(
        VERIFIER_TEMPLATE.replace("/logs/verifier", str(bench.logs)).replace("/opt/verifier", "/nowhere")
    )
    result = bench.run(ONE_OF_TWO, PATH=f"{Path(sys.executable).parent}:/usr/bin:/bin")
    assert result.returncode == 0, result.stderr
    assert float(bench.reward) == 0.5


@pytest.mark.parametrize("where", ["workspace", "above"])
def test_planted_files_have_no_effect(bench, where):
    place = bench.workspace if where == "workspace" else bench.workspace.parent
    forge = f"import pathlib\npathlib.Path({str(bench.logs.parent / 'ran')!r}).touch()\n"
    for name in ("conftest.py", "sitecustomize.py", "usercustomize.py", "pytest.py", "json.py", "_pytest/__init__.py"):
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(forge + "def pytest_runtest_call(item): item.obj = lambda: None\n")
    for name in ("pytest.ini", "tox.ini", "setup.cfg", ".pytest.ini"):
        (place / name).write_text("[pytest]\naddopts = --collect-only -k nothing\npython_functions = nothing\n")
    (place / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts = '-k nothing'\n")
    result = bench.run(ONE_OF_TWO)
    assert result.returncode == 0, result.stderr
    assert float(bench.reward) == 0.5
    assert not (bench.logs.parent / "ran").exists()


def test_variables_have_no_effect(bench):
    (bench.workspace / "sitecustomize.py").write_text("raise SystemExit\n")
    (bench.workspace / "forge.py").write_text("raise SystemExit\n")
    here = str(bench.workspace)
    result = bench.run(
        ONE_OF_TWO, PYTEST_ADDOPTS="-k nothing", PYTEST_PLUGINS="forge", PYTHONPATH=here, PYTHONSTARTUP=f"{here}/forge.py",
        PYTHONPYCACHEPREFIX=here, CDPATH=here, LD_PRELOAD="/nowhere.so",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert float(bench.reward) == 0.5


def test_compiled_files_beside_the_tests_are_not_read(bench):
    """A helper's .pyc with the right time stamp would run in place of its source."""
    import importlib.util
    import py_compile

    helper = bench.tests / "helper.py"
    helper.write_text("GOOD = 1  # pad\n")
    evil = bench.workspace / "evil.py"
    evil.write_text("GOOD = 0  # pad\n")
    stamp = helper.stat()
    os.utime(evil, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    py_compile.compile(str(evil), cfile=importlib.util.cache_from_source(str(helper)))
    py_compile.compile(str(evil), cfile=str(bench.tests / "sourceless.pyc"))
    temporary = bench.workspace / "tmp"
    temporary.mkdir()
    source = "import helper\ndef test_a(): assert helper.GOOD\ndef test_b(): import sourceless\n"
    bench.run(source, TMPDIR=str(temporary))
    assert float(bench.reward) == 0.5
    assert list(temporary.iterdir()) == []


def test_earlier_rewards_and_planted_links_are_replaced(bench, tmp_path):
    bench.logs.mkdir()
    target = tmp_path / "precious"
    target.write_text("precious")
    (bench.logs / "reward.txt").symlink_to(target)
    (bench.logs / "reward.json").write_text('{"reward": 1}')
    (bench.logs / "ctrf.json").mkdir()
    assert bench.run(ONE_OF_TWO).returncode == 0
    assert float(bench.reward) == 0.5
    assert not (bench.logs / "reward.txt").is_symlink()
    assert not (bench.logs / "reward.json").exists()
    assert target.read_text() == "precious"
    assert sorted(p.name for p in bench.logs.iterdir()) == ["ctrf.json", "reward.txt"]


def test_an_earlier_reward_does_not_survive_a_crash(bench):
    bench.logs.mkdir()
    (bench.logs / "reward.txt").write_text("1\n")
    assert bench.run("").returncode != 0
    assert bench.reward is None


def test_a_logs_folder_that_is_a_link_is_refused(bench, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    bench.logs.symlink_to(tmp_path / "elsewhere")
    result = bench.run(ONE_OF_TWO)
    assert result.returncode != 0
    assert "symbolic link" in result.stderr
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_tests_folder_stays_as_it_was(bench):
    bench.run("import helper\n" + ONE_OF_TWO)
    (bench.tests / "helper.py").write_text("")
    bench.run()
    assert sorted(p.name for p in bench.tests.iterdir()) == ["helper.py", "test.sh", "test_outputs.py"]


def test_installed_plugins_stay_out_of_the_verifier_only(bench):
    """pytest-timeout is installed beside this suite: it must not load by itself, but a test's own pytest may load it."""
    source = """
import os
def test_a(request): assert not request.config.pluginmanager.hasplugin("timeout")
def test_b(): assert "PYTEST_DISABLE_PLUGIN_AUTOLOAD" not in os.environ
"""
    bench.run(source)
    assert float(bench.reward) == 1.0


def test_own_conftest_and_helpers_work(bench):
    (bench.tests / "conftest.py").write_text("import pytest\n@pytest.fixture\ndef three(): return 3\n")
    (bench.tests / "helper.py").write_text("def double(n): return 2 * n\n")
    assert bench.run("from helper import double\ndef test_a(three): assert double(three) == 6\n").returncode == 0
    assert float(bench.reward) == 1.0


def test_it_is_plain_sh_and_executable():
    assert VERIFIER_TEMPLATE.startswith("#!/bin/sh\n")
    subprocess.run(["sh", "-n", VERIFIER_PATH], check=True)


def test_is_managed(tmp_path):
    script = tmp_path / "test.sh"
    assert not is_managed(script)
    script.write_text(VERIFIER_TEMPLATE)
    assert is_managed(script)
    script.write_text(VERIFIER_TEMPLATE.replace("passed / total", "1.0         "))
    assert not is_managed(script)


def report(*tests) -> bytes:
    return json.dumps({"results": {"tests": list(tests)}}).encode()


def test_parse_keeps_every_test():
    data = report(*({"name": name, "status": "passed"} for name in ("a", "a", "a #2", "a", "b\n\x1b")))
    assert list(parse_ctrf(data)) == ["a", "a #2", "a #2 #2", "a #3", "b??"]
    assert parse_ctrf(report()) == {}
    assert len(next(iter(parse_ctrf(report({"name": "x" * 5000, "status": "failed"}))))) == 1000


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "no list"),
        (b'{"results": {"tests": {}}}', "no list"),
        (report("x"), "no name"),
        (report({"name": "", "status": "passed"}), "no name"),
        (report({"name": 3, "status": "passed"}), "no name"),
        (report({"name": "a", "status": "PASSED"}), "none of passed"),
        (report({"name": "a", "status": ["passed"]}), "none of passed"),
        (report({"name": "a"}), "none of passed"),
        (b" " * (MAX_CTRF_BYTES + 1), "at most"),
        (b'{"results": {"tests": [' + b"1," * 100_000 + b"1]}}", "at most"),
    ],
)
def test_parse_refuses(data, words):
    with pytest.raises(CtrfError, match=words):
        parse_ctrf(data)


@given(st.binary(max_size=200))
def test_parse_survives_any_bytes(data):
    with contextlib.suppress(CtrfError):
        assert set(parse_ctrf(data).values()) <= set(STATUSES)


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.sampled_from(STATUSES),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["results", "tests", "name", "status"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(_JSON)
def test_parse_survives_any_json(value):
    with contextlib.suppress(CtrfError):
        for name in parse_ctrf(json.dumps({"results": {"tests": value}}).encode()):
            name.encode()
            assert name.isprintable()
