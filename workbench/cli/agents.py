"""`workbench agents install` and `workbench agents list`."""

from __future__ import annotations

import argparse

from workbench.cli.parser import UsageError
from workbench.cli.show import json_line, message


def install(arguments: argparse.Namespace) -> int:
    """Install agents that are not there yet; 1 when one of them failed."""
    from workbench.agents.coding.install import InstallError, package
    from workbench.agents.coding.install import install as put_there

    try:
        wanted = [package(name) for name in dict.fromkeys(arguments.names)]
    except ValueError as error:
        raise UsageError(str(error)) from None
    failed = False
    for agent in wanted:
        try:
            put_there(agent)
        except (InstallError, OSError) as error:
            message(f"{agent.name}: {error}")
            failed = True
        else:
            _show(agent, arguments.json)
    return 1 if failed else 0


def list_(arguments: argparse.Namespace) -> int:
    """One line an agent."""
    from workbench.agents.coding.install import PACKAGES

    for agent in PACKAGES.values():
        _show(agent, arguments.json)
    return 0


def _show(agent, as_json: bool) -> None:
    from workbench.agents.coding.install import is_installed, size_mb

    there = is_installed(agent)
    size = size_mb(agent) if there else None
    if as_json:
        json_line({"agent": agent.name, "version": agent.version, "npm": agent.wanted(), "installed": there,
                   "folder": str(agent.folder) if there else None, "mb": round(size) if there else None})  # fmt: skip
    else:
        state = f"{size:.0f} MB in {agent.folder}" if there else f"not installed: workbench agents install {agent.name}"
        print(f"{agent.name} {agent.version}: {state}")
