"""How figures of comparisons look: one colour, marker and line for each arm everywhere, sizes that fit a column.

The colours are Okabe and Ito's, which people with any common colour blindness can tell apart; nothing is told by colour alone.
Fonts, grid and file settings are in `style.mplstyle`, which every figure uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from workbench.report.figures import STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN, WIDE = 3.4, 7.0  # inches: one column, both columns
PUBLISHED = "#777777"


class Look(NamedTuple):
    colour: str
    marker: str
    line: str
    hatch: str


LOOKS = {
    "full": Look("#0072B2", "o", "-", ""),
    "static pool (Tmax)": Look("#E69F00", "s", "--", "//"),
    "no proposer training": Look("#D55E00", "^", "-.", "\\\\"),
    "no solver feedback": Look("#009E73", "D", ":", ".."),
    "external proposer": Look("#CC79A7", "v", (0, (5, 1)), "xx"),
    "cold start": Look("#56B4E9", "D", ":", ""),
}
_OTHERS = (
    Look("#0072B2", "P", "-", ""),
    Look("#E69F00", "X", "--", "//"),
    Look("#009E73", "<", "-.", ".."),
    Look("#999999", ">", ":", "xx"),
)


def looks(names: Sequence[str]) -> dict[str, Look]:
    """The look of each arm; names that are no arm take the others in turn."""
    free = [name for name in dict.fromkeys(names) if name not in LOOKS]
    others = {name: _OTHERS[i % len(_OTHERS)] for i, name in enumerate(free)}
    return {name: LOOKS.get(name) or others[name] for name in dict.fromkeys(names)}


@contextmanager
def styled() -> Iterator[None]:
    import matplotlib.style

    with matplotlib.style.context(STYLE):
        yield


def panels(count: int, *, width: float = WIDE, height: float = 2.5, **how: object) -> tuple[Figure, list[Axes]]:
    """A figure with panels side by side, in the one style; with no pyplot and no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with styled():
        fig = Figure(figsize=(width, height))
        FigureCanvasAgg(fig)
        axes = fig.subplots(1, count, squeeze=False, **how)
    return fig, list(axes[0])


def below(fig: Figure, axes: Sequence[Axes], ncols: int = 3) -> None:
    """One legend for all panels, below them."""
    found = {}
    for ax in axes:
        for handle, text in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(text, handle)
    if found:
        with styled():
            fig.legend(list(found.values()), list(found), loc="outside lower center", ncols=min(ncols, len(found)))
