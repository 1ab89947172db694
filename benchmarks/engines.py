"""Sampling: the built-in engine to transformers' `generate` (same model, prompts, threads), and what the gateway adds to a call.

python -m benchmarks engines       the 2M model in float32, SmolLM2-135M in its own type; one torch thread each
"""

from __future__ import annotations

import json
import statistics
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from benchmarks.timing import median_ms
from workbench.models import Sampling
from workbench.models.chat_format import HERMES, ChatFormat
from workbench.models.engines_scripted import ScriptedEngine
from workbench.models.gateway import Caps, Gateway

BATCHES = (1, 8, 32)


def small_llama(width: int = 256, layers: int = 3, inner: int = 512):
    """2.2 million weights by default: the sizes of the micro profile."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=1024, hidden_size=width, intermediate_size=inner, num_hidden_layers=layers, num_attention_heads=4,
        num_key_value_heads=4, max_position_embeddings=2048, tie_word_embeddings=True,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def smollm2():
    from transformers import AutoModelForCausalLM

    from workbench.models.embedded import smollm2_folder
    from workbench.models.transformers_model import quiet

    with quiet():
        return AutoModelForCausalLM.from_pretrained(smollm2_folder(), dtype="auto").eval()


def run(new: int = 48, prompt: int = 192) -> Iterator[dict[str, object]]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield decoding("1M", small_llama(128, 4, 384))
        yield decoding("2M", small_llama())
        yield from speeds("2M", small_llama(), prompt, new)
        yield from speeds("SmolLM2-135M", smollm2(), prompt // 3, new // 2)
    finally:
        torch.set_num_threads(before)
    yield from overhead()


def speeds(name: str, model, prompt: int, new: int) -> Iterator[dict[str, object]]:
    import torch

    from workbench.models.engines_transformers import TransformersEngine

    for batch in BATCHES:
        ours, theirs = [], []
        with closing(TransformersEngine(model, end_ids=(), max_batch=batch)) as engine:
            for turn in range(
                4
            ):  # by turns, so that a busy moment meets both; other prompts each, so that none is known
                generator = torch.Generator().manual_seed(100 * batch + turn)
                ids = torch.randint(10, 1000, (batch, prompt), generator=generator)
                ours.append(batch * new / ours_seconds(engine, ids.tolist(), new))
                theirs.append(batch * new / generate_seconds(model, ids, new))
        a, b = max(ours[1:]), max(theirs[1:])
        yield {
            "what": f"{name}, batch {batch}: engine to generate, {prompt} + {new} tokens",
            "engine_tokens_s": a,
            "generate_tokens_s": b,
            "ratio": a / b,
        }
    talk = turns(model, prompt, new // 4)
    yield {
        "what": f"{name}, 32 agents, 4 turns of {new // 4} tokens: to generate, which reads each prompt anew",
        **talk,
    }


def decoding(name: str, model, context: int = 250, steps: int = 40, batch: int = 32) -> dict[str, object]:
    """One decoding step of 32 rows, sampling left out."""
    import torch

    from workbench.models.engine_llama import LlamaDecoder
    from workbench.models.kvcache import SlotCache

    cache, decoder = SlotCache(batch, 512), LlamaDecoder(model, 512)
    ids = torch.randint(10, 1000, (batch, context), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        decoder(ids, torch.arange(context).expand(batch, -1).contiguous(), cache, 0)
        at = torch.full((batch, 1), context)
        step_ms = median_ms(lambda: decoder(ids[:, :1], at, cache, 0), steps)
    return {"what": f"{name}: a decoding step of {batch} rows at {context} tokens", "median_ms": step_ms, "tokens_s": 1000 * batch / step_ms}  # fmt: skip


def ours_seconds(engine, prompts: list[list[int]], new: int) -> float:
    with ThreadPoolExecutor(len(prompts)) as pool:
        started = time.perf_counter()
        answers = list(pool.map(lambda p: engine.generate(p, Sampling(new)), prompts))
        seconds = time.perf_counter() - started
    assert all(len(a.ids) == new for a in answers)
    return seconds


def generate_seconds(model, ids, new: int) -> float:
    import torch

    started = time.perf_counter()
    with torch.inference_mode():
        out = model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=True, top_k=0, max_new_tokens=new, eos_token_id=None,
            pad_token_id=0,
        )  # fmt: skip
    seconds = time.perf_counter() - started
    assert out.shape[1] == ids.shape[1] + new
    return seconds


def turns(model, prompt: int, new: int, agents: int = 32, count: int = 4) -> dict[str, object]:
    """Whole conversations: the engine keeps what it has read, generate has to read the growing prompt again."""
    import torch

    from workbench.models.engines_transformers import TransformersEngine

    first = torch.randint(10, 1000, (agents, prompt), generator=torch.Generator().manual_seed(1))

    def talk(engine, ids: list[int]) -> None:
        for _ in range(count):
            ids = [*ids, *engine.generate(ids, Sampling(new)).ids, *range(20, 40)]

    with closing(TransformersEngine(model, end_ids=(), max_batch=32)) as engine, ThreadPoolExecutor(agents) as pool:
        started = time.perf_counter()
        list(pool.map(lambda ids: talk(engine, ids), first.tolist()))
        ours = time.perf_counter() - started
        reused = engine.batching.reused / (engine.batching.reused + engine.batching.prefilled)
    theirs = sum(
        generate_seconds(model, torch.cat([first, first[:, :1].expand(-1, turn * (new + 20))], 1), new) for turn in range(count)
    )  # fmt: skip
    tokens = agents * count * new
    return {"engine_tokens_s": tokens / ours, "generate_tokens_s": tokens / theirs, "ratio": theirs / ours, "prompt_tokens_reused": reused}  # fmt: skip


def overhead(turn_count: int = 16) -> list[dict[str, object]]:
    """Milliseconds a call through the gateway, above the same call of the engine (which is scripted and answers at once)."""
    from transformers import AutoTokenizer

    from workbench.models.embedded import smollm2_folder

    tokenizer = AutoTokenizer.from_pretrained(smollm2_folder())
    call = '<tool_call>\n{"name": "bash", "arguments": {"command": "ls -la /app && cat /app/notes.txt"}}\n</tool_call>'
    engine = ScriptedEngine(tokenizer, [call])
    alone = median_ms(lambda: engine.generate([1, 2, 3]), 50)
    with Gateway(engine, ChatFormat(tokenizer, engine.end_ids, template=HERMES)) as gateway:
        rows = []
        for clients in (1, 16):
            with ThreadPoolExecutor(clients) as pool:
                started, cpu = time.perf_counter(), time.process_time()
                times = [t for ts in pool.map(lambda _: chat(gateway, turn_count), range(clients)) for t in ts]
                wall, cpu = time.perf_counter() - started, time.process_time() - cpu
            rows.append({"what": f"gateway, {clients} at a time: a call of a {turn_count}-turn chat, above the engine's own", "median_ms": 1000 * statistics.median(times) - alone, "p95_ms": 1000 * sorted(times)[int(len(times) * 0.95)] - alone, "calls_s": len(times) / wall, "cpu_ms_with_client_and_script": 1000 * cpu / len(times)})  # fmt: skip
    return rows


def chat(gateway: Gateway, turn_count: int) -> list[float]:
    """Seconds of each call of one agent's chat, as a client sees them."""
    session = gateway.open_session(caps=Caps(seconds=600))
    tools = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]
    messages: list[dict] = [{"role": "user", "content": "Look around. " * 50}]
    times = []
    for _ in range(turn_count):
        body = json.dumps({"messages": messages, "tools": tools}).encode()
        headers = {"Authorization": f"Bearer {session.token}", "Content-Type": "application/json"}
        started = time.perf_counter()
        with urllib.request.urlopen(urllib.request.Request(f"{session.url}/chat/completions", body, headers)) as got:
            message = json.loads(got.read())["choices"][0]["message"]
        times.append(time.perf_counter() - started)
        messages += [message, {"role": "tool", "tool_call_id": "x", "content": "total 8\nnotes.txt  data.csv\n" * 10}]
    gateway.close_session(session)
    assert len(session.segments()) == 1
    return times
