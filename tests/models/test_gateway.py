from __future__ import annotations

import http.client
import json
import socket
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from words import merging_tokenizer

from workbench.models import ModelError, Sampling
from workbench.models.chat_format import HERMES, ChatFormat
from workbench.models.engines_scripted import ScriptedEngine
from workbench.models.gateway import Caps, Gateway

TOOLS = [{"type": "function", "function": {"name": "bash", "description": "Run it.", "parameters": {"type": "object"}}}]


@pytest.fixture(scope="module")
def tokenizer():
    return merging_tokenizer()


@pytest.fixture
def served(tokenizer):
    made = []

    def serve(script, **options):
        engine = ScriptedEngine(tokenizer, script)
        made.append(Gateway(engine, ChatFormat(tokenizer, engine.end_ids, template=HERMES), **options))
        return made[-1]

    yield serve
    for gateway in made:
        gateway.close()


def post(session, body, token=None, **headers):
    """(status, parsed body or raw text of a stream)"""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token or session.token}", **headers}
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"{session.url}/chat/completions", data=data, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            status, text, kind = answer.status, answer.read().decode(), answer.headers["content-type"]
    except urllib.error.HTTPError as error:
        status, text, kind = error.code, error.read().decode(), error.headers["content-type"]
    return status, text if kind == "text/event-stream" else json.loads(text)


def from_stream(text: str) -> tuple[dict, str]:
    """The message and the finish reason, put together as clients do."""
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    message: dict = {"role": "assistant", "content": ""}
    finish = ""
    for chunk in map(json.loads, lines):
        for choice in chunk["choices"]:
            delta = choice["delta"]
            message["content"] += delta.get("content") or ""
            for call in delta.get("tool_calls", []):
                message.setdefault("tool_calls", []).append({k: v for k, v in call.items() if k != "index"})
            finish = choice["finish_reason"] or finish
    return message, finish


def as_pi_sends_it(message: dict) -> dict:
    """Pi keeps the parsed arguments and writes them anew, without spaces; it sends empty text back as null."""
    calls = [
        {**c, "function": {**c["function"], "arguments": json.dumps(json.loads(c["function"]["arguments"]), separators=(",", ":"))}}
        for c in message.get("tool_calls", [])
    ]  # fmt: skip
    return {"role": "assistant", "content": message["content"] or None} | ({"tool_calls": calls} if calls else {})


def coding_agent(session, turns: int, stream: bool) -> list[dict]:
    """Pi's loop: call the tool until there is no call any more. Returns the history."""
    messages = [{"role": "developer", "content": "You are an agent."}, {"role": "user", "content": "Fix it."}]
    for turn in range(turns):
        asked = {"model": "m", "messages": messages, "tools": TOOLS, "stream": stream, "store": False, "max_completion_tokens": 2048}  # fmt: skip
        if stream:
            asked["stream_options"] = {"include_usage": True}
        status, got = post(session, asked)
        assert status == 200, got
        message, finish = from_stream(got) if stream else (got["choices"][0]["message"], got["choices"][0]["finish_reason"])  # fmt: skip
        messages.append(as_pi_sends_it(message))
        if finish != "tool_calls":
            break
        for call in message["tool_calls"]:
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": f"output {turn}"})
    return messages


def script(turns: int):
    """Calls of the tool with arguments as models write them (spaces, 1.0, accents), the last answer is text."""
    call = '<tool_call>\n{"name": "bash", "arguments": {"command": "ls  -la /app # é", "timeout": 1.0}}\n</tool_call>'
    texts = [
        ("I will look.\n" if i % 2 else "") + call + (("\n" + call) if i % 3 == 2 else "") for i in range(turns - 1)
    ]
    return [*texts, "Done, all tests pass."]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("turns", [3, 8, 64])
def test_trained_ids_are_exactly_the_sampled_ids(served, tokenizer, turns, stream):
    texts = script(turns)
    gateway = served(texts)
    session = gateway.open_session()
    history = coding_agent(session, turns, stream)
    assert history[-1] == {"role": "assistant", "content": texts[-1]}
    (segment,) = session.segments()
    assert not session.recording.breaks
    expected = [i for t in texts for c in t for i in tokenizer.encode(c)]
    got = [i for i, s in zip(segment.ids, segment.sampled, strict=True) if s and i != tokenizer.eos_token_id]
    assert got == expected
    assert sum(i == tokenizer.eos_token_id for i, s in zip(segment.ids, segment.sampled, strict=True) if s) == turns
    prompts = gateway.engine.prompts
    assert segment.ids[: len(prompts[-1])] == prompts[-1]
    for before, after in pairwise(prompts):
        assert after[: len(before)] == before
    assert tokenizer.decode(segment.ids).count("<tool_response>") == sum(m["role"] == "tool" for m in history)


def test_an_agent_that_compacts_its_history_gives_two_segments(served):
    session = served(script(3)).open_session()
    history = coding_agent(session, 2, True)
    status, _ = post(session, {"messages": [{"role": "user", "content": "Summary: all well."}], "tools": TOOLS})
    assert status == 200
    assert session.recording.breaks == {"history": 1}
    assert [s.trained for s in session.segments()] == [sum(len(c.ids) for c in session.recording.calls[:2]), len(session.recording.calls[2].ids)]  # fmt: skip
    assert len(history) == 6


def test_sessions_at_once_do_not_mix(served):
    gateway = served(lambda prompt: f"echo {sum(prompt) % 977}")
    sessions = [gateway.open_session(f"s{i}", sampling=Sampling(64)) for i in range(12)]

    def talk(session):
        messages = [{"role": "user", "content": session.id}]
        for _ in range(5):
            _, got = post(session, {"messages": messages})
            messages += [got["choices"][0]["message"], {"role": "user", "content": "on"}]

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(talk, sessions))
    for session in sessions:
        assert len(session.recording.calls) == 5
        assert len(session.segments()) == 1
        assert session.recording.calls[0].messages[0]["content"] == session.id


def test_only_the_sessions_own_token_opens_it(served):
    gateway = served(["hi"])
    one, two = gateway.open_session("one"), gateway.open_session("two")
    asked = {"messages": [{"role": "user", "content": "x"}]}
    assert post(one, asked, token=two.token)[0] == 401
    assert post(one, asked, token="é")[0] == 401
    assert post(one, asked, Authorization="")[0] == 401
    assert post(one, asked)[0] == 200
    gateway.close_session(one)
    assert post(one, asked)[0] == 401
    assert not two.recording.calls
    assert len(one.recording.calls) == 1
    with pytest.raises(ValueError, match="is open"):
        gateway.open_session("two")
    with pytest.raises(ValueError, match="letters"):
        gateway.open_session("../x")


@pytest.mark.parametrize(
    ("caps", "calls", "named"),
    [(Caps(calls=2), 2, "calls"), (Caps(tokens=6), 2, "tokens"), (Caps(seconds=0), 0, "seconds")],
)
def test_caps_end_a_session_with_an_error_that_clients_do_not_retry(served, caps, calls, named):
    session = served(["abc"]).open_session(caps=caps)
    messages = [{"role": "user", "content": "x"}]
    for _ in range(calls):
        status, got = post(session, {"messages": messages})
        assert status == 200
        messages = [*messages, got["choices"][0]["message"], {"role": "user", "content": "on"}]
    status, got = post(session, {"messages": messages})
    assert (status, got["error"]["code"]) == (400, "session_limit")
    assert named in got["error"]["message"]
    assert session.refused == {"session_limit": 1}
    assert sum(len(c.ids) for c in session.recording.calls) <= caps.tokens


def test_a_flood_of_requests_is_turned_away(served):
    gate = threading.Event()
    session = served(lambda _: gate.wait(20) and "x").open_session(caps=Caps(at_once=2))
    asked = {"messages": [{"role": "user", "content": "x"}]}
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(post, session, asked) for _ in range(2)]
        while session._busy < 2:
            pass
        status, got = post(session, asked)
        gate.set()
        assert [r.result()[0] for r in running] == [200, 200]
    assert status == 400
    assert "at_once" in got["error"]["message"]


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b'{"messages": []}', b'{"messages": [1]}', b"[" * 100_000,
        {"messages": [{"role": "wizard", "content": "x"}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
        {"messages": [{"role": "user", "content": 7}]},
        {"messages": [{"role": "assistant", "content": "prefill"}]},
        {"messages": [{"role": "user", "content": "x", "tool_calls": "no"}]},
        {"messages": [{"role": "user", "content": "x"}], "tools": [{"type": "function"}]},
        {"messages": [{"role": "user", "content": "x"}], "n": 2},
        {"messages": [{"role": "user", "content": "x"}], "max_tokens": -1},
        {"messages": [{"role": "user", "content": "x"}], "stop": [1]},
        {"messages": [{"role": "user", "content": "x"}], "stop": 3},
        {"messages": [{"role": "user", "content": "x"}], "response_format": {"type": "json_object"}},
        {"messages": [{"role": "user", "content": "x"}], "response_format": "json"},
        {"messages": [{"role": "user", "content": "x"}], "tool_choice": "required"},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_chat_request_is_said_to_be_none(served, body):
    session = served(["hi"]).open_session()
    status, got = post(session, body)
    assert status == 400, got
    assert got["error"]["message"]
    assert not session.recording.calls
    assert not session.failures


def test_deep_arguments_do_no_harm(served):
    session = served(["hi"]).open_session()
    deep = '{"a":' * 900 + "1" + "}" * 900
    call = {"function": {"name": "bash", "arguments": deep}}
    messages = [{"role": "assistant", "content": "", "tool_calls": [call]}, {"role": "user", "content": "x"}]
    status, _ = post(session, {"messages": messages, "tools": TOOLS})
    assert status in (200, 400)
    assert post(session, {"messages": messages[1:], "tools": TOOLS})[0] == 200


def test_text_that_is_none_is_refused(served):
    session = served(["hi"]).open_session()
    status, got = post(session, b'{"messages": [{"role": "user", "content": "\\ud800"}]}')
    assert status == 400, got
    assert not session.failures


def test_a_fault_of_the_gateways_own_is_an_infrastructure_failure(served):
    session = served(lambda _: 1 / 0).open_session()
    status, _ = post(session, {"messages": [{"role": "user", "content": "x"}]})
    assert status == 503
    assert "ZeroDivisionError" in session.failures[0]


def raw(gateway, text: bytes) -> bytes:
    host, port = gateway._server.server_address
    with socket.create_connection((host, port), timeout=20) as connection:
        connection.sendall(text)
        return connection.recv(4096)


def test_odd_http_is_answered_and_the_gateway_lives(served):
    gateway = served(["hi"])
    session = gateway.open_session("s")
    head = f"POST /sessions/s/v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {session.token}\r\n".encode()
    assert b" 413 " in raw(gateway, head + b"Content-Length: 99999999999\r\n\r\n")
    assert b" 413 " in raw(gateway, head + b"Content-Length: 00000000000099999999999\r\n\r\n")
    assert b" 411 " in raw(gateway, head + b"Content-Length: -1\r\n\r\n")
    assert b" 411 " in raw(gateway, head + b"Transfer-Encoding: chunked\r\n\r\n")
    assert b" 404 " in raw(gateway, b"GET /sessions/s/v1/../../etc HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b" 200 " in raw(gateway, b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b" 501 " in raw(gateway, b"DELETE /sessions/s/v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
    with socket.create_connection(gateway._server.server_address[:2]) as gone:
        gone.sendall(head + b"Content-Length: 500\r\n\r\n{")
    assert post(session, {"messages": [{"role": "user", "content": "x"}]})[0] == 200


def test_a_retry_of_an_answer_that_was_lost_gets_the_same_answer(served):
    session = served(["first", "second"]).open_session()
    asked = {"messages": [{"role": "user", "content": "x"}]}
    first = post(session, asked)[1]
    again = post(session, asked, **{"X-Stainless-Retry-Count": "1"})[1]
    fresh = post(session, asked)[1]
    texts = [a["choices"][0]["message"]["content"] for a in (first, again, fresh)]
    assert texts == ["first", "first", "second"]
    assert len(session.recording.calls) == 2
    assert session.recording.repeated == 1


def test_a_failing_engine_is_no_fault_of_the_agent(served):
    def fail(_):
        raise ModelError("the GPU is gone")

    session = served(fail).open_session()
    status, got = post(session, {"messages": [{"role": "user", "content": "x"}]})
    assert (status, got["error"]["code"]) == (503, "engine")
    assert session.failures == ["the GPU is gone"]


def test_a_full_context_is_told_in_the_words_that_agents_know(served):
    gateway = served(["x"])
    gateway.engine.max_context = 20
    session = gateway.open_session()
    status, got = post(session, {"messages": [{"role": "user", "content": "word " * 50}]})
    assert (status, got["error"]["code"]) == (400, "context_length_exceeded")
    assert "maximum context length" in got["error"]["message"]
    assert not session.failures


def test_models_are_listed_over_a_kept_connection(served):
    gateway = served(["hi"])
    session = gateway.open_session()
    connection = http.client.HTTPConnection(*gateway._server.server_address[:2], timeout=20)
    for _ in range(3):
        connection.request("GET", f"/sessions/{session.id}/v1/models", headers={"Authorization": f"Bearer {session.token}"})  # fmt: skip
        assert json.loads(connection.getresponse().read())["data"][0]["id"] == "scripted"
    connection.close()


def test_a_unix_socket_serves_as_well(served, tmp_path):
    path = tmp_path / "gateway.sock"
    session = served(["hi"], unix=path).open_session()
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(path))
    body = json.dumps({"messages": [{"role": "user", "content": "x"}]})
    connection.request("POST", f"/sessions/{session.id}/v1/chat/completions", body, {"Authorization": f"Bearer {session.token}"})  # fmt: skip
    assert json.loads(connection.getresponse().read())["choices"][0]["message"]["content"] == "hi"
    connection.close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_it_is_not_offered_to_the_network(served):
    with pytest.raises(ValueError, match="this machine only"):
        served(["x"], host="0.0.0.0")
