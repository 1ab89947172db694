"""A porter's books of arrivals at the lanes of a gate: a second world of the micro tier, meant to be held out from training.

The same words of shell as micro_shelf's, in other combinations: the note's three requests come in any order, two of them may be for one lane, and
the lines are times. So a policy that has learned which slot of a note goes into which turn fails here, and one that reads the request's own
word does not.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from workbench.worlds import Defect, Output, Prompt, Spec, Stage, Tree, Workflow, WorldError
from workbench.worlds.draw import Draw

LANES = (
    "amber birch cedar dune elm fir grove hazel iris jade kelp lime maple nut oak pine quartz reed sage thyme umber vine willow yew"
).split()  # the names that micro_shelf's lists have too
REQUESTS = {"top": "earliest", "seal": "fingerprint", "order": "latest"}  # request -> kind of its stage
STATES = {"clean": "", "stale": "stale_copy", "double": "duplicate_records", "void": "orphan_records"}
CARRIED = "barge cart crate ferry lorry mule pram sled tram wagon".split()

_FORM = {"description": "lines of text, each ended"}
SPEC = Spec(
    name="micro_gate",
    revision=1,
    domain="9.6",
    title="gate",
    summary="Arrivals at the lanes of a gate, each book in its own state, reported as a porter asks",
    outputs=tuple(
        Output(f"output/{name}.txt", "text", what, _FORM)
        for name, what in (
            ("order", "arrivals, latest first"),
            ("seal", "fingerprint of a lane's book"),
            ("top", "the three earliest arrivals"),
        )
    ),
    tiers=("micro",),
    curriculum_layer="foundation",
    workflow_stages=("read", *REQUESTS.values()),
    tools=("bash", "coreutils", "python3"),
    artifact_roles=("log", "note"),
    relation_types=("time_order",),
    source_kind="gate logs",
)


@dataclass(frozen=True)
class World:
    """asked: (request, lane), in the note's order. states: (lane, state) of all lanes. books: (lane, arrivals)."""

    asked: tuple[tuple[str, str], ...]
    states: tuple[tuple[str, str], ...]
    books: tuple[tuple[str, tuple[str, ...]], ...]

    def book(self, lane: str) -> tuple[str, ...]:
        return dict(self.books)[lane]

    def state(self, lane: str) -> str:
        return dict(self.states)[lane]


def make(draw: Draw, tier: str) -> World:
    lanes = tuple(sorted(draw.sample(LANES, 4)))
    wanted = draw.sample(lanes, 3 if draw.chance(0.5) else 2)
    pairs = tuple(zip(draw.shuffled(list(REQUESTS)), [*wanted, wanted[0]], strict=False))
    flawed = draw.choice(sorted(set(wanted)))
    states = {lane: draw.choice(list(STATES)) if lane in wanted else "clean" for lane in lanes}
    if not any(STATES[state] for state in states.values()):
        states[flawed] = draw.choice([state for state in STATES if STATES[state]])
    return World(pairs, tuple(states.items()), tuple((lane, _arrivals(draw.fork(lane))) for lane in lanes))


def _arrivals(draw: Draw) -> tuple[str, ...]:
    minutes = sorted(draw.sample(range(360, 1380), draw.integer(6, 11)))
    return tuple(f"{at // 60:02d}:{at % 60:02d} {draw.choice(CARRIED)}" for at in minutes)


def check(world: World) -> None:
    if sorted(request for request, _ in world.asked) != sorted(REQUESTS):
        raise WorldError(f"one of each request is needed, not {world.asked}")
    for lane, arrivals in world.books:
        times = [line[:5] for line in arrivals]
        if times != sorted(set(times)) or len(times) < 6:
            raise WorldError(f"lane {lane}: six arrivals or more, each later than the one before")


def workflow(world: World) -> Workflow:
    lane_of = dict(world.asked)
    tasks = [Stage(r, kind, len(world.book(lane_of[r])), ("note",)) for r, kind in REQUESTS.items()]
    return Workflow((Stage("note", "read", 3), *tasks))


def _where(world: World, lane: str) -> str:
    return ("input/new/" if world.state(lane) == "stale" else "input/") + lane + ".txt"


def render(world: World) -> dict[str, bytes]:
    files = {_where(world, lane): "\n".join([*lines, ""]).encode() for lane, lines in world.books}
    words = [word for request, lane in world.asked for word in (request, lane, world.state(lane))]
    return files | {"input/note.txt": (" ".join(words) + "\n").encode()}


def recover(tree: Tree) -> World:
    books = {path: tuple(tree[path].decode().split("\n")[:-1]) for path in tree if not path.endswith("note.txt")}
    named = {path.split("/")[-1][: -len(".txt")]: lines for path, lines in books.items()}
    note = iter(tree["input/note.txt"].decode().split())
    triples = list(zip(note, note, note, strict=True))
    states = dict.fromkeys(sorted(named), "clean") | {lane: state for _, lane, state in triples}
    asked = tuple((request, lane) for request, lane, _ in triples)
    return World(asked, tuple(sorted(states.items())), tuple(sorted(named.items())))


def plan(world: World, draw: Draw) -> tuple[Defect, ...]:
    """What the state of each lane's book says has happened to it."""
    found = []
    for lane, state in world.states:
        if not STATES[state]:
            continue
        lines, own = world.book(lane), draw.fork("damage", lane)
        at = sorted(own.sample(range(len(lines) - 1), 2))
        happened = {
            "stale": {"copy": f"input/{lane}.txt", "drop": at},
            "double": {"rows": at, "places": [number + 1 for number in at]},
            "void": {"records": [{lines[0]: f"void {own.integer(10, 99)}"} for _ in at], "places": [0, at[1]]},
        }
        found.append(Defect(STATES[state], _where(world, lane), happened[state], f"lane {lane} is {state}"))
    return tuple(found)


def truth(world: World, defects: tuple[Defect, ...]) -> dict[str, object]:
    wanted = {request: world.book(lane) for request, lane in world.asked}
    book = "".join(line + "\n" for line in wanted["seal"]).encode()
    return {
        "earliest": "\n".join(wanted["top"][:3]),
        "fingerprint": hashlib.md5(book).hexdigest(),
        "latest": "\n".join(reversed(wanted["order"])),
    }


def prompt(world: World, defects: tuple[Defect, ...]) -> Prompt:
    return Prompt(
        goal="The porter of a gate wants three reports on the arrivals at its lanes. A slip says which lane each report is about and what state that lane's book is in.",
        inputs={
            "input/note.txt": "the slip: three groups of three words, in any sequence: report, lane, state of the book",
            "input/LANE.txt": "a lane's book, one arrival after another: hour and what came",
            "input/new/LANE.txt": "fair copies, only of books that were found out of date",
        },
        requirements=(
            "Report `top` goes to output/top.txt: the earliest three arrivals of its lane, as they are written.",
            "Report `seal` goes to output/seal.txt: exactly what `md5sum < BOOK` says about the corrected book, dash included.",
            "Report `order` goes to output/order.txt: all arrivals of its lane from the latest to the earliest.",
        ),
        authority=(
            "A book in state `clean` needs no correction.",
            "In state `stale` the fair copy replaces it altogether.",
            "In state `double` the porter wrote some arrivals twice running; each counts once.",
            "In state `void` entries that begin with void were struck out and never happened.",
        ),
    )
