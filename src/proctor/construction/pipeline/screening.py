"""The stage `screen`: which drafts can be answered without the video, by models that see the text alone and by the
text-only baselines of the item audit."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, Field
from scipy.stats import binomtest

from proctor.audits.items import audit_items
from proctor.construction.pipeline.records import Call, DraftQuestion, Frozen, Record, Refused
from proctor.construction.pipeline.stage import Asker, Made, Stage, StageSettings, Work
from proctor.core import Answer, Item, NoVerdictError, Reference, RefusalError, TagValue, count_of, generator, natural
from proctor.core.formats import ChoiceFormat, FreeTextFormat, option_letters
from proctor.judges import build_judge

SOLVED_BLIND = "answered without the video"
GUESSED = "guessed by a rule of the item audit"

_PROMPT = Path(__file__).with_name("prompts") / "blind.txt.j2"
_RIGHT = 2.0  # a free response that the judge finds right, of 0 to 2


class ScreenSettings(StageSettings):
    """Each model of the role `screen` is asked `seeds` times, the options in another order each time. A choice is
    flagged where it is answered so often that chance alone does so with a probability of at most `alpha` (one-sided,
    exact); a free response where a share of at least `free_share` of its answers is right by the model of the role
    `judge`. With `baselines`, the rules and the fitted baselines of the item audit are tried as well."""

    seeds: int = Field(default=1, ge=1, le=20)
    alpha: float = Field(default=0.05, gt=0, lt=1)
    free_share: float = Field(default=0.5, gt=0, le=1)
    baselines: bool = True


class BlindVote(Frozen):
    """What one model said without the video, and whether it was right; None where its answer could not be judged."""

    model: str
    seed: int
    said: str
    right: bool | None


class Screening(Record):
    """What is known of one draft: `solved` of `asked` blind answers, the rate with its exact 95 % interval, what chance
    gives, the one-sided p by chance (choices alone), and whether the selected baseline of the audit hits it."""

    question: str
    version: int = 0
    votes: tuple[BlindVote, ...] = ()
    asked: int
    solved: int
    rate: float | None = None
    low: float | None = None
    high: float | None = None
    chance: float | None = None
    p: float | None = None
    guessed: bool | None = None


class ScreenStage(Stage[Screening]):
    """Blind screening of all drafts. A draft is never refused here: it gets flags."""

    name: ClassVar[str] = "screen"
    summary: ClassVar[str] = "What can be answered blind"
    after: ClassVar[tuple[str, ...]] = ("questions",)
    whole: ClassVar[bool] = True
    record = Screening
    settings = ScreenSettings
    roles: ClassVar[tuple[str, ...]] = ("screen", "judge")
    prompts = (_PROMPT,)

    async def make(self, work: Work) -> Made[Screening]:
        drafts = work.records("questions", DraftQuestion)
        settings = work.settings(ScreenSettings)
        screenings, refused = await screen(work, drafts, settings)
        return Made(screenings, refused, notes_of(screenings, drafts, settings))


@dataclass(frozen=True)
class _Asked:
    draft: DraftQuestion
    vote: BlindVote
    call: Call


async def screen(
    work: Work, drafts: Sequence[DraftQuestion], settings: ScreenSettings, among: Sequence[DraftQuestion] = ()
) -> tuple[list[Screening], list[Refused]]:
    """Screens drafts, in their order. An answer that a model declines to give counts as not right, and is listed.
    The baselines of the item audit are fitted on all questions that the drafts stand `among` (themselves, if empty)."""
    refused: list[Refused] = []
    models = range(len(work.project.clients("screen")))
    askers = [Asker(work, "screen", _PROMPT, number) for number in models]
    jobs = [(draft, asker, seed) for draft in drafts for asker in askers for seed in range(settings.seeds)]
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(draft: DraftQuestion, asker: Asker, seed: int) -> _Asked | Refused:
        async with gate:
            try:
                return await _vote(work, draft, asker, seed)
            except RefusalError as error:
                return Refused.of(f"{draft.id}-{asker.model}-{seed}", "no answer", "an answer", str(error), (draft.id,))

    found = await asyncio.gather(*(one(*job) for job in jobs))
    by_draft: dict[str, list[_Asked]] = {}
    for result in found:
        if isinstance(result, Refused):
            refused.append(result)
        else:
            by_draft.setdefault(result.draft.id, []).append(result)
    silent = {name: sum(name in one.made_from for one in refused) for name in (draft.id for draft in drafts)}
    guessed = guessable(among or drafts, work) if settings.baselines else {}
    return [
        _screening(draft, by_draft.get(draft.id, []), silent[draft.id], guessed.get(draft.id), settings)
        for draft in drafts
    ], refused


_AT_ONCE = 8


class _Choice(BaseModel):
    answer: str = Field(min_length=1, max_length=40)


class _Free(BaseModel):
    answer: str = Field(min_length=1, max_length=2000)


async def _vote(work: Work, draft: DraftQuestion, asker: Asker, seed: int) -> _Asked:
    if draft.kind == "free":
        said, call = await asker.ask(_Free, draft.id, {"question": draft.text, "options": []}, draw=seed)
        right = await _judged(work, draft, said.answer)
        return _Asked(draft, BlindVote(model=asker.model, seed=seed, said=said.answer, right=right), call)
    order = generator(work.project.settings.seed, "screen", draft.id, str(seed)).permutation(len(draft.options))
    letters = option_letters(len(draft.options))
    shown = [draft.options[int(place)] for place in order]
    values = {"question": draft.text, "options": list(zip(letters, shown, strict=True))}
    choice, call = await asker.ask(_Choice, draft.id, values, draw=seed)
    letter = choice.answer.strip().strip("().").upper()[:1]
    position = letters.index(letter) if letter in letters else None
    right = position is not None and int(order[position]) == draft.key
    return _Asked(draft, BlindVote(model=asker.model, seed=seed, said=choice.answer.strip(), right=right), call)


async def _judged(work: Work, draft: DraftQuestion, answer: str) -> bool | None:
    """Whether a free response is right by the judge; None without one, and where it gives no verdict."""
    if "judge" not in work.project.settings.models:
        return None
    item = as_item(draft)
    scorer = build_judge("three-level", [work.project.clients("judge")[0]], work.project.store)
    try:
        scores = await scorer.score(item, Answer(item_id=item.id, text=answer, parsed=answer))
    except NoVerdictError:
        return None
    return max(one.value for one in scores if one.metric == scorer.metrics[0].name) >= _RIGHT


def flagged_by_chance(solved: int, asked: int, chance: float, alpha: float) -> bool:
    """Whether chance alone gives that many right answers with a probability of at most `alpha` (one-sided, exact).

    >>> [flagged_by_chance(n, n, 0.25, 0.05) for n in (1, 2, 3)]
    [False, False, True]
    """
    return float(binomtest(solved, asked, chance, alternative="greater").pvalue) <= alpha


def _screening(
    draft: DraftQuestion, votes: Sequence[_Asked], silent: int, guessed: bool | None, settings: ScreenSettings
) -> Screening:
    judged = [one.vote for one in votes if one.vote.right is not None]
    asked, solved = (
        len(judged) + (silent if judged or draft.kind == "mcq" else 0),
        sum(bool(one.right) for one in judged),
    )
    chance = 1 / len(draft.options) if draft.kind == "mcq" else 0.0
    flags = [GUESSED] if guessed else []
    rate = low = high = p = None
    if asked:
        span = binomtest(solved, asked).proportion_ci(0.95, "exact")
        rate, low, high = solved / asked, float(span.low), float(span.high)
        if draft.kind == "mcq":
            p = float(binomtest(solved, asked, chance, alternative="greater").pvalue)
            blind = flagged_by_chance(solved, asked, chance, settings.alpha)
        else:
            blind = rate >= settings.free_share
        flags += [SOLVED_BLIND] if blind else []
    return Screening(
        id=f"{draft.id}-screen",
        made_from=(draft.id,),
        calls=tuple(one.call for one in votes),
        flags=tuple(flags),
        question=draft.id,
        version=draft.version,
        votes=tuple(one.vote for one in votes),
        asked=asked,
        solved=solved,
        rate=rate,
        low=low,
        high=high,
        chance=chance,
        p=p,
        guessed=guessed,
    )


def guessable(drafts: Sequence[DraftQuestion], work: Work) -> Mapping[str, bool]:
    """Which choices the baseline hits that the item audit selects on other groups; nothing where there are too few."""
    items = [as_item(one, work.project.settings.groups) for one in drafts if one.kind == "mcq"]
    return audit_items(items, seed=work.project.settings.seed).guessable if items else {}


def as_item(
    draft: DraftQuestion, groups: Mapping[str, str] | None = None, tags: Mapping[str, TagValue] | None = None
) -> Item:
    """A draft as an item without media; its group is its source's."""
    letters = option_letters(len(draft.options))
    answer = letters[draft.key] if draft.key is not None else draft.answer
    return Item(
        id=draft.id,
        group=(groups or {}).get(draft.source, draft.source),
        question=draft.text,
        answer=ChoiceFormat() if draft.kind == "mcq" else FreeTextFormat(),
        options=draft.options,
        reference=Reference(answer=answer, rationale=draft.groundtruth),
        tags={"type": draft.type, **(tags or {})},
    )


def notes_of(screenings: Sequence[Screening], drafts: Sequence[DraftQuestion], settings: ScreenSettings) -> list[str]:
    """What a reader of the flags must know."""
    notes = []
    kinds = {one.id: one.kind for one in drafts}
    choices = [one for one in screenings if kinds[one.question] == "mcq" and one.asked]
    for asked in sorted({one.asked for one in choices}):
        chance = max(one.chance or 0.0 for one in choices if one.asked == asked)
        least = chance**asked
        if least > settings.alpha:
            notes.append(
                f"{count_of(asked, 'answer')} can't flag a choice at {settings.alpha:g}: all right by chance has p {least:.3f}; "
                "ask more models, or more seeds"
            )
    unjudged = sum(kinds[one.question] == "free" and not one.asked for one in screenings)
    if unjudged:
        responses = count_of(unjudged, "free response")
        notes.append(f"not judged: {responses}; the role 'judge' has no model, or it gave no verdict")
    for kind in ("mcq", "free"):
        some = sorted((one for one in screenings if kinds[one.question] == kind), key=lambda one: natural(one.id))
        asked, solved = sum(one.asked for one in some), sum(one.solved for one in some)
        if asked:
            notes.append(f"{kind}: {solved} of {count_of(asked, 'blind answer')} right")
    return notes
