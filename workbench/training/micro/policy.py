"""The micro policy as `transformers` objects: made from random, or read from a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workbench.agents import Budget
from workbench.models import Sampling
from workbench.paths import DATA
from workbench.training.micro.vocabulary import new_tokenizer, pieces

# about 1.1 million weights; the sizes are ours (no paper trains one so small)
SIZE = {
    "hidden_size": 128,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "max_position_embeddings": 512,
    "initializer_range": 0.08,  # about 1/sqrt(128); with the library's 0.02, copying a name is not learned in 400 steps of 16
}
BUDGET = Budget(turns=4, tokens=80, seconds=120.0, command_seconds=10.0)
SAMPLING = Sampling(max_tokens=20, temperature=1.0)
CHECKPOINT = DATA / "checkpoints/micro-cold-start"  # made by `make cold-start`


def new_model(seed: int = 0, **size: int) -> Any:
    """A Llama model with random weights, float32, for the tokenizer of `new_tokenizer`. size: instead of SIZE's."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = new_tokenizer()
    config = LlamaConfig(
        vocab_size=len(pieces()),
        tie_word_embeddings=True,
        rope_theta=1000.0,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        **{**SIZE, **size},
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlamaForCausalLM(config).eval()


def open_policy(folder: str | Path | None = None, *, seed: int = 0, **size: int) -> tuple[Any, Any]:
    """(model, tokenizer) of a folder with weights and tokenizer, or with random weights when folder is None.

    Weights are float32. Raises FileNotFoundError when the folder holds no model, and says what makes one.
    """
    if folder is None:
        return new_model(seed, **size), new_tokenizer()
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = Path(folder)
    if not (folder / "config.json").is_file():
        raise FileNotFoundError(
            f"{folder} holds no model (config.json is missing): `make cold-start` makes one, or give None for random weights"
        )
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32", local_files_only=True)
    return model.eval(), AutoTokenizer.from_pretrained(folder, local_files_only=True)


def engine_model(model: Any, tokenizer: Any, *, max_batch: int = 32, name: str = "micro") -> Any:
    """An EngineModel over a TransformersEngine that shares the model's weights. Close its `.engine` when done."""
    from workbench.models.chat_format import ChatFormat
    from workbench.models.engine_model import EngineModel
    from workbench.models.engines_transformers import TransformersEngine

    engine = TransformersEngine(model, tokenizer, name=name, max_batch=max_batch)
    return EngineModel(engine, ChatFormat(tokenizer, sorted(engine.end_ids)), name=name)
