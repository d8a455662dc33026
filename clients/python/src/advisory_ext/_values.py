"""What callers pass: names and times. Everything is checked before it is sent."""
from __future__ import annotations

import hashlib
import math
import re
from datetime import timedelta
from typing import Union
from uuid import UUID

Name = Union[str, int, UUID]
Time = Union[timedelta, float, str]     # a number is in seconds


def key(*names: Name) -> int:
    """The key of a name, as advisory.key() computes it on the server.

    key('billing', 'invoice:42'), or key('nightly') for a name without a namespace: the first eight
    bytes of SHA-256.
    """
    if len(names) not in (1, 2):
        raise TypeError('key() takes a namespace and a name, or only a name')
    text = '\0'.join(map(check_name, names))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], 'big', signed=True)


NAMES = '%s::text, %s::text'


def in_seconds(expression: str) -> str:
    """An interval or a point in time of SQL as a number of seconds."""
    return f'extract(epoch FROM {expression})::float8'


def check_name(name: Name) -> str:
    """A name as text. Ids may be numbers or UUIDs; 42 and '42' are the same name."""
    if isinstance(name, (int, UUID)) and not isinstance(name, bool):
        return str(name if isinstance(name, UUID) else int(name))       # also of an Enum
    if not isinstance(name, str):
        raise TypeError(f'a namespace or a name is a str, an int or a UUID, not {name!r}')
    if not name or '\0' in name or re.search('[\ud800-\udfff]', name):
        raise ValueError(
            f'a name is not empty, without zero characters or lone surrogates: {name!r}')
    return name


def check_time(value: Time, what: str) -> str:
    """A time as PostgreSQL reads it. A string has a unit, because PostgreSQL takes '5000' for
    seconds, and others for milliseconds.
    """
    if isinstance(value, str) and not re.fullmatch(r'[\s\d.eE+-]*', value):
        return value
    if isinstance(value, bool) or not isinstance(value, (timedelta, int, float)):
        raise TypeError(f"{what} is a timedelta, a number of seconds, "
                        f"or a str with a unit, such as '5s', not {value!r}")
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if not 0 <= seconds < math.inf:
        raise ValueError(f'{what} is at least 0, and finite, not {value!r}')
    return f'{math.ceil(round(seconds * 1_000_000) / 1000)} ms'


def check_timeout(value: Time | None, what: str = 'timeout') -> str | None:
    """The same where None means: no limit."""
    return None if value is None else check_time(value, what)
