"""What a flywheel with learning knows between two steps, and how it stands in a checkpoint: plain JSON, bit for bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.training.groups import Group, Plan, Played
from workbench.training.pool import PoolEntry, entry_from_row
from workbench.training.records import from_json
from workbench.trials import Grade, Trial


@dataclass
class State:
    """step: finished ones. begun: groups begun so far, which numbers them. proposals: proposer phases so far. pool: id → entry, in
    order of arrival. visits: id → groups begun on it. latest: id → the last group's trials and the step they are of.
    open: plans of groups in flight. last: the newest `update` row, written before the journal's."""

    step: int = 0
    begun: int = 0
    proposals: int = 0
    pool: dict[str, PoolEntry] = field(default_factory=dict)
    visits: dict[str, int] = field(default_factory=dict)
    latest: dict[str, tuple[int, list[Trial]]] = field(default_factory=dict)
    last: dict[str, Any] = field(default_factory=dict)

    @property
    def active(self) -> list[PoolEntry]:
        return [e for e in self.pool.values() if e.status == "active"]

    def add(self, entry: PoolEntry) -> None:
        """A new environment; it begins with the fewest visits of any active one, so that it is neither starved nor favoured."""
        self.visits.setdefault(
            entry.id, min((self.visits[e.id] for e in self.active if e.id in self.visits), default=0)
        )
        self.pool[entry.id] = entry

    def to_blobs(self, queue: Sequence[Group], open: Sequence[Group]) -> dict[str, Any]:
        return {
            "pool": [e.to_row() for e in self.pool.values()],
            "curriculum": {
                "step": self.step, "begun": self.begun, "proposals": self.proposals, "visits": self.visits, "last": self.last,
                "latest": {i: [step, [trial_to_row(t) for t in trials]] for i, (step, trials) in self.latest.items()},
            },
            "groups": {
                "queue": [group_to_row(g) for g in queue],
                "open": [{**g.plan.__dict__} for g in open],
            },
        }  # fmt: skip


def state_from(blobs: Mapping[str, Any]) -> tuple[State, list[Group], list[Plan]]:
    """(state, queued groups, plans that were in flight) of a checkpoint."""
    c = blobs["curriculum"]
    state = State(c["step"], c["begun"], c["proposals"], visits=dict(c["visits"]), last=c["last"])
    state.pool = {row["id"]: entry_from_row(row) for row in blobs["pool"]}
    state.latest = {i: (step, [trial_from_row(r) for r in rows]) for i, (step, rows) in c["latest"].items()}
    groups = blobs["groups"]
    return state, [group_from_row(row) for row in groups["queue"]], [Plan(**row) for row in groups["open"]]


def trial_to_row(trial: Trial) -> dict[str, Any]:
    """What assignments and reviews need of a trial; not its turns."""
    return {**trial.to_row(), "usd": None, "progress": list(trial.progress)}


def trial_from_row(row: Mapping[str, Any]) -> Trial:
    known = {k: v for k, v in row.items() if k in Trial.__dataclass_fields__ and k not in ("usd", "steps", "episodes")}
    grade = Grade(reward=row["reward"], tests=row["tests"])
    return Trial(**{**known, "progress": tuple(row["progress"])}, steps=(grade,))


def group_to_row(group: Group) -> dict[str, Any]:
    rollouts = {str(i): p.rollout.to_json() for i, p in group.played.items()}
    return {"plan": {**group.plan.__dict__}, "version": group.version, "infra": group.infra, "rollouts": rollouts}


def group_from_row(row: Mapping[str, Any]) -> Group:
    played = {int(i): Played(from_json(text)) for i, text in row["rollouts"].items()}
    return Group(Plan(**row["plan"]), row["version"], played, row["infra"])
