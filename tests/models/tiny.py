"""A real but tiny model: a random two-layer Llama with a byte tokenizer and a ChatML template."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="the local engine needs torch (extra `train`)")
pytest.importorskip("transformers", reason="the local engine needs transformers (extra `train`)")

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
END = 257


def tiny_tokenizer():
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        pad_token="<|im_end|>",
        chat_template=CHATML,
    )


def tiny_llama(seed: int = 0, context: int = 4096):
    """About 60,000 weights, in float32, so that batches of any size round alike."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=258,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        bos_token_id=256,
        eos_token_id=END,
        pad_token_id=END,
        initializer_range=0.5,  # sharp enough that draws are far from uniform
    )
    return LlamaForCausalLM(config).eval()
