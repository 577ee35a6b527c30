"""The judge `panel`: up to three models vote whether a short answer is right, and the majority decides.

Source: the evaluation of the ORena SAVE FOCUS challenge ("up to three LLMs decide via majority vote whether the
proposed answer matches the reference"). What a tie and a vote that never comes mean, its document leaves open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue

from proctor.core import (
    ACCURACY,
    Answer,
    Briefing,
    InfrastructureError,
    InputError,
    Item,
    Metric,
    NoVerdictError,
    Score,
    Scorer,
    Status,
    Vote,
    VoteBook,
)
from proctor.core.formats import FreeTextFormat
from proctor.judges.binary_vote import JUDGE_VOTE, PROMPT, BinaryVote, RightOrWrong
from proctor.judges.registry import OfSeveral
from proctor.judges.unresolved import RESOLVED, RESOLVED_SHORT, TIE, UNRESOLVED, VOTE_MISSING
from proctor.metrics import cause_of
from proctor.models import ModelClient, chosen_prompt

MOST_JUDGES = 3

PANEL_ACCURACY = replace(ACCURACY, formats=(*ACCURACY.formats, "free_text"))
"""Accuracy where free text counts too: what code can't compare, a panel decides."""

_GIVE_UP_AFTER = 10


def decide(verdicts: Sequence[RightOrWrong | None]) -> tuple[RightOrWrong | None, str]:
    """The verdict of a panel, one entry a judge (None: its vote is missing), and how it came about.

    The majority is that of the panel, not of the votes that came: what more than half of its judges say. None
    where there is none: a tie of all, or a missing vote that would decide.

    >>> right, wrong = RightOrWrong.RIGHT, RightOrWrong.WRONG
    >>> decide([right, wrong, right]), decide([right, wrong])
    ((<RightOrWrong.RIGHT: 'right'>, 'resolved'), (None, 'tie'))
    >>> decide([wrong, None, wrong]), decide([right, None, wrong])
    ((<RightOrWrong.WRONG: 'wrong'>, 'resolved, a vote missing'), (None, 'vote missing'))
    """
    missing = sum(verdict is None for verdict in verdicts)
    for verdict in RightOrWrong:
        if 2 * sum(one is verdict for one in verdicts) > len(verdicts):
            return verdict, RESOLVED_SHORT if missing else RESOLVED
    return None, VOTE_MISSING if missing else TIE


class Panel:
    """Marks free text by the majority of up to three judges.

    An answer that never came in time or can't be read (too long) is wrong without a call, as the challenge
    has it. Each judge's vote is kept and scored under that judge's own name, so a judge that joins later is
    the only one to be asked.
    """

    def __init__(self, judges: Sequence[BinaryVote]) -> None:
        names = [judge.model for judge in judges]
        if not 1 <= len(names) <= MOST_JUDGES or len(set(names)) < len(names):
            found = ", ".join(names) or "none"
            raise InputError(None, "panel", found=found, expected=f"1 to {MOST_JUDGES} different models")
        self._judges = tuple(judges)

    @property
    def name(self) -> str:
        """With all its models, by name: another panel is another scorer, whose marks stand beside these."""
        return f"panel{self._judges[0].mark}[{', '.join(sorted(judge.model for judge in self._judges))}]"

    @property
    def judges(self) -> tuple[str, ...]:
        """The names of its judges."""
        return tuple(judge.name for judge in self._judges)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Accuracy, whether it is unresolved, and each judge's own vote."""
        return (PANEL_ACCURACY, UNRESOLVED, JUDGE_VOTE)

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Everything that changes its verdicts."""
        return {"judges": [judge.settings for judge in self._judges]}

    def applies(self, item: Item) -> bool:
        """To free text with a reference."""
        return isinstance(item.answer, FreeTextFormat) and item.reference is not None

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        """Accuracy where the panel came to a verdict, `unresolved`, and the votes that came.

        Raises `InfrastructureError` where no vote came at all.
        """
        if answer.status is Status.FAILED:
            raise ValueError(f"item {item.id!r}: a failed answer is never marked")
        cause = cause_of(answer)
        if cause:
            return [self._accuracy(item, cause), self._unresolved(item, RESOLVED)]
        said = await asyncio.gather(*(_said(judge, item, answer) for judge in self._judges))
        votes = [one for one in said if not isinstance(one, InfrastructureError)]
        if not votes:
            asked = any(isinstance(one, NoVerdictError) for one in said)
            raise (NoVerdictError if asked else InfrastructureError)("; ".join(str(one) for one in said))
        verdict, how = decide([None if isinstance(one, InfrastructureError) else one[0] for one in said])
        scores = [self._unresolved(item, how)]
        if verdict is not None:
            scores.append(self._accuracy(item, verdict.value))
        for judge, one in zip(self._judges, said, strict=True):
            if not isinstance(one, InfrastructureError):
                scores.append(judge.score(item, *one))
        return scores

    def _accuracy(self, item: Item, label: str) -> Score:
        value = float(label == RightOrWrong.RIGHT.value)
        return Score(item_id=item.id, metric=ACCURACY.name, value=value, scorer=self.name, label=label)

    def _unresolved(self, item: Item, how: str) -> Score:
        value = float(how in {TIE, VOTE_MISSING})
        return Score(item_id=item.id, metric=UNRESOLVED.name, value=value, scorer=self.name, label=how)


async def _said(judge: BinaryVote, item: Item, answer: Answer) -> tuple[RightOrWrong, Vote] | InfrastructureError:
    """A judge's vote, or why there is none: one that fails does not stop the others."""
    try:
        return await judge.vote(item, answer)
    except InfrastructureError as error:
        return error


class _Panels(OfSeveral):
    """Short answers right or wrong by the majority of up to three models (FOCUS)."""

    def build(
        self, clients: Sequence[ModelClient], votes: VoteBook, *, prompt: Path | None, briefing: Briefing
    ) -> Scorer:
        wording = chosen_prompt(PROMPT, prompt)
        return Panel([BinaryVote(client, votes, wording, briefing, give_up_after=_GIVE_UP_AFTER) for client in clients])


PANEL = _Panels()
"""Up to three models vote on each short answer."""
