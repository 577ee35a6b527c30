"""What a session of a run has done and spent so far, and the limits of what it may cost and how long it may take. Both stop
a run as Ctrl-C does: answers under way come in and are kept, and the same command goes on later."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from proctor import core
from proctor.core import ConfigurationError, Usage, dollars
from proctor.runs.schema import REJECTED

_ID = re.compile(r"\b(?:req[-_]\w+|(?=[0-9a-f-]*\d)(?=[0-9a-f-]*[a-f])[0-9a-f-]{8,})\b")
_MAX_CAUSES = 50


@dataclass
class Tally:
    """Progress so far; counts only answers that are on disk."""

    total: int = 0
    by_status: dict[core.Status, int] = field(default_factory=lambda: dict.fromkeys(core.Status, 0))
    unreadable: int = 0
    unreadable_example: str = ""
    cut_off: int = 0
    """Replies that the model's token limit ended."""
    thoughts_in_text: int = 0
    """Replies with thoughts in their text."""
    without_confidence: int = 0
    """Answers whose confidence was asked for and is missing."""
    confidence_example: str = ""
    """An example of the reasons."""
    corrected: int = 0
    """Replies in which a later declared answer corrects an earlier one."""
    without_schema: int = 0
    """Orders that were requested as text, since the server rejected the schema."""
    schema_rejection: str = ""
    """An example of the reasons."""
    error_example: str = ""
    usage: core.Usage = field(default_factory=core.Usage)
    started: float = field(default_factory=time.monotonic)
    stopped: str = ""
    paused: tuple[str, ...] = ()
    """The runs that are paused."""
    failures_in_a_row: int = 0
    pending: int = 0
    """Items whose replies come later (batches)."""
    last_reason: str = ""
    rejected: int = 0
    """Failed answers whose requests the server would reject again."""
    rejected_example: str = ""
    causes: dict[str, int] = field(default_factory=dict)
    """How many answers failed or were errors of the system, by cause."""

    @property
    def done(self) -> int:
        """Answers on disk, failed ones included."""
        return sum(self.by_status.values())

    @property
    def remaining(self) -> int:
        """Items without an answer."""
        return self.total - self.done

    @property
    def rate(self) -> float:
        """Answers per second since the start."""
        return self.done / max(1e-9, time.monotonic() - self.started)

    def add(self, answer: core.Answer) -> None:
        self.by_status[answer.status] += 1
        if answer.status is core.Status.ANSWERED and answer.parsed is None:
            self.unreadable += 1
            self.unreadable_example = self.unreadable_example or f"{answer.item_id}: {answer.problem}"
        self.cut_off += answer.extra.get("cut_off") is True
        self.thoughts_in_text += answer.extra.get("thoughts_in_text") is True
        if (sure := answer.confidence) is not None and sure.missing and answer.status is core.Status.ANSWERED:
            self.without_confidence += 1
            self.confidence_example = self.confidence_example or f"{answer.item_id}: {sure.missing}"
        self.corrected += answer.extra.get("corrected") is True
        if why := answer.extra.get("schema_rejected"):
            self.without_schema += 1
            self.schema_rejection = self.schema_rejection or str(why)
        if answer.status is core.Status.ERROR:
            self.error_example = self.error_example or f"{answer.item_id}: {answer.reason}"
        self.usage += answer.usage
        if answer.status in {core.Status.FAILED, core.Status.ERROR}:
            cause = _cause(answer.reason)
            cause = cause if cause in self.causes or len(self.causes) < _MAX_CAUSES else "other reasons"
            self.causes[cause] = self.causes.get(cause, 0) + 1
        failed = answer.status is core.Status.FAILED
        self.failures_in_a_row = self.failures_in_a_row + 1 if failed else 0
        if failed and answer.extra.get(REJECTED):
            self.rejected += 1
            self.rejected_example = self.rejected_example or f"{answer.item_id}: {answer.reason}"
        elif failed:
            self.last_reason = answer.reason

    @property
    def only_errors(self) -> int:
        """The number of answers if every one is an error of the system or failed, with at least one error; else 0."""
        broken = self.by_status[core.Status.ERROR] + self.by_status[core.Status.FAILED]
        return broken if broken == self.done and self.by_status[core.Status.ERROR] else 0


def _cause(reason: str) -> str:
    """A reason without ids and counts, so that equal failures count as one cause.

    >>> _cause("openai:gpt-5.2: HTTP 500: request req_7f3a1 failed (after 3 tries)")
    'openai:gpt-5.2: HTTP 500: request … failed'
    """
    plain = re.sub(r" \(after \d+ tries\)$", "", reason)
    return _ID.sub("…", plain)


_ROUNDING = 1e-9  # of sums of dollars: ten answers at 0.01 are 0.1


class Spending:
    """What one session has spent on answers, also on those that are not kept, with the limit in US dollars (None: none).

    >>> spending = Spending(0.02)
    >>> spending.add(Usage(requests=1, cost_usd=0.015)), spending.add(Usage(requests=1, cost_usd=0.015))
    ('', 'stopped at $0.0300, --max-cost $0.0200')
    """

    def __init__(self, limit_usd: float | None) -> None:
        self._limit = limit_usd
        self._spent = 0.0

    def add(self, usage: Usage) -> str:
        """Counts an answer. Returns why the session stops, "" while it goes on. Raises `ConfigurationError` for an unknown
        cost: the limit can't be kept then."""
        if self._limit is None or not usage.requests:
            return ""
        if usage.cost_usd is None:
            raise ConfigurationError(
                "the cost of an answer is unknown, so that --max-cost can't be kept: give --price INPUT/OUTPUT (answers "
                "under way are kept)"
            )
        self._spent += usage.cost_usd
        if self._spent < self._limit * (1 - _ROUNDING):
            return ""
        return f"stopped at {dollars(self._spent)}, --max-cost {dollars(self._limit)}"


def over_limit(usage: Usage, limit_usd: float | None) -> str:
    """Why a pass of a judge stops, by what it has used so far; "" while it goes on. An unknown cost stops it, too: the limit
    can't be kept then.

    >>> over_limit(Usage(requests=3, cost_usd=0.3), 0.5), over_limit(Usage(requests=3, cost_usd=0.6), 0.5)
    ('', 'stopped at $0.6000, --max-cost $0.5000')
    """
    if limit_usd is None or not usage.requests:
        return ""
    if usage.cost_usd is None:
        return (
            "stopped: the cost of a judgement is unknown, so that --max-cost can't be kept: give --price INPUT/OUTPUT"
        )
    over = usage.cost_usd >= limit_usd * (1 - _ROUNDING)
    return f"stopped at {dollars(usage.cost_usd)}, --max-cost {dollars(limit_usd)}" if over else ""


async def stop_after(seconds: float | None, stop: Callable[[str], None]) -> None:
    """Calls `stop` with the reason after this many seconds; never for None."""
    if seconds is not None:
        await asyncio.sleep(seconds)
        stop(f"stopped after {seconds:g} s (--max-time)")
