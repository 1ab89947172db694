"""Read by every Python of a grader at its start (a `.pth` file imports it).

`python -m pytest`, `python -c` and `python <<…` put the working folder, which is the agent's, before the standard library: a
`json.py` in it would run in the verifier. Tests may still import the agent's packages from there, but it comes last.
Scripts are left alone: their own folder is first, and that is not where the verifier happens to stand.
"""

import sys


def _working_folder_last() -> None:
    """For `-m`: runpy is entered when the folder is already on the path."""
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


class _Installed:
    """For `-c` and standard input: what is installed is found before the folder that joins the path after this."""

    def __init__(self, finder):
        self.finder, self.path = finder, list(sys.path)

    def find_spec(self, name, path=None, target=None):
        return self.finder.find_spec(name, self.path, target) if path is None else None


if not sys.flags.safe_path:
    if sys.argv[0] in ("-c", "-", ""):
        place = [getattr(finder, "__name__", "") for finder in sys.meta_path].index("PathFinder")
        sys.meta_path.insert(place, _Installed(sys.meta_path[place]))
    elif any(
        word == "-m" and sys.orig_argv[i + 1 :][:1] in (["pytest"], ["unittest"])
        for i, word in enumerate(sys.orig_argv)
    ):
        _working_folder_last()
