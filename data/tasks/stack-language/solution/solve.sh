#!/bin/bash
set -euo pipefail
cat > /app/pile.py <<'PY'
"""Pile: tokens → nested code → a loop with an explicit stack of frames (so that depth is ours, not Python's)."""
import re
import sys

NUMBER = re.compile(r"-?[0-9]+", re.ASCII)
ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}
SHOWN = {v: "\\" + k for k, v in ESCAPES.items()}
sys.set_int_max_str_digits(0)


class PileError(Exception):
    def __init__(self, kind, line=0):
        super().__init__(kind)
        self.kind, self.line = kind, line


class Block:
    __slots__ = ("code",)

    def __init__(self, code):
        self.code = code


def tokens(text):
    line, i, n = 1, 0, len(text)
    while i < n:
        c = text[i]
        if c.isspace():
            line += c == "\n"
            i += 1
        elif c == "#":
            while i < n and text[i] != "\n":
                i += 1
        elif c == '"':
            i, out = i + 1, []
            while True:
                if i >= n or text[i] == "\n":
                    raise PileError("syntax", line)
                if text[i] == '"':
                    break
                if text[i] == "\\":
                    i += 1
                    if i >= n or text[i] not in ESCAPES:
                        raise PileError("syntax", line)
                    out.append(ESCAPES[text[i]])
                else:
                    out.append(text[i])
                i += 1
            i += 1
            yield "string", "".join(out), line
        elif c in "[]":
            i += 1
            yield c, c, line
        else:
            j = i
            while j < n and not text[j].isspace() and text[j] not in '[]"':
                j += 1
            word, i = text[i:j], j
            yield "word", word, line


def parse(text):
    """Code: tuples (op, argument, line)."""
    top, stack = [], []  # stack: (closer, line, outer code, name)
    code = top
    stream = tokens(text)
    for kind, value, line in stream:
        if kind == "string":
            code.append(("push", value, line))
        elif kind == "[":
            stack.append(("]", line, code, None))
            code = []
        elif kind == "]" or value == ";":
            if not stack or stack[-1][0] != value:
                raise PileError("syntax", line)
            _, opened, outer, name = stack.pop()
            outer.append(("push", Block(code), opened) if name is None else ("define", (name, code), opened))
            code = outer
        elif value == ":":
            if stack:
                raise PileError("syntax", line)
            kind, name, _ = next(stream, (None, None, None))
            if kind != "word" or NUMBER.fullmatch(name) or name in (":", ";"):
                raise PileError("syntax", line)
            stack.append((";", line, code, name))
            code = []
        elif NUMBER.fullmatch(value):
            code.append(("push", int(value), line))
        elif len(value) > 1 and value[0] == "$":
            code.append(("load", value[1:], line))
        elif len(value) > 1 and value[0] == "=":
            code.append(("store", value[1:], line))
        else:
            code.append(("word", value, line))
    if stack:
        raise PileError("syntax", stack[-1][1])
    return top


def show(v, inner=False):
    if isinstance(v, int):
        return str(v)
    if isinstance(v, str):
        return '"' + "".join(SHOWN.get(c, c) for c in v) + '"' if inner else v
    if isinstance(v, tuple):
        return "(" + " ".join(show(x, True) for x in v) + ")"
    raise PileError("type")


def same(a, b):
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and not isinstance(a, Block) and a == b


def want(ok):
    if not ok:
        raise PileError("type")


def ints(*v):
    want(all(isinstance(x, int) for x in v))


class Machine:
    def __init__(self):
        self.stack, self.words, self.vars = [], {}, {}
        # a frame: [code, position, what happens at its end]; counted ones are calls
        self.frames = []

    def enter(self, code, after=None):
        if len(self.frames) > 10_000:
            raise PileError("depth")
        self.frames.append([code, 0, after])

    def pop(self, n):
        if len(self.stack) < n:
            raise PileError("underflow")
        out = self.stack[-n:]
        del self.stack[-n:]
        return out

    def run(self, code):
        self.frames.append([code, 0, None])
        line = 0
        while self.frames:
            frame = self.frames[-1]
            code, at, after = frame
            try:
                if at < len(code):
                    frame[1] += 1
                    op, arg, line = code[at]
                    if op == "push":
                        self.stack.append(arg)
                    elif op == "word":
                        self.word(arg)
                    elif op == "load":
                        if arg not in self.vars:
                            raise PileError("unknown")
                        self.stack.append(self.vars[arg])
                    elif op == "store":
                        self.vars[arg] = self.pop(1)[0]
                    else:
                        self.words[arg[0]] = arg[1]
                else:
                    self.frames.pop()
                    if after:
                        line = after[-1]
                        self.done(after)
            except PileError as e:
                self.caught(e, line)

    def caught(self, e, line):
        while self.frames:
            after = self.frames.pop()[2]
            if after and after[0] == "try":
                self.stack[:] = [*after[1], e.kind]
                return
        raise PileError(e.kind, line)

    def line(self):
        frame = self.frames[-1]
        return frame[0][frame[1] - 1][2]

    def done(self, after):
        """What a loop does when its block has ended."""
        kind = after[0]
        if kind == "try":
            self.stack.append(0)
        elif kind == "times":
            _, left, block, line = after
            if left > 1:
                self.enter(block.code, ("times", left - 1, block, line))
        elif kind == "each":
            _, items, i, block, line = after
            if i < len(items):
                self.stack.append(items[i])
                self.enter(block.code, ("each", items, i + 1, block, line))
        elif kind == "cond":
            _, cond, body, line = after
            c = self.pop(1)[0]
            if isinstance(c, Block) or c:
                self.enter(body.code, ("body", cond, body, line))
        elif kind == "body":
            _, cond, body, line = after
            self.enter(cond.code, ("cond", cond, body, line))

    def word(self, name):
        if name in self.words:
            self.enter(self.words[name])
            return
        action = BUILTIN.get(name)
        if action is None:
            raise PileError("unknown")
        n, do = action
        result = do(self, *(self.pop(n) if n else ()))
        if result is not None:
            self.stack.extend(result)


def add(m, a, b):
    want(type(a) is type(b) and isinstance(a, (int, str, tuple)))
    return (a + b,)


def divide(m, a, b, rest=False):
    ints(a, b)
    if b == 0:
        raise PileError("zero")
    q = abs(a) // abs(b)
    q = q if (a < 0) == (b < 0) else -q
    return (a - q * b if rest else q,)


def arith(f):
    def do(m, a, b):
        ints(a, b)
        return (f(a, b),)

    return do


def less(m, a, b):
    want(type(a) is type(b) and isinstance(a, (int, str)))
    return (int(a < b),)


def blocks(*v):
    want(all(isinstance(x, Block) for x in v))


def do_if(m, c, then, other):
    blocks(then, other)
    m.enter((then if isinstance(c, Block) or c else other).code)


def do_while(m, cond, body):
    blocks(cond, body)
    m.enter(cond.code, ("cond", cond, body, m.line()))


def do_times(m, n, block):
    ints(n)
    blocks(block)
    if n > 0:
        m.enter(block.code, ("times", n, block, m.line()))


def do_call(m, block):
    blocks(block)
    m.enter(block.code)


def do_try(m, block):
    blocks(block)
    m.enter(block.code, ("try", tuple(m.stack), m.line()))


def do_fail(m, s):
    want(isinstance(s, str))
    raise PileError(s)


def do_list(m, n):
    ints(n)
    if n < 0:
        raise PileError("range")
    return (tuple(m.pop(n)) if n else (),)


def do_len(m, a):
    want(isinstance(a, (str, tuple)))
    return (len(a),)


def do_get(m, a, i):
    want(isinstance(a, (str, tuple)))
    ints(i)
    if not 0 <= i < len(a):
        raise PileError("range")
    return (a[i],)


def do_each(m, items, block):
    want(isinstance(items, tuple))
    blocks(block)
    if items:
        m.done(("each", items, 0, block, m.line()))


def do_num(m, s):
    want(isinstance(s, str))
    if not NUMBER.fullmatch(s):
        raise PileError("range")
    return (int(s),)


def do_print(m, a):
    sys.stdout.write(show(a) + "\n")


BUILTIN = {
    "dup": (1, lambda m, a: (a, a)), "drop": (1, lambda m, a: ()), "swap": (2, lambda m, a, b: (b, a)),
    "over": (2, lambda m, a, b: (a, b, a)), "rot": (3, lambda m, a, b, c: (b, c, a)),
    "depth": (0, lambda m: (len(m.stack),)), "+": (2, add), "-": (2, arith(int.__sub__)), "*": (2, arith(int.__mul__)),
    "/": (2, divide), "%": (2, lambda m, a, b: divide(m, a, b, True)), "<": (2, less), ">": (2, lambda m, a, b: less(m, b, a)),
    "=": (2, lambda m, a, b: (int(same(a, b)),)), "not": (1, lambda m, a: (int(not (isinstance(a, Block) or a)),)),
    "if": (3, do_if), "while": (2, do_while), "times": (2, do_times), "call": (1, do_call), "try": (1, do_try),
    "fail": (1, do_fail), "list": (1, do_list), "len": (1, do_len), "get": (2, do_get), "each": (2, do_each),
    "str": (1, lambda m, a: (show(a),)), "num": (1, do_num), "print": (1, do_print),
}


def main():
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    text = open(sys.argv[1], encoding="utf-8", newline="").read()
    try:
        Machine().run(parse(text))
    except PileError as e:
        sys.stdout.flush()
        print(f"error: {e.kind} at {e.line}", file=sys.stderr)
        return 1
    return 0


sys.exit(main())
PY
