from __future__ import annotations

import threading
import time
from contextlib import closing
from dataclasses import replace

import pytest
from tiny import END, tiny_llama, torch

from workbench.models import ContextFull, ModelError, Sampling
from workbench.models.engine import Batching
from workbench.models.sampler import draw, shaped

GREEDY = Sampling(max_tokens=12, temperature=0)
PROMPTS = [[(7 * i + 3 * j) % 250 for j in range(3 + 5 * i)] for i in range(10)]


@pytest.fixture(scope="module")
def model():
    return tiny_llama()


@pytest.fixture
def engine(model):
    with closing(Batching(model, [END], max_batch=4, max_context=2048)) as engine:
        yield engine


def ask(engine, prompts, sampling):
    """All prompts at once, from as many threads; samplings by index when a list is given."""
    samplings = sampling if isinstance(sampling, list) else [sampling] * len(prompts)
    requests = [engine.submit(p, s) for p, s in zip(prompts, samplings, strict=True)]
    return [r.result() for r in requests]


def test_greedy_equals_the_library_generating_one_prompt_at_a_time(model, engine):
    for request in ask(engine, PROMPTS, GREEDY):  # ten prompts of ten lengths over four rows
        prompt = torch.tensor([request.prompt])
        expected = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=12, do_sample=False)[0]
        assert request.ids == expected[len(request.prompt) :].tolist()


@pytest.mark.parametrize(
    "sampling", [Sampling(9, 1.0), Sampling(9, 0.7, top_p=0.8), Sampling(9, 1.3, top_k=5), Sampling(9, 0.0)]
)
def test_logprobs_are_those_of_the_distribution_that_was_sampled(model, engine, sampling):
    for request in ask(engine, PROMPTS, [replace(sampling, seed=i) for i in range(10)]):
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([request.prompt + request.ids])).logits[
                0, len(request.prompt) - 1 : -1
            ]
        expected = shaped(logits, sampling).gather(-1, torch.tensor(request.ids)[:, None])[:, 0]
        assert request.logprobs == pytest.approx(expected.tolist(), abs=1e-4)


def test_a_seed_gives_the_same_tokens_alone_and_in_a_crowd(engine):
    samplings = [Sampling(16, 1.0, seed=i) for i in range(10)]
    crowd = [r.ids for r in ask(engine, PROMPTS, samplings)]
    engine.flush()
    alone = [ask(engine, [p], [s])[0].ids for p, s in zip(PROMPTS, samplings, strict=True)]
    assert crowd == alone
    assert len({tuple(i) for i in crowd}) > 5  # and not the same for all


def test_the_next_turn_and_a_shared_prompt_read_only_new_tokens(engine):
    prompt = list(range(100))
    first = ask(engine, [prompt], GREEDY)[0]
    read = engine.prefilled
    longer = [*prompt, *first.ids, 5, 6]
    second = ask(engine, [longer], GREEDY)[0]
    assert engine.prefilled - read <= 4  # the last sampled token, and the two new ones
    engine.flush()
    assert ask(engine, [longer], GREEDY)[0].ids == second.ids
    read = engine.prefilled
    ask(engine, [longer] * 4, GREEDY)
    assert engine.prefilled - read == 4  # one token each: its logits are needed


def test_conversations_interleave_without_disturbing_each_other(model, engine):
    """Rows move as requests come and go; every conversation still reads its own past."""
    histories = [list(p) for p in PROMPTS]
    for turn in range(3):
        for history, request in zip(
            histories, ask(engine, histories, [Sampling(3 + i % 4, 0) for i in range(10)]), strict=True
        ):
            prompt = torch.tensor([history])
            ids = model.generate(
                prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=len(request.ids), do_sample=False
            )
            assert request.ids == ids[0, len(history) :].tolist()
            history += [*request.ids, 9, turn]


def test_cache_grows_past_its_first_size(model, engine):
    long = [i % 250 for i in range(1500)]
    short, grown = engine.submit(PROMPTS[1], Sampling(40, 0)), engine.submit(long, GREEDY)
    prompt = torch.tensor([long])
    expected = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=12, do_sample=False)[
        0, 1500:
    ]
    assert grown.result().ids == expected.tolist()
    assert len(short.result().ids) in range(1, 41)


def test_limits_of_context_and_tokens(engine):
    with pytest.raises(ContextFull, match="2048 tokens"):
        engine.submit([1] * 2048, GREEDY)
    request = engine.submit([1] * 2045, Sampling(50, 0)).result()
    assert len(request.ids) <= 3
    assert engine.submit([1], Sampling(0)).result().finish == "length"
    with pytest.raises(ModelError, match="no tokens"):
        engine.submit([], GREEDY)


def test_end_token_stops_and_is_kept(model):
    first = tiny_llama().generate(
        torch.tensor([[3, 4]]), attention_mask=torch.ones(1, 2), max_new_tokens=2, do_sample=False
    )[0, 2:]
    with closing(Batching(model, [first[1].item()], max_batch=2)) as engine:
        request = engine.submit([3, 4], GREEDY).result()
    assert (request.ids, request.finish) == (first.tolist(), "stop")


def test_stop_condition_of_the_caller(engine):
    request = engine.submit([3, 4], GREEDY, lambda ids: len(ids) == 3).result()
    assert (len(request.ids), request.finish) == (3, "stop")


def slow(engine, monkeypatch, seconds=0.02):
    """Makes each forward pass take a while."""
    forward = engine._forward
    monkeypatch.setattr(engine, "_forward", lambda *a: time.sleep(seconds) or forward(*a))


def test_a_deadline_ends_with_what_there_is(engine, monkeypatch):
    slow(engine, monkeypatch)
    request = engine.submit([3, 4], Sampling(1000, 1.0, seed=1, seconds=0.2)).result()
    assert request.finish == "length"
    assert 1 <= len(request.ids) < 1000


def test_a_cancelled_request_leaves_and_others_go_on(engine, monkeypatch):
    slow(engine, monkeypatch)
    kept, dropped = engine.submit([5], Sampling(10, 0)), engine.submit([3, 4], Sampling(2000, 1.0, seed=1))
    dropped.cancel()
    with pytest.raises(ModelError, match="cancelled"):
        dropped.result()
    assert kept.result().ids


def test_close_ends_waiting_and_running_requests(model, monkeypatch):
    engine = Batching(model, [], max_batch=1)
    slow(engine, monkeypatch)
    requests = [engine.submit([i], Sampling(3000, 1.0)) for i in range(3)]
    waiting = threading.Thread(target=engine.close)
    waiting.start()
    for request in requests:
        with pytest.raises(ModelError, match="closed"):
            request.result()
    waiting.join()
    engine.close()  # twice is fine
    with pytest.raises(ModelError, match="closed"):
        engine.submit([1], GREEDY)


def test_a_failure_inside_the_model_reaches_every_caller_and_the_engine_lives(monkeypatch, engine):
    def fail(*_):
        raise RuntimeError("out of memory, say")

    monkeypatch.setattr(engine, "_forward", fail)
    requests = [engine.submit([i], GREEDY) for i in range(6)]
    for request in requests:
        with pytest.raises(ModelError, match="out of memory"):
            request.result()
    monkeypatch.undo()
    assert engine.submit([1], GREEDY).result().ids


def test_sliding_window_models_are_refused_with_a_way_out():
    from transformers import Qwen2Config, Qwen2ForCausalLM

    sizes = {
        "hidden_size": 8,
        "intermediate_size": 8,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
    }
    config = Qwen2Config(vocab_size=16, use_sliding_window=True, sliding_window=4, max_window_layers=1, **sizes)
    with pytest.raises(ModelError, match="vLLM"):
        Batching(Qwen2ForCausalLM(config), [1])


def test_draws_follow_the_distribution():
    logits = torch.tensor([2.0, 0.0, 1.0, -torch.inf]).repeat(3000, 1)
    uniforms = torch.rand(3000, generator=torch.Generator().manual_seed(0)).tolist()
    tokens = torch.tensor([t for t, _ in draw(logits, [Sampling()] * 3000, uniforms)])
    found = torch.bincount(tokens, minlength=4) / 3000
    assert found.tolist() == pytest.approx(torch.softmax(logits[0], -1).tolist(), abs=0.03)
    assert found[3] == 0


@pytest.mark.parametrize(
    ("sampling", "kept"),
    [
        (Sampling(top_k=2), {0, 2}),
        (Sampling(top_p=0.6), {0}),
        (Sampling(top_p=0.7), {0, 2}),
        (Sampling(top_k=9), {0, 1, 2, 3}),
    ],
)
def test_cuts_keep_the_likeliest_and_sum_to_one(sampling, kept):
    logits = torch.tensor([2.0, 0.0, 1.0, -1.0])  # probabilities 0.64, 0.09, 0.24, 0.03
    logprobs = shaped(logits, sampling)
    assert {i for i, v in enumerate(logprobs.tolist()) if v > -torch.inf} == kept
    assert logprobs.exp().sum().item() == pytest.approx(1.0)
    for edge in (0.0, 0.5, 0.999999999):  # never a cut token, at the ends either
        assert draw(logits[None], [sampling], [edge])[0][0] in kept


def test_rows_of_one_batch_may_be_sampled_differently():
    logits = torch.tensor([[2.0, 1.0, 0.0]]).repeat(3, 1)
    drawn = draw(logits, [Sampling(temperature=0), Sampling(top_k=1), Sampling()], [0.99, 0.99, 0.99])
    assert [t for t, _ in drawn] == [0, 0, 2]
    assert [lp for _, lp in drawn] == pytest.approx([-0.4076, 0.0, -2.4076], abs=1e-3)
