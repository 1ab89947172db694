"""Pi as a policy that is trained: through its relay and the recording gateway, the ids are exactly those that were sampled."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from workbench.agents import Budget, get_agent
from workbench.agents.coding.endpoint import Endpoint
from workbench.agents.coding.install import InstallError, install, package
from workbench.sandboxes import SandboxError, get_backend
from workbench.tasks import Step, Task

CALL = '<tool_call>\n{"name": "bash", "arguments": {"command": "echo  é > a;  cat a", "timeout": 5.0}}\n</tool_call>'
TEXTS = [CALL, f"Once more.\n{CALL}", "It is written."]


@pytest.fixture
def tokenizer(monkeypatch):
    pytest.importorskip("tokenizers")
    monkeypatch.setattr(sys, "path", [*sys.path, str(Path(__file__).resolve().parents[1] / "models")])
    return importlib.import_module("words").merging_tokenizer()


@pytest.mark.slow
def test_trained_ids_are_the_sampled_ids(tokenizer, tmp_path):
    from workbench.models.chat_format import HERMES, ChatFormat
    from workbench.models.engines_scripted import ScriptedEngine
    from workbench.models.gateway import Gateway

    (tmp_path / "Dockerfile").write_text("FROM python:3.12-slim\nWORKDIR /app\n")
    try:
        install(package("pi"))
        backend = get_backend("bubblewrap")
    except (ImportError, InstallError, SandboxError) as error:
        pytest.skip(f"not on this machine: {error}")
    engine = ScriptedEngine(tokenizer, TEXTS)
    step = Step("", "Write é.", Path("tests"), None)
    with backend, Gateway(engine, ChatFormat(tokenizer, engine.end_ids, template=HERMES)) as gateway:
        session = gateway.open_session()
        pi = get_agent("pi", endpoint=Endpoint(lambda: (session.url, session.token), "policy"), context=32_768)
        with backend.start(backend.build(tmp_path), mounts=pi.mounts) as box:
            episode = pi.run(Task(tmp_path, "t", (step,), "x"), step, box, Budget(seconds=60))
        (segment,) = session.segments()
    assert episode.submitted
    assert [t.observation.strip() for t in episode.turns] == ["é", "é", ""]
    assert not session.recording.breaks
    sampled = [i for i, is_sampled in zip(segment.ids, segment.sampled, strict=True) if is_sampled]
    assert [i for i in sampled if i != tokenizer.eos_token_id] == [
        i for t in TEXTS for c in t for i in tokenizer.encode(c)
    ]
    assert len(sampled) == sum(t.completion_tokens for t in episode.turns)
