"""Training of `generative-judge`: local weights learn to fill in people's ratings, all dimensions in one reply; and the model
card of the result.

The encounters are divided into three parts: to learn from, to choose the best checkpoint by, and held out for the
agreement with people that is reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import JsonValue

from proctor.core import DASH, InputError, content_hash, count_of, number, number_interval
from proctor.judges.dimensions import Case, GenerativeManifest, RatedCase, all_scores, rubric_prompts
from proctor.models import Weights, weights_hash
from proctor_train.fine_tuning import (
    ChatExample,
    LoraSettings,
    data_hash,
    fine_tune,
    footprint,
    measure,
    trainable_adapter,
    with_adapter,
)
from proctor_train.grpo import GrpoSettings, reinforce
from proctor_train.held_out import HeldOutAgreement, encounter_folds, held_out_agreement, refuse_leaks, shuffled_ratings
from proctor_train.judge_questions import JudgeQuestion, judge_questions, merit, parity_items, rewarded_task, scores
from proctor_train.parity import remembered, write_items
from proctor_train.run_folder import (
    CheckpointEvaluation,
    Evaluate,
    NothingLearnedError,
    RunFolder,
    read_origin,
    template_hash,
)

_SPARE_TOKENS = 8  # a sampled reply may be longer than the longest form by this
_SAME = 1e-9


@dataclass(frozen=True)
class JudgeParts:
    """Rated answers by purpose: to learn from, to choose the checkpoint by, and held out for the agreement."""

    learn: tuple[RatedCase, ...]
    choose: tuple[RatedCase, ...]
    held: tuple[RatedCase, ...]

    @property
    def seen(self) -> tuple[RatedCase, ...]:
        """The answers that influence the judge."""
        return *self.learn, *self.choose

    def shuffled(self, seed: int) -> JudgeParts:
        """A control with permuted ratings to learn from and to choose by; true ones would choose what is right by accident.
        The held-out ratings stay."""
        learn, choose = (tuple(shuffled_ratings(some, seed)) for some in (self.learn, self.choose))
        return replace(self, learn=learn, choose=choose)


def part_encounters(rated: Sequence[RatedCase], folds: int, fold: int, seed: int) -> JudgeParts:
    """The parts with `fold` (from 1) held out and the next fold to choose by. No encounter, or copy of it under another
    name, is in two parts. Raises `InputError` for fewer than 3 folds."""
    if folds < 3 or not 1 <= fold <= folds:
        expected = "3 folds or more, and one of them: to learn from, to choose by, to hold out"
        raise InputError("folds", found=f"fold {fold} of {folds}", expected=expected)
    dealt = [held for _, held in encounter_folds(rated, folds, seed)]
    held, choose = dealt[fold - 1], dealt[fold % folds]
    taken = {*held, *choose}
    learn = [row for row in range(len(rated)) if row not in taken]
    parts = JudgeParts(*(tuple(rated[row] for row in some) for some in (learn, choose, held)))
    refuse_leaks((rated_case.case for rated_case in parts.seen), (rated_case.case for rated_case in parts.held))
    return parts


@dataclass(frozen=True)
class GenerativePlan:
    """The settings of a training: the `base`, the folder of the task's `prompts`, and the `fold` of `folds` that is held
    out. `shuffled` is a control with ratings permuted by the seed (see `JudgeParts.shuffled`); one permutation may agree
    with people by chance, so a control takes several. With `then` the judge continues with reinforcement learning, whose
    token limit follows from the forms. `licence` is that of the weights."""

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
    """The result of a training: the manifest, and the agreement with people on held-out encounters with the scores of these
    answers, in the order of `held`."""

    manifest: GenerativeManifest
    held: tuple[RatedCase, ...]
    scores: tuple[dict[str, float], ...]
    agreement: tuple[HeldOutAgreement, ...]


def train_generative(parts: JudgeParts, plan: GenerativePlan, out: Path) -> TrainedGenerative:
    """Trains a judge in the folder `out`, or continues there, and measures its agreement with people on the held-out
    encounters. Raises as `RunFolder.opened` and `fine_tune`, and `NothingLearnedError` for a judge without scores."""
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
    known: dict[str, JsonValue] = {
        **plan.settings.model_dump(),
        "folds": plan.folds,
        "fold": plan.fold,
        "shuffled": plan.shuffled,
        **({} if plan.then is None else {"then": plan.then.model_dump()}),
    }
    parted = {"examples": questions, "choose": choose, "held": held}
    data = {name: data_hash(_examples(some)) for name, some in parted.items()}
    settings: dict[str, JsonValue] = {**known, "base": weights_hash(plan.base), "data": {**data}}
    compared = parity_items([*held, *choose])

    def evaluate(model: Weights) -> CheckpointEvaluation:
        beside = {} if plan.shuffled else remembered(model, compared)  # a control is never exported
        return replace(merit(parts.choose, scores(model, choose)), beside=beside)

    with RunFolder.opened(out, settings) as folder:
        write_items(out, compared)
        adapter = _learned(plan, questions, folder, evaluate)
        judge = with_adapter(plan.base, adapter, device=plan.settings.device, dtype=plan.settings.dtype)
        given = scores(judge, held)
        if held and not any(given):
            found = f"it gives no score to any of {count_of(len(held), 'held-out answer')}"
            raise NothingLearnedError(f"{out}: nothing was learned: {found}. No judge was written.")
        agreement = held_out_agreement(parts.held, given, seed=plan.settings.seed)
    manifest = GenerativeManifest(
        base=str(plan.base),
        base_sha256=weights_hash(plan.base),
        template_sha256=template_hash(judge),
        adapter_sha256=weights_hash(adapter) if plan.settings.rank else "",
        merged_sha256="" if plan.settings.rank else weights_hash(adapter),
        pictures=sees,
        prompts=rubric_prompts(plan.prompts),
        dimensions=_levels(rated_case.case for rated_case in parts.seen),
        data_sha256=content_hash({**data}),
        answers=len(parts.seen),
        encounters=len({rated_case.case.encounter for rated_case in parts.seen}),
        trained_on=tuple(sorted(all_scores(rated_case.case for rated_case in parts.seen))),
        held_out=tuple(one.model_dump(mode="json") for one in agreement),
        settings=known,
        licence=plan.licence,
    )
    return TrainedGenerative(manifest, parts.held, tuple(given), tuple(agreement))


def _learned(plan: GenerativePlan, questions: Sequence[JudgeQuestion], folder: RunFolder, evaluate: Evaluate) -> Path:
    """The weights after fine-tuning, and after reinforcement learning if planned; fine-tuning then has its own folder
    inside the run's."""
    examples = _examples(questions)
    if plan.then is None:
        return fine_tune(plan.base, examples, plan.settings, folder, evaluate)
    own: dict[str, JsonValue] = {**plan.settings.model_dump(), "data": data_hash(examples)}
    with RunFolder.opened(folder.path / "fine-tuning", own) as first:
        start = fine_tune(plan.base, examples, plan.settings, first, evaluate)
    weights = trainable_adapter(plan.base, start, device=plan.settings.device, dtype=plan.settings.dtype)
    longest = max(len(weights.reply_tokens(example.answer)) for example in examples)
    settings = plan.then.model_copy(update={"max_tokens": longest + _SPARE_TOKENS})
    return reinforce(weights, rewarded_task(questions), settings, folder, read_origin(start), evaluate)


def rehearse(parts: JudgeParts, plan: GenerativePlan) -> tuple[str, ...]:
    """The lengths of the examples and the memory of a training, without loading the base. Raises `InputError` for examples
    longer than the base's limit."""
    weights = Weights(f"transformers:{plan.base}", str(plan.base))
    weights.load(empty=True)
    questions = judge_questions(plan.base, parts.learn, plan.prompts, weights.takes_pictures)
    lengths = measure(weights, _examples(questions))
    memory = footprint(weights, lengths, plan.settings)
    return f"{count_of(len(lengths.replies), 'example')}: {lengths.summary()}.", f"{memory.summary()}: an estimate."


def _examples(questions: Sequence[JudgeQuestion]) -> list[ChatExample]:
    return [example for question in questions for example in question.examples()]


def _levels(cases: Iterable[Case]) -> dict[str, dict[str, tuple[float, ...]]]:
    return {case.language: {dimension.name: dimension.levels for dimension in case.dimensions} for case in cases}


def majority(parts: JudgeParts) -> list[tuple[str, str, float, float]]:
    """The majority baseline: by language and dimension the most common rating, and its share of the held-out ratings."""
    found = []
    for language in dict.fromkeys(rated_case.case.language for rated_case in parts.learn):
        learned, held = (
            [rated_case for rated_case in some if rated_case.case.language == language]
            for some in (parts.learn, parts.held)
        )
        for name in dict.fromkeys(name for rated_case in learned for name in rated_case.values):
            common = Counter(rated_case.values[name] for rated_case in learned).most_common(1)[0][0]
            same = [abs(rated_case.values[name] - common) < _SAME for rated_case in held if name in rated_case.values]
            found.append((language, name, common, sum(same) / max(len(same), 1)))
    return found


def judge_card(manifest: GenerativeManifest) -> str:
    """The model card as Markdown with a YAML head."""
    base = manifest.base.rstrip("/").rpartition("/")[2]  # without the path on somebody's machine
    licence = f"license: {manifest.licence}\n" if manifest.licence else ""
    adapter = f"base_model: {base}\nlibrary_name: peft\n" if manifest.adapter_sha256 else ""
    pictures = "It was trained with pictures." if manifest.pictures else "It is a model of texts and sees no picture."
    agreement = "".join(map(_agreement_row, manifest.held_out))
    dimensions = "".join(
        f"- {language}: {', '.join(f'{name} ({_scale(levels)})' for name, levels in own.items())}\n"
        for language, own in manifest.dimensions.items()
    )
    settings = "".join(f"- {name}: {value}\n" for name, value in sorted(manifest.settings.items()))
    return f"""---
{licence}{adapter}tags:
- judge
- medical
---

# A judge trained on people's ratings

It fills in a level for each dimension of an answer, all in one reply. {pictures} Use it with \
`proctor score BENCHMARK --judge generative-judge:DIR`. It rates answers of automatic systems for research; it is no \
medical device, and no person's care may depend on it.

## Agreement with people

Mean of Kendall's τ-b, Pearson's and Spearman's correlation on encounters that had no part in training, with 95 % \
intervals over samples of encounters.

| language | dimension | agreement | interval | answers |
|---|---|---|---|---|
{agreement}
## What it learned from

{count_of(manifest.answers, "rated answer")} of {count_of(manifest.encounters, "encounter")}, those included by which \
the checkpoint was chosen. SHA-256 of the data: `{manifest.data_sha256}`.

{dimensions}
## How

{settings}- base: {base}, SHA-256 `{manifest.base_sha256}`
- chat template: SHA-256 `{manifest.template_sha256}`
- trained weights: SHA-256 `{manifest.adapter_sha256 or manifest.merged_sha256}`

Licence: {manifest.licence or "not stated; that of the base and of the ratings hold."}
"""


def _agreement_row(row: Mapping[str, object]) -> str:
    value, low, high = (
        float(one) if isinstance(one, int | float) else None
        for one in (row[key] for key in ("value", "ci_low", "ci_high"))
    )
    figure = DASH if value is None else number(value)
    answers = f"{row['answers']} of {row['encounters']} encounters"
    return f"| {row['language']} | {row['dimension'] or 'all, mean'} | {figure} | {number_interval(low, high)} | {answers} |\n"


def _scale(levels: Sequence[float]) -> str:
    return ", ".join(f"{level:g}" for level in levels)
