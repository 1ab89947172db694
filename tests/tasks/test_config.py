"""task.toml may hold anything: reading it gives a config or faults, and never an exception."""

from __future__ import annotations

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.tasks.config import harbor_model, read_config
from workbench.tasks.toml_lines import where

pytestmark = pytest.mark.filterwarnings(
    "ignore:The '.*' field is deprecated:DeprecationWarning"
)  # Harbor says so of old keys

KEYS = st.sampled_from(
    "task name metadata workbench keep_services environment cpus memory memory_mb storage network_mode allowed_hosts env "
    "workdir docker_image verifier agent timeout_sec steps min_reward artifacts source solution environment_mode os tpu "
    "mcp_servers healthcheck collect user x".split()
)
VALUES = st.one_of(
    st.booleans().map(lambda b: str(b).lower()),
    st.sampled_from(
        ["1", "-5", "0.5", "nan", "inf", "1e400", str(10**30), "1979-05-27", "[]", "{}", "[[1]]", '["a", {b = 1}]']
    ),
    st.sampled_from(
        ["org/name", "no-network", "allowlist", "separate", "infG", "1G", "..", "${X}", "*.a.org", "windows"]
    ).map(repr),
    st.text(string.printable, max_size=8).map(lambda t: "'''" + t.replace("'", "") + "'''"),
)
PAIR = st.tuples(KEYS, VALUES).map(lambda p: f"{p[0]} = {p[1]}\n")
HEADER = st.tuples(st.booleans(), st.lists(KEYS, min_size=1, max_size=3)).map(
    lambda h: ("[[%s]]\n" if h[0] else "[%s]\n") % ".".join(h[1])
)
DOCUMENT = st.lists(st.one_of(PAIR, HEADER), max_size=12).map("".join)


@settings(max_examples=300, deadline=None)
@given(DOCUMENT)
def test_no_document_breaks_the_reading(text):
    config, _, faults = read_config(text.encode())
    assert config is not None or faults
    for fault in faults:
        assert fault.message.isprintable()
        name, _, line = fault.where.partition(":")
        assert name == "task.toml"
        assert not line or 1 <= int(line) <= len(text.splitlines())


@given(st.binary(max_size=60))
def test_no_bytes_break_the_reading(data):
    config, _, faults = read_config(data)
    assert config is not None or faults


def test_long_values_are_cut_in_messages():
    _, _, faults = read_config(b"[environment]\ncpus = '" + b"x" * 100_000 + b"'\n" + b"y" * 5000 + b" = 1\n")
    assert len(faults) == 2
    assert all(len(fault.message) < 1500 for fault in faults)


def test_every_key_of_harbors_own_dump_is_known():
    """A full task.toml as Harbor writes it has no unknown key for us."""
    text = harbor_model()().model_dump_toml()
    config, _, faults = read_config(text.encode())
    assert config is not None
    assert faults == []


def test_lines_of_keys_sections_and_lists():
    text = '# c\na = 1\n[s]\nb.c = 2\nt = """\nfake = 1\n"""\n[[l]]\nn = 1\n[[l]]\nn = 2\n[l.sub]\nd = 3\n'
    lines = {
        ("a",): 2, ("s",): 3, ("s", "b", "c"): 4, ("s", "b"): 4, ("s", "t"): 5, ("l", 0, "n"): 9, ("l", 1, "n"): 11,
        ("l", 1, "sub"): 12, ("l", 1, "sub", "d"): 13, ("s", "absent"): 3,
    }  # fmt: skip
    assert {loc: where(text, loc) for loc in lines} == {loc: f"task.toml:{line}" for loc, line in lines.items()}
    assert where(text, ("absent",)) == "task.toml"
