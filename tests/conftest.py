from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True)
def one_thread():
    """Tiny models gain nothing from threads of their own, and lose much where the cores are shared."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
