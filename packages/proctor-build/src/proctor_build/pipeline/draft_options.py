"""Wrong options of drafts from the right ones of others, by the rules of `proctor_build.distractors`: candidates that a
model adapts, and blocks that remove cues without a model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from proctor.core import OPTION_POOL, InputError, Item, Reference, VideoClip, count_of
from proctor.core.formats import ChoiceFormat, option_letters
from proctor_build.distractors import Bounds, OptionCosts, read_texts
from proctor_build.pipeline.records import DraftQuestion
from proctor_build.pipeline.screening import as_item
from proctor_build.pipeline.speech import content_words
from proctor_build.repair import RepairSettings, repair_items


class _Lender(NamedTuple):
    """What of a choice decides whether its right answer may serve another one."""

    id: str
    source: str
    start: float
    end: float
    question: str
    right: str
    groundtruth: str

    @classmethod
    def of(cls, draft: DraftQuestion) -> _Lender:
        right = draft.options[draft.key or 0]
        return cls(draft.id, draft.source, draft.start, draft.end, draft.text, right, draft.groundtruth)

    @property
    def item(self) -> Item:
        return Item(
            id=self.id,
            group=self.source,
            question=self.question,
            media=(VideoClip(source=self.source, start=self.start, end=self.end),),
            answer=ChoiceFormat(),
            options=(self.right, f"not {self.right}"),  # the other options have no part in it
            reference=Reference(answer="A", rationale=self.groundtruth),
        )


@lru_cache(maxsize=4)
def _costs(lenders: tuple[_Lender, ...]) -> OptionCosts:
    items = [lender.item for lender in lenders]
    return OptionCosts(items, read_texts(items, beside=items), Bounds(similar=1.0))


def candidates(draft: DraftQuestion, every: Sequence[DraftQuestion], most: int, *, similar: float = 0.8) -> list[str]:
    """At most `most` plausible wrong options of a choice, the cheapest first (see `OptionCosts`): right ones of other
    questions of its type, about other stretches, that share at most this part of content words with its own right one (see
    `too_like`) and that nothing known of its stretch supports."""
    others = [one for one in every if one.key is not None and one.type == draft.type and one.id != draft.id]
    lenders = tuple(sorted(map(_Lender.of, [draft, *others])))
    row = next(index for index, lender in enumerate(lenders) if lender.id == draft.id)
    found = [lenders[other].right for other in _costs(lenders).cheapest(row, range(len(lenders)))]
    own = lenders[row].right
    return [text for text in found if text not in draft.options and not too_like(own, [text], similar)][:most]


def too_like(right: str, wrong: Sequence[str], most: float) -> str:
    """The first wrong option that resembles the right one or an earlier one ("" for none), by the share of common content
    words. Options of one structure that name other steps do not: clinicians write them so.

    >>> too_like("Slide to the liver edge", ["Slide to the edge of the liver", "Rotate the probe"], 0.8)
    "options: too like another: 'Slide to the edge of the liver'"
    >>> too_like("Turn the table and go on with the next step", ["Hold the camera and go on with the next step"], 0.8)
    ''
    """
    seen = [content_words(right)]
    for text in wrong:
        words = content_words(text)
        if any(words | other and len(words & other) / len(words | other) > most for other in seen):
            return f"options: too like another: {text!r}"
        seen.append(words)
    return ""


def in_blocks(
    drafts: Sequence[DraftQuestion], seed: int, rounds: int = 100
) -> tuple[dict[str, dict[str, object]], str]:
    """The new options, key and pool, by id, of the choices that exchange their right answers in blocks within their type
    (see `repair_items`), and a note on how many there are. No model is asked. What cannot be exchanged stays as it is. Wrong options of drafts serve nowhere else: nobody has confirmed that they are wrong."""
    choices = [draft for draft in drafts if draft.key is not None]
    items = [
        as_item(draft).model_copy(update={"media": (VideoClip(source=draft.source, start=draft.start, end=draft.end),)})
        for draft in choices
    ]
    settings = RepairSettings(seed=seed, same=("type",), keep=0.0, rounds=rounds, looks=1.0)
    try:
        made = repair_items(items, settings, beside=items)
    except InputError as error:
        return {}, f"no options exchanged in blocks: {error}"
    found: dict[str, dict[str, object]] = {}
    for name, item in made.items.items():
        letter = str(item.reference.answer) if item.reference else ""
        location = option_letters(len(item.options)).index(letter)
        found[name] = {"options": item.options, "key": location, "pool": str(item.tags[OPTION_POOL])}
    pools = count_of(len(made.pools), "pool")
    return found, f"options exchanged in blocks: {len(found)} of {count_of(len(choices), 'choice')}, in {pools}"
