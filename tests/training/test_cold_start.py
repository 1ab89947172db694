"""Cold-Start: what is chosen, when training stops, that a killed run goes on, what is published."""

from __future__ import annotations

import json
import math

import pytest

from workbench.proposer.compose import ComposeProposer, assignment_line, parse_compose, rate_word
from workbench.proposer.latent import LatentWorlds
from workbench.runs.folder import new_run
from workbench.runs.profiles import load_profile
from workbench.training import cold_start_make as make
from workbench.training.cold_start import cold_start, comparison, feasibility, losses
from workbench.training.cold_start_measures import canonical_probability, expert_chats, practice, solver_tasks
from workbench.training.micro import CHECKPOINT, open_policy, proposer_prompt, solver_prompt
from workbench.training.micro.experts import ProposerExpert, block
from workbench.training.sft import Example
from workbench.training.trajectories import select
from workbench.worlds.draw import Draw


def row(text, passed=True, role="solver", kinds=("stale_copy",)):
    return {"role": role, "passed": passed, "kinds": list(kinds), "messages": [{"role": "assistant", "content": text}]}


def test_selection_takes_what_passed_without_leaks_and_each_once():
    rows = [row("a"), row("a"), row("b", passed=False), row("cat /tmp/wb-cold-x1/task"), row("c", role="proposer")]
    chosen, counts = select(rows, most_of_a_kind=1.0)
    assert sorted(r["messages"][0]["content"] for r in chosen) == ["a", "c"]
    assert counts == {
        "executed": 5, "not passed": 1, "leaks a path of the host": 1, "said before": 1, "over its share": 0, "chosen": 2,
    }  # fmt: skip


def test_selection_caps_a_combination_of_corruptions_whatever_the_order():
    rows = [row(f"x{n}", kinds=("stale_copy",)) for n in range(8)] + [row("y", kinds=("orphan_records",))]
    rows += [row("z", kinds=("duplicate_records",))]
    chosen, counts = select(rows, most_of_a_kind=0.3)
    assert counts["over its share"] == 5
    assert chosen == select(rows[::-1], most_of_a_kind=0.3)[0]


def test_a_compose_line_is_read_strictly():
    assert parse_compose(block("worlds compose micro_shelf micro stale_copy"))[0] == (
        "micro_shelf",
        "micro",
        ("stale_copy",),
    )
    for text in ("worlds compose micro_shelf", "ls", "worlds compose a b; rm -rf x\nls", "worlds compose 'a b c"):
        choice, problem = parse_compose(block(text))
        assert choice is None
        assert problem
    assert parse_compose("worlds compose micro_shelf micro")[0] is None  # no block
    assert parse_compose(block("worlds compose micro_shelf micro stale_copy stale_copy"))[0] is None


def test_pass_rates_have_words():
    assert [rate_word(r) for r in (0.0, 0.1, 0.5, 0.89, 1.0)] == ["never", "rarely", "sometimes", "often", "always"]


@pytest.fixture
def values():
    return load_profile("30_cold_start", "smoke")


@pytest.fixture
def run(tmp_path):
    with new_run("30_cold_start", {"profile": "smoke"}, results=tmp_path / "results") as run:
        yield run


def test_an_assignment_is_one_line_and_its_answer_a_world(run, values, tmp_path):
    [assignment, *_] = practice(run, values)
    words = assignment_line(assignment).split()
    assert words[0] == "micro_shelf"
    assert words[-1] == assignment.direction
    assert practice(run, values)[0] == assignment  # read back
    library = LatentWorlds(generators=["micro_shelf"], tiers=["micro"])
    proposer = ComposeProposer(ProposerExpert(Draw("e")), library, prompt=proposer_prompt)
    proposal = proposer.propose(assignment, tmp_path / "task", seed=1)
    assert (tmp_path / "task/task.toml").is_file()
    assert proposal.episode.turns[0].text.startswith("```bash\nworlds compose micro_shelf micro")


def test_what_the_library_refuses_is_no_world(run, values, tmp_path):
    class Wrong(ProposerExpert):
        def answer(self, messages):
            return block("worlds compose retail_warehouse micro")

    library = LatentWorlds(generators=["micro_shelf"], tiers=["micro"])
    proposal = ComposeProposer(Wrong(Draw("e")), library).propose(practice(run, values)[0], tmp_path / "task", seed=1)
    assert proposal.path is None
    assert "no generator" in proposal.message
    assert not (tmp_path / "task").exists()


def test_the_experts_probability_is_one_for_a_model_that_is_sure(run, values):
    torch = pytest.importorskip("torch")

    class Sure(torch.nn.Module):
        device = torch.device("cpu")

        def forward(self, ids):
            logits = torch.full((*ids.shape, 50), -40.0)
            logits[:, :-1].scatter_(-1, ids[:, 1:, None], 40.0)
            return type("Out", (), {"logits": logits})

    chat = Example((1, 2, 3, 4), (False, False, True, True))
    assert canonical_probability(Sure(), [chat]) == pytest.approx(1.0)
    model, tokenizer = open_policy(None)
    chats = expert_chats(tokenizer, solver_tasks(run.folder / "tasks", values), solver_prompt)
    assert len(chats) == values["control"]
    assert canonical_probability(model, chats) < 1e-6


def test_feasibility_counts_what_a_batch_needs(run):
    run.record("proposals", {"rewards": [1.0, -1.0, -0.25, 1.0], "admitted": 2}, id="after")
    found = feasibility(run, {"batch_groups": 4, "most_proposals": 8})
    assert (found["share"], found["proposals_for_a_batch"], found["enough"]) == (0.5, 8, True)
    run.record("proposals", {"rewards": [-1.0], "admitted": 0}, id="after")
    assert not feasibility(run, {"batch_groups": 4, "most_proposals": 8})["enough"]


def test_the_shipped_checkpoint_is_what_its_card_says():
    assert make.report_check(CHECKPOINT) == 0
    card = json.loads((CHECKPOINT / "card.json").read_text())
    assert 0.3 <= card["passed"] <= 0.5
    model, tokenizer = open_policy(CHECKPOINT)
    assert model.config.vocab_size == len(tokenizer)


@pytest.mark.slow
def test_every_stage_once_and_then_nothing_again(run, values, tmp_path):
    """The smoke profile in real sandboxes; then the same run again does nothing twice; then it is published."""
    cold_start(run, values).close()
    kinds = run.kinds()
    assert kinds["trace"] == values["solver_traces"] + values["proposer_traces"]
    assert [r["when"] for r in comparison(run)] == ["before", "before", "after", "after"]
    assert all(math.isfinite(r["loss"]) for r in losses(run))
    again = cold_start(run, values)
    assert run.kinds() == kinds
    again.close()
    card = make.publish(run, tmp_path / "checkpoint", values)
    assert json.loads((tmp_path / "checkpoint/card.json").read_text())["sha256"] == make.digests(
        tmp_path / "checkpoint"
    )
    assert card["command"] == "make cold-start"
    weights = open_policy(tmp_path / "checkpoint")[0].state_dict()
    mine = open_policy(run.folder / "model")[0].state_dict()
    assert all(weights[name].equal(mine[name]) for name in mine)
    assert make.report_check(tmp_path / "checkpoint") == 0
    (tmp_path / "checkpoint/config.json").write_text("{}")
    assert make.report_check(tmp_path / "checkpoint") == 1
