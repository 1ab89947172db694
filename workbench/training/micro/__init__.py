"""The micro policy: about a million weights, its closed vocabulary, and what it is told in both roles.

    model, tokenizer = open_policy(None, seed=0)            # from random; or a folder: data/checkpoints/micro-cold-start
    chat = ChatFormat(tokenizer)
    engine = TransformersEngine(model, tokenizer, max_batch=32)
    policy = EngineModel(engine, chat)
    TerminalAgent(policy.conversation("task/0"), sampling=SAMPLING, prompt=solver_prompt)     # Budget: BUDGET
    ComposeProposer(policy, library)                                                          # workbench.proposer.compose

A solver's episode is four turns of at most 20 sampled tokens: read the note, then one line of shell for each job. It ends with its fourth turn
("turns"), without a submission; the grade is that of the files as they are. Imports torch inside functions only.
"""

from __future__ import annotations

from workbench.training.micro.policy import (
    BUDGET,
    CHECKPOINT,
    SAMPLING,
    SIZE,
    engine_model,
    new_model,
    new_tokenizer,
    open_policy,
)
from workbench.training.micro.prompts import TitlePrompt, proposer_prompt, solver_prompt

__all__ = [
    "BUDGET",
    "CHECKPOINT",
    "SAMPLING",
    "SIZE",
    "TitlePrompt",
    "engine_model",
    "new_model",
    "new_tokenizer",
    "open_policy",
    "proposer_prompt",
    "solver_prompt",
]
