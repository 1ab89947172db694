"""Shell scripts taken apart into their simple commands, by bash's grammar (tree-sitter-bash). Nothing is run.

Quotes, heredocs, pipes, lists, loops, functions, substitutions and `bash -c '…'` are understood; a script with a mistake
gives the commands that can be made out.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_SCRIPT = 200_000  # characters that are looked at
_DEPTH = 3  # of bash -c in bash -c
_WRAPPERS = {  # programs that run another one: their options that take a value, and how many words of their own come before it
    "sudo": ("-u -g -C -D -R -T -U -p -h --user --group", 0),
    "doas": ("-u -C", 0),
    "env": ("-u -C --unset --chdir", 0),
    "nohup": ("", 0),
    "time": ("-f -o", 0),
    "nice": ("-n", 0),
    "ionice": ("-c -n", 0),
    "taskset": ("-c", 0),
    "stdbuf": ("-i -o -e", 0),
    "exec": ("-a", 0),
    "command": ("", 0),
    "timeout": ("-k -s --signal --kill-after", 1),
    "xargs": ("-I -n -P -L -d -a -s -E", 0),
    "setsid": ("", 0),
    "unbuffer": ("", 0),
    "flock": ("-w -E", 1),
    "chroot": ("", 1),
    "watch": ("-n", 0),
    "busybox": ("", 0),
    "coproc": ("", 0),
    "docker exec": ("-e -u -w --env --user --workdir --env-file", 1),
    "podman exec": ("-e -u -w --env --user --workdir --env-file", 1),
}
_SSH_VALUES = frozenset("-p -i -o -l -F -J -L -R -D -b -c -m -W".split())
_INTERPRETERS = re.compile(r"python[0-9.]*|node|ruby|perl")
_SHELLS = {"bash", "sh", "zsh", "dash"}
_GROUPS = {"subshell", "compound_statement", "do_group", "if_statement", "else_clause", "elif_clause"}
_LOOPS = {"for_statement", "while_statement", "c_style_for_statement"}


@dataclass(frozen=True)
class Part:
    """One simple command. words: unquoted, wrappers such as sudo and timeout taken away. body: of its heredoc, or the
    code given with -c. writes: its output goes to a file. loop: text of the outermost loop that it is in, "" outside."""

    words: tuple[str, ...]
    body: str = ""
    writes: bool = False
    loop: str = ""

    @property
    def name(self) -> str:
        return self.words[0].rsplit("/", 1)[-1] if self.words else ""

    @property
    def rest(self) -> str:
        return " ".join(self.words[1:])


def split(script: str) -> list[Part]:
    """The simple commands of a script, in their order."""
    return list(_split(script[:MAX_SCRIPT], "", _DEPTH))


@cache
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def _split(script: str, loop: str, depth: int) -> Iterator[Part]:
    tree = _parser().parse(script.encode("utf-8", "replace"))
    for node in _walk(tree.root_node):
        if node.type not in ("command", "test_command"):
            continue
        part = _part(node, loop or _loop(node))
        inner = _inner_script(part)
        if inner is not None and depth:
            yield from _split(inner, part.loop, depth - 1)
        elif part.name == "find":
            yield from _found(part)
        elif part.words:
            yield part


def _walk(root: Node) -> Iterator[Node]:
    """Depth first, without recursion: scripts may nest as deeply as they like."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _part(node: Node, loop: str) -> Part:
    if node.type == "test_command":
        return Part(("test", _text(node)), loop=loop)
    words = [_word(c) for c in node.named_children if c.type not in ("variable_assignment", *_REDIRECTS)]
    redirects = [c for c in node.children if c.type in _REDIRECTS] + _outer_redirects(node)
    bodies = [_text(c) for r in redirects for c in r.children if c.type == "heredoc_body"]
    bodies += [_word(c) for r in redirects if r.type == "herestring_redirect" for c in r.named_children]
    words = _unwrapped(words)
    return Part(tuple(words), bodies[0] if bodies else _code(words), any(map(_to_file, redirects)), loop)


_AROUND = {"redirected_statement", "pipeline", "list"} | _GROUPS | _LOOPS
_REDIRECTS = ("file_redirect", "heredoc_redirect", "herestring_redirect")


def _outer_redirects(node: Node) -> list[Node]:
    """Redirects stand around a command, or around a group, loop or condition that it is in. In `a | b > f` they belong
    to the last one, a heredoc to the first."""
    found, at = [], node
    while (parent := at.parent) is not None and parent.type in _AROUND:
        if parent.type == "redirected_statement":
            mine = [c for c in parent.children if c.type in _REDIRECTS]
            found += [c for c in mine if c.type != "heredoc_redirect" or _first(parent, node)]
            found += [c for r in mine if r.type == "heredoc_redirect" for c in r.children if c.type == "file_redirect"]
        elif at != parent.named_children[-1] and parent.type == "pipeline":
            found += _heredocs_above(parent, node)
            break
        elif parent.type == "list" and at != parent.named_children[-1]:
            break
        at = parent
    return found


def _heredocs_above(pipeline: Node, node: Node) -> list[Node]:
    parent = pipeline.parent
    if parent is None or parent.type != "redirected_statement" or not _first(parent, node):
        return []
    return [c for c in parent.children if c.type == "heredoc_redirect"]


def _first(statement: Node, node: Node) -> bool:
    return statement.start_byte == node.start_byte


def _to_file(redirect: Node) -> bool:
    if redirect.type != "file_redirect":
        return False
    marks = {c.type for c in redirect.children}
    descriptor = next((_text(c) for c in redirect.children if c.type == "file_descriptor"), "1")
    target = _text(redirect.children[-1])
    return bool(marks & {">", ">>", "&>", "&>>", ">|"}) and descriptor == "1" and not target.startswith("/dev/")


def _word(node: Node) -> str:
    """A word without its quotes. Substitutions and variables stay as they are written."""
    text = _text(node)
    if node.type == "raw_string":
        return text[1:-1]
    if node.type == "string":
        return text[1:-1].replace('\\"', '"').replace("\\\\", "\\").replace("\\$", "$")
    if node.type == "command_name" and node.named_children:
        return _word(node.named_children[0])
    if (node.type == "word" and "\\" in text) or node.type == "concatenation":
        try:
            return "".join(shlex.split(text)) or text
        except ValueError:
            return text
    return text


def _unwrapped(words: list[str]) -> list[str]:
    """Without sudo, env A=1, timeout 60 and their like in front. `command -v` asks for a program and runs none."""
    while (wrapper := _wrapper(words)) and words[:2] not in (["command", "-v"], ["command", "-V"]):
        values, own = _WRAPPERS[wrapper]
        at = _after_options(words, 1 + wrapper.count(" "), values.split()) + own
        if at >= len(words):
            return words
        words = words[at:]
    return words


def _wrapper(words: list[str]) -> str:
    name = words[0].rsplit("/", 1)[-1] if words else ""
    return next((w for w in (name, " ".join([name, *words[1:2]])) if w in _WRAPPERS), "")


def _after_options(words: Sequence[str], at: int, values: Collection[str]) -> int:
    """Place of the first word from `at` that is no option, no option's value, and no assignment."""
    while at < len(words) and (words[at].startswith("-") or re.match(r"\w+=", words[at])):
        at += 2 if words[at] in values else 1
    return at


def _inner_script(part: Part) -> str | None:
    """SCRIPT of `bash -c SCRIPT`, also at the end of docker run and its like, of `bash <<EOF`, and of `ssh HOST SCRIPT`."""
    words = part.words
    for at, word in enumerate(words[:-2]):
        flags = words[at + 1]
        if word.rsplit("/", 1)[-1] in _SHELLS and flags.startswith("-") and flags.endswith("c"):
            return words[at + 2]
    if part.name in _SHELLS and part.body and (len(words) == 1 or words[1].startswith("-")):
        return part.body
    if part.name == "ssh":
        return " ".join(words[_after_options(words, 1, _SSH_VALUES) + 1 :]) or None
    return None


def _found(part: Part) -> Iterator[Part]:
    """What find does with what it finds: the commands after -exec, an `rm` for -delete; itself when it only lists."""
    words, did = list(part.words), False
    for at, word in enumerate(words):
        if word in ("-exec", "-execdir", "-ok", "-okdir"):
            end = next((i for i in range(at, len(words)) if words[i] in (";", "+")), len(words))
            inner = tuple(_unwrapped(words[at + 1 : end]))
            script = _inner_script(Part(inner)) if inner else None
            yield from [Part(inner, loop=part.loop)] if script is None else _split(script, part.loop, 0)
            did = True
        elif word == "-delete":
            yield Part(("rm",), loop=part.loop)
            did = True
    if not did:
        yield part


def _code(words: list[str]) -> str:
    """CODE of `python -c CODE`, `node -e CODE` and `perl -ne CODE`."""
    joined = bool(words) and _INTERPRETERS.fullmatch(words[0].rsplit("/", 1)[-1]) is not None
    for at, word in enumerate(words[:-1]):
        if at and (word in ("-c", "-e") or (joined and re.fullmatch(r"-[a-zA-Z]{1,3}[ce]", word))):
            return words[at + 1]
    return ""


def _loop(node: Node) -> str:
    found, at = "", node.parent
    while at is not None:
        if at.type in _LOOPS:
            found = _text(at)
        at = at.parent
    return found
