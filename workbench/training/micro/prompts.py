"""What the micro policy is told: a role, the task's title, one short line of each output."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.agents.prompts import Prompt
from workbench.models import Message


@dataclass(frozen=True)
class TitlePrompt(Prompt):
    """Shows a task's title only (the first line, without its mark): of the rest of an instruction a model with some 150 words can read nothing.
    Not as in the papers, whose policies read the whole instruction."""

    def opening(self, instruction: str) -> list[Message]:
        title = instruction.strip().partition("\n")[0].lstrip("# ").strip()
        return super().opening(title)


solver_prompt = TitlePrompt(system="solve", malformed="malformed", observation_chars=120)
proposer_prompt = TitlePrompt(system="propose", malformed="malformed", observation_chars=120)
