"""Pi (both scopes of the package): session files, version 3 and before, and `--mode json` events.

A session is a tree by id and parentId. The branch that ends at the last entry is alive; others are side branches. A
reply that broke off with an error and was asked for again is a branch of its own ("failed"). Arguments are objects
here: what the model wrote, letter by letter, is not kept by Pi. Left out: details of results, stored tool schemas.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.traces.files import Broken, json_lines
from workbench.traces.importers.drafts import (
    Draft,
    Drafts,
    Tree,
    UnknownEntry,
    blocks,
    count,
    flag,
    ignore,
    iso,
    plain_text,
    record,
    total,
    unknown,
    whole,
)
from workbench.traces.trace import Report, Result, TraceInfo, TraceStep, Usage, arguments_text

FORMATS = ("pi-session", "pi-events")
IGNORED = frozenset(
    "session model_change thinking_level_change label session_info custom agent_start agent_end agent_settled turn_start "
    "turn_end message_start message_update tool_execution_start tool_execution_update tool_execution_end "
    "auto_retry_start auto_retry_end auto_compaction_start auto_compaction_end compaction_start compaction_end".split()
)
_SUMMARIES = ("compaction", "branch_summary")


def scan(path: Path, format: str) -> TraceInfo:
    """What the file says about itself; reads all of it, for the first model that answers."""
    info: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for entry in json_lines(path):
        message = record(entry.get("message"))
        if entry.get("type") == "session":
            info |= {n: str(entry[k]) for n, k in (("session", "id"), ("cwd", "cwd")) if entry.get(k)}
            extra["session_version"] = entry.get("version")
        elif message.get("role") == "assistant" and message.get("model"):
            info.setdefault("model", f"{message.get('provider') or ''}/{message['model']}".lstrip("/"))
    return TraceInfo(agent="pi", format=format, extra=extra, **info)


def read(path: Path, report: Report, broken: Broken) -> Iterator[TraceStep | UnknownEntry]:
    """Steps in the order in which they began."""
    tree, drafts = _tree(path), Drafts()
    for entry in json_lines(path, broken):
        kind = str(entry.get("type"))
        count(report, kind)
        branch = tree.side(entry["id"]) if isinstance(entry.get("id"), str) and kind != "session" else ""
        message = entry.get("message")
        if kind in ("message", "message_end") and isinstance(message, dict):
            if not _message(entry, message, drafts, branch):
                yield unknown(report, f"{kind}:{message.get('role')}", entry)
        elif kind in _SUMMARIES or kind == "custom_message":
            text, parts = plain_text(entry.get("summary") or entry.get("content"))
            extra = {"pi_entry": kind} | ({"parts": parts} if parts else {})
            drafts.begin(Draft("user", texts=[text], branch=branch, extra=extra, **_about(entry)))
        elif kind in IGNORED:
            ignore(report, kind)
        else:
            yield unknown(report, kind, entry)
        yield from drafts.finished()
    yield from drafts.rest()


def _tree(path: Path) -> Tree:
    tree, leaf = Tree(), ""
    for entry in json_lines(path):
        id, parent = entry.get("id"), entry.get("parentId")
        if entry.get("type") != "session" and isinstance(id, str):
            tree.add(id, parent if isinstance(parent, str) else None)
            leaf = id
    tree.settle(leaf)
    return tree


def _about(entry: dict[str, Any]) -> dict[str, str]:
    stamp = entry.get("timestamp") or record(entry.get("message")).get("timestamp")
    return {"id": str(entry.get("id") or ""), "timestamp": iso(stamp)}


def _message(entry: dict[str, Any], message: dict[str, Any], drafts: Drafts, branch: str) -> bool:
    """Take one message; False when its role is not known."""
    role, about = message.get("role"), _about(entry)
    if role == "assistant":
        _assistant(message, drafts, branch, about)
    elif role == "toolResult":
        text, parts = plain_text(message.get("content"))
        extra = {"parts": parts} if parts else {}
        result = Result(text, str(message.get("toolCallId") or ""), flag(message.get("isError")), extra)
        drafts.result(result, about["timestamp"], branch)
    elif role in ("user", "system", "custom"):
        text, parts = plain_text(message.get("content"))
        sections = record(message.get("sections"))  # the system message of 1.6.0 comes in pieces
        texts = [text, *(s for s in sections.values() if isinstance(s, str))]
        extra = {"parts": parts} if parts else {}
        drafts.begin(Draft("system" if role == "system" else "user", texts=texts, branch=branch, extra=extra, **about))
    elif role in ("compactionSummary", "branchSummary"):
        text = str(message.get("summary") or "")
        drafts.begin(Draft("user", texts=[text], branch=branch, extra={"pi_entry": role}, **about))
    elif role == "bashExecution":  # a command of the person's, not of the agent's
        shown = f"$ {message.get('command')}\n{message.get('output') or ''}"
        drafts.begin(Draft("user", texts=[shown], branch=branch, extra={"pi_entry": role}, **about))
    else:
        return False
    return True


def _assistant(message: dict[str, Any], drafts: Drafts, branch: str, about: dict[str, str]) -> None:
    before = drafts.last
    broke = before is not None and before.extra.get("stop_reason") == "error" and not before.results
    if broke and before.branch == branch:
        before.branch = f"failed-{before.id or about['timestamp']}"
    draft = drafts.begin(Draft("agent", branch=branch, model=str(message.get("model") or ""), **about))
    for block in blocks(message.get("content")):
        _block(block, draft, drafts)
    draft.usage = _usage(record(message.get("usage")))
    named = (("stop_reason", "stopReason"), ("error_message", "errorMessage"), ("response_id", "responseId"))
    draft.extra |= {name: message[key] for name, key in named if message.get(key)}


def _block(block: dict[str, Any], draft: Draft, drafts: Drafts) -> None:
    kind = block.get("type")
    if kind == "text":
        draft.texts.append(str(block.get("text") or ""))
    elif kind == "thinking":
        draft.thoughts.append(str(block.get("thinking") or ""))
    elif kind == "toolCall":
        text = arguments_text(block.get("arguments", {}))
        call = draft.call(block.get("id"), block.get("name"), text, arguments_error=block.get("argumentsError"))
        drafts.called(draft, call)
    else:
        draft.extra.setdefault("blocks", []).append(block)


def _usage(usage: dict[str, Any]) -> Usage | None:
    if not usage:
        return None
    cost = record(usage.get("cost")).get("total")
    return Usage(
        total(usage.get("input"), usage.get("cacheRead"), usage.get("cacheWrite")),
        whole(usage.get("output")),
        whole(usage.get("cacheRead")),
        float(cost) if isinstance(cost, int | float) else None,
    )
