"""Reading task.toml: Harbor's own models, plus what they let pass in silence (unknown keys, endless timeouts).

Harbor ignores a key that it does not know, so `[verifer]` would quietly lose its timeout. Here each such key is a
fault that names the closest known one; the known names come from the JSON schema of Harbor's model, so a new Harbor
brings its new keys along. Our own keys stand below [metadata.workbench] (docs/tasks.md).
"""

from __future__ import annotations

import copy
import difflib
import functools
import math
import os
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from workbench.tasks import Fault
from workbench.tasks.toml_lines import Loc, where

WORKBENCH_KEYS = {"keep_services": "boolean", "noop": "number", "partials": "object"}
"""Keys of [metadata.workbench] itself, with their JSON types. keep_services: see Task. noop, partials: the rewards that
doing nothing and each `solution/partial/<name>.sh` should earn. Any other table below it, such as
[metadata.workbench.program], is a note of whoever made the task: kept as it is, and not checked."""

# Harbor still reads these, its schema is silent about them.
_LEGACY = {"": ("version",), "EnvironmentConfig": ("memory", "storage")}
_NAMES = {
    "string": "text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "object": "a table",
}


def read_config(data: bytes) -> tuple[Any | None, dict[str, Any], list[Fault]]:
    """(Harbor's TaskConfig or None, the raw TOML, faults) of the bytes of a task.toml."""
    try:
        text = data.decode("utf-8-sig")
        raw = tomllib.loads(text)
    except UnicodeDecodeError as error:
        return None, {}, [Fault("bad-toml", f"not UTF-8 at byte {error.start}; save it as UTF-8", "task.toml")]
    except RecursionError:
        return None, {}, [Fault("bad-toml", "nested too deeply", "task.toml")]
    except ValueError as error:
        line = re.search(r"line (\d+)", str(error))
        return (
            None,
            {},
            [Fault("bad-toml", f"not TOML: {_short(str(error))}", "task.toml" + (f":{line[1]}" if line else ""))],
        )
    faults = [*_unknown_faults(raw, text), *_workbench_faults(raw, text)]
    config, type_faults = _validate(raw, text)
    faults += type_faults
    if config is not None:
        faults += _value_faults(raw, text)
    return config, raw, faults


@functools.cache
def harbor_model() -> Any:
    """Harbor's TaskConfig; imported on first use (0.5 s) with telemetry off."""
    os.environ["HARBOR_TELEMETRY"] = "0"
    from harbor.models.task.config import TaskConfig

    return TaskConfig


def strip_canary(text: str) -> str:
    """An instruction without the leading comment lines by which benchmarks mark their files, as Harbor shows it."""
    harbor_model()
    from harbor.models.task.task import strip_canary

    return strip_canary(text)


@functools.cache
def _schema() -> dict[str, Any]:
    schema = harbor_model().model_json_schema()
    for name, keys in _LEGACY.items():
        (schema["$defs"][name] if name else schema)["properties"].update({key: {"type": "string"} for key in keys})
    return schema


def _branch(node: dict[str, Any], value: Any) -> dict[str, Any]:
    """The part of a schema node that a value of this shape is meant for; {} when there is none."""
    if "$ref" in node:
        return _branch(_schema()["$defs"][node["$ref"].rpartition("/")[2]], value)
    if "anyOf" in node:
        branches = [_branch(option, value) for option in node["anyOf"]]
        wanted = "object" if isinstance(value, dict) else "array" if isinstance(value, list) else ""
        return next((b for b in branches if b.get("type") == wanted), {})
    return node


def _unknown(value: Any, node: dict[str, Any], loc: Loc) -> Iterator[tuple[Loc, dict[str, Any]]]:
    """(where, the names known there) of each unknown key."""
    node = _branch(node, value)
    if isinstance(value, dict):
        known, other = node.get("properties", {}), node.get("additionalProperties")
        for key, child in value.items():
            if key in known:
                yield from _unknown(child, known[key], (*loc, key))
            elif isinstance(other, dict):
                yield from _unknown(child, other, (*loc, key))
            elif known:
                yield (*loc, key), known
    elif isinstance(value, list) and "items" in node:
        for index, child in enumerate(value):
            yield from _unknown(child, node["items"], (*loc, index))


def _unknown_faults(raw: dict[str, Any], text: str) -> Iterator[Fault]:
    for loc, known in _unknown(raw, _schema(), ()):
        yield Fault(
            "unknown-key", f"unknown key {_dotted(loc)!r}: {_advice(str(loc[-1]), list(known))}", where(text, loc)
        )


def _advice(key: str, known: list[str]) -> str:
    close = difflib.get_close_matches(key, known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    for section, node in _schema()["properties"].items():
        if key in _branch(node, {}).get("properties", {}):
            return f"it belongs in [{section}]"
    return f"known here: {', '.join(sorted(known))}. A key of your own goes below [metadata]"


def _workbench_faults(raw: dict[str, Any], text: str) -> Iterator[Fault]:
    metadata = raw.get("metadata")
    ours = metadata.get("workbench", {}) if isinstance(metadata, dict) else {}
    if not isinstance(ours, dict):
        yield Fault(
            "wrong-type",
            f"metadata.workbench: expected a table, got {_got(ours)}",
            where(text, ("metadata", "workbench")),
        )
        return
    for key, value in ours.items():
        loc = ("metadata", "workbench", key)
        if key in WORKBENCH_KEYS and not _is(value, WORKBENCH_KEYS[key]):
            expected = _NAMES[WORKBENCH_KEYS[key]]
            yield Fault("wrong-type", f"{_dotted(loc)}: expected {expected}, got {_got(value)}", where(text, loc))
        elif key not in WORKBENCH_KEYS and not isinstance(value, dict):
            close = difflib.get_close_matches(key, WORKBENCH_KEYS, n=1)
            advice = f"did you mean {close[0]!r}?" if close else f"known here: {', '.join(WORKBENCH_KEYS)}, and tables"
            yield Fault("unknown-key", f"unknown key {_dotted(loc)!r}: {advice}", where(text, loc))


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, {"number": int | float, "object": dict}.get(kind, bool))


def _validate(raw: dict[str, Any], text: str) -> tuple[Any | None, list[Fault]]:
    from pydantic import ValidationError

    try:
        return harbor_model().model_validate(copy.deepcopy(raw)), []  # Harbor's validators take legacy keys out of it
    except ValidationError as error:
        faults: dict[str, Fault] = {}
        for item in error.errors(include_url=False, include_context=False):
            fault = _type_fault(item, raw, text)
            faults.setdefault(f"{fault.where} {fault.message.partition(':')[0]}", fault)  # a union reports each branch
        return None, list(faults.values())
    except (ArithmeticError, TypeError, AttributeError, RecursionError, ValueError) as error:
        return None, [Fault("wrong-type", f"Harbor cannot read it: {_short(str(error))}", "task.toml")]


def _type_fault(item: dict[str, Any], raw: Any, text: str) -> Fault:
    loc, value = _inside(raw, item["loc"])
    if item["type"] == "missing" and len(loc) + 1 == len(item["loc"]):
        loc = (*loc, item["loc"][-1])
        return Fault(
            "missing-section", f"{_dotted(loc)} is missing: expected {_expected(loc, raw)}", where(text, loc[:-1])
        )
    name = _dotted(loc) or "task.toml"
    if item["type"] == "value_error":
        return Fault("wrong-type", f"{name}: {_short(item['msg'].removeprefix('Value error, '))}", where(text, loc))
    return Fault("wrong-type", f"{name}: expected {_expected(loc, raw)}, got {_got(value)}", where(text, loc))


def _inside(raw: Any, loc: Loc) -> tuple[Loc, Any]:
    """The part of pydantic's location that is in the file (it appends names of union branches), and the value there."""
    value, kept = raw, []
    for part in loc:
        if (isinstance(value, dict) and part in value) or (
            isinstance(value, list) and isinstance(part, int) and part < len(value)
        ):
            value = value[part]
        else:
            break
        kept.append(part)
    return tuple(kept), value


def _expected(loc: Loc, raw: Any) -> str:
    node, value = _schema(), raw
    for part in loc:
        node = _branch(node, value)
        node = (
            node.get("properties", {}).get(part, node.get("additionalProperties"))
            if isinstance(part, str)
            else node.get("items")
        )
        if not isinstance(node, dict):
            return "something else"
        value = value[part] if isinstance(value, list) or (isinstance(value, dict) and part in value) else None
    return _describe(node)


def _describe(node: dict[str, Any]) -> str:
    if "$ref" in node:
        return _describe(_schema()["$defs"][node["$ref"].rpartition("/")[2]])
    if "enum" in node:
        return "one of " + ", ".join(map(repr, node["enum"]))
    if "anyOf" in node:
        return " or ".join(dict.fromkeys(_describe(n) for n in node["anyOf"] if n.get("type") != "null"))
    if node.get("type") == "array":
        return f"a list ({_describe(node['items'])} each)"
    return _NAMES.get(node.get("type", ""), "something else")


def _value_faults(raw: Any, text: str, loc: Loc = ()) -> Iterator[Fault]:
    """Times and sizes must be finite and above 0 and paths absolute; Harbor takes nan, inf, -5 and "../../etc"."""
    children = raw.items() if isinstance(raw, dict) else enumerate(raw) if isinstance(raw, list) else ()
    for key, value in children:
        here = (*loc, key)
        if here == ("metadata",):
            continue
        if isinstance(value, float) and not math.isfinite(value):
            yield Fault("wrong-type", f"{_dotted(here)}: expected a finite number, got {value}", where(text, here))
        elif re.search(r"(timeout_sec|^cpus|_mb)$", str(key)) and isinstance(value, int | float) and value <= 0:
            yield Fault(
                "wrong-type", f"{_dotted(here)}: expected a number above 0, got {_got(value)}", where(text, here)
            )
        elif (
            key == "workdir" and isinstance(value, str) and not re.fullmatch(r"/(?!(.*/)?\.\.(/|$))[^\0-\x1f]*", value)
        ):
            yield Fault(
                "wrong-type",
                f"{_dotted(here)}: expected an absolute path without '..', got {_got(value)}",
                where(text, here),
            )
        yield from _value_faults(value, text, here)


def _dotted(loc: Loc) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).removeprefix(".")
    return text if len(text) <= 200 else text[:200] + "…"


def _got(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and value.bit_length() > 64:
        return "a number beyond 64 bits"
    return f"the {'text' if isinstance(value, str) else 'number' if isinstance(value, int | float) else 'value'} {_short(repr(value), 80)}"


def _short(text: str, length: int = 300) -> str:
    text = "".join(c if c.isprintable() else " " for c in text)
    return text if len(text) <= length else text[:length] + "…"
