"""The stage `screen`: which drafts models can answer from the text alone, and which the text-only baselines of the item
audit answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pydantic import Field

from proctor.audits.items import audit_items
from proctor.core import (
    OPTION_POOL,
    Answer,
    FrozenModel,
    Item,
    NoVerdictError,
    ParseError,
    Reference,
    RefusalError,
    Scorer,
    TagValue,
    count_of,
    generator,
    natural,
    percent,
)
from proctor.core.formats import ChoiceFormat, FreeTextFormat, gives_up, option_letters
from proctor.judges import build_judge, several
from proctor_build.pipeline.records import Call, DraftQuestion, Record, Refused
from proctor_build.pipeline.stage import PROMPTS, Asker, Made, Stage, StageSettings, Work

SOLVED_BLIND = "answered without the video"
MAYBE_SOLVED = "answered without the video each time, by too few models to exclude chance"
GUESSED = "guessed by a rule of the item audit"
ONCE = "answered without the video at least once: have a look"
UNSCREENED = "not screened: no blind answer that counts"
GIVEN_AWAY = frozenset({SOLVED_BLIND, GUESSED})
"""The flags of a draft that the text gives away."""

_PROMPT = PROMPTS / "blind.txt.j2"
_RIGHT = 2.0  # the judge's score of a right free response, of 0 to 2
_AT_ONCE = 8
_MOST_SAID = 2000  # characters of a reply


class ScreenSettings(StageSettings):
    """Each model of the role `screen` answers `seeds` times, with the options in another order each time. A choice is
    flagged if guessing lets that many models be right, each more often than not, with a probability of at most `alpha`
    (one-sided, exact): a model that prefers an option prefers it in every order, so that its answers are no
    independent guesses. A free response is flagged if a share of at least `free_share` is right by the model of the
    role `judge`. Any right answer below that raises a flag that only asks for a look. With `baselines` the baselines of the
    item audit are tried, too; they flag only if they beat chance on groups that they were not chosen on."""

    seeds: int = Field(default=3, ge=1, le=20)
    alpha: float = Field(default=0.05, gt=0, lt=1)
    free_share: float = Field(default=0.5, gt=0, le=1)
    baselines: bool = True


class BlindAnswer(FrozenModel):
    """The answer of one model without the video; `right` is None if it could not be read or judged."""

    model: str
    seed: int
    said: str
    right: bool | None


class Screening(Record):
    """The screening of one draft: `solved` of `asked` blind answers were right, and `models_right` of `models` were so
    more often than not. The rate of right answers, an exact 95 % interval with models as the sample, the chance level,
    the one-sided p of guessing (choices only), and whether the audit's selected baseline is right. `missing` answers
    were declined, unreadable or without a verdict: they say nothing, and are not in `asked`."""

    question: str
    version: int = 0
    judgements: tuple[BlindAnswer, ...] = ()
    asked: int
    solved: int
    missing: int = 0
    models: int = 0
    models_right: int = 0
    rate: float | None = None
    low: float | None = None
    high: float | None = None
    chance: float | None = None
    p: float | None = None
    guessed: bool | None = None


class ScreenStage(Stage[Screening]):
    """Blind screening of all drafts: flags, no rejections."""

    name: ClassVar[str] = "screen"
    summary: ClassVar[str] = "What can be answered blind"
    version: ClassVar[int] = 3
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


_Judgement = tuple[BlindAnswer, tuple[Call, ...]]  # with the calls of the model and of the judge


async def screen(
    work: Work, drafts: Sequence[DraftQuestion], settings: ScreenSettings, among: Sequence[DraftQuestion] = ()
) -> tuple[list[Screening], list[Refused]]:
    """Screens drafts; one screening each, in order, and the answers that models declined to give (they do not count).
    The baselines of the item audit are fitted on the questions `among` (default: the drafts)."""
    models = range(len(work.project.clients("screen")))
    askers = [Asker(work, "screen", _PROMPT, number) for number in models]
    judge = None
    if "judge" in work.project.settings.models:  # one for all, so that the same answer is judged once
        judge = build_judge("three-level", [work.project.clients("judge")[0]], work.project.store)
    jobs = [(draft, asker, seed) for draft in drafts for asker in askers for seed in range(settings.seeds)]

    async def one(job: tuple[DraftQuestion, Asker, int]) -> _Judgement | Refused:
        draft, asker, seed = job
        try:
            return await _judgement(work, draft, asker, seed, judge)
        except RefusalError as error:
            return Refused.of(f"{draft.id}-{asker.model}-{seed}", "no answer", "an answer", error, (draft.id,))

    results = await several(one, jobs, _AT_ONCE)
    guessed = guessable(among or drafts, work) if settings.baselines else {}
    screenings = []
    for draft in drafts:
        mine = [result for (asked, _, _), result in zip(jobs, results, strict=True) if asked.id == draft.id]
        judgements = [result for result in mine if not isinstance(result, Refused)]
        screenings.append(_screening(draft, judgements, len(mine) - len(judgements), guessed.get(draft.id), settings))
    return screenings, [result for result in results if isinstance(result, Refused)]


async def _judgement(work: Work, draft: DraftQuestion, asker: Asker, seed: int, judge: Scorer | None) -> _Judgement:
    """A blind answer: the reply is read by the answer format, as in a run."""
    item = as_item(draft)
    order = generator(work.project.settings.seed, "screen", draft.id, str(seed)).permutation(len(draft.options))
    letters = option_letters(len(draft.options))
    shown = [draft.options[int(row)] for row in order]
    values = {
        "question": draft.text,
        "options": list(zip(letters, shown, strict=True)),
        "instruction": item.answer.instruction(shown),
    }
    reply, call = await asker.words(draft.id, values, draw=seed)
    right, calls = None, tuple[Call, ...]()
    try:
        read = str(item.answer.parse(reply, shown))
    except ParseError:
        pass
    else:
        if draft.kind == "mcq":
            right = int(order[letters.index(read)]) == draft.key
        elif not gives_up(read):
            right, calls = await _judged(draft, read, judge, work)
    said = reply.strip()[:_MOST_SAID]
    return BlindAnswer(model=asker.model, seed=seed, said=said, right=right), (call, *calls)


async def _judged(
    draft: DraftQuestion, answer: str, judge: Scorer | None, work: Work
) -> tuple[bool | None, tuple[Call, ...]]:
    """Whether the judge finds a free response right, and its call; None without a judge or without its verdict."""
    if judge is None:
        return None, ()
    item = as_item(draft)
    try:
        scores = await judge.score(item, Answer(item_id=item.id, text=answer, parsed=answer))
    except NoVerdictError:
        return None, ()
    keys = dict.fromkeys(score.judgement_key for score in scores if score.judgement_key)
    model, prompt = work.project.clients("judge")[0].name, str(getattr(judge, "settings", {}).get("prompt_sha256", ""))
    right = max(score.value for score in scores if score.metric == judge.metrics[0].name) >= _RIGHT
    return right, tuple(Call(key=key, model=model, prompt_sha256=prompt) for key in keys)


def flagged_by_chance(solved: int, asked: int, chance: float, alpha: float) -> bool:
    """Whether guessing lets at least that many of the models be right with a probability of at most `alpha`.

    >>> [flagged_by_chance(n, n, 0.25, 0.05) for n in (1, 2, 3)]
    [False, False, True]
    """
    from scipy.stats import binomtest

    return float(binomtest(solved, asked, chance, alternative="greater").pvalue) <= alpha


def _screening(
    draft: DraftQuestion, judgements: Sequence[_Judgement], silent: int, guessed: bool | None, settings: ScreenSettings
) -> Screening:
    from scipy.stats import binomtest

    judged = [judgement for judgement, _ in judgements if judgement.right is not None]
    asked, missing = len(judged), silent + len(judgements) - len(judged)
    solved = sum(bool(blind_answer.right) for blind_answer in judged)
    models, models_right = _models(judged)
    chance = 1 / len(draft.options) if draft.kind == "mcq" else 0.0
    flags = [GUESSED] if guessed else []
    rate = low = high = p = None
    if asked:
        span = binomtest(models_right, models).proportion_ci(0.95, "exact")
        rate = solved / asked
        low, high = min(rate, float(span.low)), max(rate, float(span.high))
        if draft.kind == "mcq":
            p = float(binomtest(models_right, models, chance, alternative="greater").pvalue)
            blind = flagged_by_chance(models_right, models, chance, settings.alpha)
        else:
            blind = rate >= settings.free_share
        seen = [MAYBE_SOLVED] if solved == asked else [ONCE] if solved else []
        flags += [SOLVED_BLIND] if blind else seen
    elif missing:
        flags += [UNSCREENED]
    return Screening(
        id=f"{draft.id}-screen",
        made_from=(draft.id,),
        calls=tuple(dict.fromkeys(call for _, calls in judgements for call in calls)),
        flags=tuple(flags),
        question=draft.id,
        version=draft.version,
        judgements=tuple(judgement for judgement, _ in judgements),
        asked=asked,
        solved=solved,
        missing=missing,
        models=models,
        models_right=models_right,
        rate=rate,
        low=low,
        high=high,
        chance=chance,
        p=p,
        guessed=guessed,
    )


def _models(judgements: Sequence[BlindAnswer]) -> tuple[int, int]:
    """How many models answered, and how many of them were right more often than not."""
    rights: dict[str, list[bool]] = {}
    for judgement in judgements:
        rights.setdefault(judgement.model, []).append(bool(judgement.right))
    return len(rights), sum(2 * sum(right) > len(right) for right in rights.values())


def guessable(drafts: Sequence[DraftQuestion], work: Work) -> Mapping[str, bool]:
    """Whether the item audit's selected baseline answers each choice; empty if there are too few. Answers count only if
    the baselines that were selected on other groups beat chance there: else they are luck, and no choice is guessable."""
    items = [as_item(draft, work.project.settings.groups) for draft in drafts if draft.kind == "mcq"]
    if not items:
        return {}
    audit = audit_items(items, seed=work.project.settings.seed)
    found = audit.format("choice")
    selected = found.selected if found is not None else None
    low = selected.accuracy.ci_low if selected is not None else None
    better = selected is not None and selected.chance is not None and low is not None and low > selected.chance
    return audit.guessable if better else dict.fromkeys(audit.guessable, False)


def as_item(
    draft: DraftQuestion, groups: Mapping[str, str] | None = None, tags: Mapping[str, TagValue] | None = None
) -> Item:
    """A draft as an item without media, in the group of its source, with its pool of options."""
    letters = option_letters(len(draft.options))
    answer = letters[draft.key] if draft.key is not None else draft.answer
    return Item(
        id=draft.id,
        group=(groups or {}).get(draft.source, draft.source),
        question=draft.text,
        answer=ChoiceFormat() if draft.kind == "mcq" else FreeTextFormat(),
        options=draft.options,
        reference=Reference(answer=answer, rationale=draft.groundtruth),
        tags={"type": draft.type, **({OPTION_POOL: draft.pool} if draft.pool else {}), **(tags or {})},
    )


def notes_of(screenings: Sequence[Screening], drafts: Sequence[DraftQuestion], settings: ScreenSettings) -> list[str]:
    """Notes on the screening as a whole."""
    notes = []
    kinds = {draft.id: draft.kind for draft in drafts}
    choices = [screening for screening in screenings if kinds[screening.question] == "mcq" and screening.asked]
    for models in sorted({choice.models for choice in choices}):
        chance = max(choice.chance or 0.0 for choice in choices if choice.models == models)
        least = chance**models
        if least > settings.alpha:
            notes.append(
                f"{count_of(models, 'model')} can't flag a choice at {settings.alpha:g}: all right by chance has p {least:.3f}; "
                "ask more models (answers of one model are not independent)"
            )
    unjudged = sum(kinds[screening.question] == "free" and not screening.asked for screening in screenings)
    if unjudged:
        responses = count_of(unjudged, "free response")
        notes.append(f"not judged: {responses}; the role 'judge' has no model, or it gave no verdict")
    for kind in ("mcq", "free"):
        some = sorted(
            (screening for screening in screenings if kinds[screening.question] == kind),
            key=lambda screening: natural(screening.id),
        )
        if any(screening.asked or screening.missing for screening in some):
            notes.append(f"{kind}: {blind_answers(some, 'blind answer')}")
    return notes


def blind_answers(screenings: Sequence[Screening], noun: str = "answer") -> str:
    """How many blind answers were right, of how many, and how many say nothing.

    >>> blind_answers([Screening(id="q-screen", question="q", asked=2, solved=1, missing=1)])
    '1 of 2 answers right (50.0 %); 1 more declined, unreadable or not judged'
    """
    asked, solved, missing = (
        sum(getattr(screening, name) for screening in screenings) for name in ("asked", "solved", "missing")
    )
    right = f"{solved} of {count_of(asked, noun)} right" + (f" ({percent(solved / asked)})" if asked else "")
    return right + (f"; {missing} more declined, unreadable or not judged" if missing else "")
