#!/usr/bin/env python3
"""worlds.py list
worlds.py compose GENERATOR TIER TARGET [CORRUPTION ...]: make a task from a generator of latent worlds at TARGET.

The host chooses the seed. The task at TARGET is yours to change afterwards."""

import os
import sys

from _host import ask, finish

words = sys.argv[1:]
if words == ["list"]:
    finish(ask("worlds", action="list"))
if len(words) < 4 or words[0] != "compose":
    sys.exit(__doc__)
if os.path.lexists(words[3]):
    sys.exit(f"{words[3]} is there already; name a new folder")
finish(ask("worlds", save=words[3], action="compose", generator=words[1], tier=words[2], corruptions=words[4:]))
