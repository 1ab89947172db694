"""Labelled traces as tables: turns with their labels and the classifier's guesses, counts, agreement, confusion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.traces.agreement import Agreement, agreement, per_episode
from workbench.traces.classify import classify
from workbench.traces.labels import LABELS, Key, Label, by_annotator, read_labels, resolve
from workbench.traces.reading import read_trace
from workbench.traces.turns import turns as turns_of

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("episode", "trace", "step", "call", "index", "turns", "position", "kind", "label", "status", "guess")
EPISODES = ("episode", "role", "case", "manner", "outcome", "reward")  # more columns may follow
MOMENTS = ("episode", "step", "call", "text")
RESOLVED, CLASSIFIER = "resolved", "classifier"
_SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")


@dataclass(frozen=True)
class Labelled:
    """A folder of traces with its labels. turns: see turn_table. episodes, moments: what `episodes.csv` (columns EPISODES)
    and `moments.csv` (columns MOMENTS) beside the folder of traces say; empty tables when they are not there."""

    files: Mapping[str, Path]
    labels: list[Label]
    turns: pd.DataFrame
    episodes: pd.DataFrame
    moments: pd.DataFrame

    def of(self, **wanted: str) -> pd.DataFrame:
        """The turns of the episodes whose row in `episodes` has these values, in the order of that table."""
        import pandas as pd

        rows = self.episodes
        for column, value in wanted.items():
            rows = rows[rows[column] == value]
        parts = [self.turns[self.turns["episode"] == name] for name in rows["episode"]]
        return pd.concat(parts, ignore_index=True) if parts else self.turns.iloc[:0]

    def names(self, column: str = "manner") -> dict[str, str]:
        """What a figure calls an episode: its value in `column`, else its own name."""
        pairs = zip(self.episodes["episode"], self.episodes[column], strict=True)
        return {episode: value or episode for episode, value in pairs}

    def side(self, who: str) -> dict[Key, str]:
        """{turn: label} of an annotator, of "classifier", or "resolved" (what all agree on, or an adjudication says)."""
        if who in (RESOLVED, CLASSIFIER):
            column = "label" if who == RESOLVED else "guess"
            keys = zip(self.turns["trace"], self.turns["step"], self.turns["call"], strict=True)
            return {k: said for k, said in zip(keys, self.turns[column], strict=True) if said}
        found = by_annotator(self.labels)
        if who not in found:
            raise ValueError(f"no labels of {who!r}: there are those of {', '.join(sorted(found)) or 'nobody'}")
        return found[who]

    def annotators(self) -> list[str]:
        return sorted(by_annotator(self.labels))


def load_labelled(traces: Path | str, labels: Path | str, on_file: Callable[[], Any] | None = None) -> Labelled:
    """traces: a folder of traces of any known format. labels: a journal, or a folder of journals. on_file: progress.
    Raises ValueError, TraceError or LabelError, each with the file."""
    if not Path(labels).exists():
        raise ValueError(f"{labels} does not exist: give a journal of labels, or a folder of journals")
    files, said = trace_files(traces), read_labels(Path(labels))
    beside = Path(traces).resolve().parent
    return Labelled(
        files,
        said,
        turn_table(files, said, on_file),
        _read_csv(beside / "episodes.csv", EPISODES),
        _read_csv(beside / "moments.csv", MOMENTS),
    )


def trace_files(folder: Path | str) -> dict[str, Path]:
    """{name: file} of the traces in a folder, sorted. ValueError when there is none."""
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder: give a folder of traces")
    files = {p.name.split(".")[0]: p for p in sorted(folder.iterdir()) if p.name.endswith(_SUFFIXES)}
    if not files:
        raise ValueError(f"{folder}: no traces ({', '.join(_SUFFIXES)})")
    return files


def turn_table(
    files: Mapping[str, Path], labels: Iterable[Label], on_file: Callable[[], Any] | None = None
) -> pd.DataFrame:
    """One row a turn of every file, in order; columns COLUMNS. index counts from 0 within `turns` of the episode;
    position = (index + 0.5) / turns. label: adjudicated, or what all annotators share, else "" (see `status`: agreed,
    single, adjudicated, disputed, or "" without any). guess: the keyword classifier's. on_file: progress."""
    import pandas as pd

    settled, rows = resolve(labels), []
    for name, path in files.items():
        found = turns_of(read_trace(path))
        for turn, guess in zip(found, classify(found), strict=True):
            where = turn.index, len(found), (turn.index + 0.5) / len(found)
            said = (verdict.label, verdict.status) if (verdict := settled.get(turn.key)) else ("", "")
            rows.append([name, *turn.key, *where, turn.kind, *said, guess])
        if on_file:
            on_file()
    return pd.DataFrame(rows, columns=list(COLUMNS))


def turn_counts(table: pd.DataFrame, by: str = "label") -> pd.DataFrame:
    """A row for each episode: its turns, text steps, calls, and how many turns have each label (or guess: `by`)."""
    import pandas as pd

    rows = []
    for name, part in table.groupby("episode", sort=False):
        counts = {each: int((part[by] == each).sum()) for each in LABELS}
        texts = int((part["kind"] == "text").sum())
        rows.append({"episode": name, "turns": len(part), "text": texts, "calls": len(part) - texts, **counts})
    return pd.DataFrame(rows, columns=["episode", "turns", "text", "calls", *LABELS])


def compare(found: Labelled, a: str, b: str, *, draws: int = 2000, seed: int = 0) -> tuple[Agreement, pd.DataFrame]:
    """Two sides (see Labelled.side): the agreement on all turns, and a table with a row for each episode and for all.
    The interval of kappa over all draws whole episodes, since turns of one episode are alike."""
    import pandas as pd

    sides = found.side(a), found.side(b)
    episode = dict(
        zip(
            zip(found.turns["trace"], found.turns["step"], found.turns["call"], strict=True),
            found.turns["episode"],
            strict=True,
        )
    )
    first, second = ({k: v for k, v in side.items() if k in episode} for side in sides)
    whole = agreement(first, second, clusters=episode, draws=draws, seed=seed)
    single = per_episode(first, second, episode)
    rows = [{"episode": name, **single[name].to_row()} for name in dict.fromkeys(episode.values()) if name in single]
    kept = ["episode", "n", "equal", "share", "share_low", "share_high", "kappa", "kappa_low", "kappa_high"]
    return whole, pd.DataFrame([*rows, {"episode": "all", **whole.to_row()}], columns=kept)


def confusion(whole: Agreement, a: str = "first", b: str = "second") -> pd.DataFrame:
    """Counts: rows are the labels of `a`, columns those of `b`, with the share of each row that `b` calls the same."""
    import pandas as pd

    table = pd.DataFrame(whole.confusion, columns=[f"{b}: {each}" for each in whole.labels])
    table.insert(0, a, list(whole.labels))
    return table.assign(same=[row["recall"] for row in whole.per_label()])


def _read_csv(path: Path, columns: Iterable[str]) -> pd.DataFrame:
    import pandas as pd

    if not path.is_file():
        return pd.DataFrame(columns=list(columns))
    table = pd.read_csv(path, keep_default_na=False)
    if missing := set(columns) - set(table.columns):
        raise ValueError(f"{path}: no column {', '.join(sorted(missing))}")
    return table
