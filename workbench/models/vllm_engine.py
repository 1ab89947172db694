"""The engine in vLLM servers: token ids and log-probabilities over HTTP, weights from a folder that the servers see."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.models import ContextFull, ModelError, OutOfTime, Sampling
from workbench.models.engines import Generation, Health, Refused
from workbench.models.vllm_http import call
from workbench.models.weights import check_same_model


@dataclass
class _Server:
    url: str
    busy: int = 0
    version: int = 0
    epoch: int = 0  # counts pauses
    processed: bool | None = None  # whether its log-probabilities are those of the sampling distribution
    broken: str = ""


class VllmEngine:
    """An Engine over servers that `VllmServer` started, or that were started as docs/engines.md says.

    urls: one, or several with the same model; a prompt goes to the least busy one. end_ids, max_context: None asks the
    first server (end_ids: from the model folder, when it lies on this machine). timeout: seconds for one answer.
    A pause ends the running requests on the server with what they have; they go on here after `resume`, as new
    requests with the longer prompt, so that the prefix is read with the weights of then. Sampling.seconds raises
    OutOfTime. Raises ModelError when the first server cannot be reached.
    """

    def __init__(
        self,
        urls: str | Sequence[str],
        *,
        name: str = "vllm",
        end_ids: Sequence[int] | None = None,
        max_context: int | None = None,
        timeout: float = 600,
        key: str = "",
    ):
        self.name, self._timeout, self._key = name, timeout, key
        self._servers = [_Server(u.rstrip("/")) for u in ([urls] if isinstance(urls, str) else urls)]
        card = self._post(self._servers[0], "/v1/models", get=True)["data"][0]
        self._model, self.folder = card["id"], Path(card.get("root") or "")
        self.max_context = max_context or int(card["max_model_len"])
        self.end_ids = frozenset(end_ids if end_ids is not None else _end_ids(self.folder))
        self._state = threading.Condition()
        self._paused = self._closed = False
        self._moving = threading.Lock()  # one weight update at a time

    @property
    def version(self) -> int:
        return max(s.version for s in self._servers)

    def generate(self, prompt: Sequence[int], sampling: Sampling = Sampling()) -> Generation:
        prompt, started = list(prompt), time.monotonic()
        room = min(self.max_context - len(prompt), sampling.max_tokens)
        if not prompt or self.max_context - len(prompt) < 1:
            raise ContextFull(
                f"prompt of {len(prompt)} tokens, context of {self.max_context}: it must hold 1 and one more"
            )
        deadline = started + (sampling.seconds if sampling.seconds is not None else math.inf)
        ids: list[int] = []
        logprobs: list[float] = []
        versions: list[int] = []
        finish = "length" if room < 1 else ""
        while not finish:
            piece = self._piece([*prompt, *ids], room - len(ids), sampling, len(ids), deadline)
            ids, logprobs, versions = ids + piece[0], logprobs + piece[1], versions + piece[2]
            finish = piece[3] or ("length" if len(ids) >= room else "")
        kept = tuple(logprobs) if sampling.temperature > 0 else ()
        return Generation(tuple(ids), kept, tuple(versions), finish, seconds=time.monotonic() - started)

    def load_weights(self, folder: Path, version: int | None = None) -> int:
        folder = Path(folder).resolve()
        check_same_model(folder, self.folder if (self.folder / "config.json").exists() else None)
        with self._moving:
            new, paused = self.version + 1 if version is None else version, self._paused
            self.pause()
            try:
                for server in self._alive():
                    self._reload(server, folder, new)
            finally:
                if not paused:
                    self.resume()
            self._alive()
        return new

    def pause(self) -> None:
        with self._state:
            if self._paused:
                return
            self._paused = True
            for server in self._servers:
                server.epoch += 1
        for server in self._alive():
            self._tell(server, "/pause?mode=abort")
        self._alive()

    def resume(self) -> None:
        for server in self._servers:
            if not server.broken:
                self._tell(server, "/resume")
        with self._state:
            self._paused = False
            self._state.notify_all()

    def health(self) -> Health:
        wrong = [f"{s.url}: {s.broken}" for s in self._servers if s.broken]
        for server in (s for s in self._servers if not s.broken):
            try:
                call(f"{server.url}/health", timeout=5, key=self._key)
            except (OSError, ModelError) as error:
                wrong.append(f"{server.url}: {error}")
        return Health(not wrong and not self._closed, self.version, self._paused, "; ".join(wrong))

    def close(self) -> None:
        """Let go of the servers, which go on; waiting requests end with ModelError."""
        with self._state:
            self._closed = True
            self._state.notify_all()

    # -- one request ----------------------------------------------------------------------------------------------

    def _piece(self, prompt: list[int], room: int, sampling: Sampling, done: int, deadline: float):
        """(ids, logprobs, versions, finish) from one request; finish is "" when a pause cut it short."""
        server, epoch, version = self._take(deadline)
        try:
            if server.processed is None:
                server.processed = self._says_processed(server)
            if server.processed is None:
                return [], [], [], ""
            if not server.processed and not _plain(sampling):
                raise Refused(
                    f"{server.url} reports log-probabilities of the untempered distribution: start it with "
                    "--logprobs-mode processed_logprobs, or sample at temperature 1 without top_p and top_k"
                )
            choice = self._ask(server, prompt, room, sampling, done, deadline)
        except OSError as error:
            self._lost(server, error)
            return [], [], [], ""  # another server, if there is one
        finally:
            with self._state:
                server.busy -= 1
        ids, logprobs = choice["token_ids"], choice["logprobs"]["token_logprobs"]
        if len(ids) != len(logprobs):
            raise ModelError(f"{server.url}: {len(ids)} ids and {len(logprobs)} log-probabilities came back")
        cut = choice["finish_reason"] == "abort"
        if server.version != version and not (cut and server.epoch == epoch + 1):
            return [], [], [], ""  # it may have waited at the server while weights changed: which ones is not known
        finish = "" if cut else ("length" if choice["finish_reason"] == "length" else "stop")
        return ids, [float(x) for x in logprobs], [version] * len(ids), finish

    def _take(self, deadline: float) -> tuple[_Server, int, int]:
        """The least busy server, once nothing is paused."""
        with self._state:
            left = deadline - time.monotonic()
            if not self._state.wait_for(lambda: self._closed or not self._paused, None if left == math.inf else max(left, 0)):  # fmt: skip
                raise OutOfTime(f"{self.name}: the caller's time ran out while weights moved")
            if self._closed:
                raise ModelError(f"{self.name}: the engine is closed: open it again")
            server = min(self._alive(), key=lambda s: s.busy)
            server.busy += 1
            return server, server.epoch, server.version

    def _ask(self, server: _Server, prompt: list[int], room: int, sampling: Sampling, done: int, deadline: float):
        left = deadline - time.monotonic()
        if left <= 0:
            raise OutOfTime(f"{self.name}: the caller's time ran out")
        body = {
            "model": self._model, "prompt": prompt, "max_tokens": room, "temperature": max(sampling.temperature, 0.0),
            "top_p": sampling.top_p, "top_k": sampling.top_k or -1, "min_p": 0.0, "repetition_penalty": 1.0,
            "seed": None if sampling.seed is None else sampling.seed + done, "logprobs": 0, "return_token_ids": True,
            "stop": list(sampling.stop) or None, "include_stop_str_in_output": True, "skip_special_tokens": False,
            "stop_token_ids": sorted(self.end_ids) or None,
        }  # fmt: skip
        try:
            return self._post(server, "/v1/completions", body, timeout=min(left, self._timeout))["choices"][0]
        except TimeoutError as error:
            if left < self._timeout:
                raise OutOfTime(f"{self.name}: the caller's time ran out before the answer came") from error
            raise ModelError(f"{server.url}: no answer within {self._timeout:.0f} s") from error

    def _says_processed(self, server: _Server) -> bool | None:
        """Ask with top_k 1: the likeliest token then has probability 1 (1/n where n tokens tie) in the distribution that is
        sampled from, and hardly ever in the one before the cut. None when a pause cut the question short."""
        probe = Sampling(max_tokens=8, temperature=2.0, top_k=1, seed=0)
        choice = self._ask(server, [1], min(8, self.max_context - 1), probe, 0, math.inf)
        ones = [math.exp(-x) for x in choice["logprobs"]["token_logprobs"]]
        return all(abs(x - round(x)) < 1e-3 for x in ones) if ones else None

    # -- servers --------------------------------------------------------------------------------------------------

    def _alive(self) -> list[_Server]:
        alive = [s for s in self._servers if not s.broken]
        if not alive:
            raise ModelError("; ".join(f"{s.url}: {s.broken}" for s in self._servers))
        return alive

    def _lost(self, server: _Server, error: Exception) -> None:
        """Take out a server that does not answer any more. Raises ModelError when it does: one request was lost."""
        try:
            call(f"{server.url}/health", timeout=5, key=self._key)
        except (OSError, ModelError):
            server.broken = f"cannot be reached ({error}): look at its log and start it again"
            return
        raise ModelError(f"{server.url}: a request was lost: {error}") from error

    def _tell(self, server: _Server, path: str) -> None:
        try:
            self._post(server, path)
        except (OSError, ModelError) as error:
            server.broken = str(error)

    def _reload(self, server: _Server, folder: Path, version: int) -> None:
        try:
            wanted = {"method": "reload_weights", "kwargs": {"weights_path": str(folder)}}
            self._post(server, "/collective_rpc", wanted)
            self._post(server, "/reset_prefix_cache")
        except (OSError, ModelError) as error:  # half-loaded weights: nothing that it says can be used
            server.broken = f"its weights could not be replaced: {error}"
            return
        with self._state:
            server.version = version

    def _post(self, server: _Server, path: str, body: object = None, *, get: bool = False, timeout: float = 600):
        try:
            return call(server.url + path, body, post=not get, timeout=timeout, key=self._key)
        except TimeoutError:
            raise
        except OSError as error:
            if path == "/v1/completions":
                raise
            raise ModelError(f"{server.url}{path} cannot be reached: {error}") from error


def _plain(sampling: Sampling) -> bool:
    return sampling.temperature in (0, 1) and sampling.top_p >= 1 and not sampling.top_k


def _end_ids(folder: Path) -> set[int]:
    ends: set[int] = set()
    for name in ("generation_config.json", "config.json"):
        read: Callable = (folder / name).read_text
        try:
            found = json.loads(read()).get("eos_token_id")
        except (OSError, ValueError):
            continue
        ends |= set(found) if isinstance(found, list) else {found}
    return ends - {None}
