"""The strict reading of what a verifier wrote.

Harbor's convention: `/logs/verifier/reward.json` (a flat object) or `/logs/verifier/reward.txt` (one number).
We read both more strictly than Harbor does, because whatever wrote them may be hostile: every value is one
finite number in [0, 1]. Anything else raises RewardFault, which names what was found and what to write instead.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Literal

FaultKind = Literal[
    "reward-missing", "reward-empty", "reward-too-large", "reward-not-regular", "reward-encoding", "reward-not-a-number",
    "reward-many-values", "reward-not-finite", "reward-out-of-range", "reward-not-json", "reward-not-flat",
    "reward-duplicate-key", "reward-no-key", "reward-disagree",
]  # fmt: skip

FOLDER = "/logs/verifier"
MAX_BYTES = 64 * 1024
MAX_KEYS = 1000
TOLERANCE = 0.01  # reward.txt is often a rounded print of reward.json

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_KIND_OF_FILE = re.compile(r"link|regular|folder|director|device|fifo|socket", re.IGNORECASE)
_BLANKS = " \t\r\n"  # not str.strip(): that also takes Unicode's spaces


class RewardFault(ValueError):
    """A reward that may not be used. kind: a stable word (docs/trials.md lists them)."""

    def __init__(self, kind: FaultKind, message: str):
        super().__init__(message)
        self.kind = kind


def parse_text(data: bytes, where: str = "reward.txt") -> dict[str, float]:
    """`reward.txt` → {"reward": x}: one decimal number in [0, 1], ASCII, blanks around it allowed."""
    text = _decode(data, where).strip(_BLANKS)
    if not text:
        raise RewardFault("reward-empty", f"{where} is empty: write one number between 0 and 1")
    if len(parts := re.split(f"[{_BLANKS}]+", text)) > 1:
        raise RewardFault("reward-many-values", f"{where} holds {len(parts)} values, {_show(text)}: write one number")
    if _NOT_FINITE.fullmatch(text):
        raise RewardFault("reward-not-finite", f"{where} says {_show(text)}: write a finite number between 0 and 1")
    if not _NUMBER.fullmatch(text):
        raise RewardFault("reward-not-a-number", f"{where} says {_show(text)}: write one decimal number such as 0.75")
    return {"reward": _checked(float(text), where, text)}


def parse_json(data: bytes, where: str = "reward.json") -> dict[str, float]:
    """`reward.json` → a flat object of finite numbers in [0, 1], with a key "reward" or exactly one key.

    The one key of an object without "reward" is also given back as "reward"."""
    text = _decode(data, where)
    if not text.strip(_BLANKS):
        raise RewardFault("reward-empty", f'{where} is empty: write {{"reward": x}} with x between 0 and 1')
    value = _load(text, where)
    if not isinstance(value, dict):
        raise RewardFault("reward-not-flat", f'{where} holds {_show(text)}, not an object: write {{"reward": x}}')
    if len(value) > MAX_KEYS:
        raise RewardFault("reward-too-large", f"{where} has {len(value)} keys, more than {MAX_KEYS}")
    rewards = {key: _json_number(item, key, where) for key, item in value.items()}
    if "reward" in rewards:
        return rewards
    if len(rewards) != 1:
        keys = f"has {_show(', '.join(rewards))} but no" if rewards else "is an object without a"
        raise RewardFault("reward-no-key", f'{where} {keys} key "reward": add it')
    return {**rewards, "reward": next(iter(rewards.values()))}


def read_rewards(read: Callable[[str], bytes]) -> dict[str, float]:
    """The rewards in a grader's `/logs/verifier`.

    read: gives a file's bytes and raises FileNotFoundError, or ValueError for anything but a regular file of at most
    MAX_BYTES (as `Sandbox.read`). `reward.json` is preferred, as in Harbor; but when both files are there both must be
    readable and agree to within TOLERANCE, since a verifier that says two things has said nothing.
    """
    found: dict[str, Mapping[str, float]] = {}
    for name, parse in (("reward.json", parse_json), ("reward.txt", parse_text)):
        path = f"{FOLDER}/{name}"
        try:
            data = read(path)
        except FileNotFoundError:
            continue
        except ValueError as error:
            kind = "reward-not-regular" if _KIND_OF_FILE.search(str(error)) else "reward-too-large"
            raise RewardFault(kind, f"{path} was not read: {error}. Write a small regular file") from error
        found[name] = parse(data, path)
    if not found:
        raise RewardFault("reward-missing", f"the verifier wrote neither {FOLDER}/reward.json nor {FOLDER}/reward.txt")
    values = [rewards["reward"] for rewards in found.values()]
    if max(values) - min(values) > TOLERANCE:
        raise RewardFault("reward-disagree", f"reward.json says {values[0]:g} and reward.txt {values[1]:g}: write one")
    return dict(next(iter(found.values())))


def _decode(data: bytes, where: str) -> str:
    if len(data) > MAX_BYTES:
        raise RewardFault("reward-too-large", f"{where} has {len(data):,} bytes, more than {MAX_BYTES:,}")
    if data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise RewardFault("reward-encoding", f"{where} begins with a byte-order mark: write plain UTF-8 without one")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RewardFault("reward-encoding", f"{where} is not UTF-8 ({_show(repr(data[:40]))})") from error


def _load(text: str, where: str) -> object:
    def pairs(items: list[tuple[str, object]]) -> dict[str, object]:
        seen: dict[str, object] = {}
        for key, value in items:
            if key in seen:
                raise RewardFault("reward-duplicate-key", f"{where} has the key {_show(key)} more than once")
            seen[key] = value
        return seen

    def constant(name: str) -> object:
        raise RewardFault("reward-not-finite", f"{where} says {name}: write finite numbers between 0 and 1")

    def integer(digits: str) -> float:
        return float(digits)  # int() of a very long literal is refused by Python, and slow before that

    try:
        return json.loads(text, object_pairs_hook=pairs, parse_constant=constant, parse_int=integer)
    except RewardFault:
        raise
    except (ValueError, RecursionError) as error:
        raise RewardFault("reward-not-json", f"{where} is not JSON ({type(error).__name__}): {_show(text)}") from error


def _json_number(value: object, key: str, where: str) -> float:
    if isinstance(value, dict | list):
        raise RewardFault("reward-not-flat", f"{where}: {_show(key)} is nested; write numbers only")
    if not isinstance(value, float):  # true and false too: Python would read them as 1 and 0
        raise RewardFault("reward-not-a-number", f"{where}: {_show(key)} is {_show(json.dumps(value))}, not a number")
    return _checked(value, f"{where}: {_show(key)}", repr(value))


def _checked(value: float, where: str, text: str) -> float:
    if not math.isfinite(value):
        raise RewardFault("reward-not-finite", f"{where} says {_show(text)}, which is not finite")
    if not 0.0 <= value <= 1.0:
        raise RewardFault("reward-out-of-range", f"{where} says {_show(text)}: rewards lie in [0, 1]")
    return value + 0.0  # -0.0 becomes 0.0


def _show(text: str, limit: int = 60) -> str:
    """A short quotation of hostile text: escaped, cut."""
    return ascii(text if len(text) <= limit else f"{text[:limit]}…")
