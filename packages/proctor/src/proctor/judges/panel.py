"""Several judges of one answer: a `panel` that decides by majority, and a judge with a fallback.

Source: the evaluation of the ORena SAVE FOCUS challenge ("up to three LLMs decide via majority vote whether the
proposed answer matches the reference"). Its document does not define what a tie or a missing judgement means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from proctor import core
from proctor.core.formats import FreeTextFormat
from proctor.judges.registry import OfSeveral
from proctor.judges.verdict_judges import PROMPTS, BinaryJudge, RightOrWrong
from proctor.judges.verdict_metrics import (
    BY_FALLBACK,
    JUDGEMENT_MISSING,
    PANEL_ACCURACY,
    RESOLVED,
    RESOLVED_SHORT,
    SINGLE_JUDGE,
    TIE,
    UNRESOLVED,
)
from proctor.metrics import cause_of
from proctor.models import chosen_prompt

if TYPE_CHECKING:
    from proctor.models import ModelClient

_NO_VERDICT = (core.InfrastructureError, core.RefusalError, core.SystemFaultError)


class WithFallback:
    """Asks `fallback` where `judge` declines, gives no reply of the form, or (a panel) has no majority.

    All scores have the judge's own name, so that every answer of a run has scores by the same scorer. The metric
    `unresolved` labels the answers with the fallback's verdict, and each single judgement names the judge that gave it.
    """

    def __init__(self, judge: core.Scorer, fallback: core.Scorer) -> None:
        self._judge = judge
        self._fallback = fallback
        self.name = judge.name
        self.metrics = judge.metrics

    def applies(self, item: core.Item) -> bool:
        """To what the judge applies to."""
        return self._judge.applies(item)

    async def score(self, item: core.Item, answer: core.Answer) -> list[core.Score]:
        """The judge's scores, or the fallback's where it has no verdict. Raises `InfrastructureError` where neither has
        one."""
        try:
            own = await core.scored(self._judge, item, answer)
        except _NO_VERDICT:
            return self._taken(item, [], await core.scored(self._fallback, item, answer))
        if not _open(own):
            return own
        try:
            other = await core.scored(self._fallback, item, answer)
        except _NO_VERDICT:
            return own
        return own if _open(other) else self._taken(item, own, other)

    def _taken(self, item: core.Item, own: list[core.Score], other: list[core.Score]) -> list[core.Score]:
        """The fallback's scores under the judge's name; single judgements keep the names of their judges."""
        if _open(other):
            raise core.NoVerdictError(f"{self._fallback.name}: no verdict either")
        single = [score for score in own if score.metric != UNRESOLVED.name and score.scorer != self.name]
        scores = [
            score.model_copy(update={"scorer": self.name}) if score.scorer == self._fallback.name else score
            for score in other
            if score.metric != UNRESOLVED.name
        ]
        how = core.Score(item_id=item.id, metric=UNRESOLVED.name, value=0.0, scorer=self.name, label=BY_FALLBACK)
        return [*scores, *single, how]


def _open(scores: list[core.Score]) -> bool:
    return any(score.metric == UNRESOLVED.name and score.value == 1 for score in scores)


MAX_JUDGES = 3

_GIVE_UP_AFTER = 10


def decide(verdicts: Sequence[RightOrWrong | None]) -> tuple[RightOrWrong | None, str]:
    """The verdict of a panel, and its label, from one verdict per judge (None: the judgement is missing).

    The verdict is what more than half of all judges of the panel say, not only of those that gave one. It is None for
    a tie, and where a missing judgement would decide.

    >>> right, wrong = RightOrWrong.RIGHT, RightOrWrong.WRONG
    >>> decide([right, wrong, right]), decide([right, wrong])
    ((<RightOrWrong.RIGHT: 'right'>, 'resolved'), (None, 'tie'))
    >>> decide([wrong, None, wrong]), decide([right, None, wrong])
    ((<RightOrWrong.WRONG: 'wrong'>, 'resolved, a judgement missing'), (None, 'judgement missing'))
    """
    missing = sum(verdict is None for verdict in verdicts)
    for verdict in RightOrWrong:
        if 2 * sum(right_or_wrong is verdict for right_or_wrong in verdicts) > len(verdicts):
            return verdict, RESOLVED_SHORT if missing else RESOLVED
    return None, JUDGEMENT_MISSING if missing else TIE


class Panel:
    """Scores free text by the majority of up to three judges.

    An answer that did not come in time or can't be read (too long) is wrong without a call, as in the challenge. Each
    judge's judgement is cached and scored under that judge's own name, so that only a judge that joins later is asked. The
    panel's name contains all models: another panel is another scorer. Every judge is asked every time, also where two
    agree, so that the agreement between judges is not of difficult answers alone.
    """

    metrics = (PANEL_ACCURACY, UNRESOLVED, SINGLE_JUDGE)

    def __init__(self, judges: Sequence[BinaryJudge]) -> None:
        names = [judge.model for judge in judges]
        if not 1 <= len(names) <= MAX_JUDGES or len(set(names)) < len(names):
            found = ", ".join(names) or "none"
            raise core.InputError("panel", found=found, expected=f"1 to {MAX_JUDGES} different models")
        self._judges = tuple(judges)
        self.name = f"panel{judges[0].variant}[{', '.join(sorted(names))}]"

    @property
    def judges(self) -> tuple[str, ...]:
        """The names of its judges."""
        return tuple(judge.name for judge in self._judges)

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Everything that changes its verdicts."""
        return {"judges": [judge.settings for judge in sorted(self._judges, key=lambda judge: judge.name)]}

    def applies(self, item: core.Item) -> bool:
        """To free text with a reference."""
        return isinstance(item.answer, FreeTextFormat) and item.has_answer

    async def score(self, item: core.Item, answer: core.Answer) -> list[core.Score]:
        """Accuracy where the panel came to a verdict, `unresolved`, and the judgements that came.

        Raises `InfrastructureError` where no judgement came at all.
        """
        if answer.status is core.Status.FAILED:
            raise ValueError(f"item {item.id!r}: a failed answer is never scored")
        cause = cause_of(answer)
        if cause:
            return [self._accuracy(item, cause), self._unresolved(item, RESOLVED)]
        said = await asyncio.gather(*(_judgement(judge, item, answer) for judge in self._judges))
        single = [one for one in said if isinstance(one, core.Score)]
        if not single:
            asked = any(isinstance(error, core.NoVerdictError) for error in said)
            raise (core.NoVerdictError if asked else core.InfrastructureError)("; ".join(str(error) for error in said))
        verdict, how = decide([RightOrWrong(one.label) if isinstance(one, core.Score) else None for one in said])
        scores = [self._unresolved(item, how)]
        if verdict is not None:
            scores.append(self._accuracy(item, verdict.value))
        return [*scores, *single]

    def _accuracy(self, item: core.Item, label: str) -> core.Score:
        value = float(label == RightOrWrong.RIGHT.value)
        return core.Score(item_id=item.id, metric=core.ACCURACY.name, value=value, scorer=self.name, label=label)

    def _unresolved(self, item: core.Item, how: str) -> core.Score:
        value = float(how in {TIE, JUDGEMENT_MISSING})
        return core.Score(item_id=item.id, metric=UNRESOLVED.name, value=value, scorer=self.name, label=how)


async def _judgement(judge: BinaryJudge, item: core.Item, answer: core.Answer) -> core.Score | core.InfrastructureError:
    """A judge's judgement, or why there is none: a judge that fails does not stop the others."""
    try:
        return await judge.judge(item, answer)
    except core.InfrastructureError as error:
        return error


@OfSeveral
def majority_panel(
    clients: Sequence[ModelClient], judgements: core.JudgementCache, prompt: Path | None, briefing: core.Briefing
) -> core.Scorer:
    """Short answers right or wrong by the majority of up to three models (FOCUS)."""
    wording = chosen_prompt(PROMPTS["binary"], prompt)
    return Panel(
        [BinaryJudge(client, judgements, wording, briefing, give_up_after=_GIVE_UP_AFTER) for client in clients]
    )
