"""A panel with tabs, a list to choose from, and what belongs to the choice: text, tables, differences, a picture.

Every text in it is plain: Python has cleaned and cut it, the script sets it as text, and the static HTML escapes it.
"""

from __future__ import annotations

import base64
from typing import Any

import ipywidgets
import traitlets

from workbench.report.live_view import CSS
from workbench.report.trace_viewer import TraceViewer
from workbench.report.widget import STATIC, View, esc, html_table

STATIC_ITEMS = 100


class Panel(View):
    """tabs, tab: the tabs and the open one. items: [[key, [text, …]], …], a list to choose from; item: the key of what was chosen,
    "" for nothing. blocks: [{"kind": "facts" | "table" | "text" | "diff" | "note" | "picture", …}, …]. picture: PNG.

    Subclasses fill them in `draw`, which is called whenever the tab or the choice changes."""

    _esm = "".join((STATIC / name).read_text(encoding="utf-8") for name in ("view_parts.js", "explore.js"))
    _css = CSS + (STATIC / "explore.css").read_text(encoding="utf-8")
    title = traitlets.Unicode("").tag(sync=True)
    tabs = traitlets.List(traitlets.Unicode()).tag(sync=True)
    tab = traitlets.Unicode("").tag(sync=True)
    items = traitlets.List().tag(sync=True)
    item = traitlets.Unicode("").tag(sync=True)
    blocks = traitlets.List().tag(sync=True)
    picture = traitlets.Bytes(b"").tag(sync=True)

    def draw(self) -> None:
        """Set items, blocks and picture for the open tab and the choice."""
        raise NotImplementedError

    @traitlets.validate("tab")
    def _valid_tab(self, proposal: Any) -> str:
        if proposal["value"] not in self.tabs:
            raise traitlets.TraitError(f"tab {proposal['value']!r}: use one of {', '.join(self.tabs)}")
        return proposal["value"]

    @traitlets.observe("tab")
    def _tabbed(self, change: Any) -> None:
        if change["old"]:
            self.item = ""
        self.draw()

    @traitlets.observe("item")
    def _chosen(self, _: Any) -> None:
        self.draw()

    def summary(self) -> str:
        return f"{self.title}, {self.tab}: {len(self.items)} entries"

    def static_html(self) -> str:
        entries = "".join(f"<li>{esc(' · '.join(cells))}</li>" for _, cells in self.items[:STATIC_ITEMS])
        rest = f"<p>{len(self.items) - STATIC_ITEMS:,} more</p>" if len(self.items) > STATIC_ITEMS else ""
        shown = "".join(block_html(block, self.picture) for block in self.blocks)
        return (
            f'<div class="wb-view"><p><b>{esc(self.title)}</b> {esc(self.tab)}</p><ul>{entries}</ul>{rest}{shown}</div>'
        )


def block_html(block: dict[str, Any], picture: bytes) -> str:
    """One block without scripts."""
    kind, name = block["kind"], f"<p><b>{esc(block['name'])}</b></p>" if block.get("name") else ""
    if kind == "facts":
        return name + html_table(["what", "value"], [{"what": k, "value": v} for k, v in block["rows"]])
    if kind == "table":
        columns = block["columns"]
        return name + html_table(columns, [dict(zip(columns, row, strict=True)) for row in block["rows"]])
    if kind == "picture":
        data = base64.b64encode(picture).decode()
        return (
            f'{name}<img alt="{esc(block["text"])}" src="data:image/png;base64,{data}" style="max-width:100%">'
            if picture
            else name
        )
    return f"{name}<p>{esc(block['text'])}</p>" if kind == "note" else f"{name}<pre>{esc(block['text'])}</pre>"


class Browser(ipywidgets.VBox):
    """Parts below each other, and below them the trial that was opened last. viewer: a TraceViewer, or None."""

    def __init__(self, *parts: View):
        self.parts, self.viewer = parts, None
        super().__init__(list(parts))

    def show_trial(self, trial: Any) -> TraceViewer | None:
        """Open a trial's record; None closes it."""
        before, self.viewer = self.viewer, None if trial is None else TraceViewer(trial)
        self.children = [*self.parts, *([self.viewer] if self.viewer is not None else [])]
        if before is not None:
            before.close()
        return self.viewer

    def static_html(self) -> str:
        shown = [*self.parts, *([self.viewer] if self.viewer is not None else [])]
        return "".join(part.static_html() for part in shown)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'; '.join(part.summary() for part in self.parts)})"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
        return {**data, "text/plain": repr(self), "text/html": self.static_html()}, metadata
