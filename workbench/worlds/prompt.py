"""The task's prompt: one shape for all generators (Tev §2.1, stage 5)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from workbench.worlds import Output, Prompt, Spec

_TOOLS = {"sqlite3": "Python's sqlite3 module"}  # the images have the library, not the command


def render(spec: Spec, prompt: Prompt) -> str:
    """The public contract as Markdown: goal, inputs, outputs with their schemas, requirements, authority, toolchain."""
    parts = [f"# {spec.title}", prompt.goal, "## Inputs", _bullets(prompt.inputs), "## Outputs"]
    parts.append("\n".join(_output(output) for output in spec.outputs))
    parts += ["## Requirements", "\n".join(f"{n}. {text}" for n, text in enumerate(prompt.requirements, 1))]
    if prompt.authority:
        parts += ["## Authority", "\n".join(f"- {text}" for text in prompt.authority)]
    tools = ", ".join([*(_TOOLS.get(tool, tool) for tool in spec.tools), *spec.python_packages])
    parts += ["## Tools", f"Available: {tools}. There is no network. Leave `input/` as it is."]
    return "\n\n".join(parts) + "\n"


def _bullets(inputs: Mapping[str, str]) -> str:
    return "\n".join(f"- `{path}`: {role}" for path, role in inputs.items())


def _output(output: Output) -> str:
    head = f"- `{output.path}` ({output.format}): {output.description}"
    lines = _schema(output)
    return "\n".join([head, *(f"  {line}" for line in lines)])


def _schema(output: Output) -> list[str]:
    schema: Mapping[str, Any] = output.schema
    if output.format in ("csv", "tsv"):
        return [f"columns, in this order: {_fields(schema)}"]
    if output.format == "jsonl":
        return [f"fields: {_fields(schema)}"]
    if output.format == "sqlite":
        return [f"table `{table}`: {_fields(columns)}" for table, columns in schema.items()]
    if output.format == "json":
        return [f"shape: `{json.dumps(_plain(schema))}`"]
    return [str(schema["description"])] if schema.get("description") else []


def _fields(columns: Mapping[str, str]) -> str:
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())


def _plain(shape: Any) -> Any:
    if isinstance(shape, Mapping):
        return {key: _plain(value) for key, value in shape.items()}
    return [_plain(item) for item in shape] if isinstance(shape, list | tuple) else shape
