#!/usr/bin/env python3
"""solver_model.py TASK: let the current solver attempt a task; prints its rewards, their mean and standard deviation.

The aim is a mean within [0.25, 0.75] and a standard deviation of at least 0.1. Few calls are allowed: validate first."""

import sys

from _host import ask, finish

if len(sys.argv) != 2:
    sys.exit(__doc__)
finish(ask("solver_model", sys.argv[1]))
