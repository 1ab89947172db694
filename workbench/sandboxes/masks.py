"""A layer that hides what a sandbox changed below SYSTEM_PATHS, by laying the image's own version over it.

Below /usr nothing is needed: /usr is an overlay of its own, and the changed one is simply not stacked.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from workbench.sandboxes import SYSTEM_PATHS, Image, base_layer
from workbench.sandboxes.sandbox import Stack

if TYPE_CHECKING:
    from workbench.sandboxes.bubblewrap import Bubblewrap

PATHS = tuple(path for path in SYSTEM_PATHS if path != "/usr" and not path.startswith("/usr/"))


def mask(backend: Bubblewrap, image: Image, stack: Stack) -> str:
    """The relative folder of the mask for `image`, made once from a sandbox that nobody has used."""
    key = base_layer.digest(["mask", *stack.image, *PATHS])

    def make(folder: Path) -> None:
        fresh = Image(image.backend, image.key, handle=Stack(stack.image))
        with backend.start(fresh, label="mask") as box:
            box.slot.call("mask", paths=PATHS, target=backend.host.relative(folder))

    return backend.store.layer(f"mask-{key}", make)
