"""Loading: good tasks come in whole, every fault of a bad one is named, and nothing outside of it is touched."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from workbench.tasks import Fault, TaskError, load_task
from workbench.tasks.load import load

pytestmark = pytest.mark.filterwarnings(
    "ignore:The '.*' field is deprecated:DeprecationWarning"
)  # Harbor says so of old keys


def faults(path: Path, **options) -> list[Fault]:
    with pytest.raises(TaskError) as caught:
        load(path, **options)
    assert caught.value.faults
    return caught.value.faults


def only(path: Path, kind: str, **options) -> Fault:
    found = faults(path, **options)
    assert [f.kind for f in found] == [kind], found
    return found[0]


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def line_of(task: Path, text: str) -> int:
    return (task / "task.toml").read_text().partition(text)[0].count("\n") + 1


def test_a_good_task_comes_in_whole(one):
    task = load_task(one)
    assert (task.name, task.network, task.cpus, task.memory_mb, task.storage_mb) == (
        "org/one",
        "no-network",
        1,
        512,
        512,
    )
    assert task.steps[0].agent_timeout == 300
    assert task.steps[0].verifier_timeout == 60
    assert task.instruction.startswith("The file `/app/orders.csv`")
    assert task.config["verifier"]["timeout_sec"] == 60
    assert task.steps[0].tests == one / "tests"
    assert task.steps[0].solution == one / "solution"
    assert not task.separate
    assert not task.keep_services


def test_multi_step(two):
    task = load_task(two)
    assert [s.name for s in task.steps] == ["clean", "report"]
    assert [s.min_reward for s in task.steps] == [0.5, None]
    assert [s.agent_timeout for s in task.steps] == [300, 300]
    assert task.steps[1].tests == two / "steps/report/tests"
    assert task.reward_strategy == "mean"
    edit(two / "task.toml", '"mean"', '"final"')
    assert load_task(two).reward_strategy == "final"


def test_steps_share_a_script_and_a_solution(two):
    shutil.move(two / "steps/clean/tests/test.sh", two / "shared.sh")
    (two / "steps/report/tests/test.sh").unlink()
    (two / "tests").mkdir()
    shutil.move(two / "shared.sh", two / "tests/test.sh")
    shutil.rmtree(two / "steps/report/solution")
    shutil.move(two / "steps/clean/solution", two / "solution")
    task = load_task(two)
    assert task.steps[0].tests == two / "steps/clean/tests"
    assert {s.solution for s in task.steps} == {two / "solution"}


def test_everything_that_task_toml_can_say(one):
    (one / "task.toml").write_text(
        'version = "1.0"\nartifacts = ["/app/out", {source = "/app/db"}]\n'
        "[metadata.workbench]\nkeep_services = true\nnoop = 0\npartials.half = 0.5\nprogram.parent = 'x'\n[metadata.anything]\nfree = 1\n"
        '[agent]\nnetwork_mode = "no-network"\n'
        '[verifier]\nenvironment_mode = "separate"\nenv = {TOKEN = "t"}\n[verifier.environment]\nnetwork_mode = "public"\n'
        '[environment]\nmemory = "2G"\nstorage = "512M"\ncpus = 0.5\nnetwork_mode = "allowlist"\nallowed_hosts = ["a.org"]\n'
    )
    task = load_task(one)
    assert task.name == "one"  # no [task]: the folder's name
    assert (task.cpus, task.memory_mb, task.storage_mb) == (0.5, 2048, 512)
    assert (task.network, task.allowed_hosts, task.verifier_network) == ("no-network", (), "public")
    assert (task.separate, task.keep_services, task.artifacts) == (True, True, ("/app/out", "/app/db"))
    assert task.verifier_env == {"TOKEN": "t"}
    assert task.steps[0].agent_timeout is None


def test_sound_workdirs(one):
    for workdir in ("/", "/app", "/srv/a..b/c", "/app/"):
        shutil.copy(one / "task.toml", one / "kept")
        edit(one / "task.toml", "cpus = 1", f'workdir = "{workdir}"')
        assert load_task(one).config["environment"]["workdir"] == workdir
        shutil.move(one / "kept", one / "task.toml")


@pytest.mark.parametrize(("allow", "network"), [("true", "public"), ("false", "no-network")])
def test_legacy_allow_internet(one, allow, network):
    edit(one / "task.toml", 'network_mode = "no-network"', f"allow_internet = {allow}")
    assert load_task(one).network == network


@pytest.mark.parametrize(
    ("old", "new", "kind", "at", "words"),
    [
        ("[verifier]", "[verifer]", "unknown-key", "", ("verifer", "did you mean 'verifier'?")),
        ("cpus = 1", "cpu = 1", "unknown-key", "", ("environment.cpu", "'cpus'")),
        ("timeout_sec = 300.0", "memory_mb = 5", "unknown-key", "", ("agent.memory_mb", "[environment]")),
        ("keep_services", "keep_service", "unknown-key", "", ("keep_services",)),
        ("keep_services", "wheels", "unknown-key", "", ("wheels", "keep_services")),
        ("keep_services = false", "noop = true", "wrong-type", "", ("a number",)),
        ("keep_services = false", "partials = 1", "wrong-type", "", ("a table",)),
        ("keep_services = false", "keep_services = 'no'", "wrong-type", "", ("true or false", "'no'")),
        ("timeout_sec = 300.0", "timeout_sec = 'soon'", "wrong-type", "", ("agent.timeout_sec", "a number", "'soon'")),
        ("cpus = 1", "cpus = ['a']", "wrong-type", "", ("cpus", "number", "a list")),
        ("cpus = 1", "cpus = nan", "wrong-type", "", ("cpus",)),
        ("cpus = 1", "cpus = 0", "wrong-type", "", ("above 0",)),
        ("memory_mb = 512", "memory_mb = 1.5", "wrong-type", "", ("whole number", "1.5")),
        ("memory_mb = 512", "memory = 'infG'", "wrong-type", None, ("Harbor cannot read",)),
        ("memory_mb = 512", "memory_mb = 512\nmemory = '1T'", "wrong-type", "[environment]", ("1T",)),
        ("timeout_sec = 300.0", "timeout_sec = inf", "wrong-type", "", ("finite",)),
        ("timeout_sec = 300.0", "timeout_sec = -1", "wrong-type", "", ("above 0",)),
        ('"no-network"', '"none"', "wrong-type", "", ("'no-network', 'public', 'allowlist'", "'none'")),
        ('name = "org/one"', 'name = "one"', "wrong-type", "", ("org/name",)),
        ('name = "org/one"', "", "missing-section", "[task]", ("task.name is missing",)),
        ('schema_version = "1.4"', "environment = 5", "bad-toml", None, ("not TOML",)),
        ("cpus = 1", 'workdir = "/app/../../etc"', "wrong-type", "", ("workdir", "'..'")),
        ("cpus = 1", 'workdir = "app"', "wrong-type", "", ("absolute",)),
        ("cpus = 1", 'os = "windows"', "lint", "", ("Linux",)),
    ],
)
def test_faults_of_task_toml_name_key_line_and_cure(one, old, new, kind, at, words):
    """at: text of the line that the fault must point to; "" means the edited line, None no line in particular."""
    edit(one / "task.toml", old, new)
    fault = only(one, kind)
    if at is not None:
        assert fault.where == f"task.toml:{line_of(one, at or new)}"
    assert all(word in fault.message for word in words), fault.message


def test_unknown_and_wrong_keys_inside_steps(two):
    edit(
        two / "task.toml",
        'name = "report"\nagent.timeout_sec = 300.0',
        'name = "report"\nagent.timeout = 3\nmin_reward = "x"',
    )
    found = {(f.kind, f.where) for f in faults(two)}
    unknown, wrong = line_of(two, "agent.timeout = 3"), line_of(two, 'min_reward = "x"')
    assert found == {("unknown-key", f"task.toml:{unknown}"), ("wrong-type", f"task.toml:{wrong}")}


def test_missing_environment_section(one):
    text = (one / "task.toml").read_text()
    (one / "task.toml").write_text(text[: text.index("[environment]")])
    assert "public network" in only(one, "missing-section").message
    (one / "task.toml").write_text("# nothing\n")
    only(one, "missing-section")


def test_steps_folder_without_section(two):
    text = (two / "task.toml").read_text()
    (two / "task.toml").write_text(text[: text.index("# Each step")] + text[text.index("[metadata]") :])
    assert "[[steps]]" in next(f.message for f in faults(two) if f.kind == "missing-section")


def test_step_that_has_no_folder(two):
    shutil.rmtree(two / "steps/report")
    assert {f.where for f in faults(two)} == {
        f"steps/report/{n}" for n in ("instruction.md", "tests/test.sh", "solution/solve.sh")
    }


@pytest.mark.parametrize("data", [b"a = [", b"\xff\xfe", b"a = " + b"[" * 5000, b"a = 1\na = 2\n"])
def test_bad_toml(one, data):
    (one / "task.toml").write_bytes(data)
    assert only(one, "bad-toml").where.startswith("task.toml")


@pytest.mark.parametrize(
    "name", ["task.toml", "instruction.md", "tests/test.sh", "solution/solve.sh", "environment/Dockerfile"]
)
def test_missing_and_empty_files(one, name):
    (one / name).write_bytes(b"")
    assert only(one, "missing-file").where == name
    (one / name).unlink()
    assert only(one, "missing-file").where == name


def test_docker_image_stands_in_for_a_dockerfile(one):
    (one / "environment/Dockerfile").unlink()
    edit(one / "task.toml", "cpus = 1", 'docker_image = "python:3.13-slim"')
    assert load_task(one).config["environment"]["docker_image"] == "python:3.13-slim"


def test_solution_is_optional_where_asked(one):
    shutil.rmtree(one / "solution")
    only(one, "missing-file")
    assert load(one, need_solution=False).steps[0].solution is None


@pytest.mark.parametrize("name", ["tests/test.sh", "solution/solve.sh"])
def test_scripts_need_their_x_bit_and_unix_lines(one, name):
    (one / name).chmod(0o644)
    assert f"chmod +x {name}" in only(one, "not-executable").message
    (one / name).chmod(0o755)
    (one / name).write_bytes(b"#!/bin/sh\r\ntrue\r\n")
    assert "dos2unix" in only(one, "lint").message


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"hello\0world", "wrong-type"),
        (b"caf\xe9", "wrong-type"),
        ("evil \u202e txt".encode(), "lint"),
        ("tag \U000e0041".encode(), "lint"),
        (b"\x1b[2Jgone", "lint"),
        (b" \n\t\n", "missing-file"),
        (b"<!-- benchmark canary GUID -->\n\n", "missing-file"),
        (b"x" * (10 << 20), "too-large"),
    ],
)
def test_hostile_instructions(one, data, kind):
    (one / "instruction.md").write_bytes(data)
    assert only(one, kind).where.startswith("instruction.md")


def test_canary_lines_are_not_shown(one):
    (one / "instruction.md").write_text("<!-- benchmark canary GUID -->\n\nDo it.\n")
    assert load_task(one).instruction == "Do it.\n"


@pytest.mark.parametrize(
    "target", ["/etc/passwd", "../../../etc/passwd", "orders.csv/../../../x", "self", "..", "missing/../../../y"]
)
def test_links_that_leave_or_loop(one, target):
    (one / "environment/self").symlink_to(target)
    assert only(one, "unsafe-path").where == "environment/self"


def test_links_over_links(one):
    (one / "environment/up").symlink_to("../tests")
    (one / "tests/up").symlink_to("../..")
    (one / "environment/out").symlink_to("up/up/secret")
    assert {f.where for f in faults(one)} == {"tests/up", "environment/out"}


def test_links_within_are_kept_and_sealed(one):
    before = load_task(one).digest
    (one / "environment/again.csv").symlink_to("orders.csv")
    assert load_task(one).digest != before


@pytest.mark.parametrize("name", ["task.toml", "instruction.md", "tests", "solution"])
def test_required_files_are_no_links(one, name):
    shutil.move(one / name, one / "moved")
    (one / name).symlink_to("moved")
    assert faults(one)[0].kind in ("unsafe-path", "missing-file")
    assert "link" in faults(one)[0].message


def test_special_files_and_names(one):
    os.mkfifo(one / "environment/pipe")
    (one / "environment/new\nline").write_text("x")
    (one / "environment/back\\slash").write_text("x")
    (one / "environment" / os.fsdecode(b"\xff")).write_text("x")
    (one / "environment/rtl\u202e").write_text("x")
    found = faults(one)
    assert [f.kind for f in found] == ["unsafe-path"] * 5
    assert all(f.where.isprintable() for f in found)


def test_required_file_that_is_a_pipe_does_not_hang(one):
    (one / "instruction.md").unlink()
    os.mkfifo(one / "instruction.md")
    assert {f.kind for f in faults(one)} == {"unsafe-path"}


def test_sparse_file_is_refused_unread(one):
    with (one / "environment/huge").open("wb") as file:
        file.truncate(2 << 30)
    assert only(one, "too-large").where == "environment/huge"


def test_too_many_and_too_deep(one, monkeypatch):
    monkeypatch.setattr("workbench.tasks.digest.MAX_FILES", 5)
    assert "more than 5 files" in only(one, "too-large").message
    monkeypatch.undo()
    deep = one / "environment" / "/".join("d" * 70)
    deep.mkdir(parents=True)
    assert "nested" in only(one, "too-large").message


def test_all_faults_are_found_at_once(one):
    edit(one / "task.toml", "[verifier]", "[verifer]")
    edit(one / "task.toml", "cpus = 1", "cpus = 'many'")
    (one / "instruction.md").unlink()
    (one / "solution/solve.sh").chmod(0o644)
    (one / "environment/x").symlink_to("/etc/passwd")
    assert sorted(f.kind for f in faults(one)) == [
        "missing-file",
        "not-executable",
        "unknown-key",
        "unsafe-path",
        "wrong-type",
    ]
    with pytest.raises(TaskError, match="verifer"):
        load_task(one)


def test_not_a_folder(tmp_path):
    assert "no such folder" in only(tmp_path / "none", "missing-file").message
    (tmp_path / "file").write_text("x")
    assert "not a folder" in only(tmp_path / "file", "missing-file").message


def test_mixed_verifier_modes_and_networks_between_steps(two):
    edit(
        two / "task.toml",
        'name = "report"',
        'name = "report"\nagent.network_mode = "public"\nverifier.environment_mode = "separate"',
    )
    assert [f.kind for f in faults(two)] == ["lint", "lint"]


def test_min_reward_as_a_table(two):
    edit(two / "task.toml", "min_reward = 0.5 ", "min_reward = {reward = 0.25} ")
    assert load_task(two).steps[0].min_reward == 0.25
    edit(two / "task.toml", "{reward = 0.25}", "{passed = 1}")
    assert "'reward' only" in only(two, "wrong-type").message


def test_loading_runs_and_writes_nothing(one):
    (one / "solution/solve.sh").write_text(f"#!/bin/sh\ntouch {one}/ran\n")
    before = sorted(p.relative_to(one) for p in one.rglob("*"))
    load_task(one)
    assert sorted(p.relative_to(one) for p in one.rglob("*")) == before
