"""`workbench clean`."""

from __future__ import annotations

import argparse

from workbench.cli.parser import UsageError
from workbench.cli.show import json_line, message
from workbench.runs.leftovers import sweep
from workbench.runs.temporary import sweep_temporary


def main(arguments: argparse.Namespace) -> int:
    """Remove what dead processes left: of kernels, in the temporary folder, and of every back end that works here; 1 when one failed."""
    from workbench.sandboxes import get_backend

    removed, failed = [("kernels", line) for line in sweep()], False
    removed += [("temporary", line) for line in sweep_temporary()]
    for name in arguments.backend or ("bubblewrap", "docker"):
        try:
            backend = get_backend(name)
        except ValueError as error:
            raise UsageError(str(error)) from None
        except Exception as error:  # this machine does not have that back end, so it left nothing
            if arguments.backend:
                message(f"{name}: {error}")
                failed = True
            continue
        try:
            removed += [(name, line) for line in backend.clean()]
        except Exception as error:
            message(f"{name}: could not clean up: {error}")
            failed = True
    for name, line in removed:
        if arguments.json:
            json_line({"backend": name, "removed": line})
        else:
            print(f"{name}: {line}")
    if not removed and not arguments.json:
        print("nothing was left behind")
    return 1 if failed else 0
