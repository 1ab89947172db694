"""What the three widgets share: files beside the code, a short repr, and static HTML where there is no front end.

Everything shown may come from a sandbox. Python escapes all of it in the static HTML; the scripts set text only
(`textContent`), never markup.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anywidget

STATIC = Path(__file__).with_name("static")
MOST_CHARACTERS = 20_000  # of one text sent to a browser


class View(anywidget.AnyWidget):
    """A widget with `static_html()`; subclasses set `_esm`."""

    _css = STATIC / "views.css"

    def static_html(self) -> str:
        """The whole content without scripts, as shown in a saved notebook."""
        raise NotImplementedError

    def summary(self) -> str:
        """One line for `repr` and text front ends."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.summary()})"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
        return {**data, "text/plain": repr(self), "text/html": self.static_html()}, metadata


def esc(value: object) -> str:
    """`value` as text in HTML; what is not printable is shown as a dot, so that nothing hides."""
    return html.escape(visible(value), quote=True)


def visible(value: object) -> str:
    """Text without control and direction-changing characters (they become "·"), cut to MOST_CHARACTERS."""
    text = str(value)
    cut = f"\n[… {len(text) - MOST_CHARACTERS} characters more]" if len(text) > MOST_CHARACTERS else ""
    return "".join(c if c.isprintable() or c in "\n\t" else "·" for c in text[:MOST_CHARACTERS]) + cut


def html_table(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """A plain table, every cell escaped."""
    head = "".join(f"<th>{esc(c)}</th>" for c in columns)
    body = "".join("<tr>" + "".join(f"<td>{esc(show(row.get(c)))}</td>" for c in columns) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def show(value: Any) -> str:
    """A value as a cell of a table shows it."""
    if value is None or value != value:  # NaN differs from itself
        return "–"
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, list | tuple):
        return ", ".join(show(v) for v in value)
    return str(value)
