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
