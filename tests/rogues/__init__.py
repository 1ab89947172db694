"""Faulty and hostile tasks, agents and runs, each with the verdict that it must get (docs/rogues.md lists them)."""
