"""Back ends that the harness's tests share."""

from __future__ import annotations

import pytest

from workbench.sandboxes import Network, SandboxError, get_backend


@pytest.fixture(scope="session")
def backend():
    """bubblewrap whose builds reach no network."""
    try:
        found = get_backend("bubblewrap", build_network=Network("no-network"))
        found.capabilities()
    except (ImportError, SandboxError) as error:
        pytest.skip(f"bubblewrap does not run on this machine: {error}")
    return found
