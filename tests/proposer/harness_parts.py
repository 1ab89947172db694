"""A small real environment in three states (broken, too easy, right), a solver population, and turns of a scripted proposer."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from workbench.agents import Budget
from workbench.agents.script import ScriptedAgent
from workbench.models import Message
from workbench.models.scripted import Scripted
from workbench.proposer import Assignment

ENV = "env_003"

TOML = """schema_version = "1.4"
[task]
name = "scripted/orders"
[agent]
timeout_sec = 60.0
[verifier]
timeout_sec = 30.0
environment_mode = "shared"
[environment]
network_mode = "no-network"
cpus = 1
memory_mb = 256
storage_mb = 128
"""
INSTRUCTION = """`/app/orders.csv` has a header and one order a line: id, customer, amount in cents, state.
Write to `/app/count.txt` how many orders there are, to `/app/total.txt` the sum of their amounts, and to `/app/best.txt` the
name of the customer with the largest sum. Digits or the name, and nothing else, in each file.
"""
ORDERS = "id,customer,amount,state\n1,ada,500,paid\n2,bob,700,paid\n3,ada,400,paid\n4,cyd,850,void\n5,bob,100,paid\n"
DOCKERFILE = "FROM python:3.12-slim\nWORKDIR /app\nCOPY orders.csv /app/orders.csv\n"
TEST_SH = """#!/bin/bash
n=0
check() {{ if [ "$(head -c 40 "/app/$1.txt" 2>/dev/null)" = "$2" ]; then n=$((n + 1)); echo "passed $1"; else echo "failed $1"; fi; }}
check count {count}; check total {total}; check best {best}
rewards=(0 0.333333 0.666667 1)
echo "${{rewards[$n]}}" > /logs/verifier/reward.txt
"""
SOLVE = """#!/bin/bash
set -e
cd /app
awk -F, '{rows} {{ n++; s += $3; sum[$2] += $3 }} END {{
  for (c in sum) if (best == "" || sum[c] > sum[best]) best = c
  print n > "count.txt"; print s > "total.txt"; print best > "best.txt" }}' orders.csv
"""
# The first state counts the header too; the second asks for every order, which every solver does right.
EVERY = {"count": 5, "total": 2550, "best": "ada"}
PAID = {"count": 4, "total": 1700, "best": "ada"}
HARDER = INSTRUCTION.replace("how many orders there are", "how many orders were paid").replace(
    "`/app/total.txt` the sum of their", "`/app/total.txt` the sum of the paid orders'"
)


def put(path: str, text: str, mode: str = "644") -> str:
    """A shell line that writes a file of the environment."""
    whole = f"{ENV}/{path}"
    folder = whole.rpartition("/")[0]
    return f"mkdir -p {folder} && printf %s {shlex.quote(text)} > {whole} && chmod {mode} {whole}"


def tests(wanted: dict[str, object]) -> str:
    return put("tests/test.sh", TEST_SH.format(**wanted), "755")


def solve(rows: str) -> str:
    return put("solution/solve.sh", SOLVE.format(rows=rows), "755")


BASE = "\n".join(
    [put("task.toml", TOML), put("environment/Dockerfile", DOCKERFILE), put("environment/orders.csv", ORDERS)]
)
BROKEN = "\n".join([BASE, put("instruction.md", INSTRUCTION), tests(EVERY), solve("NR >= 1")])
EASY = "\n".join([BASE, put("instruction.md", INSTRUCTION), tests(EVERY), solve("NR > 1")])
RIGHT = "\n".join([put("instruction.md", HARDER), tests(PAID), solve('NR > 1 && $4 == "paid"')])
SOUND = f"{BASE}\n{RIGHT}"
STALE = put("environment/Dockerfile", DOCKERFILE + "RUN echo 5 > count.txt; echo 2550 > total.txt\n")
FRESH = put("environment/Dockerfile", DOCKERFILE)
LEAK = f"cp {ENV}/solution/solve.sh {ENV}/environment/; " + put(
    "environment/Dockerfile", DOCKERFILE + "COPY solve.sh /app/.cache/solve.sh\n"
)
TOOL = "python3 /opt/tools/"


def solver(number: int) -> ScriptedAgent:
    """Half of the attempts take every order (1/3 on the right state), the others only the paid ones where the instruction
    says so. On the easy state both earn 1. Odd numbers read carefully."""
    return Reader(number % 2 == 1)


class Reader(ScriptedAgent):
    """Solves the task as it is asked (careful) or as its first sentence sounds."""

    def __init__(self, careful: bool):
        super().__init__([], name="population")
        self.careful = careful

    def run(self, task, step, sandbox, budget):
        rows = 'NR > 1 && $4 == "paid"' if self.careful and "were paid" in step.instruction else "NR > 1"
        return ScriptedAgent([SOLVE.format(rows=rows)], name=self.name).run(task, step, sandbox, budget)


def turn(words: str, command: str) -> str:
    return f"{words}\n```bash\n{command}\n```"


SUBMIT = turn("Done.", "submit")


def looking(steps: Sequence[tuple[str, str]], *, name: str = "frontier") -> Scripted:
    """A model that goes on only when its last observation holds what the step expects: a script that looks."""

    def answer(messages: Sequence[Message]) -> str:
        said = sum(m["role"] == "assistant" for m in messages)
        expected, reply = steps[said]
        seen = messages[-1]["content"]
        assert expected in seen, f"turn {said}: {expected!r} is not in:\n{seen}"
        return reply

    return Scripted(answer, name=name)


BUDGET = Budget(turns=4, tokens=4096, seconds=60, command_seconds=30)


def assignment(parent: str = "/nowhere", id: str = "r1-a003") -> Assignment:
    return Assignment(
        id, "run", 0.0, 1, "scripted/parent", parent, "digest", "harder", 0.9, "none: every attempt passed", {}, ()
    )
