"""Coding agents that people use, as they ship: Claude Code, Codex and Pi, in a sandbox, as solvers or as proposers.

Here belongs what installs them (`install`), starts them (`programs`), stands between them and a model (`relay`, one module
a wire format: `chat`, `responses`, `messages`), and turns what they did into an Episode (`agent`).

What we take from Harbor and what not. Harbor's installed agents (harbor.agents.installed) are the reference for flags,
variables and configuration files; their code is not called. They install the agent with the network into each container
(we: once a machine, pinned, mounted read-only), pass the key and the network into the container (we: neither), count
from log files that the policy can rewrite and whose conversion loses text (we: from what passed the relay), and give up
or raise by exit codes (we: by the last stop reason). Native logs can be kept (`keep_logs`), and then Harbor's converters
and `workbench traces import` read them.
"""

from __future__ import annotations
