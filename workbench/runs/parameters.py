"""What a notebook may be given: the cell tagged `parameters`, read as Python, and values checked against it.

The cell holds plain literals, with an annotation where the literal does not say the type and a comment that helps:

    profile: str = "micro"  # smoke, micro, small or paper
    rounds: int | None = None  # None: the profile's

Papermill itself takes any name and any type with a warning at most, so names and types are checked here.
"""

from __future__ import annotations

import ast
import difflib
import io
import json
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TRUE, FALSE = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}


class ParameterError(ValueError):
    """A parameter that the notebook does not have, or a value that is not of its type."""


@dataclass(frozen=True)
class Parameter:
    """One name of the parameters cell. type: as annotated, or that of the default; "" when neither says it."""

    name: str
    type: str
    default: Any
    help: str = ""


def type_members(text: str) -> list[tuple[str, str]]:
    """Members of a type with what they hold: "list[int] | None" → [("list", "int"), ("None", "")]."""
    if not text:
        return []
    pending, members = [ast.parse(text, mode="eval").body], []
    while pending:
        match pending.pop(0):
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                pending[:0] = [left, right]
            case ast.Subscript(value=value, slice=inner):
                members.append((ast.unparse(value), ast.unparse(inner).strip("()")))
            case node:
                members.append((ast.unparse(node), ""))
    return members


def read_notebook(path: Path) -> dict[str, Any]:
    """A notebook's JSON. ParameterError when it is none."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(notebook["cells"], list):
            raise TypeError
    except (ValueError, KeyError, TypeError):
        raise ParameterError(f"{path} is no notebook: not the JSON that Jupyter writes") from None
    return notebook


def cell_source(cell: Mapping[str, Any]) -> str:
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def parameters_cells(notebook: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [
        cell
        for cell in notebook["cells"]
        if cell.get("cell_type") == "code" and "parameters" in cell.get("metadata", {}).get("tags", [])
    ]


def read_parameters(path: Path) -> dict[str, Parameter]:
    """The parameters of a notebook in their order. ParameterError when the cell is missing or is not plain literals."""
    cells = parameters_cells(read_notebook(path))
    if len(cells) != 1:
        raise ParameterError(f"{path.name} needs one code cell tagged `parameters`; it has {len(cells)}")
    return parse_parameters(cell_source(cells[0]), path.name)


def parse_parameters(source: str, where: str = "parameters cell") -> dict[str, Parameter]:
    """Parameters of a cell's source."""
    try:
        statements = ast.parse(source).body
    except SyntaxError as error:
        raise ParameterError(f"{where}: the parameters cell is no Python: {error.msg} in line {error.lineno}") from None
    comments = _comments(source)
    found: dict[str, Parameter] = {}
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                annotation = ""
            case ast.AnnAssign(target=ast.Name(id=name), annotation=note, value=ast.expr() as value):
                annotation = note.value if isinstance(note, ast.Constant) else ast.unparse(note)
            case _:
                line = statement.lineno
                raise ParameterError(f"{where}: line {line} of the parameters cell is no `name: type = value`")
        try:
            default = ast.literal_eval(value)
        except ValueError:
            raise ParameterError(
                f"{where}: {name} is not a plain literal; compute it in the next cell, or a given value would not reach it"
            ) from None
        inferred = "" if default is None else type(default).__name__
        found[name] = Parameter(name, str(annotation) or inferred, default, comments.get(statement.end_lineno or 0, ""))
    return found


def _comments(source: str) -> dict[int, str]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {t.start[0]: t.string.lstrip("# ").strip() for t in tokens if t.type == tokenize.COMMENT}


def check_parameters(known: Mapping[str, Parameter], given: Mapping[str, Any], notebook: str) -> dict[str, Any]:
    """`given` with every value in its parameter's type; strings are parsed. ParameterError lists everything wrong."""
    checked, faults = {}, []
    for name, value in given.items():
        if name not in known:
            match = difflib.get_close_matches(name, known, 1, 0.5)
            hint = f"did you mean {match[0]!r}?" if match else f"it has {', '.join(known) or 'none'}"
            faults.append(f"{notebook} has no parameter {name!r}; {hint}")
            continue
        try:
            checked[name] = convert(value, known[name])
        except ValueError as error:
            faults.append(str(error))
    if faults:
        raise ParameterError("\n".join(faults))
    return checked


def convert(value: Any, parameter: Parameter) -> Any:
    """A value (from the command line a string) as the parameter's type; ValueError says what was expected."""
    if isinstance(value, Path):
        value = str(value)
    members = type_members(parameter.type)
    if not members or members[0][0] == "Any":
        return _literal(value) if isinstance(value, str) else value
    for kind, inner in sorted(members, key=lambda m: m[0] == "str"):  # a string fits str too, so that is tried last
        if kind not in _CONVERTERS:
            raise ValueError(f"{parameter.name}: the notebook gives it the unknown type {parameter.type!r}")
        try:
            found = _CONVERTERS[kind](value)
            if kind == "list" and inner:
                item = Parameter(f"an item of {parameter.name}", inner, None)
                found = [convert(_text(v, inner), item) for v in found]
        except (ValueError, TypeError, SyntaxError):
            continue
        return found
    expected = " or ".join(_EXAMPLES.get(kind, kind) for kind, _ in members)
    raise ValueError(f"{parameter.name} must be {expected}, not {value!r}")


def _text(value: Any, kind: str) -> Any:
    """What was split off a command-line string looked like a number; a list of text wants it back."""
    return str(value) if kind == "str" and isinstance(value, int | float) else value


def _literal(value: str) -> Any:
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return value


def _to_int(value: Any) -> int:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise ValueError
    return int(value)


def _to_float(value: Any) -> float:
    if isinstance(value, bool):
        raise ValueError
    return float(value)


def _to_bool(value: Any) -> bool:
    text = str(value).lower()
    if text not in TRUE | FALSE:
        raise ValueError
    return text in TRUE


def _to_str(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _to_list(value: Any) -> list[Any]:
    if isinstance(value, str):
        value = ast.literal_eval(value) if value.lstrip().startswith(("[", "(")) else _split(value)
    if not isinstance(value, list | tuple):
        raise ValueError
    return list(value)


def _split(value: str) -> list[Any]:
    return [_literal(part.strip()) for part in value.split(",") if part.strip()]


def _to_dict(value: Any) -> dict[str, Any]:
    value = ast.literal_eval(value) if isinstance(value, str) else value
    if not isinstance(value, dict):
        raise ValueError
    return value


def _to_none(value: Any) -> None:
    if value is not None and str(value).lower() not in ("none", "null"):
        raise ValueError


_CONVERTERS = {
    "int": _to_int, "float": _to_float, "bool": _to_bool, "str": _to_str, "list": _to_list, "tuple": _to_list,
    "dict": _to_dict, "None": _to_none, "NoneType": _to_none,
}  # fmt: skip
_EXAMPLES = {
    "int": "a whole number", "float": "a number", "bool": "true or false", "str": "text",
    "list": "a list such as 'a,b' or '[1, 2]'", "dict": "a dict such as '{\"a\": 1}'",
}  # fmt: skip
