"""From questions to a judge to what reinforcement learning and the parity gate take."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from proctor.models import FixedForm
from proctor.training.grpo import RatedPrompt, RewardedTask
from proctor.training.parity import ITEMS
from proctor.training.parity_paths import ParityItem
from proctor.training.rewards import SampledReply, Target

if TYPE_CHECKING:
    from proctor.training.generative import JudgeQuestion


def rewarded_task(questions: Sequence[JudgeQuestion]) -> RewardedTask:
    """What replies to these questions earn: each dimension of a language by itself, and compared with replies to
    questions about other encounters. Raters' disagreement widens the target (see `Target`)."""
    prompts = [RatedPrompt(one.query, _target(one)) for one in questions]
    known = {id(prompt): one for prompt, one in zip(prompts, questions, strict=True)}
    ranges = {
        _named(one, dimension.name): (dimension.levels[0], dimension.levels[-1])
        for one in questions
        for dimension in one.rated.case.dimensions
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
    """What stands in the places of a form; None where the text is not that form filled in, and nothing else.

    >>> form = FixedForm(('{"overall": ', "}"), (("0", "1", "2"),))
    >>> filled_in(form, ' {"overall": 2}'), filled_in(form, 'I say {"overall": 2}')
    (('2',), None)
    """
    blanks = [f"({'|'.join(map(re.escape, some))})" for some in form.options]
    pattern = "".join(re.escape(fixed) + blank for fixed, blank in zip(form.texts, [*blanks, ""], strict=True))
    said = re.fullmatch(pattern, text.strip())
    return None if said is None else said.groups()


def parity_items(questions: Sequence[JudgeQuestion]) -> list[ParityItem]:
    """The first `ITEMS` questions as items of the parity gate."""
    found = []
    for place, one in enumerate(questions[:ITEMS]):
        dimensions = one.rated.case.dimensions
        shares = tuple(
            tuple((level - each.levels[0]) / (each.levels[-1] - each.levels[0]) for level in each.levels)
            for each in dimensions
        )
        found.append(
            ParityItem(f"{place + 1}: {one.rated.case.id}", one.query, tuple(each.name for each in dimensions), shares)
        )
    return found


def _target(question: JudgeQuestion) -> Target:
    ratings = {_named(question, name): given for name, given in question.ratings().items()}
    return Target(question.rated.case.encounter, ratings)


def _named(question: JudgeQuestion, dimension: str) -> str:
    return f"{question.rated.case.language}/{dimension}"
