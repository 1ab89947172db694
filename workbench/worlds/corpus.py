"""Builds a corpus: environments chosen for coverage, gated, exported; in parallel, and resumable at any point.

    OUT/journal.jsonl   one `sketch` for each candidate, one `generator` with its gates, one `environment` (admitted) or `rejected` each
    OUT/plan.json       what was asked for; a resumed build must ask for the same
    OUT/tasks/<task_id> the Harbor task of every admitted environment; a folder is there whole or not at all

What is chosen is a pure function of the plan and of the generators' revisions, so a corpus can be made again anywhere (Tev A.2).
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from workbench.runs.journal import FileLock, Journal, read_journal
from workbench.runs.progress import Progress
from workbench.worlds import Tier, WorldError, catalog
from workbench.worlds.building import task_id
from workbench.worlds.corpus_work import admit, gate_generator, sketch_row
from workbench.worlds.coverage import Coverage, Sketch, greedy, measure
from workbench.worlds.partitions import DEFAULT_SALT, Partition, held_out_generators, seeds_in

POOL_SEEDS = 6  # of every generator and tier, among which the greedy choice looks
ATTEMPTS = 3  # environments tried for one that is asked for, before a corpus gives up


@dataclass(frozen=True)
class Plan:
    """What a corpus is to hold. generators: None for all. export: write the tasks, or only gate and label them."""

    size: int
    tiers: tuple[Tier, ...] = ("unit", "small", "full")
    generators: tuple[str, ...] | None = None
    partition: Partition | None = None
    salt: str = DEFAULT_SALT
    export: bool = True


class Corpus:
    """A corpus' folder, to read."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        if not (self.folder / "plan.json").is_file():
            raise FileNotFoundError(f"{self.folder} is no corpus: `workbench worlds corpus` makes one")
        records = list(read_journal(self.folder / "journal.jsonl"))
        self.environments = list({r["id"]: r for r in records if r["kind"] == "environment"}.values())
        self.rejected = [r for r in records if r["kind"] == "rejected"]
        self.generators = {r["id"]: r for r in records if r["kind"] == "generator"}
        self.pool = [as_sketch(r) for r in records if r["kind"] == "sketch"]

    def coverage(self) -> Coverage:
        """Of the admitted environments; valid are the pairs of the pool from which it was chosen, without refused generators."""
        refused = {name for name, row in self.generators.items() if row["messages"]}
        pool = [s for s in self.pool if s.generator not in refused]
        return measure([row["labels"] for row in self.environments], pool)

    def prompts(self) -> dict[str, str]:
        """task id -> prompt."""
        return {row["id"]: row["prompt"] for row in self.environments}


def as_sketch(row: dict[str, Any]) -> Sketch:
    labels = {axis: tuple(values) for axis, values in row["labels"].items()}
    return Sketch(row["generator"], row["seed"], row["tier"], labels)


def build_corpus(out: str | Path, plan: Plan, jobs: int | None = None) -> Corpus:
    """Make or go on with the corpus in `out`. Raises KeyError for unknown generators, RunLocked while another process writes it, WorldError when `out` holds another plan
    or too few environments pass."""
    for name in plan.generators or ():
        catalog.folder_of(name)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / "lock")
    try:
        _same_plan(folder, plan)
        journal = Journal(folder / "journal.jsonl", folder.name)
        try:
            with _workers(jobs) as workers:
                _Build(folder, plan, journal, workers).run()
        finally:
            journal.close()
    finally:
        lock.release()
    shutil.rmtree(folder / "partial", ignore_errors=True)
    return Corpus(folder)


def _workers(jobs: int | None) -> ProcessPoolExecutor:
    # Fresh interpreters: nothing of this process' threads, and each worker loads a generator once.
    return ProcessPoolExecutor(jobs or os.cpu_count() or 1, mp_context=get_context("spawn"))


def _same_plan(folder: Path, plan: Plan) -> None:
    """Write plan.json, or compare with it. The generators' revisions belong to it."""
    chosen = plan.generators or catalog.names()
    asked = {**asdict(plan), "revisions": {name: catalog.get(name).spec.revision for name in chosen}}
    asked = json.loads(json.dumps(asked))
    path = folder / "plan.json"
    if path.is_file():
        before = json.loads(path.read_text(encoding="utf-8"))
        if differs := sorted(key for key in asked if key != "size" and asked[key] != before.get(key)):
            raise WorldError(f"{folder} was begun with another plan ({', '.join(differs)} differ): take another folder")
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(asked, indent=1) + "\n", encoding="utf-8")
    temporary.replace(path)


class _Build:
    """One build: sketches of the pool, gates of the generators, then environments until enough are admitted."""

    def __init__(self, folder: Path, plan: Plan, journal: Journal, workers: ProcessPoolExecutor):
        self.folder, self.plan, self.journal, self.workers = folder, plan, journal, workers
        names = plan.generators or catalog.names()
        self.domains = {name: catalog.get(name).spec.domain for name in names}
        self.held_out = held_out_generators(self.domains, plan.salt) if plan.partition else frozenset()

    def run(self) -> None:
        cells = [
            (name, tier) for name in self.domains for tier in catalog.get(name).spec.tiers if tier in self.plan.tiers
        ]
        cells = [(name, tier) for name, tier in cells if next(self._seeds(name), None) is not None]
        if not cells:
            raise WorldError("no generator has one of these tiers in this partition")
        pool = self._sketches(cells)
        good = self._generators(sorted({name for name, _ in cells}))
        self._environments([cell for cell in cells if cell[0] in good], [s for s in pool if s.generator in good])

    def _seeds(self, name: str) -> Iterator[int]:
        if self.plan.partition is None:
            yield from range(10**9)
        else:
            yield from seeds_in(name, self.plan.partition, self.plan.salt, self.held_out)

    def _first_seeds(self, name: str, count: int) -> list[int]:
        return [seed for seed, _ in zip(self._seeds(name), range(count), strict=False)]

    def _sketches(self, cells: Sequence[tuple[str, Tier]]) -> list[Sketch]:
        keys = [(name, seed, tier) for name, tier in cells for seed in self._first_seeds(name, POOL_SEEDS)]
        self._each("sketch", "sketches", sketch_row, [(_id(key), key) for key in keys])
        return [as_sketch(self.journal.get("sketch", _id(key)) or {}) for key in keys]

    def _generators(self, names: Sequence[str]) -> set[str]:
        """Those that pass their own three gates."""
        self._each("generator", "gates of generators", gate_generator, [(n, (n, self.plan.tiers)) for n in names])
        good = {name for name in names if not (self.journal.get("generator", name) or {})["messages"]}
        if not good:
            raise WorldError("no generator passes its gates: `workbench worlds gates` says why")
        return good

    def _environments(self, cells: Sequence[tuple[str, Tier]], pool: Sequence[Sketch]) -> None:
        """Admit environments in the order of the choice; what is refused is replaced by the next of the order."""
        order = self._order(cells, pool)
        tried: list[tuple[str, int, Tier]] = []
        with Progress(label="environments", total=self.plan.size) as bar:
            bar.update(0)
            while True:
                admitted = [key for key in tried if self.journal.done("environment", _id(key))]
                missing = self.plan.size - len(admitted)
                if missing <= 0:
                    return
                if len(tried) > ATTEMPTS * self.plan.size + 20:
                    raise WorldError(
                        f"of {len(tried)} environments only {len(admitted)} pass their gates: see `rejected` in the journal"
                    )
                batch = [key for key, _ in zip(order, range(missing), strict=False)]
                tried += batch
                self._admit(batch, bar)

    def _order(self, cells: Sequence[tuple[str, Tier]], pool: Sequence[Sketch]) -> Iterator[tuple[str, int, Tier]]:
        """First the greedy covering choice; then, without end, the domain, generator and tier that the corpus has least of."""
        taken: set[tuple[str, int, Tier]] = set()
        count: Counter[Any] = Counter()
        seeds = {cell: self._seeds(cell[0]) for cell in cells}

        def note(key: tuple[str, int, Tier]) -> tuple[str, int, Tier]:
            taken.add(key)
            count.update([("domain", self.domains[key[0]]), ("generator", key[0]), ("cell", key[0], key[2])])
            return key

        for chosen in greedy(pool):
            yield note(chosen.key)
        while True:
            name, tier = min(
                cells,
                key=lambda c: (
                    count["domain", self.domains[c[0]]],
                    count["generator", c[0]],
                    count["cell", c[0], c[1]],
                    c,
                ),
            )
            yield note(next(key for seed in seeds[name, tier] if (key := (name, seed, tier)) not in taken))

    def _admit(self, batch: Sequence[tuple[str, int, Tier]], bar: Progress) -> None:
        partial = str(self.folder / "partial") if self.plan.export else None
        todo = []
        for key in batch:
            if self._kept(key):
                bar.update(1)
            elif not self.journal.done("rejected", _id(key)):
                todo.append(key)
        asked = {self.workers.submit(admit, key, partial): key for key in todo}
        for future in as_completed(asked):
            row = future.result()
            if not row["messages"]:
                self._place(row.pop("partial"), row["id"])
            self.journal.record("rejected" if row["messages"] else "environment", row)
            bar.update(0 if row["messages"] else 1, row["id"])

    def _kept(self, key: tuple[str, int, Tier]) -> bool:
        """Admitted before, and its task is there."""
        return self.journal.done("environment", _id(key)) and (
            not self.plan.export or (self.folder / "tasks" / _id(key)).is_dir()
        )

    def _place(self, partial: str | None, task_id: str) -> None:
        """Move a finished task to its place: there it is whole, or not at all."""
        if partial is None:
            return
        target = self.folder / "tasks" / task_id
        target.parent.mkdir(exist_ok=True)
        shutil.rmtree(target, ignore_errors=True)  # of a build that died before it wrote its record
        Path(partial).rename(target)

    def _each(self, kind: str, label: str, work: Any, items: Iterable[tuple[str, Any]]) -> None:
        """Do what isn't in the journal yet; record each result as it comes."""
        todo = [(key, argument) for key, argument in items if not self.journal.done(kind, key)]
        asked = {self.workers.submit(work, argument): key for key, argument in todo}
        with Progress(label=label, total=len(todo)) as bar:
            for future in as_completed(asked):
                self.journal.record(kind, future.result(), id=asked[future])
                bar.update(1, asked[future])


def _id(key: tuple[str, int, Tier]) -> str:
    return task_id(catalog.get(key[0]).spec, key[1], key[2])
