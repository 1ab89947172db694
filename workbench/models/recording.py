"""What was really sampled in a session, call by call, and how its prompts hang together.

A call's prompt either extends an earlier call exactly (that one's prompt ids, its sampled ids, a bridge of new messages)
or starts anew; nothing in between is ever guessed. So calls form a tree, and its paths are the segments to train on.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from workbench.models.chat_format import ChatFormat, content_of, same_json
from workbench.models.engines import Generation, Refused
from workbench.models.segments import Segment


@dataclass(frozen=True)
class Prepared:
    """A prompt for the engine. ids: all of its tokens. parent: index of the call that it extends, -1 for none.
    request, tools: digests of what was asked and of its tools. added: how many of `ids` are new since the parent's last
    sampled token. messages: new since the parent."""

    ids: tuple[int, ...]
    parent: int
    request: str
    tools: str
    added: int
    messages: tuple[Mapping, ...]


@dataclass(frozen=True)
class Call:
    """One call of the model. prompt: ids between the parent's last sampled id and this call's first (the whole prompt when
    parent is -1). ids, logprobs, versions, finish: as the engine gave them. messages: new since the parent, as they
    were asked. answer: the message that was returned."""

    index: int
    parent: int
    request: str
    tools: str
    prompt: tuple[int, ...]
    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    versions: tuple[int, ...]
    finish: str
    messages: tuple[Mapping, ...]
    answer: Mapping
    seconds: float = 0.0

    def to_row(self) -> dict[str, object]:
        return asdict(self)


class Recording:
    """One session. breaks: how often and why a prompt did not extend the call before it:

    "history"  an earlier message was edited, dropped or added (compaction, a repaired call, a side conversation)
    "tools"    other tools than in the call before, which the template writes into the prompt
    "branch"   an earlier call was taken up again although another answer had already been built on

    The same request asked again is no break but counted in `repeated`: only one of its answers can be in the history,
    so those that nothing was built on are left out of the segments (of several, the last is kept).

    Messages are compared by what they say: null content is empty text, tool-call arguments are compared as JSON values,
    ids of tool calls do not count. Safe from many threads.
    """

    def __init__(self, format: ChatFormat):
        self.format = format
        self.calls: list[Call] = []
        self.breaks: Counter[str] = Counter()
        self.repeated = 0
        self._after: dict[str, int] = {}  # digest of a history through an answer → its call
        self._lock = threading.Lock()

    def prepare(self, messages: Sequence[Mapping], tools: Sequence[Mapping] = ()) -> Prepared:
        """The prompt ids for a chat. Raises ModelError when the template refuses it."""
        digests = _digests(messages, tools)
        with self._lock:
            parent, length = self._extended(messages, digests)
            known = self._path(parent)
            last = known[-1] if known else -1
        if parent < 0:
            ids = self.format.prompt(messages, tools)
            return Prepared(tuple(ids), -1, digests[-1], digests[0], len(ids), tuple(messages))
        bridge = self.format.bridge(messages, length - 1, last, tools)
        return Prepared((*known, *bridge), parent, digests[-1], digests[0], len(bridge), tuple(messages[length:]))

    def record(self, prepared: Prepared, generation: Generation, answer: Mapping) -> Call:
        """Keep what the engine gave for `prepared`; answer: the message that the client is told."""
        with self._lock:
            self._count(prepared)
            call = Call(
                index=len(self.calls),
                parent=prepared.parent,
                request=prepared.request,
                tools=prepared.tools,
                prompt=prepared.ids[len(prepared.ids) - prepared.added :],
                ids=generation.ids,
                logprobs=generation.logprobs,
                versions=generation.versions,
                finish=generation.finish,
                messages=prepared.messages,
                answer=answer,
                seconds=generation.seconds,
            )
            self.calls.append(call)
            self._after[_chain(prepared.request, answer)] = call.index
            return call

    def segments(self) -> list[Segment]:
        """Every path of the tree of calls, in order of its last call. A sampled token that stands on two paths is
        trained on the first only. Raises Refused when a call was taken at temperature 0: it has nothing to train on."""
        with self._lock:
            calls = list(self.calls)
        greedy = [c.index for c in calls if c.ids and not c.logprobs]
        if greedy:
            raise Refused(f"calls {greedy[:5]} were sampled at temperature 0: there is no distribution to train on")
        built = {c.parent for c in calls}
        unused = _unused(calls, built)
        seen: set[int] = set()
        return [self._segment(c.index, seen) for c in calls if c.index not in built and c.index not in unused]

    def _segment(self, leaf: int, seen: set[int]) -> Segment:
        ids, sampled, logprobs, turns, versions = [], [], [], [], []
        for index in self._line(leaf):
            call, new = self.calls[index], index not in seen
            plain, own = len(call.prompt), len(call.ids)
            ids += [*call.prompt, *call.ids]
            sampled += [False] * plain + [new] * own
            logprobs += [0.0] * plain + (list(call.logprobs) if new else [0.0] * own)
            turns += [-1] * plain + [index if new else -1] * own
            versions += [-1] * plain + (list(call.versions) if new else [-1] * own)
            seen.add(index)
        return Segment(tuple(ids), tuple(sampled), tuple(logprobs), tuple(turns), tuple(versions))

    def _extended(self, messages: Sequence[Mapping], digests: list[str]) -> tuple[int, int]:
        """(call, messages through its answer) of the longest recorded history that these messages extend, by anything
        but answers that were not sampled here; (-1, 0) for none."""
        for length in range(len(messages) - 1, 0, -1):
            if messages[length]["role"] == "assistant":
                break  # behind this point somebody else's answer would be in the prompt
            if messages[length - 1]["role"] == "assistant":
                return (self._after[digests[length]], length) if digests[length] in self._after else (-1, 0)
        return -1, 0

    def _count(self, prepared: Prepared) -> None:
        same = [c for c in self.calls if c.request == prepared.request]
        if same:
            self.repeated += 1
        elif not self.calls:
            pass
        elif prepared.parent < 0:
            self.breaks["history" if prepared.tools == self.calls[-1].tools else "tools"] += 1
        elif any(c.parent == prepared.parent for c in self.calls):
            self.breaks["branch"] += 1

    def _line(self, index: int) -> list[int]:
        line = []
        while index >= 0:
            line.append(index)
            index = self.calls[index].parent
        return line[::-1]

    def _path(self, index: int) -> list[int]:
        return [t for i in self._line(index) for t in (*self.calls[i].prompt, *self.calls[i].ids)]


def _unused(calls: list[Call], built: set[int]) -> set[int]:
    """Answers of a repeated request that nothing was built on, but for the last where nothing was built on any."""
    out: set[int] = set()
    for call in calls:
        same = [c.index for c in calls if c.request == call.request]
        if call.index not in built and (built & set(same) or call.index != same[-1]):
            out.add(call.index)
    return out


def _digests(messages: Sequence[Mapping], tools: Sequence[Mapping]) -> list[str]:
    """Digest of the tools and the first n messages, for n = 0 … len(messages)."""
    out = [hashlib.sha256(json.dumps(list(tools), sort_keys=True).encode()).hexdigest()]
    for message in messages:
        out.append(_chain(out[-1], message))
    return out


def _chain(before: str, *messages: Mapping) -> str:
    for message in messages:
        calls = [(f.get("name"), same_json(f.get("arguments"))) for c in message.get("tool_calls") or [] for f in [c.get("function") or {}]]  # fmt: skip
        said = [before, message["role"], content_of(message), calls]
        before = hashlib.sha256(json.dumps(said).encode()).hexdigest()
    return before
