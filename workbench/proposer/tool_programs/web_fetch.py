#!/usr/bin/env python3
"""web_fetch.py URL: read one web page as text, when this run has the web; benchmark pages are blocked."""

import sys

from _host import ask, finish

if len(sys.argv) != 2:
    sys.exit(__doc__)
finish(ask("web_fetch", url=sys.argv[1]))
