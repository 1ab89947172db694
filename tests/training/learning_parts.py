"""A flywheel with learning in small: a real tiny model whose words are whole commands, real sandboxes, real grades.

Environments ask for the files a and b, and give half a point for each. The model's vocabulary holds a few commands, so that even from
random weights it earns something now and then, and can learn.
"""

from __future__ import annotations

import copy
import time
from pathlib import Path

from workbench.agents import Budget
from workbench.agents.prompts import Prompt
from workbench.models import Sampling
from workbench.proposer import Assignment, Proposal
from workbench.training.policy import Policy

COMMANDS = ("touch /app/a", "touch /app/b", "true", "touch /app/a /app/b", "submit", "task easy", "task broken")
BLOCKS = tuple(f"```bash\n{command}\n```" for command in COMMANDS)
TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
VALUES = {
    "policy": "tiny", "arm": "full", "external": "world", "reward": "fraction", "progress": True, "backend": "bubblewrap", "seed": 0,
    "generators": ["micro_shelf"], "tiers": ["micro"], "held_out_generators": [], "pool": 2, "parents": "", "held_out": "",
    "evaluate_on": "", "evaluation_tasks": 0, "attempts": 1, "evaluate_every": 0,
    "steps": 3, "groups": 2, "group": 4, "oversample": 1.0, "cap": 12, "least": 1, "minimum": 2, "max_staleness": 8,
    "retries": 1, "stop_after_infra": 0.5, "proposer_every": 2, "proposer_group": 4, "assignments": 1, "review_every": 2,
    "repeats": 1, "calibration_rollouts": 4, "calibration_more": 4, "workers": 4, "checkpoint_every": 1, "too_near": 0.98,
    "learning_rate": 1e-2, "max_tokens": 2, "turns": 2,
}  # fmt: skip


def tiny_tokenizer():
    import re

    from tokenizers import Regex, Tokenizer, decoders
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Split
    from transformers import PreTrainedTokenizerFast

    special = ("<unk>", "<pad>", "<end>", "<system>", "<user>", "<assistant>")
    raw = Tokenizer(WordLevel({word: at for at, word in enumerate((*special, *BLOCKS))}, unk_token="<unk>"))
    raw.pre_tokenizer = Split(Regex("|".join([*map(re.escape, BLOCKS), r"\S+", r"\s"])), "isolated")
    raw.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, unk_token="<unk>", pad_token="<pad>", eos_token="<end>",
                                        additional_special_tokens=list(special[3:]), clean_up_tokenization_spaces=False)  # fmt: skip
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def tiny_model(seed: int = 0):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(vocab_size=6 + len(BLOCKS), hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
                         num_key_value_heads=2, max_position_embeddings=256, tie_word_embeddings=False, eos_token_id=2, pad_token_id=1)  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        model.lm_head.weight[:2].zero_()
    return model


def tiny_policy(seed: int = 0, workers: int = 4) -> Policy:
    from workbench.models.chat_format import ChatFormat
    from workbench.models.engine_model import EngineModel
    from workbench.models.engines_transformers import TransformersEngine

    network, tokenizer = tiny_model(seed), tiny_tokenizer()
    engine = TransformersEngine(copy.deepcopy(network), tokenizer, name="tiny", end_ids=[2], max_batch=workers)
    model = EngineModel(engine, ChatFormat(tokenizer, [2]), name="tiny")
    return Policy("tiny", model, network, tokenizer, Prompt(system="solve"), Sampling(max_tokens=2), Budget(2, 8, 60.0, 10.0),
                  propose_with=TaskProposer, auto_submit=True)  # fmt: skip


class TaskProposer:
    """The model writes `task easy` (a task of files a and b) or `task broken` (its solution fails); all else is malformed."""

    name = "tasks"

    def __init__(self, model, sampling: Sampling):
        self.model, self.sampling = model, sampling

    def propose(self, assignment: Assignment, target: Path, *, seed: int, feedback: str = "") -> Proposal:
        began = time.monotonic()
        said = f"{assignment.parent} {assignment.direction}"
        reply = self.model.reply([{"role": "system", "content": "propose"}, {"role": "user", "content": said}],
                                 Sampling(max_tokens=1, seed=seed))  # fmt: skip
        kind = "easy" if "task easy" in reply.text else "broken" if "task broken" in reply.text else ""
        path = str(write_task(target, f"t{seed}", works=kind == "easy")) if kind else None
        return Proposal(assignment.id, self.name, path, reply.text, time.monotonic() - began, usd=0.0)


TEST = """#!/bin/sh
n=0; [ -e /app/a ] && n=$((n+1)); [ -e /app/b ] && n=$((n+1))
case $n in 0) r=0.0;; 1) r=0.5;; *) r=1.0;; esac
echo $r > /logs/verifier/reward.txt
"""


def write_task(target: Path, name: str, *, works: bool = True) -> Path:
    files = {
        "instruction.md": f"Make the files a and b in /app ({name}).\n",
        "task.toml": f'schema_version = "1.4"\n[task]\nname = "tests/{name}"\nversion = "1.0.0"\ndescription = "two files"\n'
        "[agent]\ntimeout_sec = 60.0\n[verifier]\ntimeout_sec = 30.0\n"
        '[environment]\nnetwork_mode = "no-network"\nbuild_timeout_sec = 60.0\ncpus = 1\nmemory_mb = 512\nstorage_mb = 512\n',
        "environment/Dockerfile": "FROM python:3.13-slim\nWORKDIR /app\n",
        "solution/solve.sh": f"#!/bin/sh\n{'touch /app/a /app/b' if works else 'true'}\n",
        "tests/test.sh": TEST,
    }
    for path, text in files.items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_text(text)
        (target / path).chmod(0o755 if path.endswith(".sh") else 0o644)
    return target


def parents(folder: Path, count: int = 2) -> Path:
    for number in range(count):
        write_task(folder / f"p{number}", f"p{number}")
    return folder
