from __future__ import annotations

import math
import threading

import pytest

from workbench.models import BudgetExceeded, ModelError, Reply, Sampling
from workbench.models.budget import Budget
from workbench.models.prices import Price, most_prompt_tokens, read_prices
from workbench.models.scripted import Scripted

CHAT = [{"role": "user", "content": "hi"}]


class Priced(Scripted):
    """Each call may cost at most $1 and really costs `cost`."""

    def __init__(self, cost=0.25, worst=1.0, gate=None, error=None):
        self.cost, self.worst, self.gate, self.error = cost, worst, gate, error
        super().__init__(self.act)

    def act(self, messages):
        if self.gate:
            self.gate.wait(10)
        if self.error:
            raise self.error
        return Reply("x", usd=self.cost)

    def worst_usd(self, messages, sampling):
        return self.worst


def test_stops_before_the_cap_could_be_passed():
    budget = Budget(usd=2.0)
    model = budget.wrap(Priced())
    for _ in range(5):  # 0.25 each; at 1.25 spent a call of 1.00 no longer fits
        model.reply(CHAT)
    with pytest.raises(BudgetExceeded, match=r"\$1\.2500 is spent.*max_tokens"):
        model.reply(CHAT)
    assert len(model.calls) == 5  # the sixth never reached the model
    assert budget.spent == 1.25


def test_calls_in_flight_count_at_their_dearest():
    gate = threading.Event()
    budget = Budget(usd=3.5)
    model = budget.wrap(Priced(gate=gate))
    refused: list[BudgetExceeded] = []

    def call():
        try:
            model.reply(CHAT)
        except BudgetExceeded as error:
            refused.append(error)
            if len(refused) == 5:
                gate.set()

    threads = [threading.Thread(target=call) for _ in range(8)]
    [t.start() for t in threads]
    [t.join(15) for t in threads]
    assert (len(model.calls), len(refused), budget.spent) == (3, 5, 0.75)


def test_one_budget_over_two_models_and_a_cap_of_calls():
    budget = Budget(calls=2)
    first, second = budget.wrap(Scripted(["a"])), budget.wrap(Scripted(["b"]))
    first.reply(CHAT)
    second.reply(CHAT)
    with pytest.raises(BudgetExceeded, match="2 calls"):
        first.reply(CHAT)


def test_unknown_price_is_refused_under_a_dollar_cap_unless_allowed():
    model = Priced(cost=math.nan, worst=math.nan)
    with pytest.raises(BudgetExceeded, match="prices="):
        Budget(usd=1.0).wrap(model).reply(CHAT)
    allowed = Budget(usd=1.0, allow_unknown=True)
    allowed.wrap(model).reply(CHAT)
    assert (allowed.spent, allowed.unpriced) == (0.0, 1)
    Budget(calls=1).wrap(model).reply(CHAT)


@pytest.mark.parametrize(("billed", "spent"), [(True, 1.0), (False, 0.0)])
def test_a_failed_call_counts_only_when_it_may_have_been_billed(billed, spent):
    error = ModelError("gone")
    error.billed = billed
    budget = Budget(usd=5.0)
    with pytest.raises(ModelError, match="gone"):
        budget.wrap(Priced(error=error)).reply(CHAT)
    assert budget.spent == spent


def test_a_reply_without_usage_counts_at_its_dearest():
    budget = Budget(usd=5.0)
    budget.wrap(Priced(cost=math.nan)).reply(CHAT)
    assert (budget.spent, budget.unpriced) == (1.0, 1)


def test_a_capped_model_shows_what_the_model_has():
    model = Budget(calls=1).wrap(Scripted(["a"], name="n"))
    assert model.name == "n"
    assert model.calls == []
    with pytest.raises(AttributeError):
        _ = model.nothing_of_the_kind


@pytest.mark.parametrize("cap", [{"usd": -1}, {"usd": math.nan}, {"calls": math.inf}])
def test_senseless_caps_are_refused(cap):
    with pytest.raises(ValueError, match="at least 0"):
        Budget(**cap)


@pytest.mark.parametrize(
    "entry",
    [{"input": 1}, {"input": 1, "output": -1}, {"input": "1", "output": 1}, {"input": 1, "output": 1, "x": 1}, 3],
)
def test_a_wrong_price_names_its_entry(entry):
    with pytest.raises(ValueError, match="price of m"):
        read_prices({"m": entry})


def test_bound_of_prompt_tokens_and_unknown_prices():
    assert most_prompt_tokens([{"role": "user", "content": "é" * 10}]) >= 20
    assert Price(1.0, 2.0, 0.5).usd(1_000_000, 1_000_000, 500_000) == pytest.approx(0.5 + 0.25 + 2.0)
    assert math.isnan(Price().usd(1, 1))
    assert Sampling().seconds is None
