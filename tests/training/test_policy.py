"""Policies from strings: where the learner's weights come from."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.models.tiny import tiny_llama, tiny_tokenizer, torch
from workbench.runs.profiles import load_profile
from workbench.training.policy import open_policy


@pytest.fixture
def served(tmp_path):
    """A model folder, and the address of a server that names it; nothing is sampled from it."""
    tiny_llama(seed=5).save_pretrained(tmp_path / "model")
    tiny_tokenizer().save_pretrained(tmp_path / "model")
    card = {"data": [{"id": "policy", "root": str(tmp_path / "model"), "max_model_len": 4096}]}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(card).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield tmp_path / "model", f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_without_weights_the_learner_begins_with_what_the_server_serves(served):
    folder, url = served
    policy = open_policy(f"vllm:{url}", load_profile("40_flywheel", "small"))
    wanted = tiny_llama(seed=5).state_dict()
    found = policy.network.state_dict()
    assert policy.model.engine.folder == folder
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    policy.close()
