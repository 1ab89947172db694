"""Time and size of the tasks that the workbench itself writes: the end of their task.toml."""

from __future__ import annotations

LIMITS_TOML = """[agent]
timeout_sec = 1800.0

[verifier]
timeout_sec = 120.0

[environment]
network_mode = "no-network"
build_timeout_sec = 600.0
cpus = 1
memory_mb = 2048
storage_mb = 2048
"""
