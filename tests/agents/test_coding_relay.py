"""The relay without a sandbox: on a loopback socket of this process, as it would stand in a sandbox's network."""

from __future__ import annotations

import json
import math
import socket
import threading
import time
from contextlib import contextmanager

import httpx
import pytest
from wire_endpoints import Say, WireEndpoint

from workbench.agents import Budget
from workbench.agents.coding import chat, messages
from workbench.agents.coding.endpoint import Endpoint
from workbench.agents.coding.relay import MAX_BODY, MAX_CONNECTIONS, Relay
from workbench.models.budget import Budget as Cap
from workbench.models.prices import Price

ASK = {"model": "x", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 99_999}


@contextmanager
def relay(endpoint: WireEndpoint | str, wire=chat, budget: Budget = Budget(seconds=30), **options):
    url = endpoint if isinstance(endpoint, str) else f"{endpoint.url}/v1"
    target = Endpoint(url, "the-model", **{"retries": 0, **options})
    made = Relay(socket.create_server(("127.0.0.1", 0)), wire, target, budget, time.monotonic() + budget.seconds)
    made.url = f"http://127.0.0.1:{made.server.server_address[1]}/v1"
    try:
        yield made
    finally:
        made.close()


def post(relay: Relay, body: object = ASK, **headers: str) -> httpx.Response:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx.post(
        relay.url + relay.wire.PATH, content=data, headers=headers, timeout=30, trust_env=False, verify=False
    )


def test_the_key_is_added_outside_and_the_sandboxes_headers_stay_inside(monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "the-real-key")
    with WireEndpoint(Say("hello")) as endpoint, relay(endpoint, key_env="SECRET_KEY") as made:
        reply = post(
            made, authorization="Bearer from-inside", cookie="a", **{"x-forwarded-for": "b", "anthropic-beta": "c"}
        )
        assert reply.status_code == 200
        assert b"the-real-key" not in reply.content
        assert "the-real-key" not in repr(made.endpoint)
        sent = endpoint.headers[0]
        assert sent["authorization"] == "Bearer the-real-key"
        assert not {"cookie", "x-forwarded-for"} & sent.keys()
        assert endpoint.requests[0]["model"] == "the-model"
        assert endpoint.requests[0]["max_tokens"] == 32_000


def test_a_key_that_is_not_set_is_named(monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(ValueError, match="NO_SUCH_KEY"), relay("http://127.0.0.1:9", key_env="NO_SUCH_KEY"):
        pass


def test_tokens_dollars_and_calls_are_counted():
    price = Price(input=2.0, output=10.0)
    with WireEndpoint(Say("a"), Say("b", completion_tokens=100)) as endpoint, relay(endpoint, price=price) as made:
        post(made), post(made)
        assert [(c.said.prompt_tokens, c.said.completion_tokens) for c in made.record.calls] == [
            (1000, 50),
            (1000, 100),
        ]
        assert math.fsum(c.usd for c in made.record.calls) == pytest.approx((2000 * 2 + 150 * 10) / 1e6)


def test_an_unknown_price_is_nan():
    with WireEndpoint(Say("a")) as endpoint, relay(endpoint) as made:
        post(made)
        assert math.isnan(made.record.calls[0].usd)


def test_turns_are_capped_with_a_status_that_is_not_tried_again():
    with WireEndpoint(Say("a")) as endpoint, relay(endpoint, budget=Budget(turns=2, seconds=30)) as made:
        assert [post(made).status_code for _ in range(4)] == [200, 200, 400, 400]
        assert made.record.stopped == "turns"
        assert len(endpoint.requests) == 2


def test_tokens_are_capped_and_the_last_reply_may_only_use_what_is_left():
    with (
        WireEndpoint(Say("a", completion_tokens=50)) as endpoint,
        relay(endpoint, budget=Budget(tokens=80, seconds=30)) as made,
    ):
        assert [post(made).status_code for _ in range(3)] == [200, 200, 400]
        assert [r["max_tokens"] for r in endpoint.requests] == [80, 30]
        assert made.record.stopped == "tokens"


def test_the_spending_cap_stops_before_it_is_passed():
    cap = Cap(usd=0.40)
    with WireEndpoint(Say("a")) as endpoint, relay(endpoint, price=Price(1.0, 10.0), cap=cap) as made:
        assert post(made).status_code == 200  # at most 0.32 dollars, really 0.0015
        cap.spent = 0.39
        assert post(made).status_code == 400
        assert "could cost" in made.record.over
        assert "could cost" not in post(made).text  # the sandbox learns no sums
        assert len(endpoint.requests) == 1


def test_a_busy_endpoint_and_a_broken_stream_are_asked_again_and_never_shown():
    with WireEndpoint(503, "cut", Say("whole")) as endpoint, relay(endpoint, retries=2) as made:
        reply = post(made)
        assert b"whole" in reply.content
        assert b"breaks off" not in reply.content
        assert len(endpoint.requests) == 3
        assert len(made.record.calls) == 1
        assert not made.record.failure


@pytest.mark.parametrize(("item", "words"), [(500, "answers 500"), ("cut", "broke off"), (401, "answers 401"), (404, "answers 404"),
                                             (302, "answers 302")])  # fmt: skip
def test_what_the_endpoint_fails_at_is_infrastructure(item, words):
    with WireEndpoint(Say("a"), item) as endpoint, relay(endpoint) as made:
        assert [post(made).status_code for _ in range(3)] == [200, 400, 400]
        assert words in made.record.failure
        assert len(endpoint.requests) == 2  # nothing is asked after a failure


def test_no_endpoint_at_all():
    with relay("http://127.0.0.1:9/v1") as made:
        reply = post(made)
        assert reply.status_code == 400
        assert "no connection" in made.record.failure


def test_a_refused_first_request_is_the_configurations_fault_a_later_one_the_policys():
    bad = Say(status=400, body="tool arguments are no JSON")
    with WireEndpoint(bad) as endpoint, relay(endpoint) as made:
        post(made)
        assert "refuses the first request" in made.record.failure
    with WireEndpoint(Say("a"), bad) as endpoint, relay(endpoint) as made:
        assert [post(made).status_code for _ in range(2)] == [200, 400]
        assert made.record.problem == ("rejected", "tool arguments are no JSON")
        assert not made.record.failure


def test_a_prompt_that_does_not_fit():
    full = Say(status=400, body="This model's maximum context length is 8192 tokens")
    with WireEndpoint(full, Say("after the agent has made it shorter")) as endpoint, relay(endpoint) as made:
        assert post(made).status_code == 400
        assert made.record.problem[0] == "context"
        assert post(made).status_code == 200
        assert made.record.problem is None


def test_an_endpoint_that_hangs_is_given_up_and_the_callers_own_time_is_not_its_fault():
    with WireEndpoint("hang") as endpoint, relay(endpoint, call_seconds=0.3) as made:
        post(made)
        assert "no whole reply within 0.3 s" in made.record.failure
    with WireEndpoint("hang") as endpoint, relay(endpoint, budget=Budget(seconds=0.4)) as made:
        post(made)
        assert not made.record.failure
        assert made.record.in_flight


def test_other_paths_and_methods_are_refused_and_noted():
    with WireEndpoint(Say("a")) as endpoint, relay(endpoint) as made:
        root = made.url.removesuffix("/v1")
        for method, path in [("GET", "/v1/models"), ("POST", "/v1/files"), ("POST", "/v1/chat/completions/../files"),
                             ("DELETE", "/v1/chat/completions"), ("POST", "http://example.com/v1/chat/completions"),
                             ("POST", "/v1/messages"), ("PUT", "/"), ("HEAD", "/")]:  # fmt: skip
            with socket.create_connection(made.server.server_address) as client:
                client.sendall(f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{{}}".encode())
                assert client.recv(100).startswith(b"HTTP/1.1 404"), (method, path)
        assert httpx.request("CONNECT", root, trust_env=False, verify=False).status_code == 501
        assert len(made.record.refused) == 8
        assert not endpoint.requests


@pytest.mark.parametrize("body", [b"", b"[]", b"nonsense", b"[" * 200_000, b'{"messages":' + b"[" * 900 + b"]" * 900 + b"}",
                                  b'{"messages": [{"role": "user", "content": [{"image_url": {"url": "http://a/b"}}]}]}',
                                  b"\xff\xfe", b'{"messages": 1}'])  # fmt: skip
def test_hostile_bodies_get_an_answer_and_go_nowhere(body):
    with WireEndpoint(Say("a")) as endpoint, relay(endpoint) as made:
        assert post(made, body).status_code in (200, 400)
        assert post(made).status_code == 200
        assert all(r["messages"] == ASK["messages"] or body.count(b"[") == 900 for r in endpoint.requests)


@pytest.mark.parametrize("number", [b"NaN", b"-Infinity", b"1e999", b"9" * 5_000])
def test_a_number_that_is_no_json_does_not_make_the_endpoint_look_broken(number):
    """Else whoever asks first could turn its own episode into a failure of the infrastructure."""
    body = b'{"messages": [{"role": "user", "content": "hi"}], "temperature": ' + number + b"}"
    with WireEndpoint(Say("a")) as endpoint, relay(endpoint) as made:
        assert post(made, body).status_code == 400
        assert not endpoint.requests
        assert made.record.failure == ""
        assert post(made).status_code == 200


@pytest.mark.parametrize("length", ["-1", "abc", "", str(MAX_BODY + 1), "9" * 30, "9" * 5_000, "１"])
def test_sizes_are_capped_before_anything_is_read(length):
    with relay("http://127.0.0.1:9/v1") as made, socket.create_connection(made.server.server_address) as client:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n"
        client.sendall(head.encode())
        assert client.recv(100).startswith((b"HTTP/1.1 413", b"HTTP/1.1 400"))


def test_a_flood_of_connections_takes_only_so_many():
    with WireEndpoint(Say("a")) as endpoint, relay(endpoint) as made:
        held = [socket.create_connection(made.server.server_address) for _ in range(3 * MAX_CONNECTIONS)]
        deadline = time.monotonic() + 5
        while made.server.slots.acquire(blocking=False) and time.monotonic() < deadline:
            made.server.slots.release()
            time.sleep(0.01)
        with pytest.raises(httpx.HTTPError):
            post(made)
        for one in held:
            one.close()
        while time.monotonic() < deadline:
            try:
                assert post(made).status_code == 200
                break
            except httpx.HTTPError:
                time.sleep(0.05)
        assert endpoint.requests


def test_calls_are_one_line_of_turns_however_they_come():
    with WireEndpoint(Say("a"), delay=0.05) as endpoint, relay(endpoint, budget=Budget(turns=3, seconds=30)) as made:
        threads = [threading.Thread(target=post, args=(made,)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made.record.calls) == len(endpoint.requests) == 3


def test_results_of_tools_belong_to_the_turn_before():
    call = Say("look", [("bash", {"command": "ls"})])
    with WireEndpoint(call, call, Say("end")) as endpoint, relay(endpoint) as made:
        post(made)
        told = [{"role": "tool", "tool_call_id": f"call_{n}_0", "content": t} for n, t in ((1, "first"), (2, "second"))]
        for number in (1, 2):
            post(made, {**ASK, "messages": [*ASK["messages"], *told[:number]]})
        assert [[r.text for r in c.results] for c in made.record.calls] == [["first"], ["second"], []]


def test_an_overloaded_stream_is_asked_again():
    with (
        WireEndpoint(Say(status=529, body="overloaded"), Say("fine")) as endpoint,
        relay(endpoint, messages, retries=1) as made,
    ):
        assert post(made).status_code == 200
        assert len(endpoint.requests) == 2


def test_an_address_for_each_episode():
    with WireEndpoint(Say("a")) as endpoint:
        target = Endpoint(lambda: (f"{endpoint.url}/sessions/7/v1", "its-token"), "m")
        made = Relay(socket.create_server(("127.0.0.1", 0)), chat, target, Budget(), time.monotonic() + 30)
        made.url = f"http://127.0.0.1:{made.server.server_address[1]}/v1"
        post(made)
        made.close()
        assert endpoint.paths == ["/sessions/7/v1/chat/completions"]
        assert endpoint.headers[0]["authorization"] == "Bearer its-token"


@pytest.mark.parametrize(("wrong", "words"), [({"url": "ftp://x"}, "http"), ({"model": ""}, "model")])
def test_an_endpoint_that_cannot_be_one_says_so(wrong, words):
    with pytest.raises(ValueError, match=words):
        Endpoint(**{"url": "http://x/v1", "model": "m", **wrong})
