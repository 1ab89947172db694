"""Harbor both ways: its command on our sandboxes, and its environments behind our Protocol."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from workbench.sandboxes import SandboxError, Unsupported, get_backend
from workbench.tasks.scaffold import scaffold

from .conformance import make_environment

OURS = "workbench.sandboxes.harbor_environment:WorkbenchEnvironment"
ROOT = Path(__file__).resolve().parents[2]


def harbor_run(task: Path, agent: str, jobs: Path, *more: str) -> dict:
    """One trial by Harbor's own command: the trial's result.json."""
    command = Path(sys.executable).with_name("harbor")
    env = {**os.environ, "HARBOR_TELEMETRY": "0", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "HOME": str(jobs.parent)}
    done = subprocess.run(
        [command, "run", "-p", task, "-a", agent, "-e", OURS, "-o", jobs, "--job-name", agent, *more],
        env=env, capture_output=True, text=True, check=False, cwd=ROOT, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = (jobs / agent).glob("*/result.json")
    return json.loads(result.read_text())


@pytest.mark.parametrize(("agent", "reward"), [("oracle", 1.0), ("nop", 0.0)])
def test_harbor_run_on_a_machine_without_docker(tmp_path, agent, reward, monkeypatch):
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    task = scaffold(tmp_path / "task").path
    result = harbor_run(task, agent, tmp_path / "jobs")
    assert result["exception_info"] is None
    assert result["verifier_result"]["rewards"]["reward"] == reward


def environment(tmp_path: Path, folder: Path | None = None, **options):
    """Our environment as Harbor makes it."""
    from harbor.environments.factory import EnvironmentFactory
    from harbor.models.task.config import EnvironmentConfig, NetworkMode, NetworkPolicy
    from harbor.models.trial.paths import TrialPaths

    paths = TrialPaths(trial_dir=tmp_path / "trial")
    paths.mkdir()
    return EnvironmentFactory.create_environment_from_import_path(
        OURS, environment_dir=folder or make_environment(tmp_path / "environment"), environment_name="e", session_id="e__1",
        trial_paths=paths, task_env_config=EnvironmentConfig(),
        network_policy=NetworkPolicy(network_mode=NetworkMode.NO_NETWORK), **options,
    )  # fmt: skip


def test_a_command_that_harbor_gives_up_on_does_not_live_on(tmp_path):
    async def scene():
        box = environment(tmp_path)
        await box.start(force_build=False)
        try:
            running = asyncio.ensure_future(box.exec("while :; do echo x >> /app/ticks; sleep 0.05; done"))
            await asyncio.sleep(0.7)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            first = (await box.exec("wc -c < /app/ticks")).stdout
            await asyncio.sleep(0.3)
            return first, (await box.exec("wc -c < /app/ticks")).stdout
        finally:
            await box.stop(delete=True)

    begun = time.monotonic()
    first, second = asyncio.run(scene())
    assert int(first) > 0
    assert first == second
    assert time.monotonic() - begun < 60


def test_files_and_persistent_variables_through_harbors_interface(tmp_path):
    async def scene():
        box = environment(tmp_path, persistent_env={"KEPT": "yes"})
        await box.start(force_build=False)
        try:
            (tmp_path / "up").mkdir()
            (tmp_path / "up" / "a").write_text("a")
            await box.upload_dir(tmp_path / "up", "/srv/up")
            await box.upload_file(tmp_path / "up" / "a", "/srv/b")
            said = await box.exec("cat a ../b; echo $KEPT; exit 3", cwd="/srv/up")
            (tmp_path / "down").mkdir()
            (tmp_path / "down" / "old").write_text("stays")
            await box.download_dir("/srv", tmp_path / "down")
            await box.download_file("/srv/b", tmp_path / "b")
            return said
        finally:
            await box.stop(delete=True)

    said = asyncio.run(scene())
    assert (said.stdout, said.return_code) == ("aayes\n", 3)
    assert sorted(p.name for p in (tmp_path / "down").rglob("*")) == ["a", "b", "old", "up"]
    assert (tmp_path / "b").read_text() == "a"


def test_compose_files_are_refused_before_anything_starts(tmp_path):
    folder = make_environment(tmp_path / "compose")
    (folder / "docker-compose.yaml").write_text("services: {}\n")
    with pytest.raises(ValueError, match="docker"):
        environment(tmp_path, folder)


def test_unknown_types_say_so():
    with pytest.raises(SandboxError, match="no-such-type"):
        get_backend("harbor:no-such-type")
    with pytest.raises(SandboxError, match="cannot be used here"):
        get_backend("harbor:no.such.module:Class")
    with pytest.raises(ValueError, match="harbor:<type>"):
        get_backend("harbor")


def test_harbor_does_not_report_our_use():
    get_backend(f"harbor:{OURS}")
    assert os.environ["HARBOR_TELEMETRY"] == "0"


def test_what_harbor_cannot_do_is_refused_by_name(tmp_path):
    backend = get_backend(f"harbor:{OURS}")
    image = backend.build(make_environment(tmp_path))
    box = backend.start(image)
    try:
        with pytest.raises(Unsupported, match="share a network"):
            backend.start(image, share_network=box)
    finally:
        box.stop()


def test_clean_removes_the_folders_of_dead_runs_only(tmp_path):
    backend = get_backend(f"harbor:{OURS}")
    box = backend.start(backend.build(make_environment(tmp_path)))
    try:
        gone = backend._session()
        note = json.loads((gone / "owner.json").read_text())
        pid, start, where, host = note["owner"].split("|")
        (gone / "owner.json").write_text(json.dumps({**note, "owner": f"{pid}|{int(start) + 1}|{where}|{host}"}))
        assert any(gone.name in line for line in backend.clean())
        assert not gone.exists()
        assert box.exec("echo alive").stdout == "alive\n"
    finally:
        box.stop()
