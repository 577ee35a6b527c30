"""Rated answers as questions to a judge in training: the replies to learn, the scores of a checkpoint, and the rewards of
sampled replies."""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from proctor.core import Dimension, InputError, count_of
from proctor.judges.dimensions import RatedCase, generative_client, generative_query, mean_level
from proctor.models import FixedForm, ModelClient, Query, Weights
from proctor_train.fine_tuning import ChatExample
from proctor_train.grpo import RatedPrompt, RewardedTask, SampledReply, Target
from proctor_train.held_out import HeldOutAgreement, held_out_agreement
from proctor_train.parity import ITEMS, ParityItem
from proctor_train.run_folder import CheckpointEvaluation

_BATCH = 8
_BEYOND = 8  # tokens that a sampled reply may be longer than the longest form
_SAME = 1e-9


@dataclass(frozen=True)
class JudgeQuestion:
    """A rated answer, and the query about it, whose form has a slot for each dimension."""

    rated: RatedCase
    query: Query

    def answers(self) -> list[str]:
        """The form filled in with people's ratings. A mean between two levels makes two replies, with the lower and with the
        upper level, so that the judge learns to be undecided where the raters were.

        Raises `InputError` for a missing rating.
        """
        around = self._around()
        form = self.query.form or FixedForm(("",), ())
        both = [form.filled([str(pair[side]) for pair in around]) for side in (0, 1)]
        return list(dict.fromkeys(both))

    def ratings(self) -> dict[str, tuple[float, ...]]:
        """The raters' ratings by dimension. If only their mean is known and lies between two levels, these are both levels.
        Raises as `answers`."""
        pairs = zip(self.rated.case.dimensions, self._around(), strict=True)
        means = {one.name: tuple(dict.fromkeys(one.levels[row] for row in pair)) for one, pair in pairs}
        return {name: self.rated.each.get(name) or both for name, both in means.items()}

    def _around(self) -> list[tuple[int, int]]:
        lacking = [
            dimension.name for dimension in self.rated.case.dimensions if dimension.name not in self.rated.values
        ]
        if self.query.form is None or lacking:
            location = f"case {self.rated.case.id}"
            raise InputError(location, found=f"no rating of {', '.join(lacking)}", expected="one of each dimension")
        return [_around(dimension, self.rated.values[dimension.name]) for dimension in self.rated.case.dimensions]

    def examples(self) -> list[ChatExample]:
        """The examples to learn from."""
        return [ChatExample(self.query, answer, self.rated.case.encounter) for answer in self.answers()]


def _around(dimension: Dimension, value: float) -> tuple[int, int]:
    """The indices of the levels below and above a rating, or twice the index of a level that it equals."""
    levels = dimension.levels
    if not levels[0] <= value <= levels[-1]:
        found, scale = f"{value:g}", f"{levels[0]:g} to {levels[-1]:g}"
        raise InputError(f"ratings of {dimension.name}", found=found, expected=scale)
    near = min(range(len(levels)), key=lambda row: abs(levels[row] - value))
    if abs(levels[near] - value) < _SAME:
        return near, near
    above = bisect_left(levels, value)
    return above - 1, above


def judge_questions(base: Path, rated: Sequence[RatedCase], prompts: Path | None, sees: bool) -> list[JudgeQuestion]:
    """The questions about rated answers, with the same messages, pictures and form as when the judge is used. `sees` says
    whether the base takes pictures."""

    async def asked() -> list[JudgeQuestion]:
        client = ModelClient(generative_client(str(base)))
        try:
            return [
                JudgeQuestion(rated_case, await generative_query(rated_case.case, client, prompts, shows_pictures=sees))
                for rated_case in rated
            ]
        finally:
            await client.aclose()

    return asyncio.run(asked())


def scores(weights: Weights, questions: Sequence[JudgeQuestion]) -> list[dict[str, float]]:
    """The mean level of each dimension under the model's probabilities, without dimensions whose levels have less than half
    of the probability."""
    found: dict[int, dict[str, float]] = {}
    for batch in _batches(questions):
        replies = weights.generate([questions[row].query for row in batch], lambda: False)
        for row, one in zip(batch, replies, strict=True):
            dimensions = questions[row].rated.case.dimensions
            means = {
                dimension.name: mean_level(dimension.levels, list(chances.values()))
                for dimension, chances in zip(dimensions, one.chances, strict=True)
            }
            found[row] = {name: mean for name, mean in means.items() if mean is not None}
    return [found[row] for row in range(len(questions))]


def _batches(questions: Sequence[JudgeQuestion]) -> Iterator[list[int]]:
    """The indices of questions that can run in one batch, of similar length."""

    def kind(row: int) -> tuple[str, int]:
        return repr(questions[row].query.form), len(questions[row].query.pictures)

    def length(row: int) -> int:
        return sum(len(part) for part in questions[row].query.parts if isinstance(part, str))

    for _, same in groupby(sorted(range(len(questions)), key=lambda row: (*kind(row), length(row))), key=kind):
        rows = list(same)
        yield from (rows[start : start + _BATCH] for start in range(0, len(rows), _BATCH))


def merit(rated: Sequence[RatedCase], given: Sequence[dict[str, float]]) -> CheckpointEvaluation:
    """The quality of a checkpoint: the agreement with people, averaged over the dimensions of each language and then over
    languages. Constant scores count as 0; dimensions with constant ratings are left out. None if an answer has no score; if
    none has any, the checkpoint is unusable."""
    rows = [agreement for agreement in held_out_agreement(rated, given, draws=0) if agreement.dimension]
    means: dict[str, float | None] = {}
    for language in dict.fromkeys(row.language for row in rows):
        own = [
            None if row.missing else row.value or 0.0
            for row in rows
            if row.language == language and _varies(rated, row)
        ]
        known = [one for one in own if one is not None]
        means[language] = sum(known) / len(known) if known and len(known) == len(own) else None
    values = [mean for mean in means.values() if mean is not None]
    value = sum(values) / len(means) if len(values) == len(means) else None
    scored = sum(bool(own) for own in given)
    unusable = "" if scored else f"no checkpoint gives a score to any of {count_of(len(given), 'answer')}"
    return CheckpointEvaluation(value, {"agreement": {**means}, "scored": scored}, unusable=unusable)


def _varies(rated: Sequence[RatedCase], row: HeldOutAgreement) -> bool:
    given = {rated_case.values[row.dimension] for rated_case in rated if rated_case.case.language == row.language}
    return len(given) > 1


def rewarded_task(questions: Sequence[JudgeQuestion]) -> RewardedTask:
    """The questions as a task with rewards. Each dimension of a language is a dimension by itself; disagreement of raters
    widens the target (see `Target`)."""
    prompts = [RatedPrompt(judge_question.query, _target(judge_question)) for judge_question in questions]
    known = {id(prompt): one for prompt, one in zip(prompts, questions, strict=True)}
    ranges = {
        _named(judge_question, dimension.name): (dimension.levels[0], dimension.levels[-1])
        for judge_question in questions
        for dimension in judge_question.rated.case.dimensions
    }

    def read(prompt: RatedPrompt, text: str) -> SampledReply:
        question = known[id(prompt)]
        chosen = None if prompt.query.form is None else filled_in(prompt.query.form, text)
        if chosen is None:
            return SampledReply(None, False)
        dimensions = question.rated.case.dimensions
        values = {
            _named(question, one.name): one.levels[int(level)] for one, level in zip(dimensions, chosen, strict=True)
        }
        return SampledReply(values, True)

    return RewardedTask(prompts, read, ranges)


def filled_in(form: FixedForm, text: str) -> tuple[str, ...] | None:
    """The options in the slots of a form, or None if the text is anything else than that form filled in.

    >>> form = FixedForm(('{"overall": ', "}"), (("0", "1", "2"),))
    >>> filled_in(form, ' {"overall": 2}'), filled_in(form, 'I say {"overall": 2}')
    (('2',), None)
    """
    blanks = [f"({'|'.join(map(re.escape, some))})" for some in form.options]
    pattern = "".join(re.escape(fixed) + blank for fixed, blank in zip(form.texts, [*blanks, ""], strict=True))
    filled = re.fullmatch(pattern, text.strip())
    return None if filled is None else filled.groups()


def parity_items(questions: Sequence[JudgeQuestion]) -> list[ParityItem]:
    """The first `ITEMS` questions as items of the parity check."""
    found = []
    for row, one in enumerate(questions[:ITEMS]):
        dimensions = one.rated.case.dimensions
        shares = tuple(
            tuple(
                (level - dimension.levels[0]) / (dimension.levels[-1] - dimension.levels[0])
                for level in dimension.levels
            )
            for dimension in dimensions
        )
        found.append(
            ParityItem.of(
                f"{row + 1}: {one.rated.case.id}", one.query, tuple(dimension.name for dimension in dimensions), shares
            )
        )
    return found


def _target(question: JudgeQuestion) -> Target:
    ratings = {_named(question, name): given for name, given in question.ratings().items()}
    return Target(question.rated.case.encounter, ratings)


def _named(question: JudgeQuestion, dimension: str) -> str:
    return f"{question.rated.case.language}/{dimension}"
