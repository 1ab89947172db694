"""What a server said when it did not start; no vLLM is needed."""

from __future__ import annotations

import tempfile

import pytest

from workbench.models import ModelError
from workbench.models.vllm_server import VllmServer


def test_the_end_of_the_log_is_told_and_no_file_is_left(tmp_path, monkeypatch):
    kept = tmp_path / "temporary"
    kept.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(kept))
    (tmp_path / "config.json").write_text("{}")
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nseq 1 9000\necho no room for the weights >&2\nexit 3\n")
    program.chmod(0o755)
    server = VllmServer(tmp_path, python=str(program))
    assert list(kept.iterdir()) == []  # while it is open too: a killed process leaves nothing
    with pytest.raises(ModelError, match=r"(?s)code 3:\n8982\n.*9000\nno room for the weights$"):
        server.start()
    assert server.log_tail() == ""
