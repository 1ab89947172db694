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


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Each file of tests has a browser and a server of its own: JupyterLab keeps open what an earlier file opened."""
    return tmp_path_factory.mktemp("lab")


@pytest.fixture(scope="module")
def driver(folder):
    with lab.chromium(folder) as driver:
        yield driver


@pytest.fixture(scope="module")
def server(folder):
    """The address of a notebook below folder/work, as a format string."""
    with lab.jupyterlab(folder) as address:
        yield address
