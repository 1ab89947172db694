from __future__ import annotations

import pytest

from . import lab

REASON = lab.missing()


def pytest_collection_modifyitems(items):
    for item in items:
        if "browser" in item.path.parts:
            item.add_marker(pytest.mark.browser)
            if REASON:
                item.add_marker(pytest.mark.skip(reason=REASON))


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("lab")


@pytest.fixture(scope="session")
def driver(folder):
    with lab.chromium(folder) as driver:
        yield driver


@pytest.fixture(scope="session")
def server(folder):
    """The address of a notebook below folder/work, as a format string."""
    with lab.jupyterlab(folder) as address:
        yield address
