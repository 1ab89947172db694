"""From chat messages to token ids and back, for engines: chat template, bridges between turns, tool calls in text.

A *bridge* is what the template puts between a sampled answer and the next one: end of message, new messages, generation
prompt. It lets the next prompt repeat the sampled ids exactly instead of tokenizing the answer's text again (which
gives other ids for the same text, and loses what a client re-serialised).
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping, Sequence

from workbench.models import ModelError

# ChatML with tools as Hermes writes them (and Qwen after it): for tokenizers whose own template knows no tools.
HERMES = (
    "{%- if tools %}<|im_start|>system\n"
    "{%- if messages[0].role == 'system' %}{{ messages[0].content }}\n\n{% endif %}"
    "# Tools\n\nYou may call these functions, described by JSON schemas inside <tools></tools>:\n<tools>"
    "{%- for tool in tools %}\n{{ tool | tojson }}{% endfor %}\n</tools>\n\n"
    'To call one, write a JSON object inside <tool_call></tool_call>:\n<tool_call>\n{"name": NAME, "arguments": OBJECT}\n'
    "</tool_call><|im_end|>\n"
    "{%- endif %}"
    "{%- for m in messages %}"
    "{%- if m.role == 'tool' %}"
    "{%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}<|im_start|>user{% endif %}"
    "\n<tool_response>\n{{ m.content }}\n</tool_response>"
    "{%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}<|im_end|>\n{% endif %}"
    "{%- elif not (tools and loop.first and m.role == 'system') %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{%- for call in m.tool_calls or [] %}"
    "{% if m.content or not loop.first %}\n{% endif %}<tool_call>\n"
    '{"name": {{ call.function.name | tojson }}, "arguments": {{ call.function.arguments | tojson }}}\n</tool_call>'
    "{%- endfor %}<|im_end|>\n{% endif %}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_MARK = "Zq7answerZq7"  # stands for the sampled answer while a bridge is rendered


class ChatFormat:
    """A tokenizer's chat template, as an engine needs it.

    template: None for the tokenizer's own, a jinja text, or HERMES. end_ids: tokens that end an answer (the engine's).
    Special tokens spelled out in any message, tool or argument are broken up, so that only the template opens and closes
    messages. Safe from many threads.
    """

    def __init__(self, tokenizer: object, end_ids: Sequence[int] = (), *, template: str | None = None):
        self.tokenizer, self.template = tokenizer, template or getattr(tokenizer, "chat_template", None)
        if not self.template:
            raise ModelError("the tokenizer has no chat template: use an instruct model, or give template=")
        self.end_ids = frozenset(end_ids) or frozenset({tokenizer.eos_token_id} - {None})
        self._special = sorted((t for t in tokenizer.all_special_tokens if len(t) > 1), key=len, reverse=True)
        self._lock = threading.Lock()  # fast tokenizers must not be entered by two threads at once
        self._bare = "tools" not in self.template

    def prompt(self, messages: Sequence[Mapping], tools: Sequence[Mapping] = ()) -> list[int]:
        """Ids of a whole chat up to the next answer. Raises ModelError when the template refuses it."""
        return self._encode(self._render(messages, tools))

    def bridge(self, messages: Sequence[Mapping], answer: int, last: int, tools: Sequence[Mapping] = ()) -> list[int]:
        """Ids that follow the sampled answer `messages[answer]` in the prompt of the next one. last: its last sampled
        id; the template's closing token is left out when the model sampled it itself. Raises ModelError when the
        template does not show where an answer ends."""
        marked = [{"role": "assistant", "content": _MARK} if i == answer else m for i, m in enumerate(messages)]
        before, found, after = self._render(marked, tools).rpartition(_MARK)
        if not found or _MARK in before:
            raise ModelError("the chat template hides or repeats the answers: a trajectory cannot be continued with it")
        ids = self._encode(after)
        return ids[1:] if ids and ids[0] == last and last in self.end_ids else ids

    def text(self, ids: Sequence[int], stop: Sequence[str] = ()) -> str:
        """The text of sampled ids, without a closing end token, cut before the first stop string."""
        ids = ids[:-1] if ids and ids[-1] in self.end_ids else ids
        with self._lock:
            text = self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        cuts = [at for s in stop if s and (at := text.find(s)) >= 0]
        return text[: min(cuts)] if cuts else text

    def _render(self, messages: Sequence[Mapping], tools: Sequence[Mapping]) -> str:
        if self._bare and (tools or any(m["role"] == "tool" for m in messages)):
            raise ModelError("this chat template knows no tools: give ChatFormat template=HERMES, or send none")
        try:
            with self._lock:
                return self.tokenizer.apply_chat_template(
                    [self._safe(plain(m)) for m in messages],
                    tools=[self._safe(t) for t in tools] or None,
                    chat_template=self.template,
                    tokenize=False,
                    add_generation_prompt=True,
                )
        except Exception as error:  # templates raise their own jinja errors, on roles they do not take
            raise ModelError(f"the chat template refused the messages: {error}") from error

    def _encode(self, text: str) -> list[int]:
        with self._lock:
            return self.tokenizer.encode(text, add_special_tokens=False)

    def _safe(self, value: object) -> object:
        if isinstance(value, str):
            for token in self._special:
                if token in value:
                    value = value.replace(token, f"{token[0]} {token[1:]}")
            return value
        if isinstance(value, Mapping):
            return {self._safe(k): self._safe(v) for k, v in value.items()}
        return [self._safe(v) for v in value] if isinstance(value, list | tuple) else value


def plain(message: Mapping) -> dict:
    """A message as templates want it: content a string, arguments of tool calls as objects where they are JSON."""
    kept = {k: message[k] for k in ("role", "name", "tool_call_id") if message.get(k) is not None}
    kept["content"] = content_of(message)
    calls = [(c.get("function") or {}) for c in message.get("tool_calls") or []]
    if calls:
        kept["tool_calls"] = [
            {"type": "function", "function": {"name": f.get("name"), "arguments": _parsed(f.get("arguments"))}}
            for f in calls
        ]
    return kept


def content_of(message: Mapping) -> str:
    """The text of a message: a string, null, or a list of text parts. Raises ModelError for anything but text."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list) and all(isinstance(p, Mapping) and isinstance(p.get("text"), str) for p in content):
        return "".join(p["text"] for p in content)
    raise ModelError("only text can be sent to this model: content must be a string or a list of text parts")


def parse_tool_calls(text: str) -> tuple[str, list[tuple[str, str]]]:
    """(text before the first call, [(name, arguments as the JSON text that was written)]) of Hermes-style calls.

    All or nothing: when one block is not a call, or text stands between or after the blocks, the whole text is content
    and there are no calls; nothing is repaired."""
    blocks = list(_CALL.finditer(text))
    calls = [_call(b.group(1)) for b in blocks]
    rest = _CALL.sub("", text[blocks[0].start() :]) if blocks else ""
    if not blocks or None in calls or rest.strip() or "<tool_call>" in rest:
        return text, []
    return text[: blocks[0].start()].rstrip("\n"), calls


def same_json(text: object) -> str:
    """One spelling for all JSON texts that say the same: clients re-serialise arguments with other spacing, order of
    keys and spelling of numbers (1.0 comes back as 1 from JavaScript). A text that is not JSON stands for itself."""
    value = _parsed(text)
    return f"text {text}" if isinstance(value, str) and value is text else json.dumps(_whole(value), sort_keys=True)


def _call(block: str) -> tuple[str, str] | None:
    value = _parsed(block.strip())
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or set(value) - {"name", "arguments"}:
        return None
    arguments = value.get("arguments", {})
    return (value["name"], json.dumps(arguments, ensure_ascii=False)) if isinstance(arguments, dict) else None


def _whole(value: object) -> object:
    """Floats without a fraction as integers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {k: _whole(v) for k, v in value.items()}
    return [_whole(v) for v in value] if isinstance(value, list) else value


def _parsed(text: object) -> object:
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
