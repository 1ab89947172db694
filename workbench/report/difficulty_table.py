"""The difficulty protocol's numbers (Tev A.8, Table 1) as tables and a figure. Rows are those of workbench.admission.difficulty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.report.figures import label, new_figure
from workbench.report.published import grid

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def corpora_table(summaries: Sequence[Mapping[str, Any]], sizes: Mapping[str, tuple[int, int]]) -> pd.DataFrame:
    """Table 1's columns: ours first, then the printed rows. sizes: corpus -> (environments, domains).

    Printed rows are of another evaluator (Gemini 3.6 Flash): they are there for the columns' meaning and not for comparison, unless yours is
    that evaluator too. `P@k` says its k."""
    import pandas as pd

    theirs = grid("tev_table_01").rename(columns={"row": "corpus", "P@8": "P@k"})
    theirs = theirs.assign(k=["8" if p else "" for p in theirs["P@k"]], evaluator="Gemini 3.6 Flash")
    ours = []
    for row in summaries:
        size, domains = sizes.get(row["corpus"], ("", ""))
        ours.append(
            {
                "corpus": row["corpus"],
                "evaluator": row.get("evaluator", ""),
                "size": size,
                "domains": domains,
                "agent time median": round(row["agent_minutes_median"], 3),
                "agent time mean": round(row["agent_minutes_mean"], 3),
                "progressive reward": "yes",
                "P@1": round(100 * row["pass_at_1"], 1),
                "P@k": round(100 * row["pass_at_k"], 1),
                "k": row["k"],
            }
        )
    columns = [
        "corpus",
        "evaluator",
        "size",
        "domains",
        "agent time median",
        "agent time mean",
        "progressive reward",
        "P@1",
        "P@k",
        "k",
    ]
    return pd.concat([pd.DataFrame(ours), theirs], ignore_index=True).reindex(columns=columns).fillna("")


def summary_table(summaries: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """One column a corpus, one row a number: everything that workbench.admission.difficulty.summary tells."""
    import pandas as pd

    return pd.DataFrame(summaries).set_index("corpus").T.rename_axis("number").reset_index()


def tasks_figure(
    rows: Sequence[Mapping[str, Any]], names: Mapping[str, str] | None = None
) -> tuple[Figure, pd.DataFrame]:
    """Passes and mean final Phi of every task, hardest first: where passes saturate at 0, Phi still tells tasks apart (Tev A.5).

    names: task -> what the axis shows; its name without the organization unless given."""
    import pandas as pd

    table = pd.DataFrame(rows).sort_values(["pass_at_1", "phi", "task"], kind="stable").reset_index(drop=True)
    fig, ax = new_figure("Difficulty by task", "pass@1 (bars), mean final Φ (points)", "")
    fig.set_size_inches(6.0, 1.2 + 0.22 * len(table))
    places = range(len(table))
    ax.barh(places, table["pass_at_1"].astype(float), color="#56B4E9", label="pass@1")
    ax.plot(table["phi"].astype(float), places, "o", color="#D55E00", label="mean final Φ")
    ax.set_yticks(
        list(places), [label((names or {}).get(task, task.rsplit("/", 1)[-1])) for task in table["task"]], fontsize=6.5
    )
    ax.set_xlim(-0.02, 1.04)
    ax.invert_yaxis()
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize=8, frameon=False)
    return fig, table
