"""The `workbench` command. `main` parses; each subcommand's module is imported only when it is asked for.

Exit codes: 0 all valid or done; 1 something is not; 2 wrong usage; 130 and 143 stopped by SIGINT and SIGTERM.
Results go to stdout (`--json`: one object a line), progress and messages to stderr.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any

from workbench.cli.parser import UsageError, build_parser

GRACE_SECONDS = 15.0


class Terminated(KeyboardInterrupt):
    """SIGTERM, raised like Ctrl-C so that everything is put away the same way."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = build_parser()
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help()
        return 2
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    try:
        return arguments.command(arguments)
    except UsageError as error:
        print(f"workbench: {error}", file=sys.stderr)
        return 2
    except Terminated:
        return _stopped(signal.SIGTERM)
    except KeyboardInterrupt:
        return _stopped(signal.SIGINT)
    except BrokenPipeError:  # `workbench … | head`: nobody reads on
        sys.stdout = None  # type: ignore[assignment]
        return 1


def _stop(number: int, frame: Any) -> None:
    """The first signal: everything is put away on the way out, within GRACE_SECONDS (a model may not let itself be
    interrupted); a second signal ends at once. Sandboxes die with this process, whichever way it goes."""
    signal.signal(signal.SIGTERM, _give_up)
    signal.signal(signal.SIGINT, _give_up)
    timer = threading.Timer(GRACE_SECONDS, _give_up, (number, frame))
    timer.daemon = True
    timer.start()
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt


def _give_up(number: int, frame: Any) -> None:
    """No more putting away. What is left is found at the next start."""
    os.write(2, b"workbench: stopped before everything was put away; `workbench clean` removes what is left\n")
    os._exit(128 + number)


def _stopped(number: signal.Signals) -> int:
    print(f"workbench: stopped by {number.name}", file=sys.stderr)
    return 128 + number
