"""A Dockerfile as steps. What the bubblewrap back end cannot do is refused here, with the line and what can do it.

Taken: one stage FROM a known base, RUN, COPY, ADD of local files, WORKDIR, ENV, ARG, USER, SHELL, and instructions that
change no file (LABEL, EXPOSE, CMD, ENTRYPOINT, STOPSIGNAL, HEALTHCHECK, MAINTAINER).
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from workbench.sandboxes import BuildError, Unsupported

KNOWN_BASES = "python:3.*, ubuntu:*, debian:*"
_BASE = re.compile(
    r"^(?:docker\.io/)?(?:library/)?(?:python:3(?:[.\w-]*)?|ubuntu(?::[\w.-]+)?|debian(?::[\w.-]+)?|python)(?:@sha256:[0-9a-f]+)?$"
)
_NO_FILES = {"LABEL", "EXPOSE", "CMD", "ENTRYPOINT", "STOPSIGNAL", "HEALTHCHECK", "MAINTAINER"}
_TAKEN = {"FROM", "RUN", "COPY", "ADD", "WORKDIR", "ENV", "ARG", "USER", "SHELL"}
_FLAGS = {"FROM": {"platform"}, "RUN": set(), "COPY": {"chown", "chmod"}, "ADD": {"chown", "chmod"}}
_HEREDOC = re.compile(r"<<-?\s*[\"']?[A-Za-z_]\w*")
_REMOTE = re.compile(r"^(https?|git|ssh|ftp)://|^git@")
_ARCHIVE = re.compile(r"\.(tar|tar\.\w+|tgz|tbz2?|txz)$")


@dataclass(frozen=True)
class Step:
    """One instruction: upper-case name, its text after flags, flags, and where it stands (1-based)."""

    name: str
    value: str
    flags: Mapping[str, str]
    line: int
    text: str

    def refuse(self, why: str) -> Unsupported:
        return Unsupported(
            f"Dockerfile line {self.line}: {self.text!r}: {why}; use the docker back end", line=self.line
        )

    def fault(self, why: str, log: str = "") -> BuildError:
        return BuildError(f"Dockerfile line {self.line}: {self.text!r}: {why}", line=self.line, log=log)

    def argv(self) -> list[str] | None:
        """The exec form `["a", "b"]`, or None when this is the shell form."""
        if not self.value.lstrip().startswith("["):
            return None
        try:
            words = json.loads(self.value)
        except ValueError:
            return None
        return words if isinstance(words, list) and words and all(isinstance(word, str) for word in words) else None


def parse(path: Path) -> list[Step]:
    """The steps of the Dockerfile at `path`, the first a FROM (or ARGs before it). BuildError names the line."""
    from dockerfile_parse import DockerfileParser

    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BuildError(f"{path.name} is not UTF-8 text: {error}") from None
    if re.match(r"\s*#\s*escape\s*=\s*[^\\\s]", text):
        raise Unsupported(f"{path.name} line 1: another escape character; use the docker back end", line=1)
    parsed = DockerfileParser(fileobj=io.BytesIO(text.encode()), env_replace=False).structure
    steps = [_step(entry) for entry in parsed if entry["instruction"] != "COMMENT"]
    froms = [step for step in steps if step.name == "FROM"]
    if not froms:
        raise BuildError(f"{path.name} has no FROM instruction", line=1)
    if len(froms) > 1:
        raise froms[1].refuse("a second stage is not taken")
    early = next((step for step in steps[: steps.index(froms[0])] if step.name != "ARG"), None)
    if early:
        raise early.fault("only ARG may stand before FROM")
    return steps


def _step(entry: Mapping[str, object]) -> Step:
    name, value, line = str(entry["instruction"]), str(entry["value"]), int(entry["startline"]) + 1
    text = str(entry["content"]).strip().splitlines()[0][:120]
    flags: dict[str, str] = {}
    plain = Step(name, value, flags, line, text)
    if name not in _TAKEN | _NO_FILES:
        known = {"VOLUME", "ONBUILD"}
        raise plain.refuse(f"{name} is not taken") if name in known else plain.fault(f"unknown instruction {name}")
    if not value:
        raise plain.fault(f"{name} needs a value")
    if name in _NO_FILES:
        return plain
    while found := re.match(r"--([a-z-]+)(?:=(\"[^\"]*\"|\S+))?\s+", value):
        if found[1] not in _FLAGS.get(name, ()):
            raise plain.refuse(f"--{found[1]} is not taken")
        flags[found[1]] = (found[2] or "").strip('"')
        value = value[found.end() :]
    if name in ("RUN", "COPY", "ADD") and _HEREDOC.search(value) and not Step(name, value, flags, line, text).argv():
        raise plain.refuse("a here-document is not taken (join the commands with &&, or COPY a file)")
    return Step(name, value, flags, line, text)


def known_base(step: Step, variables: Mapping[str, str]) -> str:
    """The name that FROM asks for; Unsupported when nothing here can stand in for it."""
    wanted = words(step.value, variables)
    if len(wanted) not in (1, 3) or (len(wanted) == 3 and wanted[1].upper() != "AS"):
        raise step.fault("FROM takes an image and perhaps `AS name`")
    if not _BASE.match(wanted[0]):
        raise step.refuse(f"no base here can stand in for {wanted[0]!r} (known: {KNOWN_BASES})")
    return wanted[0]


def copied(step: Step, variables: Mapping[str, str]) -> tuple[list[str], str]:
    """(sources, destination) of COPY or ADD."""
    names = step.argv()
    names = [expand(name, variables) for name in names] if names else words(step.value, variables)
    if len(names) < 2:
        raise step.fault(f"{step.name} needs at least one source and a destination")
    for name in names[:-1]:
        if _REMOTE.match(name):
            raise step.refuse(f"{step.name} of a remote source is not taken")
        if step.name == "ADD" and _ARCHIVE.search(name):
            raise step.refuse("ADD would unpack this archive, which is not taken (COPY it and RUN tar)")
        if ".." in Path(name).parts:
            raise step.fault(f"{name!r} leaves the build context (only files below environment/ can be copied)")
    return names[:-1], names[-1]


def pairs(step: Step, variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that ENV sets: `A=1 B="two words"`, or the old form `A the rest`."""
    first = step.value.split(None, 1)
    if "=" not in first[0]:
        if len(first) < 2:
            raise step.fault("ENV needs NAME=VALUE")
        return {first[0]: expand(first[1], variables)}
    found = {}
    for word in words(step.value, variables):
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise step.fault(f"{word!r} is not NAME=VALUE")
        found[name] = value
    return found


def words(text: str, variables: Mapping[str, str]) -> list[str]:
    """Split at blanks as Docker does: quotes group, a backslash escapes, variables are replaced outside '…'."""
    found, current, quote, at = [], None, "", 0
    while at < len(text):
        letter = text[at]
        if letter == "\\" and quote != "'" and at + 1 < len(text):
            current, at = (current or "") + text[at + 1], at + 2
        elif letter in "\"'" and quote in ("", letter):
            quote, current, at = ("" if quote else letter), current or "", at + 1
        elif letter == "$" and quote != "'":
            value, at = _variable(text, at, variables)
            current = (current or "") + value
        elif letter.isspace() and not quote:
            if current is not None:
                found.append(current)
            current, at = None, at + 1
        else:
            current, at = (current or "") + letter, at + 1
    return found if current is None else [*found, current]


def expand(text: str, variables: Mapping[str, str]) -> str:
    """`text` as one word: variables replaced, quotes and escapes taken away, blanks kept."""
    marked = re.sub(r"(?<!\\)([ \t])", lambda found: "\\" + found[1], text.strip())
    return "".join(words(marked, variables))


_NAME = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::([-+])([^}]*))?\})")


def _variable(text: str, at: int, variables: Mapping[str, str]) -> tuple[str, int]:
    found = _NAME.match(text, at)
    if not found:
        return "$", at + 1
    value = variables.get(found[1] or found[2], "")
    if found[3] == "-" and not value:
        value = found[4]
    elif found[3] == "+":
        value = found[4] if value else ""
    return value, found.end()
