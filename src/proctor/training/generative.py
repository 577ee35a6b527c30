"""Training of `generative-judge`: local weights learn to fill in what people gave, all dimensions in one reply.

The encounters are parted in three: those it learns from, those by which the best checkpoint is chosen, and those on
which its agreement with people is stated, which nothing was chosen by.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from pydantic import JsonValue

from proctor.core import Dimension, InputError, content_hash, count_of
from proctor.judges.dimensions import (
    Case,
    GenerativeManifest,
    RatedCase,
    all_marks,
    generative_client,
    generative_query,
    mean_level,
    rubric_prompts,
)
from proctor.models import FixedForm, ModelClient, Query, Weights, weights_hash
from proctor.training.chat_examples import ChatExample, measure, template_hash
from proctor.training.checkpoints import CheckpointEvaluation, Evaluate, read_origin
from proctor.training.classifier import shuffled_ratings
from proctor.training.footprint import footprint
from proctor.training.grpo import GrpoSettings, reinforce
from proctor.training.held_out import HeldOutAgreement, held_out_agreement
from proctor.training.judge_rewards import parity_items, rewarded_task
from proctor.training.leaks import encounter_folds, refuse_leaks
from proctor.training.lora import LoraSettings, data_hash, fine_tune, trainable_adapter, with_adapter
from proctor.training.parity_paths import remembered, write_items
from proctor.training.run_folder import RunFolder

_BATCH = 8
_BEYOND = 8  # tokens that a sampled reply may be longer than the longest form
_SAME = 1e-9


@dataclass(frozen=True)
class JudgeQuestion:
    """A rated answer as the judge is asked about it: the form in the query has a place for each of its dimensions."""

    rated: RatedCase
    query: Query

    def answers(self) -> list[str]:
        """The form as people filled it in. A mean between two levels makes two answers, with the lower level and with
        the upper one, so that the judge learns to be undecided where they were.

        Raises `InputError` for an answer that lacks a rating.
        """
        around = self._around()
        form = self.query.form or FixedForm(("",), ())
        both = [form.filled([str(pair[side]) for pair in around]) for side in (0, 1)]
        return list(dict.fromkeys(both))

    def ratings(self) -> dict[str, tuple[float, ...]]:
        """What raters gave, by dimension; where only their mean is known, one between two levels is taken for both.
        Raises as `answers`."""
        pairs = zip(self.rated.case.dimensions, self._around(), strict=True)
        means = {one.name: tuple(dict.fromkeys(one.levels[place] for place in pair)) for one, pair in pairs}
        return {name: self.rated.each.get(name) or both for name, both in means.items()}

    def _around(self) -> list[tuple[int, int]]:
        lacking = [one.name for one in self.rated.case.dimensions if one.name not in self.rated.values]
        if self.query.form is None or lacking:
            place = f"case {self.rated.case.id}"
            raise InputError(place, found=f"no rating of {', '.join(lacking)}", expected="one of each dimension")
        return [_around(one, self.rated.values[one.name]) for one in self.rated.case.dimensions]

    def examples(self) -> list[ChatExample]:
        """What is learned from it."""
        return [ChatExample(self.query, one, self.rated.case.encounter) for one in self.answers()]


def _around(dimension: Dimension, value: float) -> tuple[int, int]:
    """The places of the levels below and above a rating, or twice the place of the level that it is."""
    levels = dimension.levels
    if not levels[0] <= value <= levels[-1]:
        found, scale = f"{value:g}", f"{levels[0]:g} to {levels[-1]:g}"
        raise InputError(f"ratings of {dimension.name}", found=found, expected=scale)
    near = min(range(len(levels)), key=lambda place: abs(levels[place] - value))
    if abs(levels[near] - value) < _SAME:
        return near, near
    above = bisect_left(levels, value)
    return above - 1, above


def judge_questions(base: Path, rated: Sequence[RatedCase], prompts: Path | None, sees: bool) -> list[JudgeQuestion]:
    """What the judge is asked about rated answers: the same messages, pictures and form as when it judges. `sees`: the
    base takes pictures."""

    async def asked() -> list[JudgeQuestion]:
        client = ModelClient(generative_client(str(base)))
        try:
            return [
                JudgeQuestion(one, await generative_query(one.case, client, prompts, shows_pictures=sees))
                for one in rated
            ]
        finally:
            await client.aclose()

    return asyncio.run(asked())


@dataclass(frozen=True)
class JudgeParts:
    """Rated answers by what they are for: to learn from, to choose the checkpoint by, to state the agreement on."""

    learn: tuple[RatedCase, ...]
    choose: tuple[RatedCase, ...]
    held: tuple[RatedCase, ...]

    @property
    def seen(self) -> tuple[RatedCase, ...]:
        """Those that have any part in what the judge becomes."""
        return *self.learn, *self.choose

    def shuffled(self, seed: int) -> JudgeParts:
        """A control: the ratings to learn from are permuted, and those to choose by as well, since true ones would
        choose what is right by accident. Those that are held out stay."""
        learn, choose = (tuple(shuffled_ratings(some, seed)) for some in (self.learn, self.choose))
        return replace(self, learn=learn, choose=choose)


def part_encounters(rated: Sequence[RatedCase], folds: int, fold: int, seed: int) -> JudgeParts:
    """The parts where `fold`, counted from 1, is held out, and the next one is chosen by. No encounter, nor
    a copy of it under another name, is in two of them. Raises `InputError` for fewer folds than 3."""
    if folds < 3 or not 1 <= fold <= folds:
        expected = "3 folds or more, and one of them: to learn from, to choose by, to hold out"
        raise InputError("folds", found=f"fold {fold} of {folds}", expected=expected)
    dealt = [held for _, held in encounter_folds(rated, folds, seed)]
    held, choose = dealt[fold - 1], dealt[fold % folds]
    taken = {*held, *choose}
    learn = [place for place in range(len(rated)) if place not in taken]
    parts = JudgeParts(*(tuple(rated[place] for place in some) for some in (learn, choose, held)))
    refuse_leaks((one.case for one in parts.seen), (one.case for one in parts.held))
    return parts


def scores(weights: Weights, questions: Sequence[JudgeQuestion]) -> list[dict[str, float]]:
    """The mean level of each dimension under the model's probabilities; one on whose levels less than half of the
    probability is, is left out."""
    found: dict[int, dict[str, float]] = {}
    for batch in _batches(questions):
        said = weights.generate([questions[place].query for place in batch], lambda: False)
        for place, one in zip(batch, said, strict=True):
            dimensions = questions[place].rated.case.dimensions
            means = {
                dimension.name: mean_level(dimension.levels, list(chances.values()))
                for dimension, chances in zip(dimensions, one.chances, strict=True)
            }
            found[place] = {name: mean for name, mean in means.items() if mean is not None}
    return [found[place] for place in range(len(questions))]


def _batches(questions: Sequence[JudgeQuestion]) -> Iterator[list[int]]:
    """Places of questions that can run together, the long ones together."""

    def kind(place: int) -> tuple[str, int]:
        return repr(questions[place].query.form), len(questions[place].query.pictures)

    def length(place: int) -> int:
        return sum(len(part) for part in questions[place].query.parts if isinstance(part, str))

    for _, same in groupby(sorted(range(len(questions)), key=lambda place: (*kind(place), length(place))), key=kind):
        places = list(same)
        yield from (places[start : start + _BATCH] for start in range(0, len(places), _BATCH))


def merit(rated: Sequence[RatedCase], given: Sequence[dict[str, float]]) -> CheckpointEvaluation:
    """How good a checkpoint is: the mean agreement with people over the dimensions of each language, and over the
    languages. Scores that are all the same agree with nobody (0); dimensions on which all ratings are the same say
    nothing. None where an answer has no score."""
    rows = [one for one in held_out_agreement(rated, given, draws=0) if one.dimension]
    told: dict[str, JsonValue] = {}
    for language in dict.fromkeys(one.language for one in rows):
        own = [
            None if one.missing else one.value or 0.0
            for one in rows
            if one.language == language and _varies(rated, one)
        ]
        known = [one for one in own if one is not None]
        told[language] = sum(known) / len(known) if known and len(known) == len(own) else None
    values = [float(str(one)) for one in told.values() if one is not None]
    return CheckpointEvaluation(sum(values) / len(told) if len(values) == len(told) else None, {"agreement": told})


def _varies(rated: Sequence[RatedCase], row: HeldOutAgreement) -> bool:
    given = {one.values[row.dimension] for one in rated if one.case.language == row.language}
    return len(given) > 1


@dataclass(frozen=True)
class GenerativePlan:
    """How a judge is trained: on what `base`, with which of the task's `prompts`, and which `fold` of `folds` is held
    out. `shuffled`, a control: the ratings that it learns from and is chosen by are permuted by the seed; what comes of
    one permutation agrees with people by chance, so that a control is several of them. With `then` it learns on from
    rewards; how long a reply may be follows from the forms. `licence` is that of the weights."""

    base: Path
    settings: LoraSettings
    prompts: Path | None = None
    folds: int = 5
    fold: int = 1
    shuffled: bool = False
    licence: str = ""
    then: GrpoSettings | None = None


@dataclass(frozen=True)
class TrainedGenerative:
    """What came of it: how it agrees with people on held-out encounters, and its scores of these answers, in the order
    of `held`."""

    manifest: GenerativeManifest
    held: tuple[RatedCase, ...]
    scores: tuple[dict[str, float], ...]
    agreement: tuple[HeldOutAgreement, ...]


def train_generative(parts: JudgeParts, plan: GenerativePlan, out: Path) -> TrainedGenerative:
    """Trains a judge in the folder `out`, or goes on with it, and states its agreement with people on the encounters
    that are held out. Raises as `RunFolder.opened` and `fine_tune` do."""
    if plan.then is not None and not plan.settings.rank:
        raise InputError("rewards", found="rank 0", expected="an adapter that can learn on")
    weights = Weights(f"transformers:{plan.base}", str(plan.base))
    weights.load(empty=True)
    sees = weights.takes_pictures
    if plan.shuffled:
        parts = parts.shuffled(plan.settings.seed)
    questions, choose, held = (
        judge_questions(plan.base, some, plan.prompts, sees) for some in (parts.learn, parts.choose, parts.held)
    )
    examples = [example for one in questions for example in one.examples()]
    known: dict[str, JsonValue] = {
        **plan.settings.model_dump(),
        "folds": plan.folds,
        "fold": plan.fold,
        "shuffled": plan.shuffled,
        **({} if plan.then is None else {"then": plan.then.model_dump()}),
    }
    data = {"examples": data_hash(examples), "choose": _data(choose), "held": _data(held)}
    told: dict[str, JsonValue] = {**known, "base": weights_hash(plan.base), "data": {**data}}
    compared = parity_items([*held, *choose])

    def evaluate(model: Weights) -> CheckpointEvaluation:
        beside = {} if plan.shuffled else remembered(model, compared)  # nobody exports a control
        return replace(merit(parts.choose, scores(model, choose)), beside=beside)

    with RunFolder.opened(out, told) as folder:
        write_items(out, compared)
        adapter = _learned(plan, questions, folder, evaluate)
        judge = with_adapter(plan.base, adapter, device=plan.settings.device, dtype=plan.settings.dtype)
        given = scores(judge, held)
        agreement = held_out_agreement(parts.held, given, seed=plan.settings.seed)
    manifest = GenerativeManifest(
        base=str(plan.base),
        base_sha256=weights_hash(plan.base),
        template_sha256=template_hash(judge),
        adapter_sha256=weights_hash(adapter) if plan.settings.rank else "",
        merged_sha256="" if plan.settings.rank else weights_hash(adapter),
        pictures=sees,
        prompts=rubric_prompts(plan.prompts),
        dimensions=_levels(one.case for one in parts.seen),
        data_sha256=content_hash({**data}),
        answers=len(parts.seen),
        encounters=len({one.case.encounter for one in parts.seen}),
        trained_on=tuple(sorted(all_marks(one.case for one in parts.seen))),
        held_out=tuple(one.model_dump(mode="json") for one in agreement),
        settings=known,
        licence=plan.licence,
    )
    return TrainedGenerative(manifest, parts.held, tuple(given), tuple(agreement))


def _learned(plan: GenerativePlan, questions: Sequence[JudgeQuestion], folder: RunFolder, evaluate: Evaluate) -> Path:
    """The weights after fine-tuning, and after rewards where the plan has them: fine-tuning then has a folder of its own
    inside the run's."""
    examples = [example for one in questions for example in one.examples()]
    if plan.then is None:
        return fine_tune(plan.base, examples, plan.settings, folder, evaluate)
    told: dict[str, JsonValue] = {**plan.settings.model_dump(), "data": data_hash(examples)}
    with RunFolder.opened(folder.path / "fine-tuning", told) as first:
        start = fine_tune(plan.base, examples, plan.settings, first, evaluate)
    weights = trainable_adapter(plan.base, start, device=plan.settings.device, dtype=plan.settings.dtype)
    longest = max(len(weights.reply_tokens(one.answer)) for one in examples)
    settings = plan.then.model_copy(update={"max_tokens": longest + _BEYOND})
    return reinforce(weights, rewarded_task(questions), settings, folder, read_origin(start), evaluate)


def rehearse(parts: JudgeParts, plan: GenerativePlan) -> tuple[str, ...]:
    """What training would take, told without loading the base: how long the examples are, and the memory. Raises
    `InputError` for examples that are longer than the base reads."""
    weights = Weights(f"transformers:{plan.base}", str(plan.base))
    weights.load(empty=True)
    questions = judge_questions(plan.base, parts.learn, plan.prompts, weights.takes_pictures)
    lengths = measure(weights, [example for one in questions for example in one.examples()])
    takes = footprint(weights, lengths, plan.settings)
    return f"{count_of(len(lengths.replies), 'example')}: {lengths.told()}.", f"{takes.told()}: an estimate."


def _data(questions: Sequence[JudgeQuestion]) -> str:
    return data_hash([example for one in questions for example in one.examples()])


def _levels(cases: Iterable[Case]) -> dict[str, dict[str, tuple[float, ...]]]:
    return {case.language: {one.name: one.levels for one in case.dimensions} for case in cases}


def majority(parts: JudgeParts) -> list[tuple[str, str, float, float]]:
    """What never learning anything earns: by language and dimension the commonest rating, and its share of the held-out
    ratings."""
    found = []
    for language in dict.fromkeys(one.case.language for one in parts.learn):
        learned, held = ([one for one in some if one.case.language == language] for some in (parts.learn, parts.held))
        for name in dict.fromkeys(name for one in learned for name in one.values):
            common = Counter(one.values[name] for one in learned).most_common(1)[0][0]
            same = [abs(one.values[name] - common) < _SAME for one in held if name in one.values]
            found.append((language, name, common, sum(same) / max(len(same), 1)))
    return found
