from __future__ import annotations

import math
from pathlib import Path

import pytest
from folder_sandbox import FolderSandbox

from workbench.agents import Agent, Budget, get_agent
from workbench.agents.prompts import PROMPTS
from workbench.agents.terminal import TerminalAgent
from workbench.models import BudgetExceeded, ContextFull, ModelError, OutOfTime, Reply, Sampling
from workbench.models.budget import Budget as Cap
from workbench.models.scripted import Scripted
from workbench.sandboxes import SandboxError
from workbench.tasks import Step, Task

STEP = Step("", "Create the file a.txt.\n", Path("tests"), None)
TASK = Task(Path("task"), "t", (STEP,), "digest")
SUBMIT = "Done.\n```bash\nsubmit\n```"


def bash(command: str) -> str:
    return f"I do this.\n```bash\n{command}\n```\n"


@pytest.fixture
def sandbox(tmp_path):
    return FolderSandbox(tmp_path / "box")


def run(model, sandbox, budget=Budget(), **options):
    model = model if hasattr(model, "reply") else Scripted(model)
    return TerminalAgent(model, **options).run(TASK, STEP, sandbox, budget)


def test_an_episode_from_instruction_to_submission(sandbox):
    model = Scripted([bash("echo hello > a.txt; cat a.txt; echo oops >&2; exit 3"), SUBMIT])
    episode = run(model, sandbox)
    assert (sandbox.root / "app/a.txt").read_text() == "hello\n"
    assert (episode.submitted, episode.ended_by, episode.model, episode.agent) == (
        True,
        "submit",
        "scripted",
        "terminal",
    )
    first, last = episode.turns
    assert (first.command, first.exit_code) == ("echo hello > a.txt; cat a.txt; echo oops >&2; exit 3", 3)
    assert first.observation == "[exit code 3]\nhello\noops"
    assert (last.command, last.observation, last.exit_code) == (None, "", None)
    messages = model.calls[1][0]
    assert [m["role"] for m in messages] == ["system", "user", "assistant", "user"]
    assert messages[1]["content"] == "Create the file a.txt."
    assert messages[2]["content"] == first.text
    assert messages[3]["content"] == first.observation


def test_ids_logprobs_tokens_and_price_are_kept_for_each_turn(sandbox):
    replies = [Reply(bash("true"), "stop", (1, 2), (3, 4), (-0.1, -0.2), 2, 2, math.nan, 0.5), Reply(SUBMIT, "length")]
    first, last = run(replies, sandbox).turns
    assert (first.prompt_ids, first.sampled_ids, first.logprobs) == ((1, 2), (3, 4), (-0.1, -0.2))
    assert (first.prompt_tokens, first.completion_tokens, first.model_seconds) == (2, 2, 0.5)
    assert math.isnan(first.usd)
    assert last.extra["finish"] == "length"


@pytest.mark.parametrize(
    "text",
    ["no block", bash("a") + bash("b"), "```bash\necho unclosed", "```python\nprint()\n```", bash(""), bash("a\0b")],
)
def test_a_malformed_turn_is_told_what_is_expected_and_runs_nothing(sandbox, text):
    episode = run([text, SUBMIT], sandbox)
    assert sandbox.calls == []
    assert "exactly one ```bash block" in episode.turns[0].observation
    assert episode.turns[0].extra["problem"]
    assert episode.turns[0].command is None
    assert episode.ended_by == "submit"


def test_three_malformed_turns_in_a_row_end_it(sandbox):
    episode = run(["a", "b", bash("true"), "c", "d", "e", SUBMIT], sandbox)
    assert (episode.ended_by, episode.submitted, len(episode.turns)) == ("malformed", False, 6)


def test_directory_and_exported_variables_carry_over(sandbox):
    commands = [
        "mkdir -p 'a b/c'; cd 'a b/c'; export X=$'one\\n\"two\"' Y=3",
        'pwd; printf %s "$X"; exit 4',
        "pwd; f() { :; }; unset Y",
        "echo ${Y-gone}; type f",
    ]
    turns = run([*map(bash, commands), SUBMIT], sandbox).turns
    assert turns[1].observation == f'[exit code 4]\n{sandbox.root}/app/a b/c\none\n"two"'
    assert turns[2].observation.endswith("a b/c")  # an exit does not lose it
    assert "f: not found" in turns[3].observation  # functions do not carry over


def test_a_removed_directory_a_killed_shell_and_a_syntax_error_do_no_harm(sandbox):
    commands = [
        "mkdir d; cd d",
        "rmdir ../d",
        "echo here; kill -9 $$",
        "if then",
        "cat <<EOF\nunfinished",
        "echo still works",
    ]
    turns = run([*map(bash, commands), SUBMIT], sandbox).turns
    assert turns[2].observation.startswith("[exit code 137]")
    assert "here" in turns[2].observation
    assert "syntax error" in turns[3].observation
    assert turns[5].observation.endswith("still works")


def test_state_lines_never_reach_the_policy(sandbox):
    turns = run([bash("echo a; printf b"), bash("true"), SUBMIT], sandbox).turns
    assert turns[0].observation == "[exit code 0]\na\nb"
    assert turns[1].observation == "[exit code 0]"


def test_long_output_shows_head_tail_and_count(sandbox):
    text = run([bash("seq 1 100000"), SUBMIT], sandbox).turns[0].observation
    assert len(text) < 8200
    assert text.startswith("[exit code 0]\n1\n2\n")
    assert text.endswith("99999\n100000")
    assert "characters left out" in text


def test_a_command_past_its_time_is_killed_and_said(sandbox):
    turns = run([bash("cd /tmp; sleep 60"), bash("pwd"), SUBMIT], sandbox, Budget(command_seconds=0.3)).turns
    assert "[timed out after" in turns[0].observation
    assert turns[0].exit_code == 124
    assert turns[1].exit_code == 0


def test_limits_of_turns_tokens_and_time(sandbox):
    assert run(lambda m: bash("true"), sandbox, Budget(turns=4)).ended_by == "turns"
    spent = run(lambda m: Reply(bash("true"), completion_tokens=40), sandbox, Budget(tokens=100))
    assert (spent.ended_by, len(spent.turns)) == ("tokens", 3)
    slow = run(lambda m: bash("sleep 30"), sandbox, Budget(seconds=0.5))
    assert (slow.ended_by, len(slow.turns), slow.turns[0].exit_code) == ("time", 1, 124)


def test_what_is_left_bounds_each_reply(sandbox):
    model = Scripted(lambda m: Reply(bash("true"), completion_tokens=30))
    run(model, sandbox, Budget(tokens=100, seconds=50, turns=4), sampling=Sampling(max_tokens=64, seed=7))
    asked = [s for _, s in model.calls]
    assert [s.max_tokens for s in asked] == [64, 64, 40, 10]
    assert [s.seed for s in asked] == [7, 8, 9, 10]
    assert all(0 < s.seconds <= 50 for s in asked)


@pytest.mark.parametrize(("error", "ended"), [(ContextFull("full"), "context"), (OutOfTime("late"), "time")])
def test_what_the_policy_answers_for_ends_the_episode(sandbox, error, ended):
    def fail(messages):
        raise error

    episode = run(Scripted(fail), sandbox)
    assert (episode.ended_by, episode.submitted, episode.turns) == (ended, False, ())


@pytest.mark.parametrize("error", [ModelError("gone"), BudgetExceeded("spent")])
def test_a_failing_model_passes_through(sandbox, error):
    def fail(messages):
        raise error

    with pytest.raises(type(error), match=str(error)):
        run(Scripted(fail), sandbox)


def test_a_spending_cap_passes_through(sandbox):
    with pytest.raises(BudgetExceeded):
        run(Cap(calls=1).wrap(Scripted([bash("true"), SUBMIT])), sandbox)


def test_a_failing_sandbox_passes_through(sandbox, monkeypatch):
    def gone(*_, **__):
        raise SandboxError("gone")

    monkeypatch.setattr(sandbox, "exec", gone)
    with pytest.raises(SandboxError, match="gone"):
        run([bash("true")], sandbox)


def test_small_prompt_shows_examples_that_the_protocol_accepts(sandbox):
    model = Scripted([bash("echo x > a.txt"), SUBMIT])
    episode = run(model, sandbox, prompt="small")
    assert episode.submitted
    assert [m["role"] for m in model.calls[0][0]][:3] == ["system", "user", "assistant"]
    from workbench.agents.protocol import parse_action

    for _, assistant in PROMPTS["small"].examples:
        assert not parse_action(assistant).problem


def test_agents_by_name(tmp_path):
    assert get_agent("oracle").name == "oracle"
    assert get_agent("noop").name == "noop"
    terminal = get_agent("terminal", Scripted([]), prompt="small")
    assert isinstance(terminal, Agent)
    assert terminal.model == "scripted"
    with pytest.raises(ValueError, match="needs a model"):
        get_agent("terminal")
    with pytest.raises(ValueError, match="use terminal"):
        get_agent("nobody")
    with pytest.raises(ValueError, match="small"):
        get_agent("terminal", Scripted([]), prompt="tiny")
