"""A page's words: as a reader sees them, and as simple encodings may hide them from a filter."""

from __future__ import annotations

import base64
import binascii
import codecs
import gzip
import html
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from urllib.parse import unquote_plus

MAX_UNPACKED = 512 << 10  # bytes that are read of a page, packed or not
_TAG = re.compile(r"<[^<>]{0,2000}>")
_UNSEEN = (("<script", "</script"), ("<style", "</style"), ("<!--", "-->"))
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{40,}={0,2}(?:\s+[A-Za-z0-9+/_-]{8,}={0,2})*")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}[\s:]?){40,}")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})|\\n|\\t")


def unpacked(data: bytes, headers: Mapping[str, str]) -> bytes:
    """The body without its content encoding; of a long one, its beginning."""
    for _ in range(3):  # packed more than once
        if data[:2] == b"\x1f\x8b":
            data = _inflate(data, 31)
        elif "deflate" in headers.get("content-encoding", "").lower() and data:
            plain = _inflate(data, 15) or _inflate(data, -15)
            return plain or data[:MAX_UNPACKED]
        else:
            break
    return data[:MAX_UNPACKED]


def _inflate(data: bytes, window: int) -> bytes:
    try:
        return zlib.decompressobj(window).decompress(data, MAX_UNPACKED)
    except (zlib.error, gzip.BadGzipFile):
        return b""


def text_of(data: bytes, headers: Mapping[str, str]) -> str:
    """Bytes as characters: by a byte order mark, the header's charset, else UTF-8."""
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if data.startswith(mark):
            return data.decode(name, "replace")
    charset = re.search(r"charset=[\"']?([\w.-]+)", headers.get("content-type", ""), re.I)
    name = charset[1] if charset else "utf-8"
    try:
        return data.decode(name, "replace")
    except LookupError:
        return data.decode("utf-8", "replace")


def visible_text(data: bytes, headers: Mapping[str, str]) -> str:
    """What a reader sees: tags and scripts taken out, entities undone, blank lines joined."""
    text = html.unescape(_TAG.sub(" ", _without_unseen(text_of(unpacked(data, headers), headers))))
    return re.sub(r"[ \t]*\n\s*\n\s*", "\n\n", re.sub(r"[ \t]+", " ", text)).strip()


def _without_unseen(text: str) -> str:
    """Without scripts, styles and comments; each is found by its ends, so that no page takes more than linear time."""
    for begin, end in _UNSEEN:
        low, kept, at = text.lower(), [], 0
        while (start := low.find(begin, at)) >= 0:
            kept.append(text[at:start])
            stop = low.find(end, start)
            at = stop if stop >= 0 else len(text)
            at += len(end) if stop >= 0 and end == "-->" else 0
        text = "".join([*kept, text[at:]])
    return text


def readings(data: bytes, headers: Mapping[str, str]) -> Iterator[str]:
    """The page as it stands, as seen, and with entities, percent signs, escapes, base64, hexadecimal, ROT13, reversal and
    UTF-16 without a mark undone; what base64 and hexadecimal hold is read the same way once more."""
    raw = unpacked(data, headers)
    text = text_of(raw, headers)
    yield from _plain_readings(text)
    if b"\0" in raw[:200]:
        yield raw.decode("utf-16-le", "replace")
        yield raw.decode("utf-16-be", "replace")
    for hidden in _hidden(text):
        inner = unpacked(hidden, {}).decode("utf-8", "replace")
        yield from _plain_readings(inner)
        for deeper in _hidden(inner):
            yield deeper.decode("utf-8", "replace")


def _plain_readings(text: str) -> Iterator[str]:
    yield text
    seen = html.unescape(html.unescape(_TAG.sub(" ", text)))
    yield seen
    yield _TAG.sub(" ", seen)  # tags written as entities
    yield html.unescape(_TAG.sub("", text))  # words cut by tags
    yield unquote_plus(unquote_plus(seen))
    yield _ESCAPE.sub(_escaped, text)
    yield codecs.encode(seen, "rot13")
    yield seen[::-1]
    yield _joined(text)


def _joined(text: str) -> str:
    """The strings of a JSON document, in order."""
    try:
        found: list[str] = []
        _strings(json.loads(text), found)
    except (ValueError, RecursionError):
        return ""
    return " ".join(found)


def _strings(value: object, found: list[str]) -> None:
    if isinstance(value, str):
        found.append(value)
    elif isinstance(value, list):
        for item in value:
            _strings(item, found)
    elif isinstance(value, dict):
        for item in value.values():
            _strings(item, found)


def _escaped(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    return chr(int(code, 16)) if code else " "


def _hidden(text: str) -> Iterator[bytes]:
    for found in list(_BASE64.finditer(text))[:200]:
        packed = re.sub(r"\s+", "", found[0]).translate(str.maketrans("-_", "+/")).rstrip("=")
        try:
            yield base64.b64decode(packed[: len(packed) // 4 * 4])
        except (binascii.Error, ValueError):
            continue
    for found in list(_HEX.finditer(text))[:200]:
        try:
            yield bytes.fromhex(re.sub(r"[\s:]", "", found[0]))
        except ValueError:
            continue
