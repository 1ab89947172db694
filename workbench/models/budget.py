"""A spending cap that stops before it is passed."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence

from workbench.models import BudgetExceeded, Message, Model, ModelError, Reply, Sampling


class Budget:
    """So many US dollars, so many calls. One budget may be shared by several models and any number of threads.

    A call is made only when its dearest outcome (a bound of the prompt's tokens, all of max_tokens, attempts that may be
    billed twice) fits into what is left after all calls in flight; the sum that was really spent is kept afterwards.
    A failed call that may have been billed is counted at its dearest.
    allow_unknown: let calls of unknown price through a dollar cap (they count as 0 and are numbered in `unpriced`).
    """

    def __init__(self, usd: float | None = None, calls: int | None = None, *, allow_unknown: bool = False):
        for name, cap in (("usd", usd), ("calls", calls)):
            if cap is not None and not (math.isfinite(cap) and cap >= 0):
                raise ValueError(f"budget: {name} must be a number of at least 0, found {cap!r}")
        self.usd, self.calls, self.allow_unknown = usd, calls, allow_unknown
        self.spent = 0.0
        self.made = self.unpriced = 0
        self._held = 0.0
        self._lock = threading.Lock()

    def wrap(self, model: Model) -> Capped:
        """The same model under this budget."""
        return Capped(model, self)

    def take(self, worst: float, name: str) -> float:
        """Hold `worst` dollars and one call, or raise BudgetExceeded. The amount held, for `settle`."""
        with self._lock:
            if self.calls is not None and self.made >= self.calls:
                raise BudgetExceeded(f"{name}: all {self.calls} calls of the budget are used: raise `calls` to go on")
            if math.isnan(worst):
                worst = self._unknown(name)
            if self.usd is not None and self.spent + self._held + worst > self.usd:
                raise BudgetExceeded(
                    f"{name}: the next call could cost ${worst:.4f}; of ${self.usd:.4f}, ${self.spent:.4f} is spent and "
                    f"${self._held:.4f} held by calls in flight. Not made: raise `usd`, or lower max_tokens"
                )
            self._held += worst
            self.made += 1
            return worst

    def settle(self, held: float, cost: float) -> None:
        """End of a call: release what it held, count what it cost (NaN: unknown)."""
        with self._lock:
            self._held -= held
            if math.isnan(cost):
                self.unpriced += 1
                cost = held
            self.spent += cost

    def _unknown(self, name: str) -> float:
        if self.usd is not None and not self.allow_unknown:
            raise BudgetExceeded(
                f"{name}: its price is unknown, so a cap of ${self.usd:.4f} cannot be kept: state it "
                '(prices={"NAME": {"input": USD, "output": USD}}, per million tokens), or cap the calls, or set allow_unknown_price'
            )
        return 0.0


class Capped:
    """A model under a Budget; other attributes (engine, tokenizer, close …) are the model's own."""

    def __init__(self, model: Model, budget: Budget):
        self.wrapped, self.budget, self.name = model, budget, model.name

    def reply(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Reply:
        """As the model's. Raises BudgetExceeded instead of making a call that could pass the cap."""
        held = self.budget.take(self.worst_usd(messages, sampling), self.name)
        cost = held  # whatever interrupts the call, it may have been billed
        try:
            reply = self.wrapped.reply(messages, sampling)
            cost = reply.usd
            return reply
        except ModelError as error:
            cost = held if getattr(error, "billed", False) else 0.0
            raise
        finally:
            self.budget.settle(held, cost)

    def worst_usd(self, messages: Sequence[Message], sampling: Sampling) -> float:
        """The most that this call can cost; NaN when the model cannot say."""
        worst = getattr(self.wrapped, "worst_usd", None)
        return worst(messages, sampling) if worst else math.nan

    def __getattr__(self, name: str) -> object:
        if name == "wrapped":  # not yet set (copying, unpickling): no recursion
            raise AttributeError(name)
        return getattr(self.wrapped, name)
