"""A real JupyterLab and a real Chromium: started here, looked at through the keyboard, gone afterwards.

Nothing of the user's is read or written: settings, kernels, runtime files, and the browser's profile lie in one folder.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --window-size=1280,1000 --remote-debugging-pipe"
).split()
START_SECONDS = 60
PATIENCE = 180  # seconds until something that should be seen counts as missing: a busy machine starts kernels slowly
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def missing() -> str:
    """Why no browser can be driven here; "" when one can."""
    try:
        import jupyterlab  # noqa: F401
        import selenium  # noqa: F401
    except ImportError as error:
        return f"{error.name} is not installed (pip install -e '.[notebook,test]')"
    if not any(map(shutil.which, NAMES)):
        return "no Chromium on this machine (as root on Debian: sh scripts/install_browser.sh)"
    return (
        ""
        if shutil.which("chromedriver")
        else "Chromium without its chromedriver (Debian: apt install chromium-driver)"
    )


@contextmanager
def chromium(folder: Path) -> Iterator[Any]:
    """A headless browser with a profile of its own."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = next(filter(None, map(shutil.which, NAMES)))
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    service = Service(shutil.which("chromedriver"), popen_kw={"preexec_fn": _dies_with_us})
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_script_timeout(60)
    try:
        yield driver
    finally:
        driver.quit()


@contextmanager
def jupyterlab(folder: Path, work: Path | None = None, theme: str = "JupyterLab Light") -> Iterator[str]:
    """A server on `work` (FOLDER/work), with all of its own files in `folder`; gives the address of a notebook as a
    format string, with the token. Its kernels are this interpreter."""
    work, token = work or folder / "work", os.urandom(16).hex()
    work.mkdir(parents=True, exist_ok=True)
    _settings(folder, theme)
    spec = folder / "data" / "kernels" / "python3"
    spec.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "Python 3", "language": "python"}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    names = {"JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "runtime",
             "IPYTHONDIR": "ipython", "JUPYTERLAB_SETTINGS_DIR": "settings", "JUPYTERLAB_WORKSPACES_DIR": "spaces"}  # fmt: skip
    env = {**os.environ, **{name: str(folder / part) for name, part in names.items()}}
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
        "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={work}",
    ]  # fmt: skip
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=env, cwd=work, preexec_fn=_dies_with_us)
    try:
        _answers(server, f"http://127.0.0.1:{port}/api/status?token={token}", folder / "server.log")
        yield f"http://127.0.0.1:{port}/lab/tree/{{}}?token={token}"
    finally:
        _end(server)


def _settings(folder: Path, theme: str) -> None:
    """No news from the network; the theme that is asked for."""
    room = folder / "settings" / "@jupyterlab" / "apputils-extension"
    room.mkdir(parents=True, exist_ok=True)
    quiet = {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True}
    (room / "notification.jupyterlab-settings").write_text(json.dumps(quiet))
    (room / "themes.jupyterlab-settings").write_text(json.dumps({"theme": theme}))


def _answers(server: subprocess.Popen, address: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError(f"JupyterLab does not answer:\n{log.read_text(errors='replace')[-3000:]}")


def _dies_with_us() -> None:
    """Linux sends SIGTERM when the tests are killed: a server takes its kernels along, a driver its browser."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def _end(server: subprocess.Popen) -> None:
    """SIGTERM ends the server and its kernels (which also end when their server has gone)."""
    server.terminate()
    try:
        server.wait(20)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def write_notebook(path: Path, *cells: str) -> None:
    made = [
        {"cell_type": "code", "id": f"c{i}", "execution_count": None, "metadata": {}, "outputs": [], "source": source}
        for i, source in enumerate(cells)
    ]
    spec = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path.write_text(json.dumps({"cells": made, "metadata": spec, "nbformat": 4, "nbformat_minor": 5}))


def eventually(found: Callable[[], Any], what: str, seconds: float = 30) -> Any:
    """The first true value of `found`; AssertionError when there is none in time."""
    deadline = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < deadline, f"not seen in {seconds} s: {what}"
        time.sleep(0.02)
    return value


class Page:
    """One notebook in the browser: what a person does with keys and a click, and what they see."""

    def __init__(self, driver: Any):
        self.driver, self._next_click = driver, 0.0

    def open(self, address: str) -> None:
        """A notebook, up to where its kernel is ready. On a busy machine JupyterLab may give up on a part of itself and say
        so in a dialog; then it is loaded again."""
        for _ in range(3):
            self.driver.get(address)
            self.waits(lambda: self.ready() or self.dialog() or self._enter(), "an idle kernel")
            if not self.dialog():
                self.sees(".jp-Notebook .jp-Cell .cm-content")
                return
        raise AssertionError(f"JupyterLab does not come up: {self.dialog()}")

    def _enter(self) -> None:
        """A click into the notebook, every few seconds: the status bar speaks of the kernel only once the notebook is the current
        part of the page, which a slow page does not make it by itself."""
        from selenium.common.exceptions import WebDriverException
        from selenium.webdriver.common.by import By

        if time.monotonic() < self._next_click:
            return
        self._next_click = time.monotonic() + 5
        with contextlib.suppress(WebDriverException):  # nothing to click at yet
            self.driver.find_element(By.CSS_SELECTOR, ".jp-Notebook .jp-CodeCell .cm-content").click()

    def dialog(self) -> str:
        return self.text(".jp-Dialog")

    def js(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def keys(self, *keys: str) -> None:
        """Typed at whatever has the focus. A tuple is a chord: ("Control", "z")."""
        from selenium.webdriver import ActionChains, Keys

        chain = ActionChains(self.driver, duration=0)
        for key in keys:
            *held, last = key if isinstance(key, tuple) else (key,)
            named = [getattr(Keys, name.upper()) for name in held]
            for name in named:
                chain.key_down(name)
            chain.send_keys(getattr(Keys, last.upper(), last) if len(last) > 1 else last)
            for name in reversed(named):
                chain.key_up(name)
        chain.perform()

    def click(self, selector: str) -> None:
        from selenium.common.exceptions import WebDriverException
        from selenium.webdriver.common.by import By

        def clicked() -> bool:
            try:
                self.driver.find_element(By.CSS_SELECTOR, selector).click()
            except WebDriverException as error:  # not drawn yet, or drawn anew at this moment
                last[:] = [error.msg]
                return False
            return True

        last: list[str] = []
        self.sees(selector)
        try:
            eventually(clicked, "a click")
        except AssertionError:
            raise AssertionError(f"cannot click at {selector}: {last}") from None

    def sees(self, selector: str, seconds: float = PATIENCE) -> None:
        """Waits until it is there."""
        self.waits(lambda: self.js("return !!document.querySelector(arguments[0])", selector), selector, seconds)

    def waits(self, found: Callable[[], Any], what: str, seconds: float = PATIENCE) -> None:
        """What the page shows instead goes into the error, and into a picture."""
        try:
            eventually(found, what, seconds)
        except AssertionError as error:
            picture = Path(tempfile.gettempdir()) / f"workbench-browser-{os.getpid()}.png"
            self.driver.save_screenshot(str(picture))
            raise AssertionError(f"{error}; picture: {picture}; {self.text('.jp-Notebook')[-2000:]}") from None

    def run_first(self) -> None:
        """Run the first cell, and stay on it."""
        self.click(".jp-Notebook .jp-Cell .cm-content")
        self.keys(("control", "enter"))

    def ready(self) -> bool:
        """By the words at the bottom: the indicator above the notebook says idle before there is a kernel."""
        return "| Idle" in self.text("#jp-main-statusbar")

    def cells(self) -> int:
        return self.js("return document.querySelectorAll('.jp-Notebook .jp-Cell').length")

    def text(self, selector: str) -> str:
        return self.js("return document.querySelector(arguments[0])?.textContent ?? ''", selector)
