"""Every case of the table, in the order of docs/rogues.md."""

from __future__ import annotations

from . import cases_agents, cases_build, cases_files, cases_loading, cases_rewards, cases_verifier

TASKS = [*cases_files.CASES, *cases_build.CASES, *cases_rewards.CASES, *cases_verifier.CASES]
AGENTS = [*cases_agents.CASES, *cases_loading.CASES]
