"""One bash for each command, with the working directory and the exported variables carried from one to the next.

At its end every command prints, behind a random mark, the bash lines that restore its state; the host cuts them off and
puts them before the next command. Nothing is kept in the sandbox, and nothing that it prints is ever run on the host: a
forged state changes only what the same agent's next command starts with. Not carried: unexported variables, functions,
aliases, `set` and `shopt` options; nothing at all when the command was killed, replaced the EXIT trap or used `exec`.
"""

from __future__ import annotations

import dataclasses
import secrets

from workbench.sandboxes import ExecResult, Sandbox

MAX_STATE = 16 * 1024  # characters; a larger environment is not carried over

_TRAP = """trap '{{ printf "\\n%s\\n" {mark}; printf "cd -- %q\\n" "$PWD"; export -p; printf "%s" {mark}; }} 2>/dev/null' EXIT"""


class Shell:
    """Runs one agent's commands in a sandbox, in order."""

    def __init__(self, sandbox: Sandbox):
        self.sandbox = sandbox
        self._state = ""

    def run(self, command: str, timeout: float) -> ExecResult:
        """Run a command for at most `timeout` seconds. Raises SandboxError when the sandbox is gone."""
        mark = f"=={secrets.token_hex(8)}"
        script = "\n".join([self._state, _TRAP.format(mark=mark), command])
        result = self.sandbox.exec(["bash", "-c", script], timeout=timeout)
        before, found, rest = result.stdout.partition(f"\n{mark}\n")
        if not found:
            return result
        state, closed, after = rest.partition(mark)
        if closed and len(state) <= MAX_STATE:
            self._state = f"{{ {state.strip()}\n}} 2>/dev/null"
        return dataclasses.replace(result, stdout=before + after)
