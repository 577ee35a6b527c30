"""Tells a server that rejects every request from items that it rejects, by what comes back."""

from __future__ import annotations

import asyncio
import re

from proctor.core import ConfigurationError, count_of

FEW = 5
"""How many different items must be rejected alike, with no answer between, to count as a configuration."""

_MASKED = re.compile(
    r"""
    "[^"]*" | '[^']*' | `[^`]*`                 # quoted values
    | \b(?:req|chatcmpl|run|trace|id)[-_]\w+    # ids of requests
    | \b[0-9a-f]{8}[0-9a-f-]*\b                 # hashes
    | -?\d(?:[\d.,:_]*\d)?                       # numbers
    """,
    re.VERBOSE,
)


class RejectionWatch:
    """Watches the first requests of one run until one is answered. Before each request comes `begin`, and after it what came back: `answered`, `rejected` or `neither`.

    A rejection that a retry can't resolve (`ProctorError.rejected`), of the same words but for numbers, ids and quoted
    values, for `FEW` different items and with no answer, is a configuration: `fault` is the error to stop with. While
    others are under way nothing is decided: `begin` waits for them, since one of them may be answered. After an answer
    the watch is over: what is rejected then is the items' fault.

    Rejections of what is in an item ("item": a context too long, media that can't be read) must come from `FEW` groups,
    too, or from all of them if there are fewer (`groups`): many questions on one long video are one item's fault.
    """

    def __init__(self, groups: int = 1) -> None:
        self.fault: ConfigurationError | None = None
        self._groups = max(1, min(FEW, groups))
        self._over = False
        self._under_way = 0
        self._alike: dict[str, tuple[set[str], set[str]]] = {}
        self._suspect = ""
        self._decided = asyncio.Event()
        self._decided.set()

    async def begin(self) -> None:
        """Waits while a decision is open. Raises `fault`, if there is one."""
        while not self._decided.is_set():
            await self._decided.wait()
        if self.fault is not None:
            raise self.fault
        self._under_way += 1

    @property
    def over(self) -> bool:
        """Whether an answer came, so that nothing is watched any more."""
        return self._over

    def answered(self) -> None:
        """An answer came back."""
        self._over = True
        self._ended()

    def rejected(self, item: str, group: str, *, kind: str, reason: str) -> None:
        """A rejection came back, of the kind of `ProctorError.rejected`, with the error's message."""
        items, groups = self._alike.setdefault(_words(reason), (set(), set()))
        items.add(item)
        groups.add(group)
        if len(items) >= FEW and len(groups) >= (self._groups if kind == "item" else 1):
            self._suspect = self._suspect or reason
        self._ended()

    def neither(self) -> None:
        """Something else came back, or nothing was asked."""
        self._ended()

    def _ended(self) -> None:
        self._under_way -= 1
        if self._over or not self._suspect:
            self._decided.set()
        elif self._under_way:
            self._decided.clear()
        else:
            count = len(self._alike[_words(self._suspect)][0])
            self.fault = self.fault or ConfigurationError(
                f"{self._suspect} (the same for the first {count_of(count, 'item')} asked, and no answer: change the "
                "settings or the server)"
            )
            self._decided.set()


def _words(reason: str) -> str:
    """The words of a rejection without what differs from item to item.

    >>> _words("m: HTTP 400: request req_7f3a has 4390 tokens, 'video' is too long")
    'm: HTTP …: request … has … tokens, … is too long'
    """
    return _MASKED.sub("…", reason)
