"""Small tasks and agents for the tests of trials and admission."""

from __future__ import annotations

import pytest

from workbench.sandboxes import SandboxError, get_backend


@pytest.fixture(scope="session")
def backend():
    try:
        found = get_backend("bubblewrap")
        found.capabilities()
    except (ImportError, SandboxError) as error:
        pytest.skip(f"bubblewrap does not run on this machine: {error}")
    return found
