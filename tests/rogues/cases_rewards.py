"""Verifiers whose reward cannot be used. Each grades honestly, and writes the bad reward only for a full solution."""

from __future__ import annotations

from .builders import TaskCase, verifier, writes

OPENENV = "OpenEnv#1199"
HARBOR = "notes on Harbor 0.26, §2"
R = "/logs/verifier/reward.txt"
J = "/logs/verifier/reward.json"


def case(name: str, kind: str, source: str, printf: str, reason: str, file: str = "reward.txt") -> TaskCase:
    return TaskCase(
        f"reward-{name}", kind, source, writes(printf, file), stage="oracle", reasons=(reason,), message="reward"
    )


def script(name: str, kind: str, source: str, body: str, reason: str) -> TaskCase:
    """A case whose verifier does `body` for a full solution, and writes 0 for any other."""
    tests = {"tests/test.sh": verifier(f'if [ "$reward" = 1 ]; then {body}; else echo 0 > {R}; fi')}
    return TaskCase(f"reward-{name}", kind, source, tests, stage="oracle", reasons=(reason,), message="reward")


CASES = [
    case("nan", "the reward is nan", OPENENV, "nan", "reward-not-finite"),
    case("inf", "the reward is inf", OPENENV, "inf", "reward-not-finite"),
    case("1e309", "a literal that overflows to inf", OPENENV, "1e309", "reward-not-finite"),
    case("1.5", "more than 1", OPENENV, "1.5", "reward-out-of-range"),
    case("negative", "less than 0: Harbor takes -7.5", HARBOR, "-- -7.5", "reward-out-of-range"),
    case("empty", "an empty file", OPENENV, "''", "reward-empty"),
    case("blank", "a file of blanks", "ours", r"' \n\t\n'", "reward-empty"),
    case("two-lines", "two numbers on two lines", OPENENV, r"'1\n0\n'", "reward-many-values"),
    case("bom", "a byte-order mark before the number", OPENENV, r"'\xef\xbb\xbf1\n'", "reward-encoding"),
    case("not-utf8", "bytes that are no text", "ours", r"'\xff\x31'", "reward-encoding"),
    case("comma", "a decimal comma", "ours", "1,0", "reward-not-a-number"),
    case("word", "a word", OPENENV, "pass", "reward-not-a-number"),
    case("digits", "Arabic digits, which Python's float() reads as 1", "ours", r"'\xd9\xa1'", "reward-not-a-number"),
    case("underscore", "0_1, which Python's float() reads as 1", "ours", "0_1", "reward-not-a-number"),
    case("nul", "a NUL byte after the number", "ours", r"'1\0'", "reward-not-a-number"),
    case("true", "`true`, which Harbor reads as 1", "notes on Harbor 0.26 (anchor)", """'{"reward": true}'""", "reward-not-a-number", "reward.json"),
    case("nested", "a nested object", HARBOR, """'{"reward": {"a": 1}}'""", "reward-not-flat", "reward.json"),
    case("json-number", "a bare number as JSON", HARBOR, "1", "reward-not-flat", "reward.json"),
    case("json-nan", "NaN, which Python's parser takes for JSON", HARBOR, """'{"reward": NaN}'""", "reward-not-finite", "reward.json"),
    case("json-1e309", "a JSON number that overflows", OPENENV, """'{"reward": 1e309}'""", "reward-not-finite", "reward.json"),
    case("json-twice", "one key with two values", "ours", """'{"reward": 0, "reward": 1}'""", "reward-duplicate-key", "reward.json"),
    case("json-no-key", "scores without a reward", OPENENV, """'{"a": 1, "b": 1}'""", "reward-no-key", "reward.json"),
    case("json-cut", "JSON that stops in the middle", "ours", """'{"reward": 1'""", "reward-not-json", "reward.json"),
    script("json-deep", "brackets 30,000 deep", "ours", f"head -c 30000 /dev/zero | tr '\\0' '[' > {J}", "reward-not-json"),
    script("10-mb", "10 MB of zeros before the number", OPENENV, f"head -c 10000000 /dev/zero | tr '\\0' 0 > {R}; echo 1 >> {R}", "reward-too-large"),
    script("sparse", "a sparse file of 10 GB", OPENENV, f"truncate -s 10G {R}", "reward-too-large"),
    script("link", "a link to a file that says 1", "pier#51", f"echo 1 > /app/one; ln -s /app/one {R}", "reward-not-regular"),
    script("link-zero", "a link to /dev/zero: reading it never ends", "ours", f"ln -s /dev/zero {R}", "reward-not-regular"),
    script("fifo", "a named pipe: reading it waits for ever", "ours", f"mkfifo {R}", "reward-not-regular"),
    script("folder", "a folder named reward.txt", "ours", f"mkdir {R}", "reward-not-regular"),
    script("missing", "no reward at all", HARBOR, "true", "reward-missing"),
    script("disagree", "reward.json says 0 and reward.txt 1", "pier#51", f"echo 1 > {R}; echo '{{\"reward\": 0}}' > {J}", "reward-disagree"),
]  # fmt: skip
