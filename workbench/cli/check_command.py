"""`workbench check`."""

from __future__ import annotations

import argparse

from workbench.check import Finding, check_machine, usable
from workbench.cli.show import json_line, table

MARKS = {"ok": "ok", "missing": "--", "bad": "!!"}


def main(arguments: argparse.Namespace) -> int:
    """0 when sandboxes can be started here, else 1; optional things that are missing are told and change nothing."""
    findings = check_machine()
    if arguments.json:
        for finding in findings:
            json_line(finding.to_row())
    else:
        _print(findings)
    return 0 if usable(findings) else 1


def _print(findings: list[Finding]) -> None:
    for section in dict.fromkeys(f.section for f in findings):
        print(section)
        table(((MARKS[f.status], f.name, f.detail) for f in findings if f.section == section), indent="  ")
    todo = [f for f in findings if f.advice]
    if todo:
        print("\nmissing, and what to do")
        table(((f.name, f.advice) for f in todo), indent="  ")
    fine = usable(findings)
    print("\nThe default job can run here." if fine else "\nThe default job cannot run here yet: see the lines above.")
