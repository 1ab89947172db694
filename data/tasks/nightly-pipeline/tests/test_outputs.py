"""Runs the agent's pipeline on inboxes that are made here, and compares with the rules worked out in Python."""

import hashlib
import os
import shutil
import subprocess

import pytest

ENV = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}


def quoted(name):
    done = subprocess.run(["bash", "-c", 'printf %q "$1"', "-", name], capture_output=True, env={"PATH": ENV["PATH"], "LC_ALL": "C"}, check=True)
    return done.stdout


@pytest.fixture()
def night(tmp_path):
    home = tmp_path / "work"
    shutil.copytree("/app/pipeline", tmp_path / "pipeline", symlinks=True)
    home.mkdir()

    def run(*args, env=()):
        return subprocess.run(["bash", str(tmp_path / "pipeline" / "run.sh"), *args], capture_output=True, cwd=home, env={**ENV, **dict(env)}, timeout=60, stdin=subprocess.DEVNULL)

    run.home = home
    return run


def fill(folder, files):
    for name, data in files.items():
        path = os.path.join(os.fsencode(folder), os.fsencode(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)


def good(data):
    if data.endswith(b"\n"):
        data = data[:-1]
    *before, last = data.split(b"\n")
    return last == b"END %d" % len(before)


def check(done, archive, files, new):
    """The whole of a run without failures: status, summary, both lists, and the store."""
    dats = {n: d for n, d in files.items() if os.fsencode(n).endswith(b".dat")}
    fine = {n: d for n, d in dats.items() if good(d)}
    summary = f"good={len(fine)} bad={len(dats) - len(fine)} new={new} bytes={sum(map(len, fine.values()))}\n"
    assert (done.stdout.decode(), done.returncode) == (summary, int(len(dats) > len(fine))), done.stderr
    rows = sorted(b"%s\t%d\t%s\n" % (hashlib.sha256(d).hexdigest().encode(), len(d), quoted(n)) for n, d in fine.items())
    assert (archive / "manifest.tsv").read_bytes() == b"".join(rows)
    assert (archive / "bad.txt").read_bytes() == b"".join(sorted(quoted(n) + b"\n" for n in dats if n not in fine))
    stored = {p.relative_to(archive / "sha").as_posix(): p.read_bytes() for p in (archive / "sha").rglob("*") if p.is_file()}
    digests = {hashlib.sha256(d).hexdigest(): d for d in fine.values()}
    assert stored == {f"{h[:2]}/{h}.dat": d for h, d in digests.items()}


PLAIN = {"a.dat": b"1\nEND 1\n", "sub/b.dat": b"x\ny\nEND 2\n", "sub/deep/c.dat": b"END 0\n", "note.txt": b"END 0\n", "sub/data": b"END 0\n"}


def test_ordinary_names_twice(night):
    fill(night.home / "in", PLAIN)
    check(night("in", "out"), night.home / "out", PLAIN, 3)
    check(night(str(night.home / "in"), str(night.home / "out")), night.home / "out", PLAIN, 0)


def test_spaces_globs_and_quotes(night):
    files = {"two words.dat": b"END 0\n", " lead.dat": b"a\nEND 1\n", "it's \"q\".dat": b"b\nEND 1\n", "*.dat": b"c\nEND 1", "[a].dat": b"d\nEND 1\n", "a  b/c d.dat": b"e\nEND 1\n", "back\\slash.dat": b"f\nEND 1\n", ".dat": b"g\nEND 1\n"}
    fill(night.home / "my inbox *", files)
    check(night("my inbox *", "an archive $HOME"), night.home / "an archive $HOME", files, 8)


def test_line_feeds_dashes_and_other_bytes(night):
    files = {"-n.dat": b"END 0\n", "-e/-rf.dat": b"x\nEND 1\n", "line\nfeed.dat": b"y\nEND 1\n", "tail \n.dat": b"z\nEND 1\n", b"latin-\xe9.dat": b"w\nEND 1\n", "größe.dat": b"v\nEND 1\n", "tab\there.dat": b"END 1\n"}
    fill(night.home / "-in\n", files)
    check(night("-in\n", "-out"), night.home / "-out", files, 6)


def test_what_is_good(night):
    files = {
        "none.dat": b"", "lf.dat": b"\n", "no-lf.dat": b"a\nEND 1", "zero.dat": b"END 0", "lead.dat": b"a\nEND 01\n", "space.dat": b"a\nEND 1 \n", "two.dat": b"a\nEND 1\n\n",
        "less.dat": b"a\nb\nEND 1\n", "word.dat": b"a\n1\n", "nul.dat": b"\0\n\0\nEND 2\n", "nul2.dat": b"a\nEND\0 1\n", "cr.dat": b"a\r\nEND 1\r\n", "expr.dat": b"a\nb\nEND 1+1\n", "case.dat": b"a\nend 1\n", "blank.dat": b"\n\n\nEND 3\n", "neg.dat": b"END -0\n",
    }  # fmt: skip
    fill(night.home / "in", files)
    check(night("in", "out"), night.home / "out", files, 4)


def test_links_folders_and_copies(night):
    files = {"a.dat": b"same\nEND 1\n", "b.dat": b"same\nEND 1\n", "c/d.dat": b"same\nEND 1\n", ".hidden/.e.dat": b"END 0\n"}
    fill(night.home / "in", files)
    (night.home / "in" / "folder.dat").mkdir()
    (night.home / "in" / "link.dat").symlink_to("a.dat")
    (night.home / "in" / "gone.dat").symlink_to("nowhere")
    check(night("in", "out"), night.home / "out", files, 2)
    h = hashlib.sha256(b"END 0\n").hexdigest()
    kept = night.home / "out" / "sha" / h[:2] / f"{h}.dat"
    os.utime(kept, (1, 1))
    check(night("in", "out"), night.home / "out", files, 0)
    assert kept.stat().st_mtime == 1, "written again"


def test_bad_files_do_not_stop_it_and_empty_lists_exist(night):
    files = {"a.dat": b"END 5\n", "z.dat": b"END 0\n"}
    fill(night.home / "in", files)
    check(night("in", "out"), night.home / "out", files, 1)
    fill(night.home / "empty", {"x.txt": b""})
    check(night("empty", "out2"), night.home / "out2", {}, 0)


def test_wrong_calls_touch_nothing(night):
    fill(night.home / "in", PLAIN)
    check(night("in", "out"), night.home / "out", PLAIN, 3)
    before = sorted((p, p.stat().st_mtime_ns) for p in (night.home / "out").rglob("*"))
    for args in ((), ("in",), ("in", "out", "more"), ("nowhere", "out"), ("in/a.dat", "out")):
        done = night(*args)
        assert (done.returncode, done.stdout) == (2, b""), args
        assert done.stderr
    assert sorted((p, p.stat().st_mtime_ns) for p in (night.home / "out").rglob("*")) == before
    check(night("in", "out", env={"CDPATH": "/:/tmp", "LC_ALL": "C"}), night.home / "out", PLAIN, 0)


def test_what_cannot_be_written_is_told(night):
    fill(night.home / "in", {**PLAIN, "sub/bad.dat": b"END 9\n"})
    assert night("in", "out").returncode == 1
    lists = [(night.home / "out" / n).read_bytes() for n in ("manifest.tsv", "bad.txt")]
    fill(night.home / "in", {"late.dat": b"late\nEND 1\n"})
    h = hashlib.sha256(b"late\nEND 1\n").hexdigest()
    block = night.home / "out" / "sha" / h[:2]
    assert not block.exists()
    block.write_text("a file where a folder must be")  # holds for root too, unlike permissions
    done = night("in", "out")
    assert (done.returncode, done.stdout) == (3, b""), "the copy cannot have been made"
    assert done.stderr
    assert [(night.home / "out" / n).read_bytes() for n in ("manifest.tsv", "bad.txt")] == lists
    block.unlink()
    assert night("in", "out").stdout.startswith(b"good=4 bad=1 ")
