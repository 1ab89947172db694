"""`workbench traces …`: import, count turns, classify, export, search. (`agreement` has a module of its own.)

0 when all went well; 1 when a file is no trace, or there is nothing to compare; 2 for wrong usage.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from workbench.cli.parser import UsageError
from workbench.cli.show import json_line, message, table
from workbench.runs.progress import Progress, clean
from workbench.traces.labels import LabelError
from workbench.traces.store import TraceError


def import_(arguments: argparse.Namespace) -> int:
    """Read traces of any known format and write each as a record of ours, without secrets."""
    from workbench.traces.reading import open_trace
    from workbench.traces.record import import_trace

    with Progress(label="import messages") as bar:

        def one(path: Path) -> None:
            reading = open_trace(path, format=arguments.format, redact=not arguments.keep_secrets)
            found = import_trace(reading, Path(arguments.to), lambda: bar.update(1, path.name))
            if arguments.json:
                json_line(found.to_row())
            else:
                print(_imported(found), flush=True)

        return _each(files_of(arguments.files), one)


def _imported(found: Any) -> str:
    report = found.report
    lines = [f"{clean(str(found.source))}: {found.format}, {found.steps} messages, {_counted(found.turns)}"]
    lines.append(f"  -> {found.path}")
    notes = (
        ("on side branches", f"{found.side} messages" if found.side else ""),
        ("redacted", _pairs(report["redacted"])),
        ("kept, of unknown types", _pairs(report["unknown"])),
        ("cut off at the end", f"{report['torn']} bytes" if report["torn"] else ""),
        ("not readable", "; ".join(report["broken"])),
    )
    return "\n".join(lines + [f"  {what}: {clean(value)}" for what, value in notes if value])


def _counted(turns: dict[str, int]) -> str:
    return f"{turns['turns']} turns ({turns['text']} text, {turns['call']} tool calls)"


def _pairs(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in sorted(counts.items()))


def turns(arguments: argparse.Namespace) -> int:
    """List the turns of traces."""
    return _each(files_of(arguments.files), lambda path: _show(path, arguments, None))


def classify(arguments: argparse.Namespace) -> int:
    """List the turns of traces, each with the classifier's guess."""
    from workbench.traces.classify import Classifier, default

    try:
        classifier = Classifier(Path(arguments.rules)) if arguments.rules else default()
    except (OSError, ValueError) as error:
        raise UsageError(f"--rules: {error}") from error
    return _each(files_of(arguments.files), lambda path: _show(path, arguments, classifier))


def _show(path: Path, arguments: argparse.Namespace, classifier: Any) -> None:
    found = turns_of(path, arguments.format)
    guesses = classifier.turns(found) if classifier else [None] * len(found)
    if arguments.json:
        for turn, guess in zip(found, guesses, strict=True):
            json_line(
                {"file": str(path), **turn.to_row()}
                | ({} if guess is None else {"guess": guess.label, "rule": guess.rule})
            )
        return
    texts = sum(t.kind == "text" for t in found)
    count = {"turns": len(found), "text": texts, "call": len(found) - texts}
    print(f"{clean(str(path))}: {_counted(count)}")
    table(
        (
            [f"{t.step}.{t.call}", *([] if g is None else [g.label]), t.tool or "text", _line(t)]
            for t, g in zip(found, guesses, strict=True)
        ),
        "  ",
    )


def turns_of(path: Path, format: str | None = None) -> list[Any]:
    from workbench.traces.reading import read_trace
    from workbench.traces.turns import turns

    return turns(read_trace(path, format=format))


def _line(turn: Any, width: int = 100) -> str:
    text = " ".join((turn.text or turn.command or turn.arguments).split())
    return text if len(text) <= width else text[: width - 1] + "…"


def export(arguments: argparse.Namespace) -> int:
    """Write a trace as ATIF 1.8, with labels when there are some."""
    from workbench.traces.export import write_atif
    from workbench.traces.importers.drafts import UnknownEntry
    from workbench.traces.reading import open_trace

    path, target = files_of([arguments.file])[0], Path(arguments.to)
    labels = _journal_labels(path, arguments) if arguments.labels else {}

    def one(path: Path) -> None:
        reading = open_trace(path, format=arguments.format, redact=not arguments.keep_secrets)
        with Progress(label="export messages") as bar:
            steps = (s for s in _counted_through(reading, bar) if not isinstance(s, UnknownEntry))
            write_atif(target, reading.info, steps, labels)
        row = {"source": str(path), "path": str(target), "labels": len(labels), "report": reading.report.to_json()}
        if arguments.json:
            json_line(row)
        else:
            print(f"{clean(str(path))} -> {clean(str(target))} (ATIF 1.8, {len(labels)} labels)")

    if target.is_dir():
        raise UsageError(f"--to {target} is a folder: name the file to write")
    return _each([path], one)


def _counted_through(items: Any, bar: Progress) -> Iterator[Any]:
    for item in items:
        yield item
        bar.update(1)


def _journal_labels(path: Path, arguments: argparse.Namespace) -> dict[Any, Any]:
    """The labels of this trace that hold now, one a turn; of several annotators' the adjudicated or last one."""
    from workbench.traces.labels import current, read_labels

    digest = next((t.trace for t in turns_of(path, arguments.format)), "")
    labels = [x for x in read_labels(existing(arguments.labels)) if x.trace == digest]
    votes = current(labels)
    chosen = {key: max(said.values(), key=lambda x: x.time) for key, said in votes.items()}
    settled = {x.key: x for x in sorted(labels, key=lambda x: x.time) if x.adjudicates and x.label}
    return chosen | settled


def search(arguments: argparse.Namespace) -> int:
    """Find text in the turns of traces. 1 when it is nowhere."""
    from workbench.traces.search import search as find

    skipped: list[str] = []
    count = 0
    try:
        hits = find(
            files_of(arguments.paths), arguments.query, regex=arguments.regex, case=arguments.case, skipped=skipped
        )
        for hit in hits:
            count += 1
            if arguments.json:
                json_line(hit.to_row())
            else:
                print(f"{clean(hit.path)}  {hit.step}.{hit.call}  {hit.field}: {clean(hit.snippet)}")
    except ValueError as error:
        raise UsageError(str(error)) from error
    if skipped:
        message(f"{len(skipped)} files were passed over; the first: {clean(skipped[0])}")
    return 0 if count else 1


def files_of(names: list[str]) -> list[Path]:
    return [existing(name) for name in names]


def existing(name: str) -> Path:
    path = Path(name)
    if not path.exists():
        raise UsageError(f"there is no {name}")
    return path


def _each(paths: list[Path], action: Callable[[Path], None]) -> int:
    """Do it for each file; what cannot be read is named, and stops nothing."""
    failed = 0
    for path in paths:
        try:
            action(path)
        except BrokenPipeError:
            raise
        except (TraceError, LabelError) as error:
            message(str(error))
            failed += 1
        except OSError as error:
            message(f"{path}: {error.strerror or error}")
            failed += 1
    return 1 if failed else 0
