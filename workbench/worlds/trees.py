"""A tree of outputs with one file changed, for hidden suites."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from workbench.worlds import Tree


def edit_json(tree: Tree, path: str, change: Callable[[Any], object]) -> dict[str, bytes]:
    """`tree` with the JSON file at `path` as `change` leaves its value; `tree` itself stays as it is."""
    value = json.loads(tree[path])
    change(value)
    return {**tree, path: json.dumps(value).encode()}
