"""What a file looks like, from its beginning. Content decides, never the name."""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

from workbench.traces.files import open_bytes
from workbench.traces.importers import claude_code, pi
from workbench.traces.store import TraceError

HEAD = 256 << 10  # bytes that are looked at
FORMATS = {
    "claude-code-session": "a Claude Code project session",
    "claude-code-stream": "a Claude Code stream-json log",
    "codex-rollout": "a Codex rollout",
    "codex-exec": "a Codex exec --json stream",
    "pi-session": "a Pi session",
    "pi-events": "a Pi --mode json stream",
    "mini-swe-agent": "a mini-swe-agent trajectory",
    "atif": "an ATIF trajectory",
    "trial": "a trial of a run of this workbench",
    "episode": "an episode of this workbench",
    "workbench-trace": "a trace that this workbench imported",
}


def sniff(path: Path) -> str:
    """Name of the format (a key of FORMATS). Raises TraceError that says what the file looks like instead."""
    try:
        with open_bytes(path) as file:
            head = file.read(HEAD)
    except (EOFError, zlib.error, OSError) as error:
        raise TraceError(f"{path}: a gzip file that cannot be unpacked: {error}") from error
    if not head.strip():
        raise TraceError(f"{path} is empty: give a trace file")
    text = head.decode("utf-8-sig", errors="replace").lstrip()
    entries = _entries(text, whole=len(head) < HEAD)
    found = _lines_format(entries) or (_object_format(text) if text.startswith("{") else None)
    if found is None:
        raise TraceError(f"{path}: not a trace. {_guess(head, text, entries)} Formats: {', '.join(FORMATS)}.")
    return found


def check(path: Path, wanted: str) -> None:
    """Raises TraceError when the file is of another format than `wanted`."""
    found = sniff(path)
    if found != wanted:
        what = FORMATS.get(wanted, wanted)
        raise TraceError(f"{path}: this looks like {FORMATS[found]}, not {what}: use format {found!r}, or none at all")


def _entries(text: str, whole: bool) -> list[dict[str, Any]]:
    """The objects that stand on lines of their own; [] when the first line is none."""
    lines = text.split("\n")
    found = []
    for line in lines if whole or len(lines) == 1 else lines[:-1]:
        try:
            value = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            if not found:
                return []
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def _lines_format(entries: list[dict[str, Any]]) -> str | None:
    votes = Counter(vote for entry in entries if (vote := _vote(entry)))
    if not votes:
        return None
    if votes["pi-session"] and votes["pi-events"]:
        return "pi-events"  # both begin with the header of the session
    return votes.most_common(1)[0][0]


def _vote(entry: dict[str, Any]) -> str | None:
    kind = entry.get("type")
    if not isinstance(kind, str):
        return None
    if kind == "trace" and isinstance(entry.get("info"), dict):
        return "workbench-trace"
    if isinstance(entry.get("payload"), dict) and "timestamp" in entry:
        return "codex-rollout"
    if kind.startswith(("thread.", "item.")) or kind in ("turn.started", "turn.completed", "turn.failed"):
        return "codex-exec"
    if "sessionId" in entry or ("isSidechain" in entry and "uuid" in entry):
        return "claude-code-session"
    if "session_id" in entry and kind in claude_code.IGNORED | {"assistant", "user"}:
        return "claude-code-stream"
    if kind == "session" and ("version" in entry or "cwd" in entry):
        return "pi-session"
    if kind == "message" and isinstance(entry.get("message"), dict):
        return "pi-session"
    if kind in pi.IGNORED | {"message_end"} and not {"id", "payload"} & entry.keys():
        return "pi-events"
    return None


def _object_format(text: str) -> str | None:
    """Of one large object, whose end may be out of sight: its top members come first or are named early."""
    keys = _top_keys(text)
    if {"episodes", "task", "outcome"} <= keys:
        return "trial"
    if "schema_version" in keys and '"ATIF-v' in text[:HEAD]:
        return "atif"
    if {"agent", "steps"} <= keys and '"source"' in text:
        return "atif"
    if {"messages", "info"} <= keys or '"mini-swe-agent-' in text or ({"info"} <= keys and '"mini_version"' in text):
        return "mini-swe-agent"
    return "episode" if "agent" in keys and "turns" in keys else None


_KEY = re.compile(r'"((?:[^"\\]++|\\.)*+)"(\s*:)?|[{}\[\]]', re.S)


def _top_keys(text: str) -> set[str]:
    """Names of the members of the outermost object, as far as the text goes."""
    keys, depth = set(), 0
    for match in _KEY.finditer(text):
        mark = match[0][0]
        if mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
            if depth == 0:
                break
        elif depth == 1 and match[2]:
            keys.add(match[1])
    return keys


def _plain(name: str) -> str:
    """A name out of the file that a terminal can be shown."""
    return name[:40] if name[:40].isprintable() else ascii(name[:40])


_SIGNATURES = (  # how files begin that are no text, or none that is read here
    (b"SQLite format 3\0", "a SQLite database"),
    (b"\x89PNG\r\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive: unpack it, and give the files in it"),
    (b"(\xb5/\xfd", "a Zstandard archive: unpack it first"),
    (b"\xfd7zXZ\0", "an XZ archive: unpack it first"),
    (b"BZh", "a bzip2 archive: unpack it first"),
    (b"\x7fELF", "a program"),
    (b"PAR1", "a Parquet file"),
    (b"\xff\xfe", "text in UTF-16: save it as UTF-8"),
    (b"\xfe\xff", "text in UTF-16: save it as UTF-8"),
)


def _guess(head: bytes, text: str, entries: list[dict[str, Any]]) -> str:
    """One sentence about what it is instead."""
    known = next((what for start, what in _SIGNATURES if head.startswith(start)), None)
    if known is not None:
        return f"It looks like {known}."
    if b"\0" in head[:4096]:
        return "It looks like a binary file."
    keys = _top_keys(text) if text.startswith("{") else set()
    first = entries[0] if entries else {}
    for test, what in (
        ({"cells", "nbformat"} <= keys, "a Jupyter notebook"),
        ("providers" in keys and "baseUrl" in text, "Pi's models.json"),
        (
            {"trial_name", "verifier_result"} & keys,
            "Harbor's result.json; the trace is agent/trajectory.json beside it",
        ),
        ({"kind", "id", "run_id"} <= first.keys(), "a run's journal; traces are in the run's folder traces/"),
        ({"annotator", "label"} <= first.keys(), "a journal of labels"),
        (
            isinstance(first.get("messages"), list),
            "chat messages (one list a line), which hold no tool results of one run",
        ),
        (bool(entries) and "type" in first, f"JSON lines of type {first.get('type')!r}"),
        (
            text[:1] == "{",
            f"a JSON object with the members {', '.join(_plain(k) for k in sorted(keys)[:8]) or '(none)'}",
        ),
        (text[:1] == "[", "a JSON list"),
    ):
        if test:
            return f"It looks like {what}."
    return f"It looks like plain text ({text[:40].splitlines()[0]!r})."
