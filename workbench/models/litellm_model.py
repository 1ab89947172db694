"""Hosted and OpenAI-compatible models through litellm: retries, typed errors, tokens, prices.

litellm is imported at the first call or price question (about a second; eleven offline without its local price map).
"""

from __future__ import annotations

import math
import os
import random
import re
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from workbench.models import ContextFull, Message, ModelError, OutOfTime, Reply, Sampling
from workbench.models.prices import Price, most_prompt_tokens, read_prices

_IMPORT = threading.Lock()
_CONTEXT = re.compile(
    r"context (length|window|size)|maximum context|prompt is too long|too many (input )?tokens|input is too long", re.I
)
_FINISH = {"stop": "stop", "length": "length", "eos": "stop", "end_turn": "stop"}


def load_litellm() -> ModuleType:
    """The litellm module, with its own price map instead of a download, no telemetry, and no advice on the terminal."""
    with _IMPORT:
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        os.environ.setdefault("LITELLM_TELEMETRY", "False")
        import litellm

        # litellm's own type declarations make pydantic warn a dozen times at the first call
        warnings.filterwarnings("ignore", message=r"Items? .* ReadOnly", category=UserWarning)
        litellm.telemetry = False
        litellm.suppress_debug_info = True
        return litellm


class LiteLLMModel:
    """`provider/name` as litellm spells it; with api_base, any OpenAI-compatible server ("openai/NAME").

    api_key: else the provider's environment variable. timeout: seconds for one attempt. retries: further attempts after
    429, 5xx, a lost connection (after a timeout one at most: it may have been billed). backoff: seconds before the
    first retry, doubled each time, with jitter; a server's Retry-After goes first.
    prices: name → Price, a mapping, or a YAML file (USD per million tokens); else litellm's own map, which is not used
    with api_base (a local server may call its model anything); else the price is unknown, NaN.
    token_ids: ask for prompt and sampled ids and log-probabilities (vLLM: return_token_ids; start it with
    `--logprobs-mode processed_logprobs`, or it reports those of the untempered distribution). logprobs: only these.
    extra: more arguments of litellm.completion, as they are.
    """

    def __init__(
        self,
        model: str,
        *,
        api_base: str | None = None,
        api_key: str | None = None,
        prices: Mapping[str, object] | str | Path | None = None,
        timeout: float = 600.0,
        retries: int = 4,
        backoff: float = 1.0,
        token_ids: bool = False,
        logprobs: bool = False,
        extra: Mapping[str, object] | None = None,
    ):
        if "/" not in model and api_base:
            model = f"openai/{model}"
        self.name, self.model, self.api_base, self._key = f"litellm:{model}", model, api_base, api_key
        self.timeout, self.retries, self.backoff = timeout, retries, backoff
        self.token_ids, self.logprobs, self.extra = token_ids, logprobs or token_ids, dict(extra or {})
        table = read_prices(prices) if prices is not None else {}
        self._stated = table.get(model) or table.get(model.partition("/")[2])
        self._price: Price | None = self._stated

    @property
    def price(self) -> Price:
        """The stated price, else the dearest tier of litellm's map, else an unknown one."""
        if self._price is None:
            self._price = Price() if self.api_base else _mapped_price(self.model)
        return self._price

    def worst_usd(self, messages: Sequence[Message], sampling: Sampling) -> float:
        """The most that a reply can cost: a bound of the prompt's tokens, all of max_tokens, one attempt lost to a timeout."""
        return (2 if self.retries else 1) * self._worst_attempt(messages, sampling)

    def reply(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Reply:
        """Answer a chat. Reply.usd counts an attempt that timed out at its dearest, since it may have been billed.

        Raises ContextFull; OutOfTime when sampling.seconds ran out first; ModelError (billed: whether it may have
        cost something) that says which model, what happened and what to do."""
        litellm, attempt, timeouts = load_litellm(), 0, 0
        started = time.monotonic()  # after the import, which must not eat the caller's time
        deadline = started + sampling.seconds if sampling.seconds is not None else math.inf
        while True:
            try:
                response = litellm.completion(**self._arguments(messages, sampling, deadline - time.monotonic()))
                reply = self._read(litellm, response, time.monotonic() - started)
                lost = timeouts * self._worst_attempt(messages, sampling) if timeouts else 0.0
                return reply if not lost else _dearer(reply, lost)
            except Exception as error:  # litellm wraps what providers raise in many types; _typed sorts them
                attempt += 1
                timeouts += isinstance(error, litellm.Timeout)
                pause = self._pause(litellm, error, attempt, timeouts)
                if isinstance(error, litellm.Timeout) and time.monotonic() >= deadline - 0.01:
                    raise _billed(
                        OutOfTime(f"{self.name}: no answer within the {sampling.seconds:.1f} s left")
                    ) from error
                if pause is None or time.monotonic() + pause >= deadline:
                    raise self._typed(litellm, error, attempt, timeouts > 0) from error
                time.sleep(pause)

    def _arguments(self, messages: Sequence[Message], sampling: Sampling, left: float) -> dict[str, object]:
        body = dict(self.extra.get("extra_body") or {})
        if self.token_ids:
            body["return_token_ids"] = True
        named: dict[str, object] = {}
        if sampling.top_k:
            (body if self.model.startswith(("openai/", "hosted_vllm/")) else named)["top_k"] = sampling.top_k
        if sampling.seed is not None:
            named["seed"] = sampling.seed
        if sampling.stop:
            named["stop"] = list(sampling.stop)
        if sampling.top_p < 1:
            named["top_p"] = sampling.top_p
        if self.logprobs:
            named["logprobs"] = True
        if body:
            named["extra_body"] = body
        key = self._key or ("unused" if self.api_base and not os.environ.get("OPENAI_API_KEY") else None)
        return {
            "model": self.model,
            "messages": [dict(m) for m in messages],
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "timeout": max(0.05, min(self.timeout, left)),
            "num_retries": 0,  # ours count what they may have cost
            "max_retries": 0,
            **({"api_base": self.api_base} if self.api_base else {}),
            **({"api_key": key} if key else {}),
            **{k: v for k, v in self.extra.items() if k != "extra_body"},
            **named,
        }

    def _read(self, litellm: ModuleType, response: object, seconds: float) -> Reply:
        if not getattr(response, "choices", None):
            raise ModelError(
                f"{self.name}: the answer has no choices: is {self.api_base or 'the endpoint'} a chat endpoint?"
            )
        choice = response.choices[0]
        usage = getattr(response, "usage", None)
        prompt, completion = (getattr(usage, k, 0) or 0 for k in ("prompt_tokens", "completion_tokens"))
        details = getattr(usage, "prompt_tokens_details", None)
        cached = getattr(details, "cached_tokens", 0) or 0
        content = getattr(getattr(choice, "logprobs", None), "content", None) or []
        prompt_ids, sampled_ids = _ids(response, "prompt_token_ids"), _ids(choice, "token_ids")
        return Reply(
            text=choice.message.content or "",
            finish=_FINISH.get(choice.finish_reason, "error"),
            prompt_ids=prompt_ids,
            sampled_ids=sampled_ids,
            logprobs=tuple(t.logprob for t in content),
            prompt_tokens=prompt or len(prompt_ids),
            completion_tokens=completion or len(sampled_ids),
            usd=self._usd(litellm, response, prompt, completion, cached) if prompt else math.nan,
            seconds=seconds,
        )

    def _usd(self, litellm: ModuleType, response: object, prompt: int, completion: int, cached: int) -> float:
        if self._stated or not self.price.known:
            return self.price.usd(prompt, completion, cached)
        try:
            return float(litellm.completion_cost(completion_response=response, model=self.model))
        except Exception:  # a map entry that litellm itself cannot use: unknown, not guessed
            return math.nan

    def _worst_attempt(self, messages: Sequence[Message], sampling: Sampling) -> float:
        return self.price.usd(most_prompt_tokens(messages), sampling.max_tokens)

    def _pause(self, litellm: ModuleType, error: Exception, attempt: int, timeouts: int) -> float | None:
        """Seconds before the next attempt; None when there is none."""
        status = getattr(error, "status_code", None)
        transient = isinstance(error, litellm.APIConnectionError | litellm.Timeout) or status in (408, 409, 425, 429)
        transient = transient or (isinstance(status, int) and status >= 500)
        if (
            not transient
            or attempt > self.retries
            or timeouts > 1
            or _CONTEXT.search(str(error))
            or "quota" in str(error).lower()
            or _keyless(litellm, error)
        ):
            return None
        headers = getattr(getattr(error, "response", None), "headers", None) or {}
        try:
            asked = min(60.0, float(headers.get("retry-after", 0)))
        except ValueError:  # an HTTP date
            asked = 0.0
        return max(asked, self.backoff * 2 ** (attempt - 1) * random.uniform(0.5, 1.0))

    def _typed(self, litellm: ModuleType, error: Exception, attempts: int, billed: bool) -> ModelError:
        if isinstance(error, ModelError):
            return error
        text = self._clean(str(error))
        refused = isinstance(error, litellm.BadRequestError)  # a 5xx page may say "context" too
        if isinstance(error, litellm.ContextWindowExceededError) or (refused and _CONTEXT.search(text)):
            return ContextFull(f"{self.name}: the prompt does not fit its context: {text}")
        tried = f" ({attempts} attempts)" if attempts > 1 else ""
        return _billed(
            ModelError(f"{self.name}: {type(error).__name__}{tried}: {text}. {self._advice(litellm, error)}"), billed
        )

    def _advice(self, litellm: ModuleType, error: Exception) -> str:
        where = f"the server at {self.api_base}" if self.api_base else "the provider"
        if _keyless(litellm, error):
            missing = litellm.validate_environment(self.model).get("missing_keys") or []
            return (
                f"Set {' and '.join(missing)}, or give api_key"
                if missing
                else "The key was refused: check it, or give api_key"
            )
        if isinstance(error, litellm.NotFoundError):
            return f"Check the model's name, and that {where} serves it"
        if isinstance(error, litellm.RateLimitError):
            return "Lower the concurrency, raise retries or backoff, or check the account's quota"
        if isinstance(error, litellm.Timeout):
            return f"No answer within {self.timeout:g} s: raise timeout, or check {where}"
        if isinstance(error, litellm.BadRequestError):
            return "The request was refused: an unsupported parameter can be dropped with extra={'drop_params': True}"
        return f"Check that {where} is up and reachable"

    def _clean(self, text: str) -> str:
        """One line, without keys."""
        keys = [self._key, *(v for k, v in os.environ.items() if k.endswith("_API_KEY"))]
        for key in keys:
            if key and len(key) > 6:
                text = text.replace(key, "***")
        return " ".join(text.split())[:600].rstrip(".")


def _mapped_price(model: str) -> Price:
    """The dearest tier that litellm's map knows for a model; an unknown Price when it has no entry."""
    try:
        info = load_litellm().get_model_info(model)
    except Exception:  # litellm raises a bare Exception for a model that it does not know
        return Price()
    tiers = {
        k: [v for n, v in info.items() if v is not None and re.fullmatch(f"{k}_cost_per_token(_above_.*)?", n)]
        for k in ("input", "output")
    }
    if not tiers["input"] or not tiers["output"]:
        return Price()
    return Price(input=max(tiers["input"]) * 1e6, output=max(tiers["output"]) * 1e6)


def _ids(holder: object, name: str) -> tuple[int, ...]:
    """Token ids that a server added to its answer: litellm keeps fields that it does not know in one of two places."""
    found = getattr(holder, name, None)
    if found is None:
        fields = getattr(holder, "provider_specific_fields", None) or {}
        found = fields.get(name)
    return tuple(found or ())


def _billed(error: ModelError, billed: bool = True) -> ModelError:
    error.billed = billed
    return error


def _dearer(reply: Reply, usd: float) -> Reply:
    return replace(reply, usd=reply.usd + usd)


def _keyless(litellm: ModuleType, error: Exception) -> bool:
    """No key, or a refused one: litellm also reports a client that could not be made without a key as a server's fault."""
    return isinstance(error, litellm.AuthenticationError) or "missing credentials" in str(error).lower()
