"""Read by every Python of a grader at its start (a `.pth` file imports it).

`python -m pytest` puts the working folder, which is the agent's, before the standard library: a `json.py` in it would run
in the verifier. Tests may still import the agent's packages from there, so the folder goes to the end of the path.
"""

import sys


def _working_folder_last() -> None:
    import os
    import runpy

    run = runpy._run_module_as_main

    def run_module(name, *args, **options):
        try:
            if sys.path and sys.path[0] == os.getcwd():  # noqa: PTH109 - pathlib costs every start
                sys.path.append(sys.path.pop(0))
        except OSError:  # the working folder is gone
            pass
        return run(name, *args, **options)

    runpy._run_module_as_main = run_module


if any(pair in (("-m", "pytest"), ("-m", "unittest")) for pair in zip(sys.orig_argv, sys.orig_argv[1:], strict=False)):
    _working_folder_last()
