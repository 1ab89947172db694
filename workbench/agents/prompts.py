"""What a policy is told before its task. Data only: a variant is a system text and worked examples as earlier turns."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.agents.protocol import SUBMIT
from workbench.models import Message


@dataclass(frozen=True)
class Prompt:
    """system: the system message. examples: (user, assistant) texts shown before the task. task: the user message, with
    {instruction}. observation: what follows a command, with {observation}. malformed: after a turn that asks for
    nothing, with {problem}. observation_chars: how much of an output is shown."""

    system: str
    examples: tuple[tuple[str, str], ...] = ()
    task: str = "{instruction}"
    observation: str = "{observation}"
    malformed: str = "{problem}. Answer with exactly one ```bash block, or with a block that contains only submit."
    observation_chars: int = 8000

    def opening(self, instruction: str) -> list[Message]:
        """The messages of an episode before its first turn."""
        messages: list[Message] = [{"role": "system", "content": self.system}]
        for user, assistant in self.examples:
            messages += [{"role": "user", "content": user}, {"role": "assistant", "content": assistant}]
        return [*messages, {"role": "user", "content": self.task.replace("{instruction}", instruction.strip())}]


STANDARD = Prompt(
    system="""You work in a Linux terminal, alone, on the task that the user gives you.

In every message, say briefly what you do next and why, then give exactly one command block:

```bash
the commands to run
```

The block is run with bash, and you are shown its exit code and its output (the middle of a long output is left out).
- Every block starts a new bash. The working directory and exported variables carry over; other shell state does not.
- Nobody answers questions: commands that wait for a key or a password run until their time limit and are killed.
- Look before you change things, and check your result with a command before you finish.
- When the task is done, send a block that contains only the word submit:

```bash
submit
```

Your files as they are at that moment are graded. You cannot go on after submitting.""",
)


def _block(command: str) -> str:
    return f"```bash\n{command}\n```"


# For models of about a hundred million weights: a short rule, and turns to imitate, each with its submission.
_EXAMPLES = (
    ("Create the file /app/color.txt containing blue.", "echo blue > /app/color.txt"),
    ("Copy the file /app/old.txt to /app/new.txt.", "cp /app/old.txt /app/new.txt"),
    ("Create the file /app/animal.txt containing horse.", "echo horse > /app/animal.txt"),
    ("Append the line apple to the file /app/fruit.txt.", "echo apple >> /app/fruit.txt"),
    ("Rename the file /app/draft.txt to /app/final.txt.", "mv /app/draft.txt /app/final.txt"),
    ("Write the number of lines of /app/names.txt into /app/count.txt.", "wc -l < /app/names.txt > /app/count.txt"),
    ("Create the file /app/city.txt containing paris.", "echo paris > /app/city.txt"),
)
SMALL = Prompt(
    system="You are a Linux shell. Answer every request with one bash block. When it is done, answer with submit.",
    examples=tuple(
        turn for ask, command in _EXAMPLES for turn in ((ask, _block(command)), ("[exit code 0]", _block(SUBMIT)))
    ),
    malformed="{problem}. Answer with one ```bash block.",
    observation_chars=400,
)

PROMPTS = {"standard": STANDARD, "small": SMALL}
