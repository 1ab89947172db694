"""Open a trace of any known format: `open_trace` step by step in bounded memory, `read_trace` whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from workbench.traces.files import Broken
from workbench.traces.importers import atif, claude_code, codex, mini_swe_agent, own, pi
from workbench.traces.importers.drafts import UnknownEntry
from workbench.traces.redact import Redactor
from workbench.traces.sniff import FORMATS, check, sniff
from workbench.traces.store import TraceError
from workbench.traces.trace import Report, Trace, TraceInfo, TraceStep

_IMPORTERS: dict[str, ModuleType] = {
    format: module for module in (atif, claude_code, codex, mini_swe_agent, own, pi) for format in module.FORMATS
}


class Reading:
    """A trace that is read once, by iterating over it. info: known from the start. report: complete at the end.

    Gives TraceStep and, for entries of types that are not known, UnknownEntry. Secrets are replaced on the way."""

    def __init__(self, path: Path, format: str, redactor: Redactor | None):
        self.path, self.format, self.report = path, format, Report()
        self._redactor = redactor
        importer = _IMPORTERS[format]
        try:
            info = importer.scan(path, format)
        except TraceError:
            raise
        except (TypeError, KeyError, AttributeError, ValueError, RecursionError) as error:
            raise TraceError(f"{path}: not {FORMATS[format]}: {type(error).__name__} {error}") from error
        if redactor is not None:
            redactor.learn(info.cwd)
        self.info: TraceInfo = redactor.info(info) if redactor else info

    def __iter__(self) -> Iterator[TraceStep | UnknownEntry]:
        broken, importer = Broken(), _IMPORTERS[self.format]
        more = (self.format,) if importer is own else ()
        try:
            for item in importer.read(self.path, self.report, broken, *more):
                yield self._clean(item)
        except TraceError:
            raise
        except (TypeError, KeyError, AttributeError, ValueError, RecursionError) as error:
            raise TraceError(f"{self.path}: broken {self.format}: {type(error).__name__} {error}") from error
        finally:
            self.report.torn, self.report.broken = broken.torn, list(broken.places)
            if self._redactor:
                self.report.redacted = dict(self._redactor.counts)

    def _clean(self, item: Any) -> Any:
        if self._redactor is None:
            return item
        if isinstance(item, UnknownEntry):
            return replace(item, raw=self._redactor.value(item.raw))
        return self._redactor.step(item)


def open_trace(path: str | Path, *, format: str | None = None, redact: bool = True) -> Reading:
    """Begin to read a trace. format: a key of sniff.FORMATS, found out when None. redact: replace secrets and names
    (workbench.traces.redact), unless it is a record, which was imported as it was wanted. Raises TraceError when the file is something else, and says what."""
    path = Path(path)
    if format is None:
        format = sniff(path)
    elif format not in FORMATS:
        raise TraceError(f"no format {format!r}: use one of {', '.join(FORMATS)}")
    else:
        check(path, format)
    # A record has been through it. Reading it again by later rules would change its digest, and lose its labels.
    return Reading(path, format, Redactor() if redact and format != "workbench-trace" else None)


def read_trace(
    path: str | Path, *, format: str | None = None, redact: bool = True, on_step: Callable[[], Any] | None = None
) -> Trace:
    """A whole trace in memory; for files that fit. on_step: called after each step (progress)."""
    reading = open_trace(path, format=format, redact=redact)
    steps, others = [], []
    for item in reading:
        (steps if isinstance(item, TraceStep) else others).append(item)
        if on_step is not None:
            on_step()
    if not steps:
        raise TraceError(f"{path}: {FORMATS[reading.format]} without a single message")
    return Trace(reading.info, tuple(steps), reading.report, tuple(e.raw for e in others))
