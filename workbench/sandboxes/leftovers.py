"""What dead host processes left: found by the pid and start time in the name of their folder."""

from __future__ import annotations

import os
import json
import signal
from pathlib import Path

from workbench.sandboxes.cgroups import remove_group
from workbench.sandboxes.layers import Host, start_time
from workbench.sandboxes.warden import trees


def clean(host: Host) -> list[str]:
    return []
