from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from tiny import END, tiny_llama, tiny_tokenizer, torch

from workbench.models import ContextFull, ModelError, Sampling
from workbench.models.engine_llama import LlamaDecoder, supports
from workbench.models.engines import Engine, Generation, get_engine
from workbench.models.engines_transformers import TransformersEngine
from workbench.models.kvcache import SlotCache
from workbench.models.sampler import shaped

PROMPTS = [[(7 * i + 3 * j) % 250 for j in range(3 + 5 * i)] for i in range(8)]


@pytest.fixture
def engine():
    with closing(TransformersEngine(tiny_llama(), max_batch=4, max_context=512, end_ids=[END])) as engine:
        yield engine


def recomputed(model, prompt, generation: Generation, sampling: Sampling) -> list[float]:
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([[*prompt, *generation.ids]])).logits[0, len(prompt) - 1 : -1]
    return shaped(logits, sampling).gather(-1, torch.tensor(generation.ids)[:, None])[:, 0].tolist()


class Gate:
    """Lets a test stop the engine before its n-th forward pass, and go on."""

    def __init__(self, engine, at: int):
        self.reached, self.go, self.count, self.at = threading.Event(), threading.Event(), 0, at
        forward = engine.batching._forward

        def gated(*args):
            self.count += 1
            if self.count == self.at:
                self.reached.set()
                assert self.go.wait(30)
            return forward(*args)

        engine.batching._forward = gated


def test_it_is_an_engine(engine):
    assert isinstance(engine, Engine)
    assert engine.health().ok
    assert engine.version == 0


def test_the_short_forward_pass_agrees_with_the_librarys_for_prompts_and_single_tokens():
    model = tiny_llama()
    assert supports(model)
    decoder, cache = LlamaDecoder(model, 64), SlotCache(3, 64)
    ids = torch.randint(0, 250, (3, 20), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        expected = model(input_ids=ids).logits
        for row in range(3):
            got = decoder(ids[row : row + 1, :19], torch.arange(19)[None], cache, row)
            torch.testing.assert_close(got[0], expected[row, 18], atol=1e-4, rtol=1e-4)
        got = decoder(ids[:, 19:], torch.full((3, 1), 19), cache, 0)
    torch.testing.assert_close(got, expected[:, 19], atol=1e-4, rtol=1e-4)


def test_models_with_biases_or_adapters_go_the_general_way():
    from transformers import LlamaConfig, LlamaForCausalLM

    biased = LlamaConfig(vocab_size=8, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1, attention_bias=True)  # fmt: skip
    assert not supports(LlamaForCausalLM(biased))
    model = tiny_llama()
    model.model.layers[0].mlp.up_proj = torch.nn.Sequential(model.model.layers[0].mlp.up_proj)
    model.model.layers[1].self_attn.q_proj = type("Adapted", (torch.nn.Linear,), {})(32, 32)
    assert not supports(model)


@pytest.mark.parametrize("sampling", [Sampling(9), Sampling(9, 0.7, top_p=0.8), Sampling(9, 1.3, top_k=5)])
def test_logprobs_are_those_of_the_distribution_that_was_sampled(engine, sampling):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda p: engine.generate(p, sampling), PROMPTS))
    for prompt, answer in zip(PROMPTS, answers, strict=True):
        assert len(answer.ids) == len(answer.logprobs) == len(answer.versions)
        assert answer.logprobs == pytest.approx(recomputed(engine.model, prompt, answer, sampling), abs=1e-4)
        assert set(answer.versions) == {0}


def test_the_likeliest_token_has_no_distribution_to_train_on(engine):
    answer = engine.generate([1, 2, 3], Sampling(5, temperature=0))
    assert answer.ids
    assert answer.logprobs == ()


def test_the_next_turn_reads_only_what_is_new(engine):
    first = engine.generate(list(range(40)), Sampling(6, seed=1))
    second = engine.generate([*range(40), *first.ids, 7, 8, 9], Sampling(6, seed=2))
    assert first.reused == 0
    assert second.reused >= 40 + len(first.ids) - 1  # the last sampled token was never read


def test_weights_from_a_folder_change_the_answers_and_change_them_back(engine, tmp_path):
    tiny_llama(seed=0).save_pretrained(tmp_path / "old")
    tiny_llama(seed=1).save_pretrained(tmp_path / "new", max_shard_size="100KB")  # in several files
    assert len(list((tmp_path / "new").glob("*.safetensors"))) > 1
    ask = Sampling(12, seed=3)
    before = engine.generate([1, 2, 3], ask)
    assert engine.load_weights(tmp_path / "new") == 1
    changed = engine.generate([1, 2, 3], ask)
    assert engine.load_weights(tmp_path / "old", version=7) == 7
    again = engine.generate([1, 2, 3], ask)
    assert changed.logprobs != before.logprobs
    assert changed.reused == 0  # nothing computed with old weights is looked at
    assert changed.logprobs == pytest.approx(recomputed(tiny_llama(seed=1), [1, 2, 3], changed, ask), abs=1e-4)
    assert (again.ids, again.versions[0], changed.versions[0]) == (before.ids, 7, 1)


def test_weights_change_under_live_requests_and_every_token_says_which(engine):
    prompts, ask = [[i, 5, 6] for i in range(6)], Sampling(10)  # two more than there are slots
    gate = Gate(engine, at=8)
    with ThreadPoolExecutor(7) as pool:
        answers = [pool.submit(engine.generate, p, ask) for p in prompts]
        assert gate.reached.wait(30)
        update = pool.submit(engine.update_weights, tiny_llama(seed=1).state_dict())
        gate.go.set()
        assert update.result(30) == 1
        answers = [a.result(30) for a in answers]
    assert any(set(a.versions) == {0, 1} for a in answers)
    for prompt, answer in zip(prompts, answers, strict=True):
        assert list(answer.versions) == sorted(answer.versions)
        old = recomputed(tiny_llama(seed=0), prompt, answer, ask)
        new = recomputed(tiny_llama(seed=1), prompt, answer, ask)
        expected = [(old, new)[v][i] for i, v in enumerate(answer.versions)]
        assert answer.logprobs == pytest.approx(expected, abs=1e-4)


def test_a_learner_that_shares_the_model_steps_between_two_tokens(engine):
    def step():
        with torch.no_grad():
            engine.model.model.norm.weight.mul_(2)

    before = engine.generate([1, 2], Sampling(5, seed=1))
    assert engine.update_weights(step) == 1
    assert engine.generate([1, 2], Sampling(5, seed=1)).logprobs != before.logprobs


@pytest.mark.parametrize("damage", ["missing", "unknown", "shape", "folder"])
def test_weights_of_another_model_are_refused_and_the_old_ones_stay(engine, tmp_path, damage):
    before = engine.generate([1, 2, 3], Sampling(5, seed=1))
    state = tiny_llama(seed=1).state_dict()
    if damage == "missing":
        state.pop("model.norm.weight")
    elif damage == "unknown":
        state["model.extra"] = torch.zeros(1)
    elif damage == "shape":
        state["model.norm.weight"] = torch.zeros(3)
    named = {"missing": "model.norm", "unknown": "model.extra", "shape": "model.norm"}.get(damage)
    with pytest.raises(ModelError, match=rf"{damage} \['{named}" if named else "cannot read weights"):
        engine.load_weights(tmp_path) if damage == "folder" else engine.update_weights(state)
    assert engine.version == 0
    assert engine.generate([1, 2, 3], Sampling(5, seed=1)).logprobs == pytest.approx(before.logprobs, abs=1e-5)


def test_paused_it_samples_nothing_and_goes_on_where_it_was(engine):
    alone = engine.generate([9, 8, 7], Sampling(20, seed=5))
    gate = Gate(engine, at=4)
    with ThreadPoolExecutor(3) as pool:
        running = pool.submit(engine.generate, [9, 8, 7], Sampling(20, seed=5))
        assert gate.reached.wait(30)
        pausing = pool.submit(engine.pause)
        gate.go.set()
        pausing.result(30)
        steps = gate.count
        late = pool.submit(engine.generate, [1, 2], Sampling(3))
        assert engine.health().paused
        with pytest.raises(TimeoutError):
            late.result(0.2)
        assert gate.count == steps
        engine.resume()
        assert running.result(30).ids == alone.ids
        assert late.result(30).ids


def test_a_request_that_waits_in_a_pause_ends_with_the_engine(engine):
    engine.pause()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(engine.generate, [1, 2])
        while not engine.batching._queue:
            pass
        engine.close()
        with pytest.raises(ModelError, match="closed"):
            waiting.result(30)
    assert not engine.health().ok


def test_what_cannot_be_answered_says_why(engine):
    with pytest.raises(ContextFull, match="512"):
        engine.generate([1] * 512)
    with pytest.raises(ModelError, match="tokenizer"):
        engine.generate([1], Sampling(stop=("x",)))


def test_a_broken_index_is_no_traceback(engine, tmp_path):
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "../../nowhere"}}))
    with pytest.raises(ModelError, match="cannot read weights"):
        engine.load_weights(tmp_path)


def test_one_string_opens_an_engine_with_its_chat_format(tmp_path):
    tiny_llama().save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    engine, chat_format = get_engine(f"transformers:{tmp_path}", dtype="float32", threads=1, max_context=128)
    with closing(engine):
        prompt = chat_format.prompt([{"role": "user", "content": "x"}])
        answer = engine.generate(prompt, Sampling(4, seed=1))
        assert 0 < len(answer.ids) <= 4
        assert engine.max_context == 128
    with pytest.raises(ValueError, match="no engine"):
        get_engine("smollm3")
