"""From one string to a model: the only place that knows which file serves which scheme."""

from __future__ import annotations

from workbench.models import Model
from workbench.models.budget import Budget


def open_model(spec: str, **options: object) -> Model:
    """See workbench.models.get_model for the strings, and docs/models.md for each kind's options.

    usd, calls (and allow_unknown_price=True) put a spending cap around any of them; budget=Budget(...) shares one cap
    between several models. Raises ValueError for an unknown scheme or option."""
    budget = _budget(options)
    try:
        model = _open(spec, options)
    except TypeError as error:
        if "unexpected keyword" not in str(error):
            raise
        raise ValueError(f"model {spec}: {error}; docs/models.md lists the options of each kind") from error
    return budget.wrap(model) if budget is not None else model


def _budget(options: dict) -> Budget | None:
    budget = options.pop("budget", None)
    caps = {k: options.pop(k) for k in ("usd", "calls") if k in options}
    allow = bool(options.pop("allow_unknown_price", False))
    if budget is not None and caps:
        raise ValueError("give budget, or usd and calls, not both")
    if budget is None and any(v is not None for v in caps.values()):
        return Budget(**caps, allow_unknown=allow)
    return budget


def _open(spec: str, options: dict) -> Model:
    kind, _, rest = spec.partition(":")
    if spec == "smollm2":
        from workbench.models.embedded import smollm2_folder
        from workbench.models.transformers_model import load_transformers

        return load_transformers(smollm2_folder(), name="smollm2", offline=True, **options)
    if kind == "transformers" and rest:
        from workbench.models.transformers_model import load_transformers

        return load_transformers(rest, **options)
    if kind == "litellm" and rest:
        from workbench.models.litellm_model import LiteLLMModel

        return LiteLLMModel(rest, **options)
    if kind == "scripted" and rest:
        from workbench.models.scripted import Scripted

        return Scripted.from_file(rest, **options)
    raise ValueError(
        f"no model {spec!r}: use smollm2, transformers:PATH_OR_ID, litellm:PROVIDER/NAME (litellm:openai/NAME with "
        "api_base=URL for a compatible server) or scripted:FILE"
    )


def open_engine(spec: str, *, template: str | None = None, **options: object):
    """(engine, chat format) from one string, for training and for the gateway:

    "smollm2"                  the embedded SmolLM2-135M-Instruct, in this process
    "transformers:PATH_OR_ID"  a local folder or a hub model, in this process
    "vllm:URL[,URL...]"        vLLM servers; tokenizer=PATH where their model folder is not on this machine

    template: a chat template in place of the tokenizer's own (workbench.models.chat_format.HERMES for tools).
    options: dtype, device, threads, max_batch, max_context; for vLLM end_ids, max_context, timeout, key.
    Raises ValueError for an unknown string, ModelError when it cannot be opened."""
    from workbench.models.chat_format import ChatFormat

    kind, _, rest = spec.partition(":")
    if kind == "vllm" and rest:
        from transformers import AutoTokenizer

        from workbench.models.vllm_engine import VllmEngine

        place = options.pop("tokenizer", None)
        engine = VllmEngine(rest.split(","), **options)
        tokenizer = AutoTokenizer.from_pretrained(place or engine.folder)
    elif spec == "smollm2" or (kind == "transformers" and rest):
        from workbench.models.embedded import smollm2_folder
        from workbench.models.engines_transformers import TransformersEngine
        from workbench.models.transformers_model import load

        loading = {k: options.pop(k) for k in ("dtype", "device", "threads", "offline") if k in options}
        model, tokenizer = load(smollm2_folder() if spec == "smollm2" else rest, **loading)
        engine = TransformersEngine(model, tokenizer, name=spec, **options)
    else:
        raise ValueError(f"no engine {spec!r}: use smollm2, transformers:PATH_OR_ID or vllm:URL[,URL]")
    return engine, ChatFormat(tokenizer, engine.end_ids, template=template)
