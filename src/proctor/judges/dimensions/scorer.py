"""A judge of dimensions as a scorer: its metrics are the dimensions, its scores lead to the judgement behind them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue

from proctor.core import (
    Answer,
    InfrastructureError,
    Item,
    Metric,
    RatingScheme,
    Score,
    Status,
    Vote,
    VoteBook,
    content_hash,
)
from proctor.core.formats import FreeTextFormat
from proctor.judges.dimensions.case import Case, DimensionScores, case_of
from proctor.judges.dimensions.protocol import DimensionJudge, JudgesAll
from proctor.judges.verdicts import PartialScoresError


class DimensionScorer:
    """Scores answers in free text on the dimensions of `scheme`.

    What the judge says of an answer (values, what is missing and why, broken rules, flags, disagreement, evidence, the
    keys of its models' replies) is kept in `book` as one judgement, found by its content; every score leads there. An
    answer that its system never gave (refused, too late, an error of its own) has the worst level without a call.
    """

    def __init__(self, judge: DimensionJudge, scheme: RatingScheme, book: VoteBook, images: Path | None = None) -> None:
        self._judge = judge
        self._scheme = scheme
        self._book = book
        self._images = images
        self._said: dict[Case, DimensionScores] = {}

    @property
    def name(self) -> str:
        """The judge's."""
        return self._judge.name

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The judge's."""
        return self._judge.settings

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The dimensions."""
        return self._scheme.metrics

    def applies(self, item: Item) -> bool:
        """To free text in a language that has dimensions."""
        return isinstance(item.answer, FreeTextFormat) and bool(self._scheme.of(str(item.tags.get("language", ""))))

    async def see(self, answers: Sequence[tuple[Item, Answer]]) -> None:
        """Shows a judge that takes all answers at once (`JudgesAll`) those that there are; others are asked one by one."""
        if isinstance(self._judge, JudgesAll):
            given = [one for one in answers if self.applies(one[0]) and one[1].status is Status.ANSWERED]
            cases = list(dict.fromkeys(self._case(item, answer) for item, answer in given))
            self._said |= dict(zip(cases, await self._judge.judge_all(cases), strict=True))

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        """A score for each dimension of the item's language.

        Raises `InfrastructureError` where there is none at all, `PartialScoresError` where some are missing, `ProctorError`
        for scores that are not of the scheme.
        """
        if answer.status is Status.FAILED:
            raise ValueError(f"item {item.id!r}: a failed answer is never scored")
        if answer.status is not Status.ANSWERED:
            return [
                self._score(item, one.name, one.metric.worst, label=answer.status.value)
                for one in self._scheme.of(str(item.tags.get("language", "")))
            ]
        case = self._case(item, answer)
        said = self._said.get(case) or await self._judge.judge(case)
        said.check(case, self.name)
        reasons = list(said.missing.values())
        if not said.values:
            raise InfrastructureError(reasons[0])
        vote = judgement(self.name, case, said)
        self._book.put(vote)
        scores = [self._score(item, name, value, vote_key=vote.key) for name, value in said.values.items()]
        if reasons:
            raise PartialScoresError(f"{next(iter(said.missing))}: {reasons[0]}", scores)
        return scores

    def _case(self, item: Item, answer: Answer) -> Case:
        return case_of(item, candidate_of(answer), self._scheme, self._images)

    def _score(self, item: Item, metric: str, value: float, *, label: str = "", vote_key: str = "") -> Score:
        return Score(item_id=item.id, metric=metric, value=value, scorer=self.name, label=label, vote_key=vote_key)


def candidate_of(answer: Answer) -> str:
    """The text that is judged: what the answer's format read, or what there is where it read nothing."""
    return answer.parsed if isinstance(answer.parsed, str) else answer.text


def judgement(judge: str, case: Case, said: DimensionScores) -> Vote:
    """Everything that a judge says of an answer, under the hash of just that."""
    reply: dict[str, JsonValue] = {
        "values": dict(said.values),
        "missing": dict(said.missing),
        "breaks": [*said.breaks],
        "disagreement": dict(said.disagreement),
        "evidence": [dict(one) for one in said.evidence],
        "votes": [*said.votes],
    }
    key = content_hash(
        {"judgement": judge, "item": case.id, "candidate": case.candidate, "flags": [*said.flags], **reply}
    )
    flags = tuple(dict.fromkeys((*said.breaks, *said.flags)))
    return Vote(key=key, judge=judge, item_id=case.id, reply=reply, flags=flags)
