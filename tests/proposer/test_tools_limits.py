"""Caps that cannot be passed, slots that cannot be waited for in a ring, and requests that cannot hurt the host."""

from __future__ import annotations

import math
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from workbench.proposer.limits import Caps, Meter, Notes, Refused, Slots, working
from workbench.proposer.program import seed_tasks
from workbench.proposer.tools import SolverTool, Toolbox, ToolDesk
from workbench.proposer.tools_server import SOCKET, Answer, ToolServer
from workbench.proposer.tools_wire import BadMessage, WireLimits, checked_list, frame
from workbench.proposer.workspace import PROGRAMS

from . import harness_parts as parts


def test_calls_seconds_and_dollars_are_counted_and_capped():
    meter = Meter(Caps(calls={"build": 2, "solver_model": 9}, seconds=0.05, usd=1.0))
    with meter.call("build") as charge, working(charge):
        pass
    with pytest.raises(Refused, match="not offered"), meter.call("web_fetch"):
        pass
    with meter.call("solver_model") as charge:
        charge.usd += 1.5
    with pytest.raises(Refused, match=r"\$1") as refused, meter.call("build"):
        pass
    assert refused.value.kind == "over-usd"
    assert meter.to_row()["refused"] == {"web_fetch": 1, "build": 1}
    slow = Meter(Caps(seconds=0.02))
    with slow.call("run") as charge, working(charge):
        time.sleep(0.03)
    with pytest.raises(Refused, match="tool work"), slow.call("run"):
        pass


def test_waiting_is_not_work():
    meter = Meter(Caps())
    with meter.call("run") as charge:
        time.sleep(0.05)
        with working(charge):
            pass
    assert meter.to_row()["seconds"]["run"] < 0.04


def test_an_unknown_price_ends_a_dollar_cap_and_is_no_zero():
    meter = Meter(Caps(usd=1.0))
    with meter.call("solver_model") as charge:
        charge.usd += math.nan
    with pytest.raises(Refused, match="no known price"), meter.call("solver_model"):
        pass
    assert math.isnan(meter.to_row()["usd"])


def test_a_slot_that_nobody_waits_for_is_not_taken():
    slots = Slots(task=1, solver=1)
    with slots.hold("task"), pytest.raises(Refused, match="nobody"), slots.hold("task", wanted=lambda: False):
        pass
    with slots.hold("task"):
        pass
    with pytest.raises(ValueError, match="at least one"):
        Slots(task=0)


@pytest.mark.parametrize(
    ("listed", "kind"),
    [
        ("x", "garbage"), ([["a", 420]], "garbage"), ([["a", 420, -1]], "garbage"), ([["a", 420, True]], "garbage"),
        ([["a", "x", 1]], "garbage"), ([["../a", 420, 1]], "unsafe-path"), ([["/a", 420, 1]], "unsafe-path"),
        ([["a/./b", 420, 1]], "unsafe-path"), ([["", 420, 1]], "unsafe-path"), ([["a\0", 420, 1]], "bad-name"),
        ([["\ud800", 420, 1]], "bad-name"), ([["a\u202eb", 420, 1]], "bad-name"), ([["a/" * 30 + "b", 420, 1]], "unsafe-path"),
        ([["a", 420, 1], ["a", 420, 1]], "unsafe-path"), ([["a", 420, 1 << 40]], "too-large"),
        ([[str(i), 420, 0] for i in range(3000)], "too-many-files"),
    ],
)  # fmt: skip
def test_a_list_of_files_is_checked_before_a_byte_is_read(listed, kind):
    with pytest.raises(BadMessage) as refused:
        checked_list(listed, WireLimits())
    assert refused.value.kind == kind


@pytest.fixture
def ask(monkeypatch):
    """The client that runs in sandboxes, on this side."""
    monkeypatch.syspath_prepend(str(PROGRAMS))
    sys.modules.pop("_host", None)
    import _host

    def call(folder: Path, tool: str, task: Path | None = None, **args):
        _host.SOCKET = str(folder / SOCKET)
        return _host.ask(tool, str(task) if task else None, **args)

    yield call
    sys.modules.pop("_host", None)


def test_a_server_ends_with_calls_in_flight(tmp_path):
    begun, notes = threading.Event(), Notes()

    def handle(request):
        begun.set()
        while request.wanted():
            time.sleep(0.01)
        return Answer("too late")

    server = ToolServer(handle, tmp_path, notes)
    link = socket.socket(socket.AF_UNIX)
    link.connect(str(tmp_path / SOCKET))
    link.sendall(frame({"tool": "run"}))
    assert begun.wait(5)
    server.close()
    assert threading.active_count() < 20
    assert link.recv(10) in (b"", b"wbt1\0\0\0<"[:10])
    link.close()


def test_a_fault_of_the_host_ends_no_episode(tmp_path, ask, capfd):
    notes = Notes()
    server = ToolServer(lambda request: 1 / 0, tmp_path, notes)
    answer = ask(tmp_path, "build")
    server.close()
    assert (answer["ok"], answer["exit_code"], notes.to_row()) == (False, 70, {"host-error": 1})
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_a_long_path_of_the_socket_is_no_trouble(tmp_path):
    folder = tmp_path / ("x" * 100) / ("y" * 100)
    folder.mkdir(parents=True)
    ToolServer(lambda request: Answer(""), folder, Notes()).close()
    assert (folder / SOCKET).is_socket()


@pytest.mark.parametrize("many", [12, pytest.param(128, marks=pytest.mark.slow)])
def test_waiting_proposers_come_to_their_end_with_two_slots(many, backend, tmp_path, ask):
    """Each episode has a socket of its own and waits for `solver_model`; the solvers need slots too, and get them."""
    task = seed_tasks(tmp_path, (0,), 0)[0]
    slots = Slots(task=1, solver=2)
    toolbox = Toolbox(backend, slots=slots, solver=SolverTool(parts.solver, rollouts=1, budget=parts.BUDGET))
    answers: list[dict] = []
    import _host

    def episode(number: int) -> None:
        folder = tmp_path / f"socket-{number}"
        folder.mkdir()
        desk = ToolDesk(toolbox, f"episode-{number}", Notes())
        server = ToolServer(desk.answer, folder, Notes())
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(str(folder / SOCKET))
            request = {"tool": "solver_model", "files": _host.listed(str(task))}
            link.sendall(frame(request))
            for name, _, _ in request["files"]:
                link.sendall((task / name).read_bytes())
            answers.append(_host.receive(link, None))
        desk.close()
        server.close()

    threads = [threading.Thread(target=episode, args=(n,)) for n in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    assert [a["text"] for a in answers if not a["ok"]] == []
    assert len(answers) == many
    assert all(len(a["data"]["rewards"]) == 1 for a in answers)
    assert slots.most == {"solver": 2}


def test_worlds_are_composed_by_the_host_and_come_as_files(backend, tmp_path, ask):
    class Library:
        def list(self):
            return "orders: tiers 1-3"

        def compose(self, generator, tier, corruptions, target, *, draw):
            if generator != "orders":
                raise ValueError(f"no generator {generator!r}")
            (target / "tests").mkdir(parents=True)
            (target / "tests" / "test.sh").write_text("true\n")
            return target

    (tmp_path / "s").mkdir()
    desk = ToolDesk(Toolbox(backend, worlds=Library()), "key", Notes())
    server = ToolServer(desk.answer, tmp_path / "s", Notes())
    try:
        assert "tiers" in ask(tmp_path / "s", "worlds", action="list")["text"]
        made = ask(
            tmp_path / "s", "worlds", save=str(tmp_path / "world"), action="compose", generator="orders", tier="2"
        )
        assert made["ok"]
        assert (tmp_path / "world/tests/test.sh").read_text() == "true\n"
        assert "no generator" in ask(tmp_path / "s", "worlds", action="compose", generator="x", tier="1")["text"]
    finally:
        server.close()
    none = ToolDesk(Toolbox(backend), "key", Notes())
    assert "worlds" not in none.meter.caps.calls
