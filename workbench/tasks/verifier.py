"""The fraction verifier that the workbench ships, and the reading of the CTRF report it leaves.

Reward = tests passed / tests collected (AutoEnvScaling, Eq. 1 and the managed template of appendix E.2, which we wrote
anew). Deviations, on purpose: skipped and xfailed tests stay in the denominator, and a run of pytest that did not get to
its end leaves no reward instead of 0. The report comes from a recorder inside the script and not from pytest-json-ctrf,
so that an image needs nothing but pytest.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

VERIFIER_PATH = Path(__file__).with_name("fraction_verifier.sh")
VERIFIER_TEMPLATE = VERIFIER_PATH.read_text(encoding="utf-8")
"""Text of tests/test.sh. Tasks copy it as it is: `is_managed` tells whether one did."""

STATUSES = ("passed", "failed", "skipped", "pending", "other")  # CTRF's own
MAX_CTRF_BYTES = 8 << 20
MAX_TESTS = 100_000
MAX_NAME = 1_000  # characters kept of a test's name


class CtrfError(ValueError):
    """The report is not CTRF; the message says what was found where."""


def is_managed(script: Path) -> bool:
    """Whether a task's tests/test.sh is our template, byte for byte."""
    data = VERIFIER_TEMPLATE.encode()
    return script.is_file() and script.stat().st_size == len(data) and script.read_bytes() == data


def parse_ctrf(data: bytes) -> dict[str, str]:
    """Test name → status ("passed", "failed", "skipped", "pending" or "other"), in the report's order.

    The bytes come out of a sandbox: they may be anything. A name that stands twice gets " #2", " #3" … so that no test
    is lost; names are cut at 1,000 characters and control characters in them become "?". Raises CtrfError for more than
    8 MiB, more than 100,000 tests, JSON that is not CTRF, or an unknown status.
    """
    if len(data) > MAX_CTRF_BYTES:
        raise CtrfError(f"{len(data):,} bytes of CTRF; at most {MAX_CTRF_BYTES:,} are read")
    try:
        report = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise CtrfError(f"not JSON: {str(error)[:200]}") from None
    tests = _tests(report)
    found: dict[str, str] = {}
    copies: dict[str, int] = {}
    for index, test in enumerate(tests):
        name, status = _row(test, index)
        unique = name
        while unique in found:
            copies[name] = copies.get(name, 1) + 1
            unique = f"{name} #{copies[name]}"
        found[unique] = status
    return found


def _tests(report: Any) -> list[Any]:
    results = report.get("results") if isinstance(report, dict) else None
    tests = results.get("tests") if isinstance(results, dict) else None
    if not isinstance(tests, list):
        raise CtrfError("no list at results.tests")
    if len(tests) > MAX_TESTS:
        raise CtrfError(f"{len(tests):,} tests; at most {MAX_TESTS:,} are read")
    return tests


def _row(test: Any, index: int) -> tuple[str, str]:
    name = test.get("name") if isinstance(test, dict) else None
    status = test.get("status") if isinstance(test, dict) else None
    if not isinstance(name, str) or not name:
        raise CtrfError(f"results.tests[{index}] has no name")
    if status not in STATUSES:
        raise CtrfError(f"results.tests[{index}]: status {str(status)[:40]!r} is none of {', '.join(STATUSES)}")
    name = name[:MAX_NAME].encode("utf-8", "replace").decode()  # lone surrogates would break every writer downstream
    return "".join(c if c.isprintable() else "?" for c in name), status
