from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.agents.protocol import Action, observation, parse_action, shorten
from workbench.sandboxes import ExecResult


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("```bash\nls -l\n```", "ls -l"),
        ("text\n```sh\nls\n```\nmore", "ls"),
        ("```bash\r\nls\r\npwd\r\n```\r\n", "ls\npwd"),
        ("```bash\ncat <<'E'\n  indented\nE\n```", "cat <<'E'\n  indented\nE"),
        ("```python\nx\n```\n```bash\nls\n```", "ls"),
        ("```bash\necho '```'\n```", "echo '```'"),
        ("  ```bash\nls\n  ```", "ls"),
        ("```bash\nsubmit now\n```", "submit now"),
        ("```bash\necho submit\n```", "echo submit"),
    ],
)
def test_commands(text, command):
    assert parse_action(text) == Action(command=command)


@pytest.mark.parametrize(
    "text", ["```bash\nsubmit\n```", "I am done.\n```bash\n\n  submit  \n```", "```sh\nsubmit\n```\n"]
)
def test_submissions(text):
    assert parse_action(text) == Action(submit=True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "submit",
        "```\nls\n```",
        "```bash ls```",
        "x ```bash\nls\n```",
        "```bash\nls",
        "```bash\nsubmit\n```\n```bash\nls\n```",
    ],
)
def test_neither(text):
    action = parse_action(text)
    assert action.problem
    assert action.command is None
    assert not action.submit


@given(st.text())
def test_any_text_gives_exactly_one_of_the_three(text):
    for candidate in (text, f"```bash\n{text}\n```"):
        action = parse_action(candidate)
        assert [action.command is not None, action.submit, bool(action.problem)].count(True) == 1


@given(st.text(min_size=1), st.integers(2, 50))
def test_shortened_text_keeps_both_ends_and_says_how_much_is_gone(text, limit):
    short = shorten(text, limit)
    assert short[:1] == text[:1]
    assert short[-1:] == text[-1:]
    assert short == text or f"{len(text) - limit} characters" in short


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        (ExecResult(0), "[exit code 0]"),
        (ExecResult(2, "a\n", "b\n"), "[exit code 2]\na\nb"),
        (ExecResult(124, "part", seconds=5.2, killed_by="time"), "[timed out after 5 s and was killed]\npart"),
        (ExecResult(137, killed_by="memory"), "[killed: it passed the memory limit; exit code 137]"),
    ],
)
def test_observations(result, shown):
    assert observation(result, 100) == shown
