"""The conformance suite on every back end."""

from __future__ import annotations

import pytest

from .conformance import Conformance


class TestBubblewrap(Conformance):
    spec = "bubblewrap"


@pytest.mark.docker
class TestDocker(Conformance):
    spec = "docker"
