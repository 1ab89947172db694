#!/usr/bin/env python3
"""run.py TASK [--solution] [--tests] COMMAND: run one shell command in a fresh sandbox of a task's environment.

--solution and --tests put these folders at /solution and /tests, which the solver never sees; --tests also adds pytest.
Nothing is kept from one call to the next. The exit code is the command's."""

import sys

from _host import ask, finish

words = sys.argv[1:]
options = [w for w in words if w in ("--solution", "--tests")]
words = [w for w in words if w not in options]
if len(words) < 2:
    sys.exit(__doc__)
finish(ask("run", words[0], command=" ".join(words[1:]), solution="--solution" in options, tests="--tests" in options))
