"""What a hostile move is, and how it speaks to the host without the tool programs."""

from __future__ import annotations

from dataclasses import dataclass

ASK = """python3 - <<'END'
import socket, struct, json, sys, time, os
def link():
    s = socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect("/run/workbench/tools.sock"); return s
def say(data, more=b""):
    s = link()
    try: s.sendall(data + more)
    except OSError as e: print(e)
    try: print(s.recv(100000)[8:].decode("utf-8", "replace"))
    except OSError as e: print("closed", e)
def frame(value):
    data = json.dumps(value).encode(); return b"wbt1" + struct.pack(">I", len(data)) + data
{body}
END"""


def ask(body: str) -> str:
    return ASK.replace("{body}", body)


@dataclass(frozen=True)
class Move:
    """named: violations that the record must hold. seen: words that the proposer must have been shown. taken: whether there
    is a submission in the end. judged: kinds of which the gate must give one, "" when it must find nothing wrong."""

    name: str
    what: str
    commands: tuple[str, ...]
    named: tuple[str, ...]
    seen: tuple[str, ...] = ()
    taken: bool = False
    judged: tuple[str, ...] = ()
