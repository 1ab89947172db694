"""Who came from whom: the pool as a forest, from parent environments to their children, drawn with matplotlib.

An environment's parent is the one that its assignment names (by digest where the assignment is known, else by name, the
latest that came before it). A parent that the pool never held is a seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from workbench.report.live_state import number, short

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MOST_DRAWN = 80  # environments in one picture
SEED = "seed: "
RING = 110  # area of the ring around the marked one, in square typographic points
PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}  # behind words, so that no line crosses them
LOOKS = {
    "active": ("#009E73", "o"),
    "rejected": ("#D55E00", "X"),
    "evicted": ("#999999", "s"),
    "seed": ("#0072B2", "D"),
}


@dataclass
class Lineage:
    """parent: id → the id it came from. children: the other way. status and mean: of each, "seed" and None for seeds."""

    parent: dict[str, str] = field(default_factory=dict)
    children: dict[str, list[str]] = field(default_factory=dict)
    status: dict[str, str] = field(default_factory=dict)
    mean: dict[str, float | None] = field(default_factory=dict)

    @property
    def roots(self) -> list[str]:
        return [n for n in self.status if n not in self.parent]

    def ancestors(self, name: str) -> list[str]:
        """From its parent up to the seed."""
        found: list[str] = []
        while (name := self.parent.get(name, "")) and name not in found:
            found.append(name)
        return found

    def family(self, name: str, most: int = MOST_DRAWN) -> list[str]:
        """Ancestors, itself, and descendants, nearest first, at most `most`."""
        found = [name, *self.ancestors(name)][:most]
        queue = list(self.children.get(name, []))
        while queue and len(found) < most:
            if (one := queue.pop(0)) not in found:
                found.append(one)
                queue += self.children.get(one, [])
        return found


def lineage_of(environments: Mapping[str, Mapping[str, Any]], assignments: Mapping[str, Mapping[str, Any]]) -> Lineage:
    """From standings and assignments by id, both oldest first."""
    made, names, digests = Lineage(), {}, {}
    for key, row in environments.items():
        named, digest = str(row.get("parent") or ""), assignments.get(key, {}).get("parent_digest")
        parent = digests.get(digest) or names.get(named) or (SEED + named if named else "")
        made.status[key], made.mean[key] = short(row.get("status") or "", 20), number(row.get("mean"))
        names |= {key: key, str(row.get("task") or key): key}
        if row.get("digest"):
            digests[row["digest"]] = key
        if parent:
            _join(made, parent, key)
    return made


def _join(made: Lineage, parent: str, child: str) -> None:
    """Parents were all seen before their children, so there are no circles."""
    if parent.startswith(SEED) and parent not in made.status:
        made.status[parent], made.mean[parent] = "seed", None
    made.parent[child] = parent
    made.children.setdefault(parent, []).append(child)


def places(made: Lineage, chosen: list[str]) -> dict[str, tuple[int, float]]:
    """id → (generation, row): children stand right of their parent, which stands at the middle of them."""
    kept, found, row = set(chosen), {}, 0
    stack = [(n, 0, False) for n in reversed(chosen) if made.parent.get(n) not in kept]
    while stack:
        name, depth, done = stack.pop()
        below = [c for c in made.children.get(name, []) if c in kept]
        if not done and below:
            stack += [(name, depth, True), *((c, depth + 1, False) for c in reversed(below))]
        elif below:
            found[name] = (depth, sum(found[c][1] for c in below) / len(below))
        else:
            found[name], row = (depth, float(row)), row + 1
    return found


def draw_lineage(made: Lineage, chosen: list[str] | None = None, marked: str = "") -> tuple[Figure, pd.DataFrame]:
    """The graph of these environments (default: the first MOST_DRAWN of all, roots first). marked: is drawn with a ring.

    The table has id, parent, status, mean, generation. What was left out is said in the title."""
    import matplotlib.style
    import pandas as pd
    from matplotlib.figure import Figure

    from workbench.report.figures import STYLE

    kept = (chosen if chosen is not None else _first(made))[:MOST_DRAWN]
    at = places(made, kept)
    deep, rows = 1 + max((x for x, _ in at.values()), default=0), 1 + max((y for _, y in at.values()), default=0)
    with matplotlib.style.context(STYLE):
        fig = Figure(figsize=(min(1.0 + 1.7 * deep, 16), min(1.2 + 0.26 * rows, 18)))
        axes = fig.add_subplot()
        for name, (x, y) in at.items():
            if (parent := made.parent.get(name)) in at:
                axes.plot([at[parent][0], x], [at[parent][1], y], color="#BBBBBB", linewidth=0.8, zorder=1)
            mean = made.mean[name]
            words = short(name, 24) + (f"  {mean:.2f}" if mean is not None else "")
            beside = (RING**0.5 / 2 + 3, -2.5)  # as far as the ring of the marked one reaches
            axes.annotate(_plain(words), (x, y), xytext=beside, textcoords="offset points", fontsize=7, bbox=PAPER)
        for status, (colour, marker) in {**LOOKS, "other": ("#000000", ".")}.items():
            group = [
                p
                for n, p in at.items()
                if made.status[n] == status or (status == "other" and made.status[n] not in LOOKS)
            ]
            if group:
                axes.scatter(
                    *zip(*group, strict=True), c=colour, marker=marker, s=26, zorder=2, label=status, linewidths=0.5
                )
        if marked in at:
            axes.scatter(*at[marked], s=RING, facecolors="none", edgecolors="#000000", linewidths=1, zorder=3)
        left = len(made.status) - len(at)
        axes.set_title(f"{len(at)} environments" + (f", {left} others not drawn" if left else ""), fontsize=8)
        axes.set_xlim(-0.2, deep - 0.1)
        axes.set_ylim(rows - 0.5, -0.5)
        axes.axis("off")
        if at:
            axes.legend(loc="upper left", bbox_to_anchor=(0, 0), fontsize=7, ncols=4, handletextpad=0.2)
    table = [[n, made.parent.get(n, ""), made.status[n], made.mean[n], x] for n, (x, _) in at.items()]
    return fig, pd.DataFrame(table, columns=["id", "parent", "status", "mean", "generation"])


def _first(made: Lineage) -> list[str]:
    """Roots and what is below them, generation by generation."""
    found, queue = [], list(made.roots)
    while queue and len(found) < MOST_DRAWN:
        found.append(one := queue.pop(0))
        queue += made.children.get(one, [])
    return found


def png(fig: Figure) -> bytes:
    """A figure's bytes, the same for the same data."""
    import io

    out = io.BytesIO()
    fig.savefig(out, format="png", dpi=110, metadata={"Software": None})
    return out.getvalue()


def _plain(words: str) -> str:
    """matplotlib reads dollar signs as formulas, and draws no character that its font lacks without complaint."""
    return "".join(c if c.isascii() else "?" for c in words).replace("$", r"\$")
