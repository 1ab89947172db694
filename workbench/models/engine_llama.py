"""The forward pass of Llama models for decoding, with few calls (imports torch: load it lazily).

A model of a few million weights spends most of a decoding step in Python and in small kernels, not in its matrix
products. This reads the very parameters of the `transformers` model (no copy, so a weight update needs no word to it) and
writes straight into the slot cache. The arithmetic is that of `LlamaForCausalLM`; in float32 the logits agree to 1e-4.
"""

from __future__ import annotations

import torch
from torch.nn.functional import embedding, linear, rms_norm, scaled_dot_product_attention, silu

from workbench.models.kvcache import SlotCache


def supports(model: torch.nn.Module) -> bool:
    """Whether `model` is a plain Llama: default rotary embedding, SiLU, no biases, on one device."""
    config = model.config
    rope = getattr(config, "rope_parameters", None) or {}
    return (
        type(model).__name__ == "LlamaForCausalLM"
        and rope.get("rope_type", "default") == "default"
        and config.hidden_act == "silu"
        and not (getattr(config, "attention_bias", False) or getattr(config, "mlp_bias", False))
        and all(type(m) is torch.nn.Linear for n, m in model.named_modules() if n.endswith("_proj"))  # no adapters
        and len({p.device for p in model.parameters()}) == 1
    )


class LlamaDecoder:
    """Logits after the last token of each row; keys and values go into the cache that is given."""

    def __init__(self, model: torch.nn.Module, max_context: int):
        config = model.config
        self.model, self.eps = model, config.rms_norm_eps
        self.heads, self.kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        positions = torch.arange(max_context, device=model.device)[None]
        probe = torch.empty(1, dtype=model.dtype, device=model.device)
        cos, sin = model.model.rotary_emb(probe, positions)
        sin = torch.cat([-sin[..., : self.dim // 2], sin[..., self.dim // 2 :]], -1)  # the sign of rotate_half
        self.cos, self.sin = cos[0], sin[0]

    def __call__(self, ids: torch.Tensor, positions: torch.Tensor, cache: SlotCache, first: int) -> torch.Tensor:
        """ids, positions: (rows, tokens). first: the cache slot of row 0. Returns (rows, vocabulary)."""
        mask = cache.aim(first, positions)
        base = self.model.model
        x = embedding(ids, base.embed_tokens.weight)
        turn = self.cos[positions][:, :, None], self.sin[positions][:, :, None]
        for number, layer in enumerate(base.layers):
            x = x + self._attend(layer, rms_norm(x, x.shape[-1:], layer.input_layernorm.weight, self.eps), turn, cache, mask, number)  # fmt: skip
            y = rms_norm(x, x.shape[-1:], layer.post_attention_layernorm.weight, self.eps)
            mlp = layer.mlp
            x = x + linear(silu(linear(y, mlp.gate_proj.weight)) * linear(y, mlp.up_proj.weight), mlp.down_proj.weight)
        return linear(rms_norm(x[:, -1], x.shape[-1:], base.norm.weight, self.eps), self.model.lm_head.weight)

    def _attend(self, layer, x, turn, cache: SlotCache, mask, number: int) -> torch.Tensor:
        own = layer.self_attn
        rows, tokens = x.shape[:2]
        both = torch.cat([linear(x, own.q_proj.weight), linear(x, own.k_proj.weight)], -1)
        both = both.view(rows, tokens, self.heads + self.kv_heads, self.dim)
        both = both * turn[0] + both.roll(self.dim // 2, -1) * turn[1]
        values = linear(x, own.v_proj.weight).view(rows, tokens, self.kv_heads, self.dim)
        query, keys = both.split([self.heads, self.kv_heads], 2)
        keys, values = cache.update(keys.transpose(1, 2), values.transpose(1, 2), number)
        if tokens == 1:
            out = self._one(query[:, 0], keys, values, mask)
        else:
            grouped = self.heads != self.kv_heads
            out = scaled_dot_product_attention(query.transpose(1, 2), keys, values, attn_mask=mask, enable_gqa=grouped)
            out = out.transpose(1, 2)
        return linear(out.reshape(rows, tokens, -1), own.o_proj.weight)

    def _one(self, query, keys, values, mask) -> torch.Tensor:
        """Attention of one new token a row by plain products: on a CPU in bf16 2.5 times as fast as the fused one."""
        query = query.reshape(query.shape[0], self.kv_heads, -1, self.dim)  # queries of one group share a key head
        scores = (query @ keys.transpose(-1, -2)).float() * self.dim**-0.5
        shares = scores.masked_fill_(~mask, -torch.inf).softmax(-1)
        return shares.to(values.dtype) @ values
