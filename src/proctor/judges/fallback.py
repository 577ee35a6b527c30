"""A judge with another one behind it, for the answers on which the first gives no verdict."""

from __future__ import annotations

from proctor.core import (
    Answer,
    InfrastructureError,
    Item,
    Metric,
    NoVerdictError,
    RefusalError,
    Score,
    Scorer,
    SystemFaultError,
)
from proctor.judges.unresolved import BY_FALLBACK, UNRESOLVED

_NO_VERDICT = (InfrastructureError, RefusalError, SystemFaultError)


class WithFallback:
    """Asks `fallback` where `judge` declines, gives nothing of the form asked for, or (a panel) has no majority.

    Its marks stand under the judge's own name, so that every answer of a run has one by the same scorer; the metric
    `unresolved` says of which answers the verdict is the fallback's, and each mark's vote names the judge that gave it.
    """

    def __init__(self, judge: Scorer, fallback: Scorer) -> None:
        self._judge = judge
        self._fallback = fallback

    @property
    def name(self) -> str:
        """The judge's."""
        return self._judge.name

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The judge's."""
        return self._judge.metrics

    def applies(self, item: Item) -> bool:
        """To what the judge applies to."""
        return self._judge.applies(item)

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        """The judge's scores, or the fallback's where it has no verdict. Raises `InfrastructureError` where neither has one."""
        try:
            own = await self._judge.score(item, answer)
        except _NO_VERDICT:
            return self._taken(item, [], await self._fallback.score(item, answer))
        if not _open(own):
            return own
        try:
            other = await self._fallback.score(item, answer)
        except _NO_VERDICT:
            return own
        return own if _open(other) else self._taken(item, own, other)

    def _taken(self, item: Item, own: list[Score], other: list[Score]) -> list[Score]:
        """The fallback's marks under the judge's name; single votes stay under the names of those who cast them."""
        if _open(other):
            raise NoVerdictError(f"{self._fallback.name}: no verdict either")
        votes = [one for one in own if one.metric != UNRESOLVED.name and one.scorer != self.name]
        marks = [
            one.model_copy(update={"scorer": self.name}) if one.scorer == self._fallback.name else one
            for one in other
            if one.metric != UNRESOLVED.name
        ]
        how = Score(item_id=item.id, metric=UNRESOLVED.name, value=0.0, scorer=self.name, label=BY_FALLBACK)
        return [*marks, *votes, how]


def _open(scores: list[Score]) -> bool:
    return any(one.metric == UNRESOLVED.name and one.value == 1 for one in scores)
