"""The micro gate by hand: the slip's words, one line of shell a report, whatever their sequence."""

from __future__ import annotations

import subprocess

import pytest

from workbench.training.micro.experts import job_line, jobs_of
from workbench.worlds import build
from workbench.worlds.catalog import get
from workbench.worlds.draw import Draw


@pytest.mark.parametrize("seed", range(8))
def test_the_same_shell_words_as_on_the_shelf_solve_it(tmp_path, seed):
    environment = build("micro_gate", seed, "micro")
    for path, data in environment.public.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    (tmp_path / "output").mkdir()
    for job in jobs_of((tmp_path / "input/note.txt").read_text()):
        subprocess.run(["bash", "-c", job_line(*job)], cwd=tmp_path, check=True)
    found = {p.relative_to(tmp_path).as_posix(): p.read_bytes() for p in (tmp_path / "output").iterdir()}
    assert found == dict(environment.output)
    modules = get("micro_gate")
    assert set(modules.verify.verify(environment.truth, found).values()) == {1.0}
    assert set(modules.progress.score(environment.truth, found).values()) == {1.0}


def test_requests_come_in_any_order_and_a_lane_may_be_asked_for_twice():
    worlds = [build("micro_gate", seed, "micro").world for seed in range(30)]
    assert len({tuple(request for request, _ in world.asked) for world in worlds}) == 6
    assert {len({lane for _, lane in world.asked}) for world in worlds} == {2, 3}


def test_reports_of_a_book_by_hand():
    module = get("micro_gate").world
    book = ("06:10 cart", "06:11 mule", "07:00 sled", "09:30 cart", "10:00 tram", "11:59 pram")
    asked = (("seal", "oak"), ("order", "oak"), ("top", "oak"))
    world = module.World(asked, (("oak", "double"),), (("oak", book),))
    module.check(world)
    assert module.recover(module.render(world)) == world
    truth = module.truth(world, module.plan(world, Draw("hand")))
    assert truth["earliest"] == "06:10 cart\n06:11 mule\n07:00 sled"
    assert truth["latest"].splitlines() == [*reversed(book)]
    digest = subprocess.run(["md5sum"], input=module.render(world)["input/oak.txt"], capture_output=True).stdout
    assert digest.decode() == f"{truth['fingerprint']}  -\n"
