"""Token n-grams of texts: the index behind the contamination check, and likeness of two instructions.

Tokens are maximal runs of letters and digits of any script (str.isalnum), lower-cased, after NFKC and without invisible
format characters, so that full-width letters or a zero-width space inside a word hide nothing. Everything else, the
underscore too, only separates. Windows move by one token. Look-alike letters of another script are not unified.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

Gram = tuple[str, ...]
_TOKEN = re.compile(r"[^\W_]+")
SHINGLE = 3


def tokens(text: str) -> list[str]:
    """The tokens of a text, in order."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
        text = "".join(c for c in text if unicodedata.category(c) != "Cf")
    return _TOKEN.findall(text.lower())


def grams(words: Sequence[str], n: int) -> Iterator[Gram]:
    """Every window of n tokens, in order; none when there are fewer than n."""
    return zip(*(words[i:] for i in range(n)), strict=False)


@dataclass
class NgramIndex:
    """Which documents hold which n-gram, and where.

    exact: grams are kept as they are, so a hit is never an accident. Otherwise their 64-bit hashes of this process are
    kept, a third of the memory: for large files, where a false hit (chance under 1e-6 even for 1e7 grams looked up among
    1e6) would only be reported. Grams of texts that were `set_aside` are neither stored nor found.
    """

    n: int = 13
    exact: bool = True
    _places: dict[Hashable, list[tuple[int, int]]] = field(default_factory=dict, repr=False)
    _aside: set[Hashable] = field(default_factory=set, repr=False)

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"n = {self.n}: a window has at least one token")

    def __len__(self) -> int:
        """Distinct n-grams."""
        return len(self._places)

    def set_aside(self, texts: Iterable[str]) -> None:
        """Declare text that everyone shares. Only windows that lie wholly inside of one of the texts are set aside."""
        for text in texts:
            self._aside.update(self._keys(tokens(text)))
        for key in self._aside & self._places.keys():
            del self._places[key]

    def add(self, document: int, words: Sequence[str]) -> None:
        """Index a document's tokens under its number."""
        for position, key in enumerate(self._keys(words)):
            if key not in self._aside:
                self._places.setdefault(key, []).append((document, position))

    def touches(self, words: Sequence[str]) -> bool:
        """Whether any window is in the index; the fastest question."""
        return not self._places.keys().isdisjoint(self._keys(words))

    def find(self, words: Sequence[str]) -> Iterator[tuple[int, list[tuple[int, int]]]]:
        """(position here, [(document, position there), …]) of each window that is in the index."""
        places = self._places
        for position, key in enumerate(self._keys(words)):
            if key in places:
                yield position, places[key]

    def _keys(self, words: Sequence[str]) -> Iterator[Hashable]:
        return grams(words, self.n) if self.exact else map(hash, grams(words, self.n))


def shingles(text: str, n: int = SHINGLE) -> frozenset[Gram]:
    """The set of a text's n-grams; of a text with fewer than n tokens, the one short gram that it is."""
    words = tokens(text)
    return frozenset(grams(words, n)) if len(words) >= n else frozenset([tuple(words)] if words else [])


def similarity(a: str, b: str, n: int = SHINGLE) -> float:
    """Jaccard index, in [0, 1], of the sets of token 3-grams of two texts: 1 for equal token sequences, near 0 for
    unrelated ones. Two empty texts are alike (1.0)."""
    left, right = shingles(a, n), shingles(b, n)
    return len(left & right) / len(left | right) if left or right else 1.0
