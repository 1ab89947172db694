"""Times as text, the same on every machine: no locale, no time zone, proleptic Gregorian days."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

from workbench.worlds import WorldError

MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
_DIRECTIVES = {
    "%Y": r"(?P<Y>\d{4})",
    "%y": r"(?P<y>\d{2})",
    "%m": r"(?P<m>\d{2})",
    "%d": r"(?P<d>\d{2})",
    "%H": r"(?P<H>\d{2})",
    "%M": r"(?P<M>\d{2})",
    "%S": r"(?P<S>\d{2})",
    "%b": rf"(?P<b>{'|'.join(MONTHS)})",
}


def parse(text: str, form: str) -> datetime:
    """The time that a text says in this format (directives %Y %y %m %d %H %M %S %b). WorldError when it says none."""
    parts = re.split(r"(%[A-Za-z])", form)
    pattern = "".join(_DIRECTIVES.get(part, re.escape(part)) for part in parts)
    found = re.fullmatch(pattern, str(text))
    if not found:
        raise WorldError(f"{text!r} is not a time of the format {form!r}")
    part = found.groupdict()
    month = MONTHS.index(part["b"]) + 1 if part.get("b") else int(part.get("m") or 1)
    year = int(part["Y"]) if part.get("Y") else 2000 + int(part.get("y") or 0)
    clock = [int(part.get(sign) or 0) for sign in "HMS"]
    try:
        return datetime(year, month, int(part.get("d") or 1), *clock)
    except ValueError as error:
        raise WorldError(f"{text!r}: {error}") from None


def write(moment: datetime, form: str) -> str:
    values = {
        "%Y": f"{moment.year:04d}",
        "%y": f"{moment.year % 100:02d}",
        "%m": f"{moment.month:02d}",
        "%d": f"{moment.day:02d}",
        "%H": f"{moment.hour:02d}",
        "%M": f"{moment.minute:02d}",
        "%S": f"{moment.second:02d}",
        "%b": MONTHS[moment.month - 1],
    }
    return re.sub(r"%[A-Za-z]", lambda found: values.get(found[0], found[0]), form)


def reformat(text: str, old: str, new: str) -> str:
    return write(parse(text, old), new)


def shift(value: Any, form: str, seconds: int) -> Any:
    """A time moved by whole seconds; the format "epoch" is seconds since 1970, as text or number."""
    if form == "epoch":
        return type(value)(int(value) + seconds)
    return write(parse(value, form) + timedelta(seconds=seconds), form)
