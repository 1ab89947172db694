from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def uv(*arguments: object) -> None:
    """uv, from its cache where that is enough: a build asks for nothing but hatchling."""
    command = [sys.executable, "-m", "uv", *map(str, arguments)]
    done = subprocess.run([*command, "--offline"], capture_output=True, text=True, check=False)
    if done.returncode:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    """A wheel of this checkout, built by way of the source distribution, as a package index would get both."""
    pytest.importorskip("uv", reason="uv is not installed: make env")
    folder = tmp_path_factory.mktemp("dist")
    (folder / "begun").touch()
    uv("build", "--quiet", "-o", folder, ROOT)
    (found,) = folder.glob("*.whl")
    return found


def new_environment(home: Path) -> tuple[Path, Path]:
    """Its Python and its site-packages; packages of the present environment can be imported, its workbench cannot."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    (packages,) = (home / "lib").glob("python*/site-packages")
    here = [p for p in sys.path if p.endswith("site-packages")]
    (packages / "others.pth").write_text(
        "\n".join(here) + "\n"
    )  # their own .pth files, the checkout's too, are not read
    return home / "bin" / "python", packages


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory) -> Path:
    """The `bin` of a fresh environment with the wheel, which sees this environment's other packages but not its workbench."""
    home = tmp_path_factory.mktemp("clean") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    (packages,) = (home / "lib").glob("python*/site-packages")
    here = [p for p in sys.path if p.endswith("site-packages")]
    (packages / "others.pth").write_text(
        "\n".join(here) + "\n"
    )  # their own .pth files, the checkout's too, are not read
    uv("pip", "install", "--quiet", "--no-deps", "--python", home / "bin" / "python", wheel)
    return home / "bin"


@pytest.fixture
def clean_env(tmp_path) -> dict[str, str]:
    """No setting of the workbench, no PYTHONPATH, no way to a network by proxies, and a home of its own."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("WORKBENCH_", "PYTHON"))}
    dead = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")
    (tmp_path / "home").mkdir()
    return kept | dead | {"HOME": str(tmp_path / "home")}
