"""The strict reading of reward files: every known way to say something else than one number in [0, 1]."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.trials.rewards import MAX_BYTES, RewardFault, parse_json, parse_text, read_rewards

TEXTS = [
    (b"", "reward-empty"),
    (b" \n\t", "reward-empty"),
    (b"nan", "reward-not-finite"),
    (b"-NaN\n", "reward-not-finite"),
    (b"inf", "reward-not-finite"),
    (b"+Infinity", "reward-not-finite"),
    (b"1e309", "reward-not-finite"),
    (b"1.5", "reward-out-of-range"),
    (b"-0.1", "reward-out-of-range"),
    (b"1.0000001", "reward-out-of-range"),
    (b"1 0", "reward-many-values"),
    (b"1\n1\n", "reward-many-values"),
    (b"\xef\xbb\xbf1", "reward-encoding"),
    ("1".encode("utf-16"), "reward-encoding"),
    (b"\xff", "reward-encoding"),
    (b"1" * 10_000_000, "reward-too-large"),
    (b"0x1", "reward-not-a-number"),
    (b"1_0", "reward-not-a-number"),
    (b"0,5", "reward-not-a-number"),
    ("١".encode(), "reward-not-a-number"),
    ("０.5".encode(), "reward-not-a-number"),
    ("\u00a01".encode(), "reward-not-a-number"),
    (b"1\0", "reward-not-a-number"),
    (b"true", "reward-not-a-number"),
    (b"50%", "reward-not-a-number"),
    (b"1/2", "reward-not-a-number"),
    (b".", "reward-not-a-number"),
    (b"\x1b[2J1", "reward-not-a-number"),
]
OBJECTS = [
    (b"", "reward-empty"),
    (b"{", "reward-not-json"),
    (b"[" * 60_000, "reward-not-json"),
    (b"0.5", "reward-not-flat"),
    (b"true", "reward-not-flat"),
    (b"[0.5]", "reward-not-flat"),
    (b'"1"', "reward-not-flat"),
    (b"{}", "reward-no-key"),
    (b'{"a": 0.5, "b": 1}', "reward-no-key"),
    (b'{"reward": {"reward": 1}}', "reward-not-flat"),
    (b'{"reward": 1, "more": [1]}', "reward-not-flat"),
    (b'{"reward": true}', "reward-not-a-number"),
    (b'{"reward": "1"}', "reward-not-a-number"),
    (b'{"reward": null}', "reward-not-a-number"),
    (b'{"reward": NaN}', "reward-not-finite"),
    (b'{"reward": -Infinity}', "reward-not-finite"),
    (b'{"reward": 1e309}', "reward-not-finite"),
    (b'{"reward": ' + b"9" * 5000 + b"}", "reward-not-finite"),
    (b'{"reward": 1.5}', "reward-out-of-range"),
    (b'{"reward": 1, "passed": 7}', "reward-out-of-range"),
    (b'{"reward": 0, "reward": 1}', "reward-duplicate-key"),
    (b'\xef\xbb\xbf{"reward": 1}', "reward-encoding"),
    (b'{"reward": 1}' + b" " * MAX_BYTES, "reward-too-large"),
    (json.dumps({"reward": 1, **{str(i): 0 for i in range(2000)}}).encode(), "reward-too-large"),
]


@pytest.mark.parametrize(("data", "kind"), TEXTS)
def test_text_that_is_no_reward(data, kind):
    with pytest.raises(RewardFault) as caught:
        parse_text(data)
    assert caught.value.kind == kind
    assert "reward.txt" in str(caught.value)
    assert len(str(caught.value)) < 400
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(("data", "kind"), OBJECTS)
def test_json_that_is_no_reward(data, kind):
    with pytest.raises(RewardFault) as caught:
        parse_json(data)
    assert caught.value.kind == kind
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("data", "value"),
    [(b"1", 1.0), (b"0.5\n", 0.5), (b" .25\r\n", 0.25), (b"1.", 1.0), (b"5e-1", 0.5), (b"-0.0", 0.0), (b"1e-400", 0.0)],
)
def test_text_that_is_one(data, value):
    reward = parse_text(data)["reward"]
    assert reward == value
    assert math.copysign(1, reward) == 1


@pytest.mark.parametrize(
    ("data", "rewards"),
    [
        (b'{"reward": 0.5}', {"reward": 0.5}),
        (b'{"reward": 1, "passed": 0}', {"reward": 1.0, "passed": 0.0}),
        (b'{"score": 0.25}', {"score": 0.25, "reward": 0.25}),
    ],
)
def test_json_that_is_one(data, rewards):
    assert parse_json(data) == rewards


@given(st.floats(0, 1))
def test_every_number_in_range_survives(value):
    assert parse_text(repr(value).encode()) == {"reward": value}
    assert parse_json(json.dumps({"reward": value, "passed": 1}).encode()) == {"reward": value, "passed": 1.0}


@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_any_bytes_give_a_number_in_range_or_a_fault(data):
    for parse in (parse_text, parse_json):
        try:
            rewards = parse(data)
        except RewardFault as fault:
            assert fault.kind.startswith("reward-")  # noqa: PT017
        else:
            assert all(0 <= value <= 1 for value in rewards.values())


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_any_json_value_gives_a_number_in_range_or_a_fault(value):
    try:
        rewards = parse_json(json.dumps({"reward": value}).encode())
    except RewardFault:
        return
    assert type(value) in (int, float)
    assert rewards["reward"] == value


def folder(**files):
    """A `read` over files in memory; an exception as content is raised."""

    def read(path):
        content = files.get(path.rpartition("/")[2].replace(".", "_"))
        if content is None:
            raise FileNotFoundError(path)
        if isinstance(content, Exception):
            raise content
        return content

    return read


def test_json_is_preferred_and_text_must_agree():
    assert read_rewards(folder(reward_json=b'{"reward": 0.667, "passed": 0}', reward_txt=b"0.67")) == {
        "reward": 0.667,
        "passed": 0.0,
    }
    with pytest.raises(RewardFault, match=r"says 1 and reward\.txt 0") as caught:
        read_rewards(folder(reward_json=b'{"reward": 1}', reward_txt=b"0"))
    assert caught.value.kind == "reward-disagree"
    with pytest.raises(RewardFault) as caught:
        read_rewards(folder(reward_json=b'{"reward": 1}', reward_txt=b"nan"))
    assert caught.value.kind == "reward-not-finite"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("/logs/verifier/reward.txt is a symbolic link"), "reward-not-regular"),
        (ValueError("not a regular file"), "reward-not-regular"),
        (ValueError("10000000 bytes; at most 65536 are read"), "reward-too-large"),
    ],
)
def test_what_cannot_be_read(error, kind):
    with pytest.raises(RewardFault) as caught:
        read_rewards(folder(reward_txt=error))
    assert caught.value.kind == kind


def test_nothing_written():
    with pytest.raises(RewardFault) as caught:
        read_rewards(folder())
    assert caught.value.kind == "reward-missing"
