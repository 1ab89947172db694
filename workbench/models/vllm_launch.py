"""Run as a script by the server's own Python, which does not have this package: vLLM's API server, which ends when the
process that started it does (standard input reaches its end then, however that process died)."""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time


def _end_with_parent() -> None:
    while sys.stdin.buffer.read(4096):
        pass
    os.killpg(0, signal.SIGTERM)
    time.sleep(10)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":  # vLLM's own processes import this file again
    threading.Thread(target=_end_with_parent, daemon=True).start()
    runpy.run_module("vllm.entrypoints.openai.api_server", run_name="__main__")
