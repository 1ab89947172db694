"""One HTTP call to a vLLM server, past any proxy of the environment, and what its errors mean."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

from workbench.models import ContextFull, ModelError

_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
CAP = 256 << 20  # bytes of an answer


def call(url: str, body: object = None, *, post: bool = False, timeout: float = 600, key: str = "") -> object:
    """GET, or POST when there is a body or `post`. Returns the parsed JSON, None when the answer is empty.
    Raises ContextFull, ModelError (the server refused), TimeoutError, or OSError (it cannot be reached)."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    data = json.dumps(body).encode() if body is not None else (b"" if post else None)
    request = urllib.request.Request(url, data=data, headers=headers)
    try:
        with _OPENER.open(request, timeout=timeout) as answer:
            text = answer.read(CAP)
    except urllib.error.HTTPError as error:
        said = error.read(4000).decode(errors="replace")
        kind = ContextFull if error.code == 400 and "maximum context length" in said else ModelError
        raise kind(f"{url}: {error.code}: {said[:500]}") from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise error.reason from error
        raise
    try:
        return json.loads(text) if text else None
    except ValueError as error:
        raise ModelError(f"{url}: not JSON: {text[:200]!r}") from error
