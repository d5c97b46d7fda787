"""Times as logs write them: numbers, ISO 8601, dates with slashes or dots."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

__all__ = ["ORDERS", "has_zone", "seconds"]

ORDERS = ("dmy", "mdy")
"""Orders of day, month and year in dates that do not begin with the year."""

_DATE, _ZONE = re.compile(r"\d[-/.]\d+[-/.]\d"), re.compile(r"(Z|UTC|GMT|[+-]\d\d(:?\d\d)?)$", re.I)
_CLOCK = (
    r"(?:[T ]+(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<part>\d{1,9}))?)?)?"
    r"\s*(?P<zone>[Zz]|UTC|GMT|[+-]\d\d:?\d\d)?"
)
_YEAR_FIRST = re.compile(rf"(?P<year>\d{{4}})([-/.])(?P<a>\d{{1,2}})\2(?P<b>\d{{1,2}}){_CLOCK}")
_YEAR_LAST = re.compile(rf"(?P<a>\d{{1,2}})([-/.])(?P<b>\d{{1,2}})\2(?P<year>\d{{4}}){_CLOCK}")


def has_zone(text: str) -> bool | None:
    """Return whether a time has a zone; None for a number, which needs none.

    Example:
        >>> has_zone("2024-05-20T13:45+02:00"), has_zone("2024-05-20"), has_zone("17")
        (True, False, None)
    """
    text = text.strip()
    if ":" not in text and "T" not in text:
        return False if _DATE.search(text) else None
    return _ZONE.search(text) is not None


def seconds(text: str, order: str | None = None) -> float:
    """Return a time in seconds, or the number that a text is; times without zone are in UTC.

    Args:
        text: A number, or a date such as 2024-05-20T13:45:00+02:00, 2024-05-20 13:45 UTC or
            2024/05/20.
        order: "dmy" for dates such as 20/05/2024 or 20.05.2024, "mdy" for 05/20/2024.

    Example:
        >>> seconds("1970-01-01 00:01 UTC"), seconds("02/01/1970", "dmy"), seconds("3.5")
        (60.0, 86400.0, 3.5)
    """
    text = text.strip()
    try:
        number = float(text)
    except ValueError:
        return _date(text, order)
    if not math.isfinite(number):
        raise ValueError(f"the time {text!r} is no number that has an order")
    return number


def _date(text: str, order: str | None) -> float:
    found = _YEAR_FIRST.fullmatch(text)
    month, day = ("a", "b") if found or order == "mdy" else ("b", "a")
    if found is None and (found := _YEAR_LAST.fullmatch(text)) and order is None:
        raise ValueError(
            f"the time {text[:60]!r} may begin with the day or the month; say which: dates=dmy "
            "or dates=mdy (--column dates=dmy)"
        )
    try:
        if found is None:
            when = datetime.fromisoformat(text)
        else:
            zone = (found["zone"] or "").upper().replace("GMT", "Z").replace("UTC", "Z")
            clock = f"{int(found['hour'] or 0):02}:{found['minute'] or '00'}:"
            clock += f"{found['second'] or '00'}.{(found['part'] or '0')[:6]:0<6}{zone}"
            date = f"{found['year']}-{int(found[month]):02}-{int(found[day]):02}"
            when = datetime.fromisoformat(f"{date}T{clock}")
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise ValueError(
            f"the time {text[:60]!r} cannot be read; write 2024-05-20T13:45:00 or a number, or "
            "take the order of the lines: time= (--column time=)"
        ) from None
