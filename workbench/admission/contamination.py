"""Does a generated task repeat a held-out one? (AutoEnvScaling §3.2 and F.2, after Tmax.)

Gate: the *instruction* shares a 13-gram of tokens (stride 1) with a held-out task's instruction. The paper's check is
that and no more; it reads descriptions only. Reported beside it, and no gate: the same overlap of tests, solution and
fixture files, shared 8-grams, how much of the worst held-out instruction is covered, and the nearest one. Deviation:
grams that lie wholly inside of our declared scaffold are set aside. What n-grams miss: docs/contamination.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.tasks import Task
from workbench.tasks.config import strip_canary
from workbench.tasks.digest import ignored, read_plain, walk
from workbench.tasks.ngrams import Gram, NgramIndex, shingles, tokens
from workbench.tasks.scaffold import scaffold_texts

N, WEAK_N = 13, 8
MAX_FILE, MAX_FILES_BYTES = 256 << 10, 4 << 20  # of one file, and of one task's files; more is left out
_TEXT = (".md", ".txt", ".rst", ".markdown")
_NO_PROSE = ("test.sh", "Dockerfile")  # the managed verifier and build files are alike by design


@dataclass(frozen=True)
class Document:
    """A task as text. files: path inside the task → text of its tests, solution and fixtures."""

    name: str
    instruction: str
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Match:
    """Shared windows with one held-out task. file: "" for this task's instruction; held_file: "" for the held-out one's.
    count: windows shared; text: one run of shared tokens, the longest."""

    held_out: str
    count: int
    text: str
    file: str = ""
    held_file: str = ""


@dataclass(frozen=True)
class ContaminationReport:
    """hit: the gate. matches: the held-out instructions that share a 13-gram, most windows first.

    weak_matches: the same for 8-grams. coverage: the largest share, over held-out instructions, of their tokens that lie in
    an 8-gram shared with this instruction; covered: that task. jaccard: the largest Jaccard index between the sets of token
    3-grams of this instruction and of a held-out one; nearest: that task. files: overlap of tests, solution and fixtures.
    tokens: of this instruction (under 13 nothing can match).
    """

    name: str
    hit: bool
    matches: tuple[Match, ...] = ()
    weak_matches: tuple[Match, ...] = ()
    coverage: float = 0.0
    covered: str = ""
    jaccard: float = 0.0
    nearest: str = ""
    files: tuple[Match, ...] = ()
    tokens: int = 0

    @property
    def message(self) -> str:
        """What was found and what to do, in one line; "" without a hit."""
        if not self.hit:
            return ""
        worst = self.matches[0]
        others = f" (and with {len(self.matches) - 1} more)" if len(self.matches) > 1 else ""
        return (
            f"instruction.md shares {worst.count} window(s) of {N} tokens with the held-out task {worst.held_out}{others}: "
            f"“{worst.text[:300]}”. Build a different task; new words for the same one do not make it new"
        )

    def to_row(self) -> dict[str, Any]:
        row = {k: v for k, v in self.__dict__.items() if k not in ("matches", "weak_matches", "files")}
        for key in ("matches", "weak_matches", "files"):
            row[key] = [dict(match.__dict__) for match in getattr(self, key)]
        return row


class HeldOut:
    """Held-out tasks, indexed once and asked many times (safe from several threads: asking changes nothing)."""

    def __init__(self, documents: Iterable[Document], *, scaffold: Sequence[str] | None = None):
        """scaffold: texts that all tasks share by declaration; default: the instructions of our own scaffold."""
        self.documents = tuple(documents)
        if not self.documents:
            raise ValueError("no held-out task or text: a check against nothing would pass everything")
        aside = scaffold_texts() if scaffold is None else scaffold
        self._words = [tokens(d.instruction) for d in self.documents]
        self._strong, self._weak = NgramIndex(N), NgramIndex(WEAK_N)
        self._files = NgramIndex(N, exact=False)
        for index in (self._strong, self._weak, self._files):
            index.set_aside(aside)
        self._shingles = [shingles(d.instruction) for d in self.documents]
        self._with_shingle: dict[Gram, list[int]] = {}
        self._file_names: list[tuple[str, str]] = []
        for number, document in enumerate(self.documents):
            self._add(number, document)

    def _add(self, number: int, document: Document) -> None:
        self._strong.add(number, self._words[number])
        self._weak.add(number, self._words[number])
        for shingle in self._shingles[number]:
            self._with_shingle.setdefault(shingle, []).append(number)
        for path, text in document.files.items():
            self._files.add(len(self._file_names), tokens(text))
            self._file_names.append((document.name, path))

    @classmethod
    def from_folder(cls, path: str | Path, *, scaffold: Sequence[str] | None = None) -> HeldOut:
        """From a folder of Harbor tasks (at any depth), or, when it has none, of text and Markdown files, one text each.

        Links are not followed and nothing is executed. FileNotFoundError without the folder, ValueError when nothing in it
        can be read as held-out.
        """
        from tqdm import tqdm

        root = Path(path)
        if not root.is_dir():
            raise FileNotFoundError(f"{root}: no such folder of held-out tasks")
        found = list(tqdm(_documents(root), desc="held-out tasks", unit=" tasks", delay=2, leave=False))
        if not any(document.instruction.strip() for document in found):
            raise ValueError(f"{root}: neither Harbor tasks (instruction.md) nor text files ({', '.join(_TEXT)}) in it")
        return cls(found, scaffold=scaffold)

    @property
    def too_short(self) -> list[str]:
        """Held-out instructions of fewer than 13 tokens: the gate cannot see copies of them."""
        return [d.name for d, words in zip(self.documents, self._words, strict=True) if len(words) < N]

    def hit(self, instruction: str) -> bool:
        """The gate alone."""
        return self._strong.touches(tokens(instruction))

    def check(self, task: Task | Document | str) -> ContaminationReport:
        """The gate and everything that is reported beside it. A str is an instruction without files."""
        document = as_document(task)
        words = tokens(document.instruction)
        matches = self._matches(self._strong, words)
        coverage, covered = self._coverage(words)
        jaccard, nearest = self._nearest(document.instruction)
        return ContaminationReport(
            name=document.name,
            hit=bool(matches),
            matches=matches,
            weak_matches=self._matches(self._weak, words),
            coverage=coverage,
            covered=covered,
            jaccard=jaccard,
            nearest=nearest,
            files=tuple(self._file_matches(document)),
            tokens=len(words),
        )

    def _matches(self, index: NgramIndex, words: Sequence[str], file: str = "") -> tuple[Match, ...]:
        starts: dict[int, list[int]] = {}
        for position, places in index.find(words):
            for number in {document for document, _ in places}:
                starts.setdefault(number, []).append(position)
        named = (
            (self.documents[number].name, "") if index is not self._files else self._file_names[number]
            for number in starts
        )
        found = [
            Match(name, len(at), _longest(words, at, index.n), file, held_file)
            for (name, held_file), at in zip(named, starts.values(), strict=True)
        ]
        return tuple(sorted(found, key=lambda m: (-m.count, m.held_out, m.held_file)))

    def _coverage(self, words: Sequence[str]) -> tuple[float, str]:
        covered: dict[int, set[int]] = {}
        for _, places in self._weak.find(words):
            for document, position in places:
                covered.setdefault(document, set()).update(range(position, position + WEAK_N))
        shares = [(len(at) / len(self._words[number]), number) for number, at in covered.items()]
        share, number = max(shares, key=lambda s: (s[0], -s[1]), default=(0.0, -1))
        return share, self.documents[number].name if shares else ""

    def _nearest(self, instruction: str) -> tuple[float, str]:
        own = shingles(instruction)
        shared = Counter(number for shingle in own for number in self._with_shingle.get(shingle, ()))
        near = [(count / (len(own) + len(self._shingles[n]) - count), n) for n, count in shared.items()]
        index, number = max(near, key=lambda s: (s[0], -s[1]), default=(0.0, -1))
        return index, self.documents[number].name if near else ""

    def _file_matches(self, document: Document) -> Iterator[Match]:
        for path, text in document.files.items():
            words = tokens(text)
            yield from self._matches(self._strong, words, path)
            yield from self._matches(self._files, words, path)


def _longest(words: Sequence[str], starts: Sequence[int], n: int) -> str:
    """The longest run of tokens that consecutive windows cover."""
    best = (0, 0)
    begin = end = starts[0]
    for start in [*starts[1:], -1]:
        if start == end + 1:
            end = start
            continue
        best = max(best, (end - begin, -begin))
        begin = end = start
    return " ".join(words[-best[1] : -best[1] + best[0] + n])


def as_document(task: Task | Document | str) -> Document:
    """A task's instruction with the texts of its tests, solution and fixtures."""
    if isinstance(task, Document):
        return task
    if isinstance(task, str):
        return Document("", task)
    return Document(task.name, task.instruction, _texts(task.path))


def _texts(root: Path) -> dict[str, str]:
    """Text files of a task but the instructions: not links, not binary, at most 256 KiB each and 4 MiB in all."""
    found: dict[str, str] = {}
    left = MAX_FILES_BYTES
    for entry in sorted(walk(root), key=lambda e: e.path):
        parts = entry.path.split("/")
        wanted = parts[0] in ("tests", "solution", "environment", "steps") and parts[-1] not in (
            "instruction.md",
            *_NO_PROSE,
        )
        if not wanted or entry.kind != "file" or not 0 < entry.size <= min(MAX_FILE, left) or any(map(ignored, parts)):
            continue
        data = read_plain(root / entry.path, MAX_FILE)
        if b"\0" not in data:
            found[entry.path] = data.decode("utf-8", "replace")
            left -= len(data)
    return found


def _documents(root: Path) -> Iterator[Document]:
    """Held-out documents of a folder, by name. Whatever stands outside of the tasks is not read when there are tasks."""
    paths = sorted(entry.path for entry in walk(root, max_files=1_000_000) if entry.kind == "file")
    configured = {_folder(path) for path in paths if path.rpartition("/")[2] == "task.toml"}
    tasks: dict[str, list[str]] = {}
    for path in paths:
        if path.rpartition("/")[2] == "instruction.md":
            owner = _owner(path, configured)
            if owner is not None:
                tasks.setdefault(owner, []).append(path)
    for folder, instructions in sorted(tasks.items()):
        text = "\n\n".join(strip_canary(_read(root / path)) for path in instructions)
        yield Document(folder or root.name, text, _texts(root / folder))
    if not tasks:
        for path in paths:
            if path.lower().endswith(_TEXT):
                yield Document(path, _read(root / path))


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _owner(path: str, configured: set[str]) -> str | None:
    """The task folder that an instruction.md belongs to; None for a fixture of that name inside of a task."""
    folder = _folder(path)
    parts = folder.split("/")
    if len(parts) >= 2 and parts[-2] == "steps" and "/".join(parts[:-2]) in configured:
        return "/".join(parts[:-2])
    above = {"/".join(parts[:end]) for end in range(len(parts))}
    return None if folder not in configured and above & configured else folder


def _read(path: Path) -> str:
    return read_plain(path, 16 << 20).decode("utf-8", "replace")
