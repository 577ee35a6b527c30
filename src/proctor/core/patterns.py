"""Patterns that are compiled at their first use: compiling all that read replies took a fifth of every start."""

from __future__ import annotations

import re
from typing import Any, cast


class _Deferred:
    """What `re.compile` gives, made when its first attribute is asked for."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._source = pattern, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # copying and inspecting compile nothing
        value = getattr(re.compile(*self._source), name)
        self.__dict__[name] = value
        return value


def deferred(source: str, flags: int = 0) -> re.Pattern[str]:
    """A pattern as `re.compile` makes it, but that a wrong one raises `re.error` only at its first use.

    >>> word = deferred("[a-z]+", re.IGNORECASE)
    >>> word.findall("Cut the duct"), word.pattern
    (['Cut', 'the', 'duct'], '[a-z]+')
    """
    return cast("re.Pattern[str]", _Deferred(source, flags))
