"""The conformance suite on every back end."""

from __future__ import annotations

import pytest

from .conformance import Conformance


class TestBubblewrap(Conformance):
    spec = "bubblewrap"


@pytest.mark.docker
class TestDocker(Conformance):
    spec = "docker"


class TestHarborOverWorkbench(Conformance):
    """Our bubblewrap sandboxes as Harbor's environment, and that through the harbor back end: both directions."""

    spec = "harbor:workbench.sandboxes.harbor_environment:WorkbenchEnvironment"


@pytest.mark.docker
@pytest.mark.slow
class TestHarborDocker(Conformance):
    """Harbor's own docker environment."""

    spec = "harbor:docker"
