"""The micro shelf by hand: what a shell makes of it is what the generator says."""

from __future__ import annotations

import subprocess

import pytest

from workbench.worlds import build
from workbench.worlds.catalog import get

FILTER = {
    "clean": "cat input/{name}.txt",
    "stale": "cat input/new/{name}.txt",
    "double": "uniq input/{name}.txt",
    "void": "grep -v void input/{name}.txt",
}
SINK = {"top": "head -3", "seal": "md5sum", "order": "LC_ALL=C sort -r"}


@pytest.mark.parametrize("seed", range(8))
def test_one_line_of_shell_a_job_solves_it(tmp_path, seed):
    environment = build("micro_shelf", seed, "micro")
    for path, data in environment.public.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    (tmp_path / "output").mkdir()
    words = (tmp_path / "input/note.txt").read_text().split()
    for job, name, remark in zip(words[::3], words[1::3], words[2::3], strict=True):
        line = f"{FILTER[remark].format(name=name)} | {SINK[job]} > output/{job}.txt"
        subprocess.run(["bash", "-c", line], cwd=tmp_path, check=True)
    found = {p.relative_to(tmp_path).as_posix(): p.read_bytes() for p in (tmp_path / "output").iterdir()}
    assert found == dict(environment.output)
    assert set(get("micro_shelf").verify.verify(environment.truth, found).values()) == {1.0}


def test_reading_no_remark_earns_nothing_for_a_flawed_list():
    environment = build("micro_shelf", 3, "micro")
    flawed = {path.split("/")[-1] for path in environment.public} & {d.path.split("/")[-1] for d in environment.defects}
    assert flawed
    assert all(d.kind in ("stale_copy", "duplicate_records", "orphan_records") for d in environment.defects)
