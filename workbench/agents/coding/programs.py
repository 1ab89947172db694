"""How each agent is started in a sandbox: its command line, its variables, and the files that configure it.

All three read the instruction from standard input (a command line takes 128 KiB at most), talk to the relay, do not try
a failed call again (the host has), do not look for updates, and ask nobody for permission: the sandbox is the limit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType

from workbench.agents import Budget
from workbench.agents.coding import chat, messages, responses
from workbench.agents.coding.install import Package, package

ROOT = "/opt/workbench"  # the programs are mounted below it
HOME = "/var/tmp/coding-agent"  # configuration and native logs: any user may make it; below /tmp Codex makes no helpers
KEY = "in-the-sandbox-this-is-no-key"
_IDLE_MS = 3_600_000  # replies come whole, after any time; the episode's own time limit ends it


@dataclass(frozen=True)
class Start:
    """One start. files: name below HOME → content."""

    argv: list[str]
    env: Mapping[str, str]
    files: Mapping[str, str]


@dataclass(frozen=True)
class Program:
    """A coding agent. logs: the folder of its native logs below HOME."""

    package: Package
    wire: ModuleType
    logs: str
    start: Callable[[Program, str, str, int, Budget], Start]

    @property
    def name(self) -> str:
        return self.package.name

    @property
    def root(self) -> str:
        return f"{ROOT}/{self.name}"


def _claude(program: Program, url: str, model: str, context: int, budget: Budget) -> Start:
    """Claude Code, without sub-agents and web tools: one line of turns, no network. Its own background calls are off."""
    milliseconds = str(int(budget.command_seconds * 1000))
    env = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        **dict.fromkeys(("ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL"), model),
        "API_TIMEOUT_MS": str(_IDLE_MS),
        "BASH_DEFAULT_TIMEOUT_MS": milliseconds,
        "BASH_MAX_TIMEOUT_MS": milliseconds,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "CLAUDE_CODE_TMPDIR": f"{HOME}/tmp",
        "CLAUDE_CONFIG_DIR": HOME,
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",  # or it refuses to skip permissions as root
    }
    argv = [
        program.package.program("claude", program.root), "--print", "--model", model, "--output-format", "stream-json", "--verbose",
        "--dangerously-skip-permissions", "--tools", "Bash,Read,Write,Edit,Glob,Grep", "--strict-mcp-config",
    ]  # fmt: skip
    return Start(argv, env, {})


def _codex(program: Program, url: str, model: str, context: int, budget: Budget) -> Start:
    """Codex, without sub-agents, goals and web search. Its tools end commands by limits of their own."""
    quoted = json.dumps(model)  # a TOML basic string
    config = f"""
model = {quoted}
model_provider = "relay"
model_context_window = {context}
approval_policy = "never"
sandbox_mode = "danger-full-access"
web_search = "disabled"
check_for_update_on_startup = false

[model_providers.relay]
name = "relay"
base_url = {json.dumps(url + "/v1")}
env_key = "RELAY_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
stream_idle_timeout_ms = {_IDLE_MS}

[analytics]
enabled = false

[features]
multi_agent = false
goals = false
enable_request_compression = false
"""
    argv = [program.package.program("codex", program.root), "exec", "--json", "--skip-git-repo-check", "-"]
    return Start(argv, {"CODEX_HOME": HOME, "RELAY_KEY": KEY}, {"config.toml": config})


def _pi(program: Program, url: str, model: str, context: int, budget: Budget) -> Start:
    """Pi. Its bash tool has no time limit of its own: its shell is one that ends by itself."""
    entry = {"id": model, "reasoning": False, "contextWindow": context, "maxTokens": min(budget.tokens, context // 2)}
    provider = {
        "baseUrl": f"{url}/v1",
        "api": "openai-completions",
        "apiKey": KEY,
        "compat": {"supportsDeveloperRole": False, "supportsReasoningEffort": False},
        "models": [entry],
    }
    settings = {
        "compaction": {"enabled": False},
        "retry": {"enabled": False, "provider": {"maxRetries": 0, "timeoutMs": _IDLE_MS}},
        "httpIdleTimeoutMs": _IDLE_MS,
        "cacheWarming": "off",
        "shellPath": f"{HOME}/bash",
    }
    seconds = max(int(budget.command_seconds), 1)
    shell = f'#!/bin/sh\nexec timeout --foreground --kill-after=2 {seconds} /bin/bash "$@"\n'
    files = {
        "models.json": json.dumps({"providers": {"relay": provider}}),
        "settings.json": json.dumps(settings),
        "bash": shell,
    }
    env = {"PI_CODING_AGENT_DIR": HOME, "PI_OFFLINE": "1", "PI_TELEMETRY": "0", "NODE_DISABLE_COMPILE_CACHE": "1"}
    node, cli = (program.package.program(part, program.root) for part in ("node", "pi"))
    argv = [
        node,
        cli,
        "--print",
        "--mode",
        "json",
        "--provider",
        "relay",
        "--model",
        model,
        "--session-dir",
        f"{HOME}/sessions",
    ]
    return Start(argv, env, files)


PROGRAMS = {
    "claude-code": Program(package("claude-code"), messages, "projects", _claude),
    "codex": Program(package("codex"), responses, "sessions", _codex),
    "pi": Program(package("pi"), chat, "sessions", _pi),
}
