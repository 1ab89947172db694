"""Installing coding agents: what is said when it does not work, and that it is done once. The real one is in
test_coding_agents; here stands a script in npm's place, since what is tested is our side of it."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from workbench.agents.coding.install import PACKAGES, InstallError, install, is_installed, package
from workbench.cli import main

# Notes its arguments, then makes the packages' programs as the real one would.
_NPM = """#!/bin/sh
echo "$PWD $*" >> "$NPM_LOG"
test -z "$NPM_FAILS" || { echo "npm error code E404" >&2; echo "npm error 404 Not Found" >&2; exit 1; }
sleep 0.2
test -n "$NPM_EMPTY" || for f in $NPM_FILES; do mkdir -p "node_modules/${f%/*}"; echo x > "node_modules/$f"; done
"""


@pytest.fixture
def npm(tmp_path, monkeypatch):
    home = tmp_path / "bin"
    home.mkdir()
    (home / "npm").write_text(_NPM)
    (home / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}:/usr/bin:/bin")
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("NPM_LOG", str(tmp_path / "log"))
    for name in ("NPM_FAILS", "NPM_EMPTY"):
        monkeypatch.delenv(name, raising=False)
    programs = [
        agent.program(name, "").removeprefix("/node_modules/")
        for agent in PACKAGES.values()
        for name, _ in agent.programs
    ]
    monkeypatch.setenv("NPM_FILES", " ".join(programs))
    return tmp_path / "log"


@pytest.mark.parametrize("name", PACKAGES)
def test_versions_are_pinned_and_no_script_runs(npm, name):
    folder = install(package(name))
    line = npm.read_text()
    assert "--ignore-scripts" in line
    assert f"{PACKAGES[name].package}@{PACKAGES[name].version}" in line
    assert ("node-linux" in line) == (name == "pi")
    assert "registry" not in line  # the user's own configuration
    assert os.access(PACKAGES[name].program(PACKAGES[name].programs[0][0], folder), os.X_OK)
    for path in [folder, *folder.rglob("*")]:
        assert path.stat().st_mode & 0o444 == 0o444  # a sandbox's users are nobody here


def test_once_a_machine_however_many_ask(npm):
    threads = [threading.Thread(target=install, args=(package("pi"),)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    install(package("pi"))
    assert len(npm.read_text().splitlines()) == 1


def test_an_install_that_broke_off_is_taken_up_where_it_stopped(npm, monkeypatch):
    monkeypatch.setenv("NPM_FAILS", "1")
    with pytest.raises(InstallError, match="404 Not Found"):
        install(package("codex"))
    assert not is_installed(package("codex"))
    monkeypatch.delenv("NPM_FAILS")
    install(package("codex"))
    first, second = (line.split()[0] for line in npm.read_text().splitlines())
    assert first == second
    assert not Path(first).exists()


def test_a_package_without_its_program_is_not_taken(npm, monkeypatch):
    monkeypatch.setenv("NPM_EMPTY", "1")
    with pytest.raises(InstallError, match=r"npm installed no .*codex"):
        install(package("codex"))
    assert not is_installed(package("codex"))


def test_without_npm_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "state"))
    with pytest.raises(InstallError, match=r"no npm on PATH: install Node\.js"):
        install(package("claude-code"))


def test_the_command(npm, capsys, monkeypatch):
    assert main(["agents", "list", "--json"]) == 0
    assert [json.loads(line)["installed"] for line in capsys.readouterr().out.splitlines()] == [False] * 3
    assert main(["agents", "install", "pi", "codex", "pi"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["pi", "codex"]
    assert main(["agents", "list"]) == 0
    assert "not installed: workbench agents install claude-code" in capsys.readouterr().out
    monkeypatch.setenv("NPM_FAILS", "1")
    assert main(["agents", "install", "claude-code"]) == 1
    assert "npm config list" in capsys.readouterr().err
    assert main(["agents", "install", "emacs"]) == 2
    assert "claude-code, codex, pi" in capsys.readouterr().err
