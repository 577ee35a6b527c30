"""Tells a server that rejects every request from items that it rejects, by what comes back."""

from __future__ import annotations

import asyncio
import re

from proctor.core import ConfigurationError, ProctorError, count_of

FEW = 5
"""How many different items must be rejected alike, with no answer between, to count as a configuration."""

_MASKED = re.compile(
    r"""
    "[^"]*" | '[^']*' | `[^`]*`                 # quoted values
    | \b(?:req|chatcmpl|run|trace|id)[-_]\w+    # ids of requests
    | \b[0-9a-f]{8}[0-9a-f-]*\b                 # hashes
    | -?\d[\d.,:_]*                             # numbers
    """,
    re.VERBOSE,
)


class RejectionWatch:
    """Watches the first requests of one run until one is answered. Before each request comes `begin`, after it `end`.

    A rejection that a retry can't mend (`ProctorError.rejected`), of the same words but for numbers, ids and quoted
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
        self._alike: dict[str, tuple[set[str], set[str], ProctorError]] = {}
        self._suspect: ProctorError | None = None
        self._decided = asyncio.Event()
        self._decided.set()

    async def begin(self) -> None:
        """Waits while a decision is open. Raises `fault`, if there is one."""
        while not self._decided.is_set():
            await self._decided.wait()
        if self.fault is not None:
            raise self.fault
        self._under_way += 1

    def end(self, item: str = "", group: str = "", *, error: ProctorError | None = None, answered: bool = False) -> None:
        """Counts what came back: an answer, a rejection, or something else (neither)."""
        self._under_way -= 1
        self._over = self._over or answered
        if not self._over and error is not None and error.rejected:
            self._count(item, group, error)
        if self._suspect is not None:
            self._decide(self._suspect)

    def _count(self, item: str, group: str, error: ProctorError) -> None:
        items, groups, first = self._alike.setdefault(_words(error), (set(), set(), error))
        items.add(item)
        groups.add(group)
        needed = self._groups if error.rejected == "item" else 1
        if len(items) >= FEW and len(groups) >= needed:
            self._suspect = self._suspect or first

    def _decide(self, suspect: ProctorError) -> None:
        if self._over:
            self._suspect = None
            self._decided.set()
        elif self._under_way:
            self._decided.clear()
        else:
            count = max(len(items) for items, _, _ in self._alike.values())
            self.fault = self.fault or ConfigurationError(
                f"{suspect} (the same for the first {count_of(count, 'item')} that were asked, and no answer: "
                "change the settings or the server)"
            )
            self._decided.set()


def _words(error: ProctorError) -> str:
    """The words of a rejection without what differs from item to item.

    >>> _words(ConfigurationError("m: HTTP 400: request req_7f3a has 4390 tokens, 'video' is too long"))
    'm: HTTP …: request … has … tokens, … is too long'
    """
    return _MASKED.sub("…", str(error))
