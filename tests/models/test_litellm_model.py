"""Against a real HTTP server on the loopback."""

from __future__ import annotations

import math
import threading

import pytest
from endpoint import Endpoint, answer

pytest.importorskip("litellm", reason="hosted models need litellm")

from workbench.models import ContextFull, ModelError, OutOfTime, Sampling, get_model
from workbench.models.litellm_model import LiteLLMModel, load_litellm

pytestmark = pytest.mark.filterwarnings("ignore:Item.*ReadOnly:UserWarning")
CHAT = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]
PRICES = {"openai/tiny": {"input": 1.0, "output": 4.0, "cached": 0.1}}
ERROR = {"error": {"message": "boom"}}


@pytest.fixture(scope="module", autouse=True)
def imported():
    load_litellm()  # its import must not count against a deadline below


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def model(endpoint, **options) -> LiteLLMModel:
    return get_model("litellm:openai/tiny", api_base=endpoint.url, **{"backoff": 0.001, **options})


def test_a_reply_with_tokens_and_the_request_that_was_sent():
    with Endpoint(answer("hello")) as endpoint:
        reply = model(endpoint).reply(CHAT, Sampling(64, 0.5, 0.9, 5, ("x",), 3))
    assert (reply.text, reply.finish, reply.prompt_tokens, reply.completion_tokens) == ("hello", "stop", 1000, 500)
    sent = endpoint.requests[0]
    assert sent["messages"] == CHAT
    wanted = {"model": "tiny", "max_tokens": 64, "temperature": 0.5, "top_p": 0.9, "top_k": 5, "stop": ["x"], "seed": 3}
    assert {k: sent.get(k) for k in wanted} == wanted


def test_price_comes_from_the_table_and_is_never_guessed(tmp_path):
    cached = {
        "prompt_tokens": 1000,
        "completion_tokens": 500,
        "total_tokens": 1500,
        "prompt_tokens_details": {"cached_tokens": 400},
    }
    table = tmp_path / "prices.yaml"
    table.write_text("tiny: {input: 1, output: 4}\n")
    with Endpoint(answer("x", usage=cached)) as endpoint:
        assert model(endpoint, prices=PRICES).reply(CHAT).usd == pytest.approx((600 + 40 + 2000) / 1e6)
        assert model(endpoint, prices=table).reply(CHAT).usd == pytest.approx(0.003)
        assert math.isnan(model(endpoint).reply(CHAT).usd)
        # a local server may call its model as a dear one is called
        namesake = get_model("litellm:openai/gpt-4o", api_base=endpoint.url)
        assert math.isnan(namesake.reply(CHAT).usd)


def test_map_of_litellm_prices_a_hosted_model_by_its_dearest_tier():
    price = LiteLLMModel("openai/gpt-4o").price
    assert price.known
    assert 0 < price.input < price.output
    assert not LiteLLMModel("openai/no-such-model-at-all").price.known


def test_missing_usage_leaves_the_price_unknown():
    with Endpoint(answer("x", usage=None)) as endpoint:
        reply = model(endpoint, prices=PRICES).reply(CHAT)
    assert math.isnan(reply.usd)
    assert reply.prompt_tokens == 0


def test_ids_and_logprobs_are_asked_for_and_kept():
    content = [{"token": t, "logprob": p, "top_logprobs": []} for t, p in (("a", -0.1), ("b", -0.2))]
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "ab"},
        "finish_reason": "length",
        "token_ids": [5, 6],
    }
    body = answer("", choices=[{**choice, "logprobs": {"content": content}}], prompt_token_ids=[1, 2, 3])
    with Endpoint(body) as endpoint:
        reply = model(endpoint, token_ids=True).reply(CHAT)
    assert (reply.prompt_ids, reply.sampled_ids, reply.logprobs, reply.finish) == (
        (1, 2, 3),
        (5, 6),
        (-0.1, -0.2),
        "length",
    )
    assert endpoint.requests[0]["return_token_ids"] is True
    assert endpoint.requests[0]["logprobs"] is True


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_transient_errors_are_retried(status):
    with Endpoint((status, ERROR), (status, b"<html>no</html>"), answer("there")) as endpoint:
        assert model(endpoint).reply(CHAT).text == "there"
    assert len(endpoint.requests) == 3


def test_a_server_that_always_fails_ends_in_an_error_that_says_who_and_how_often():
    with (
        Endpoint((500, ERROR)) as endpoint,
        pytest.raises(ModelError, match=r"litellm:openai/tiny.*3 attempts.*boom") as caught,
    ):
        model(endpoint, retries=2).reply(CHAT)
    assert len(endpoint.requests) == 3
    assert endpoint.url in str(caught.value)


@pytest.mark.parametrize(
    ("status", "message", "advice"),
    [(400, "temperature: no", "drop_params"), (401, "bad key", "OPENAI_API_KEY"), (404, "no such", "name")],
)
def test_refusals_are_not_retried_and_say_what_to_do(status, message, advice):
    with (
        Endpoint((status, {"error": {"message": message}})) as endpoint,
        pytest.raises(ModelError, match=advice) as caught,
    ):
        model(endpoint).reply(CHAT)
    assert message in str(caught.value)
    assert not isinstance(caught.value, ContextFull)
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    ("name", "variable"), [("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"), ("openai/gpt-4o", "OPENAI_API_KEY")]
)
def test_a_missing_key_names_its_variable_at_once(monkeypatch, name, variable):
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ModelError, match=f"Set {variable}") as caught:
        LiteLLMModel(name).reply(CHAT)
    assert "attempts" not in str(caught.value)


def test_keys_do_not_appear_in_messages():
    key = "sk-verysecretkey123"
    with Endpoint((401, {"error": {"message": f"bad key {key}"}})) as endpoint, pytest.raises(ModelError) as caught:
        model(endpoint, api_key=key).reply(CHAT)
    assert key not in str(caught.value)
    assert endpoint.headers[0]["authorization"] == f"Bearer {key}"


def test_a_full_context_is_its_own_error():
    text = "This model's maximum context length is 100 tokens. However, you requested 200 tokens"
    with Endpoint((400, {"error": {"message": text}})) as endpoint, pytest.raises(ContextFull, match="100 tokens"):
        model(endpoint).reply(CHAT)
    assert len(endpoint.requests) == 1


def test_a_hanging_server_is_an_infrastructure_failure_that_may_have_been_billed():
    with Endpoint("hang") as endpoint:
        with pytest.raises(ModelError, match="No answer within") as caught:
            model(endpoint, timeout=0.2).reply(CHAT)
        assert not isinstance(caught.value, OutOfTime)
        assert caught.value.billed
        assert len(endpoint.requests) == 2  # one retry only


def test_the_callers_own_time_is_another_matter():
    with Endpoint("hang") as endpoint, pytest.raises(OutOfTime, match="left"):
        model(endpoint, timeout=60).reply(CHAT, Sampling(seconds=0.2))


def test_an_attempt_that_timed_out_counts_at_its_dearest():
    with Endpoint("hang", answer("late")) as endpoint:
        capped = model(endpoint, timeout=0.5, prices=PRICES)
        reply = capped.reply(CHAT, Sampling(max_tokens=100))
    worst = capped.worst_usd(CHAT, Sampling(max_tokens=100)) / 2
    assert reply.usd == pytest.approx((1000 * 1 + 500 * 4) / 1e6 + worst)


@pytest.mark.parametrize("body", [b"{not json", b"", b"null", b"[]", answer("", choices=[])])
def test_nonsense_answers_are_errors_not_replies(body):
    with Endpoint(body) as endpoint, pytest.raises(ModelError, match="litellm:openai/tiny"):
        model(endpoint, retries=1).reply(CHAT)


def test_a_refused_answer_is_a_reply_with_finish_error():
    choice = {"index": 0, "message": {"role": "assistant", "content": None}, "finish_reason": "content_filter"}
    with Endpoint(answer("", choices=[choice])) as endpoint:
        reply = model(endpoint).reply(CHAT)
    assert (reply.text, reply.finish) == ("", "error")


def test_no_server_at_all():
    with Endpoint(answer("x")) as endpoint:
        gone = model(endpoint, retries=1)
    with pytest.raises(ModelError, match="is up and reachable"):
        gone.reply(CHAT)


def test_concurrent_calls():
    with Endpoint(answer("x")) as endpoint:
        asked = model(endpoint)
        texts: list[str] = []
        threads = [threading.Thread(target=lambda: texts.append(asked.reply(CHAT).text)) for _ in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    assert texts == ["x"] * 8
