#!/usr/bin/env python3
"""build.py TASK: check a task's files and build its image on the host. Exit 0 when both are sound."""

import sys

from _host import ask, finish

if len(sys.argv) != 2:
    sys.exit(__doc__)
finish(ask("build", sys.argv[1]))
