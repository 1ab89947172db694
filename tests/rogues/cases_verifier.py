"""Tasks that build but grade wrongly: weak, vacuous, flaky, hanging or dependent on the world outside."""

from __future__ import annotations

from .builders import INSTRUCTION, SOLVE, TESTS, WRITE, TaskCase, toml, verifier, with_pytest

R = "/logs/verifier/reward.txt"
SOUND = {"oracle": 1.0, "noop": 0.0}
HARBOR = "notes on Harbor 0.26"

# What differs between two starts of a sandbox (a clock, a mirror, a dice) is stood for by /app/start: `Counted`, the back
# end of these tests, writes how many were started before into it. 0 is the oracle's first, 1 the no-op's first.
ONCE = '[ "$(cat /app/start)" -lt 2 ] || echo wrong > /app/min.txt\n'
FLAKY = 'read -r start < /app/start; [ "$reward" = 1 ] && [ "$start" -ge 2 ] && reward=0.75'
FLAKY_NOOP = 'read -r start < /app/start; [ "$reward" = 0 ] && [ "$start" -ge 2 ] && reward=0.25'


# The instruction of the held-out task that these cases are compared with.
HELD_OUT = """
The service writes one line for every request that it has answered. Find the client with the most refused requests in
the last full hour of the log, and write its address and the number of its refused requests to the file answer.csv.
"""


def graded(body: str, first: str = "") -> dict[str, str]:
    return {"tests/test.sh": verifier(body, first=first)}


CASES = [
    TaskCase(
        "oracle-wrong", "the reference solution passes three tests of four", "Repo2RLEnv#100",
        {"solution/solve.sh": SOLVE + "echo 4 > min.txt\n"}, stage="oracle", reasons=("oracle-fails",), message="0.75", rewards={"oracle": 0.75},
    ),
    TaskCase(
        "oracle-empty", "a solution that does nothing", "Repo2RLEnv PR #101", {"solution/solve.sh": "#!/bin/bash\n"}, stage="oracle",
        reasons=("oracle-fails",), rewards={"oracle": 0.0},
    ),
    TaskCase(
        "oracle-hangs", "a solution that never ends", "ours", {"solution/solve.sh": "#!/bin/bash\nsleep 1000\n"}, stage="oracle",
        reasons=("oracle-fails",), times={"agent_timeout": 1.0},
    ),
    TaskCase(
        "oracle-unknown-interpreter", "solve.sh names an interpreter that is not there", "ours",
        {"solution/solve.sh": "#!/usr/bin/no-such-shell\n"}, stage="oracle", reasons=("oracle-fails",),
    ),
    TaskCase(
        "oracle-exit-3", "sound: solve.sh does its work and then exits with 3 (Harbor ignores it too)", HARBOR + ", §2",
        {"solution/solve.sh": SOLVE + "exit 3\n"}, stage="admitted", rewards=SOUND,
    ),
    TaskCase(
        "oracle-once", "a solution that works the first time only", "ai-coding-agent-test-strategy#57",
        {"solution/solve.sh": SOLVE + ONCE}, stage="repeat", reasons=("flaky",), message="oracle",
    ),
    TaskCase("flaky", "a test that fails sometimes", "the paper's repeat step", graded(FLAKY + "\n" + WRITE), stage="repeat", reasons=("flaky",), message="oracle"),
    TaskCase(
        "flaky-untouched", "an untouched workspace that sometimes passes a test", "R2E-Gym#27", graded(FLAKY_NOOP + "\n" + WRITE), stage="repeat",
        reasons=("flaky",), message="no-op",
    ),
    TaskCase(
        "passes-untouched", "every test passes untouched", "R2E-Gym#27", graded("reward=1; " + WRITE), stage="noop", reasons=("noop-passes",),
        rewards={"oracle": 1.0, "noop": 1.0},
    ),
    TaskCase(
        "noop-0.6", "an untouched workspace gets 0.6", "OpenEnv PR #1018", graded("rewards=(0.6 0.7 0.8 0.9 1); reward=${rewards[$n]}; " + WRITE),
        stage="noop", reasons=("noop-passes",), message="0.6", rewards={"oracle": 1.0, "noop": 0.6},
    ),
    TaskCase(
        "noop-half", "an untouched workspace gets exactly 0.5: the rule is *below* a half", "the paper's no-op step",
        graded("rewards=(0.5 0.6 0.7 0.8 1); reward=${rewards[$n]}; " + WRITE), stage="noop", reasons=("noop-passes",),
        rewards={"oracle": 1.0, "noop": 0.5},
    ),
    TaskCase(
        "some-pass-untouched", "sound, but one test of five needs no work: reported by name", "chimera-agent PR #431",
        {**with_pytest(), "tests/test_outputs.py": TESTS + "\n\ndef test_nothing():\n    pass\n"}, stage="admitted",
        rewards={"oracle": 1.0, "noop": 0.2}, report=("pass_untouched",),
    ),
    TaskCase(
        "no-tests", "pytest collects nothing", "penguin PR #937", {**with_pytest(), "tests/test_outputs.py": "# later\n"}, stage="oracle",
        reasons=("no-tests",),
    ),
    TaskCase(
        "no-tests-reward-1", "a verifier whose empty list of checks passes", "penguin PR #937", {"tests/test.sh": "#!/bin/bash\necho 1 > " + R + "\n"},
        stage="noop", reasons=("noop-passes",),
    ),
    TaskCase(
        "tests-do-not-import", "a test file with an import that fails", "ours", {**with_pytest(), "tests/test_outputs.py": "import no_such_module\n" + TESTS},
        stage="oracle", reasons=("verifier-crash",), message="no_such_module",
    ),
    TaskCase(
        "all-skipped", "every test is skipped: none was passed", "ours",
        {**with_pytest(), "tests/test_outputs.py": "import pytest\n\n@pytest.mark.skip\ndef test_it():\n    pass\n"}, stage="oracle",
        reasons=("oracle-fails",), rewards={"oracle": 0.0},
    ),
    TaskCase(
        "verifier-crashes", "a verifier that ends before it says anything", "rllm PR #710", graded("exit 1"), stage="oracle", reasons=("verifier-crash",),
    ),
    TaskCase(
        "verifier-killed", "a verifier that kills itself", "rllm PR #710", graded("kill -9 $$"), stage="oracle", reasons=("verifier-crash",),
    ),
    TaskCase(
        "mirror-gone", "a verifier that installs pytest from the network first", "orca-agent#65",
        graded("apt-get -o Acquire::Retries=0 update >/dev/null && pip install --retries 0 -q pytest-abc && " + WRITE),
        stage="oracle", reasons=("verifier-crash", "verifier-needs-network"), message="network",
    ),
    TaskCase(
        "verifier-hangs", "a verifier that never ends", "hud-python PR #516", graded("sleep 1000"), stage="oracle", reasons=("verifier-timeout",),
        times={"verifier_timeout": 1.0},
    ),
    TaskCase(
        "verifier-ignores-term", "a verifier that ignores TERM and never ends", "hud-python PR #516",
        graded("while :; do sleep 1; done", first="trap '' TERM INT HUP"), stage="oracle", reasons=("verifier-timeout",), times={"verifier_timeout": 1.0},
    ),
    TaskCase(
        "verifier-leaves-child", "a verifier that leaves a child which writes the reward later", "hud-python PR #516",
        graded("echo 0 > " + R + "; (sleep 2; echo 1 > " + R + ") &"), stage="oracle", reasons=("verifier-left-process",),
    ),
    TaskCase(
        "verifier-leaves-daemon", "a verifier that leaves a daemon with a session of its own", "hud-python PR #516",
        graded(WRITE + "setsid sleep 1000 >/dev/null 2>&1 < /dev/null &"), stage="oracle", reasons=("verifier-left-process",),
    ),
    TaskCase(
        "verifier-forks", "a fork bomb in the verifier", HARBOR + " (9,070 host processes)",
        graded("f() { f | f & }; f 2>/dev/null; sleep 1000"), stage="oracle", reasons=("verifier-timeout", "verifier-processes"), times={"verifier_timeout": 2.0},
    ),
    TaskCase(
        "verifier-eats-memory", "a verifier that needs more memory than the task has", "ours",
        graded("""python3 -c "x = bytearray(2 << 30); x[::4096] = b'1' * len(x[::4096])" && """ + WRITE), stage="oracle",
        reasons=("verifier-memory", "verifier-crash"),
    ),
    TaskCase(
        "verifier-output", "sound, with 200 MB of output from the verifier", HARBOR + " (200 MB log)", graded(WRITE + "yes rogue | head -c 200000000"),
        stage="admitted", rewards=SOUND, slow=True,
    ),
    TaskCase(
        "verifier-escapes", "sound, with terminal escape codes, NULs and bytes that are no text in the verifier's output", "ours",
        graded(WRITE + "printf '\\033[2J\\033]0;owned\\007\\0\\377'"), stage="admitted", rewards=SOUND,
    ),
    TaskCase(
        "verifier-escapes-refused", "the same, and a solution that does nothing: the reason quotes the output, with every control character spelled out", "ours",
        {**graded(WRITE + "printf '\\033[2J\\033]0;owned\\007\\0\\377\\r'"), "solution/solve.sh": "#!/bin/bash\nprintf '\\033c'\n"}, stage="oracle",
        reasons=("oracle-fails",), message="\\x1b[2J\\x1b]0;owned\\x07",
    ),
    TaskCase(
        "verifier-reads-solution", "a verifier that needs the solution beside it", "OpenEnv PR #972",
        graded("[ -e /solution/solve.sh ] && " + WRITE), stage="oracle", reasons=("reward-missing", "verifier-crash"),
    ),
    TaskCase(
        "host-variable", "[verifier.env] asks for a key of the host's", "ours",
        {"task.toml": toml("host-variable") + '\n[verifier.env]\nKEY = "${HOME}"\n'}, stage="oracle", reasons=("host-variable",), message="value",
    ),
    TaskCase(
        "held-out-copy", "the instruction of a held-out task", "marin#6852", {"instruction.md": INSTRUCTION + HELD_OUT}, stage="contamination",
        reasons=("contamination",),
    ),
]  # fmt: skip
