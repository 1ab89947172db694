#!/usr/bin/env python3
"""web_search.py WORDS: search the web, when this run has a search; benchmark pages are left out."""

import sys

from _host import ask, finish

if len(sys.argv) < 2:
    sys.exit(__doc__)
finish(ask("web_search", query=" ".join(sys.argv[1:])))
