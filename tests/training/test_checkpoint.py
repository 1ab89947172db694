"""A checkpoint is whole or not there: real kills, at chosen and at random instants."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from workbench.training.checkpoint import CheckpointError, read_blobs, save_folder, usable, whole

SAVER = """
import sys, time
from pathlib import Path
from workbench.training.checkpoint import save_folder

def write(step, half):
    def put(folder):
        for part in range(4):
            (folder / f"part{part}.bin").write_bytes(bytes([step % 256]) * 20_000)
            if half and part == 1:
                print("half", flush=True)
                time.sleep(60)
    return put

parent, first, half, same = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "half", sys.argv[4] == "same"
for step in range(first, first + 10_000):
    name = "step-00000001" if same else f"step-{step:08d}"
    save_folder(parent, name, write(step, half), blobs={"n": {"step": step}}, latest=True, keep=1)
    print(step, flush=True)
"""


def saver(folder, first=1, mode="whole", same="next"):
    command = [sys.executable, "-c", SAVER, str(folder), str(first), mode, same]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def consistent(folder):
    step = read_blobs(folder)["n"]["step"]
    assert all((folder / f"part{i}.bin").read_bytes() == bytes([step % 256]) * 20_000 for i in range(4))
    return step


def save(parent, step, blobs=None, **options):
    def write(folder):
        (folder / "weights").write_bytes(os.urandom(1000))

    return save_folder(parent, f"step-{step:08d}", write, blobs=blobs or {"n": {"step": step}}, latest=True, **options)


def test_a_kill_in_the_middle_of_a_save_leaves_the_one_before(tmp_path):
    save(tmp_path, 1)
    before = (tmp_path / "step-00000001" / "weights").read_bytes()
    process = saver(tmp_path, 2, "half")
    assert process.stdout.readline() == "half\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    found = usable(tmp_path)
    assert found.name == "step-00000001"
    assert (found / "weights").read_bytes() == before
    assert list(tmp_path.glob(".saving-*"))  # what the kill left
    save(tmp_path, 2)
    assert not list(tmp_path.glob(".saving-*"))  # and the next save takes away
    assert usable(tmp_path).name == "step-00000002"


@pytest.mark.parametrize("same", ["next", "same"])
def test_kills_at_random_instants_never_lose_a_finished_save(tmp_path, same):
    rng, last = random.Random(0), 0
    for _ in range(8):
        process = saver(tmp_path, last + 1, same=same)
        process.stdout.readline()
        time.sleep(rng.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        told = process.stdout.read().split()
        process.wait()
        step = consistent(usable(tmp_path))
        assert step >= max(map(int, told), default=last + 1)
        last = step


def test_latest_names_the_newest_and_old_ones_go(tmp_path):
    for step in range(1, 6):
        save(tmp_path, step, keep=1)
    assert sorted(p.name for p in tmp_path.glob("step-*")) == ["step-00000004", "step-00000005"]
    assert (tmp_path / "latest").read_text() == "step-00000005"


def test_a_damaged_checkpoint_is_passed_over(tmp_path):
    for step in (1, 2):
        save(tmp_path, step)
    (tmp_path / "step-00000002" / "weights").write_bytes(b"short")
    assert not whole(tmp_path / "step-00000002")
    assert usable(tmp_path).name == "step-00000001"
    assert usable(tmp_path / "nowhere") is None


def test_blobs_come_back_bit_for_bit(tmp_path):
    pool = {"entries": [{"id": "é\u2028\ud7ff", "mean": 0.1 + 0.2, "none": None, "tiny": 5e-324}], "order": [3, 1, 2]}
    folder = save(tmp_path, 1, {"pool": pool, "curriculum": {"seed": 2**63}})
    back = read_blobs(folder)
    assert json.dumps(back["pool"]) == json.dumps(pool)
    assert back["curriculum"]["seed"] == 2**63
    with pytest.raises(CheckpointError, match="plain name"):
        save(tmp_path, 2, {"../pool": {}})


def test_a_failed_write_leaves_nothing_that_counts(tmp_path):
    save(tmp_path, 1)

    def write(folder):
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        save_folder(tmp_path, "step-00000002", write, latest=True)
    assert usable(tmp_path).name == "step-00000001"
