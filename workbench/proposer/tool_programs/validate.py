#!/usr/bin/env python3
"""validate.py TASK oracle|noop: grade a task's reference solution, or an empty one, in a fresh sandbox of the host.

oracle: exit 0 when the reward is exactly 1. noop: exit 0 when it is below 0.5."""

import sys

from _host import ask, finish

if len(sys.argv) != 3 or sys.argv[2] not in ("oracle", "noop"):
    sys.exit(__doc__)
finish(ask("validate", sys.argv[1], which=sys.argv[2]))
