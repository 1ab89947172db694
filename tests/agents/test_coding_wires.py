"""The three wire formats: a reply is read whole from its stream, and a request leaves with nothing but what it needs."""

from __future__ import annotations

import json

import pytest
from wire_endpoints import WIRES, Say

from workbench.agents.coding import chat, messages, responses
from workbench.agents.coding.wire import Forbidden, events

FORMATS = {"/chat/completions": chat, "/responses": responses, "/messages": messages}


def stream(wire, say: Say) -> bytes:
    parts = []
    for name, data in WIRES[wire.PATH](say, 1):
        head = f"event: {name}\n" if name else ""
        parts.append(f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n")
    return "".join(parts).encode()


def minimal(wire, **more: object) -> dict:
    return {"input" if wire is responses else "messages": [{"role": "user", "content": "hi"}], **more}


@pytest.mark.parametrize("wire", FORMATS.values(), ids=FORMATS)
class TestEveryWire:
    def test_text_calls_and_usage_come_whole(self, wire):
        say = Say("Ünïcode, and long enough to come in several pieces of the stream.",
                  [("run", {"command": "ls -l"}), ("write", {"path": "a", "content": "x" * 200})])  # fmt: skip
        said = wire.said(events(stream(wire, say)))
        assert said.text == say.text
        assert [(c.name, c.parsed()) for c in said.calls] == [(n, a) for n, a in say.calls]
        assert len({c.id for c in said.calls}) == 2
        assert (said.finish, said.complete, said.counted) == ("calls", True, True)
        assert (said.prompt_tokens, said.completion_tokens) == (1000, 50)

    def test_malformed_arguments_stay_as_the_model_wrote_them(self, wire):
        said = wire.said(events(stream(wire, Say("", [("run", '{"command": "ls')]))))
        assert said.calls[0].arguments == '{"command": "ls'

    def test_stop_reasons(self, wire):
        assert wire.said(events(stream(wire, Say("Done.")))).finish == "stop"
        assert wire.said(events(stream(wire, Say("Half a", finish="length")))).finish == "length"

    @pytest.mark.parametrize("line_end", ["\n", "\r\n"])
    def test_a_stream_that_breaks_off_anywhere_is_not_complete(self, wire, line_end):
        whole = stream(wire, Say("A text of some length.", [("run", {"command": "ls"})])).replace(
            b"\n", line_end.encode()
        )
        last = whole.rindex(b"data: ")
        if wire is chat:  # the mark and the usage come after the reply's own end
            last = whole.index(b'"finish_reason": "tool_calls"') - 1
        for end in range(0, last, 41):
            assert not wire.said(events(whole[:end])).complete
        assert wire.said(events(whole)).complete

    def test_garbage_is_no_reply(self, wire):
        for data in (
            b"",
            b"<html>",
            b"data: [1,2]\n\n",
            b"data: " + b"[" * 100_000 + b"\n\n",
            b"\xff\xfe\n\n",
            b"data: {}\n\n",
        ):
            assert not wire.said(events(data)).complete

    def test_model_and_limit_are_the_hosts(self, wire):
        made = wire.outgoing(minimal(wire, model="dearest", max_tokens=9, store=True, stream=False), "cheap", 5)
        assert made["model"] == "cheap"
        assert made["stream"] is True
        assert not made.get("store")
        assert 5 in made.values()
        assert 9 not in made.values()

    @pytest.mark.parametrize("name", ["mcp_servers", "web_search_options", "metadata", "previous_response_id", "background",
                                      "container", "service_tier", "user", "audio"])  # fmt: skip
    def test_unknown_fields_stay_behind(self, wire, name):
        assert name not in wire.outgoing(minimal(wire, **{name: "x"}), "m", 5)

    def test_a_request_without_messages_is_refused(self, wire):
        with pytest.raises(Forbidden):
            wire.outgoing({"messages": 3, "input": 3}, "m", 5)


REMOTE = [
    (chat, [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x/a.png?secret"}}]}]),
    (chat, [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f1"}}]}]),
    (responses, [{"role": "user", "content": [{"type": "input_image", "image_url": "https://x/a"}]}]),
    (responses, [{"role": "user", "content": [{"type": "input_file", "file_url": "https://x/a"}]}]),
    (responses, [{"type": "item_reference", "id": "msg_of_somebody"}]),
    (messages, [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "https://x/a"}}]}]),
    (messages, [{"role": "user", "content": [{"type": "document", "source": {"type": "file", "file_id": "f"}}]}]),
]


@pytest.mark.parametrize(("wire", "content"), REMOTE)
def test_nothing_is_fetched_for_a_sandbox(wire, content):
    with pytest.raises(Forbidden):
        wire.outgoing({"input" if wire is responses else "messages": content}, "m", 5)


def test_links_in_texts_and_in_arguments_are_no_fetching():
    tool = {"type": "tool_use", "id": "1", "name": "Write", "input": {"url": "https://x", "file_id": "f"}}
    told = [{"role": "assistant", "content": [{"type": "text", "text": "see https://x"}, tool]}]
    assert messages.outgoing({"messages": told}, "m", 5)["messages"] == told
    picture = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]}]
    assert chat.outgoing({"messages": picture}, "m", 5)["messages"] == picture


PROVIDERS = [
    (chat, {"type": "web_search"}),
    (responses, {"type": "web_search"}),
    (responses, {"type": "code_interpreter", "container": {"type": "auto"}}),
    (responses, {"type": "mcp", "server_url": "https://x"}),
    (messages, {"type": "web_search_20250305", "name": "web_search"}),
    (messages, {"type": "web_fetch_20250910", "name": "web_fetch"}),
    (messages, {"type": "code_execution_20250825", "name": "code_execution"}),
]


@pytest.mark.parametrize(("wire", "tool"), PROVIDERS)
def test_tools_that_run_at_the_providers_stay_behind(wire, tool):
    own = {"type": "function", "name": "run", "function": {"name": "run"}} if wire is not messages else {"name": "run"}
    assert wire.outgoing(minimal(wire, tools=[tool, own]), "m", 5)["tools"] == [own]


def test_errors_inside_of_streams():
    said = messages.said(events(b'data: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n'))
    assert (said.error, said.transient, said.complete) == ("busy", True, False)
    failed = {
        "type": "response.failed",
        "response": {"error": {"code": "context_length_exceeded", "message": "too long"}},
    }
    said = responses.said(events(f"data: {json.dumps(failed)}\n\n".encode()))
    assert (said.error, said.transient, said.complete) == ("too long", False, False)


def test_cached_tokens_count_as_prompt():
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 3, "cache_read_input_tokens": 10,
                                                            "cache_creation_input_tokens": 20, "output_tokens": 1}}}  # fmt: skip
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}}
    said = messages.said([start, end, {"type": "message_stop"}])
    assert (said.prompt_tokens, said.completion_tokens, said.cached_tokens) == (33, 7, 10)


def test_results_of_tools():
    told = [{"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "a"}]}]
    assert [(r.call, r.text) for r in chat.results({"messages": told})] == [("1", "a")]
    told = [{"type": "function_call_output", "call_id": "1", "output": "a"}]
    assert [(r.call, r.text) for r in responses.results({"input": told})] == [("1", "a")]
    told = [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "a", "is_error": True}]}
    ]
    assert [(r.call, r.text, r.error) for r in messages.results({"messages": told})] == [("1", "a", True)]
