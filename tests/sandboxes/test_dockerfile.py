"""The subset of Dockerfiles that the bubblewrap back end builds, and what it says of the rest."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from workbench.sandboxes import BuildError, Unsupported, dockerfile
from workbench.sandboxes.bubblewrap import Bubblewrap
from workbench.sandboxes.context import Context

FROM = "FROM python:3.13-slim\n"


def steps(tmp_path: Path, text: str) -> list[dockerfile.Step]:
    (tmp_path / "Dockerfile").write_text(text)
    return dockerfile.parse(tmp_path / "Dockerfile")


# ------------------------------------------------------------------------------- parsing


def test_comments_continuations_and_case(tmp_path):
    text = '# syntax=docker/dockerfile:1\n\nfrom python:3.12\nRUN echo a && \\\n  # inside\n  echo b\n\nCMD ["x"]\n'
    found = steps(tmp_path, text)
    assert [(step.name, step.line) for step in found] == [("FROM", 3), ("RUN", 4), ("CMD", 8)]
    assert found[1].value.split() == ["echo", "a", "&&", "echo", "b"]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (FROM + "RUN --mount=type=cache,target=/x true\n", 2, "--mount"),
        (FROM + "RUN --network=none true\n", 2, "--network"),
        (FROM + "COPY --from=other /a /b\n", 2, "--from"),
        (FROM + "COPY --link a /b\n", 2, "--link"),
        (FROM + "RUN <<EOF\necho hi\nEOF\n", 2, "here-document"),
        (FROM + "\nVOLUME /data\n", 3, "VOLUME"),
        (FROM + "ONBUILD RUN true\n", 2, "ONBUILD"),
        (FROM + "RUN true\nFROM debian:12\n", 3, "second stage"),
        ("# escape=`\n" + FROM, 1, "escape"),
    ],
)
def test_what_another_back_end_can_do_is_refused_with_its_name(tmp_path, text, line, says):
    with pytest.raises(Unsupported) as caught:
        steps(tmp_path, text)
    assert caught.value.line == line
    assert says in str(caught.value)
    assert "docker back end" in str(caught.value)
    assert f"line {line}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 1, "no FROM"),
        ("RUN true\n" + FROM, 1, "before FROM"),
        (FROM + "RUM true\n", 2, "RUM"),
        (FROM + "RUN\n", 2, "needs a value"),
    ],
)
def test_what_nobody_can_build_is_an_error_with_its_line(tmp_path, text, line, says):
    with pytest.raises(BuildError) as caught:
        steps(tmp_path, text)
    assert not isinstance(caught.value, Unsupported)
    assert caught.value.line == line
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("python:3.13-slim", True), ("python:3", True), ("python:3.12.4-slim-bookworm", True), ("ubuntu:24.04", True),
        ("debian:trixie-slim", True), ("docker.io/library/debian:12", True), ("python", True), ("ubuntu", True),
        ("python:3.12@sha256:" + "a" * 64, True), ("python:2.7", False), ("alpine:3", False), ("scratch", False),
        ("ghcr.io/x/python:3.12", False), ("nvidia/cuda:12", False),
    ],
)  # fmt: skip
def test_known_bases(tmp_path, name, known):
    (step,) = steps(tmp_path, f"FROM --platform=linux/amd64 {name} AS build\n")
    if known:
        assert dockerfile.known_base(step, {}) == name
    else:
        with pytest.raises(Unsupported, match="docker back end") as caught:
            dockerfile.known_base(step, {})
        assert name in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a $A ${A} ${B:-d} ${A:+yes} ${B:+no}", ["a", "1 2", "1 2", "d", "yes", ""]),
        ("'$A' \"$A b\" c\\ d \\$A", ["$A", "1 2 b", "c d", "$A"]),
        ("x='a b'\"c\"", ["x=a bc"]),
        ("", []),
        ("'' \"\"", ["", ""]),
        ("100$ $", ["100$", "$"]),
    ],
)
def test_words_are_split_and_replaced_as_docker_does(text, expected):
    found = dockerfile.words(text, {"A": "1 2"})
    assert [word for word in found if word or expected.count("")] == expected or found == [w for w in expected if w]


def test_env_in_both_forms(tmp_path):
    found = steps(tmp_path, FROM + 'ENV A=1 B="x y" C=$A\nENV OLD with blanks\nENV bad=1 worse\n')
    assert dockerfile.pairs(found[1], {"A": "0"}) == {"A": "1", "B": "x y", "C": "0"}, "not yet the new A: as Docker"
    assert dockerfile.pairs(found[2], {}) == {"OLD": "with blanks"}
    with pytest.raises(BuildError, match=r"line 4.*worse"):
        dockerfile.pairs(found[3], {})


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("COPY ../secret /x", BuildError), ("COPY a/../../b /x", BuildError), ("ADD https://x.y/z /z", Unsupported),
        ("ADD git@github.com:a/b.git /z", Unsupported), ("ADD a.tar.gz /z", Unsupported), ("COPY one", BuildError),
    ],
)  # fmt: skip
def test_sources_that_are_not_local_files(tmp_path, line, kind):
    step = steps(tmp_path, FROM + line + "\n")[1]
    with pytest.raises(kind) as caught:
        dockerfile.copied(step, {})
    assert isinstance(caught.value, Unsupported) == (kind is Unsupported)
    assert caught.value.line == 2


# ------------------------------------------------------------------------------- context


def test_dockerignore(tmp_path):
    for name in ("keep.txt", "a.log", "deep/b.log", "deep/keep.log", "build/x", "build/y/z", "top.tmp", "deep/low.tmp"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(name)
    (tmp_path / ".dockerignore").write_text("# comment\n**/*.log\n!deep/keep.log\nbuild\n/*.tmp\n")
    context = Context(tmp_path)
    left = {str(path.relative_to(context.folder)) for path in context._walk(context.folder) if path.is_file()}
    assert left == {"keep.txt", "deep/keep.log", "deep/low.tmp", ".dockerignore"}


def test_digest_sees_names_modes_and_bytes_but_no_times(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name / "in").mkdir(parents=True)
        (tmp_path / name / "in" / "file").write_text("x")
    os.utime(tmp_path / "two/in/file", (1, 1))
    context = Context(tmp_path)
    same = context.digest(context.folder / "one")
    assert same == context.digest(context.folder / "two")
    (tmp_path / "two/in/file").chmod(0o755)
    assert context.digest(context.folder / "two") != same


# ------------------------------------------------------------------------------ building


@pytest.fixture(scope="module")
def backend():
    with Bubblewrap() as made:
        yield made


@pytest.fixture
def run(backend, tmp_path):
    """Build a Dockerfile in tmp_path and run one command in the result."""

    def build_and_run(text: str, command: str):
        (tmp_path / "Dockerfile").write_text(text)
        with backend.start(backend.build(tmp_path)) as box:
            done = box.exec(command)
            assert done.ok, done.output
            return done.stdout

    return build_and_run


def test_copy_follows_dockers_rules(run, tmp_path):
    (tmp_path / "src/sub").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "src/c.txt", "src/sub/d.txt"):
        (tmp_path / name).write_text(name)
    (tmp_path / "src/link").symlink_to("c.txt")
    (tmp_path / "tool").write_text("#!/bin/sh\necho ran\n")
    (tmp_path / "tool").chmod(0o755)
    text = FROM + (
        "WORKDIR /w\nCOPY a.txt renamed\nCOPY a.txt into/\nCOPY *.txt many/\nCOPY src tree\nADD src/ /abs/\n"
        'COPY ["tool", "/usr/local/bin/tool"]\nCOPY --chmod=600 a.txt secret\nCOPY . all\n'
    )
    out = run(
        text, "cat renamed into/a.txt; ls many tree/sub /abs; readlink tree/link; tool; stat -c %a secret; ls all"
    )
    assert out.split() == [
        "a.txta.txt/abs:", "c.txt", "link", "sub", "many:", "a.txt", "b.txt", "tree/sub:", "d.txt", "c.txt", "ran", "600",
        "Dockerfile", "a.txt", "b.txt", "src", "tool",
    ]  # fmt: skip


def test_variables_workdir_shell_and_arguments(run):
    text = (
        'ARG V=3.13\nFROM python:${V}-slim\nARG NAME=default\nENV GREETING="hello $NAME"\nWORKDIR /one\nWORKDIR two\n'
        'SHELL ["/bin/bash", "-c"]\nRUN [[ $NAME == default ]] && echo "$GREETING from $PWD" > out\n'
        'RUN ["touch", "exec $form"]\nLABEL x=y\nEXPOSE 80\nCMD ["python3"]\nENTRYPOINT ["/x"]\n'
    )
    assert run(text, "pwd; cat out; ls; echo [$NAME]").splitlines() == [
        "/one/two", "hello default from /one/two", "exec $form", "out", "[]",
    ]  # fmt: skip


def test_packages_can_be_installed_into_the_image(run, tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    wheel = package / "tiny_thing-1.0-py3-none-any.whl"
    make_wheel(wheel)
    text = FROM + "COPY package/ /wheels/\nRUN pip install --no-index --find-links /wheels tiny-thing\n"
    assert run(text, "python3 -c 'import tiny_thing; print(tiny_thing.answer)'") == "42\n"


def make_wheel(path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("tiny_thing.py", "answer = 42\n")
        wheel.writestr("tiny_thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-thing\nVersion: 1.0\n")
        wheel.writestr(
            "tiny_thing-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("tiny_thing-1.0.dist-info/RECORD", "tiny_thing.py,,\n")


def test_steps_are_cached_and_shared(backend, tmp_path):
    (tmp_path / "f").write_text("1")
    (tmp_path / "Dockerfile").write_text(FROM + f"RUN echo {tmp_path.name} && date +%N > /stamp\nCOPY f /f\n")
    first = backend.build(tmp_path)
    assert backend.build(tmp_path) == first
    (tmp_path / "f").write_text("2")
    second = backend.build(tmp_path)
    assert second.key != first.key
    assert second.handle.image[:2] == first.handle.image[:2], "the RUN below was not run again"


def test_builds_at_the_same_time_run_a_step_once(backend, tmp_path):
    text = FROM + f"RUN sleep 0.3; date +%N > /stamp; echo {tmp_path}\n"
    for name in "abcd":
        (tmp_path / name).mkdir()
        (tmp_path / name / "Dockerfile").write_text(text)
    with ThreadPoolExecutor(4) as pool:
        images = list(pool.map(backend.build, [tmp_path / name for name in "abcd"]))
    assert len({image.key for image in images}) == 1


def test_a_step_that_fails_leaves_no_layer_and_its_output(backend, tmp_path):
    (tmp_path / "Dockerfile").write_text(FROM + "RUN echo one \\\n && echo two >&2 && exit 5\n")
    for _ in range(2):
        with pytest.raises(BuildError, match=r"line 2.*exit code 5") as caught:
            backend.build(tmp_path)
        assert caught.value.line == 2
        assert "one" in caught.value.log
        assert "two" in caught.value.log
    assert not [path for path in backend.host.folder.iterdir() if path.name.startswith(("build", "box", "context"))]


def test_a_build_ends_when_its_time_is_over(backend, tmp_path):
    (tmp_path / "Dockerfile").write_text(FROM + f"RUN echo {tmp_path} && sleep 60\n")
    with pytest.raises(BuildError, match="time") as caught:
        backend.build(tmp_path, timeout=1.5)
    assert caught.value.line == 2


def test_a_link_that_leaves_the_context_is_not_followed(backend, tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("host file")
    folder = tmp_path / "environment"
    folder.mkdir()
    (folder / "link").symlink_to(outside)
    (folder / "Dockerfile").write_text(FROM + "COPY link /x\n")
    with pytest.raises(BuildError, match="leaves"):
        backend.build(folder)
    (folder / "Dockerfile").write_text(FROM + "COPY . /x/\n")
    with backend.start(backend.build(folder)) as box:
        assert not box.exec("cat /x/link").ok


def test_users_and_owners(backend, run, tmp_path):
    if not backend.capabilities().users:
        pytest.skip("an ordinary user's sandbox holds one user")
    (tmp_path / "f").write_text("x")
    text = (
        FROM
        + "RUN useradd -m agent\nWORKDIR /home/agent\nCOPY --chown=agent:agent f mine\nCOPY f roots\nUSER agent\nRUN touch made\n"
    )
    out = run(text, "id -un; echo $HOME; stat -c '%U %n' mine roots made; touch /x 2>/dev/null || echo refused")
    assert out.splitlines() == ["agent", "/home/agent", "agent mine", "root roots", "agent made", "refused"]


def test_what_stood_in_is_said(backend, tmp_path):
    (tmp_path / "Dockerfile").write_text("FROM ubuntu:24.04\n")
    image = backend.build(tmp_path)
    assert list(image.stands_for) == ["ubuntu:24.04"]
    assert image.stands_for["ubuntu:24.04"].startswith("base:")


def test_a_removed_folder_stays_removed_in_later_layers(run):
    text = FROM + "RUN mkdir -p /d/e && touch /d/e/f\nRUN rm -r /d\nRUN mkdir /d && touch /d/new\n"
    assert run(text, "ls -A /d") == "new\n"
