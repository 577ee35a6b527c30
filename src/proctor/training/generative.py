"""Training of `generative-judge`: local weights learn to fill in what people gave, all dimensions in one reply.

The encounters are parted in three: those it learns from, those by which the best checkpoint is chosen, and those on
which its agreement with people is stated, which nothing was chosen by.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import JsonValue

from proctor.core import DASH, InputError, content_hash, count_of, number, number_interval
from proctor.judges.dimensions import Case, GenerativeManifest, RatedCase, all_marks, rubric_prompts
from proctor.models import Weights, weights_hash
from proctor.training.classifier import shuffled_ratings
from proctor.training.fine_tuning import (
    LoraSettings,
    data_hash,
    fine_tune,
    footprint,
    measure,
    trainable_adapter,
    with_adapter,
)
from proctor.training.grpo import GrpoSettings, reinforce
from proctor.training.held_out import HeldOutAgreement, encounter_folds, held_out_agreement, refuse_leaks
from proctor.training.judge_questions import JudgeQuestion, judge_questions, merit, parity_items, rewarded_task, scores
from proctor.training.parity import remembered, write_items
from proctor.training.run_folder import CheckpointEvaluation, Evaluate, RunFolder, read_origin, template_hash

_BATCH = 8
_BEYOND = 8  # tokens that a sampled reply may be longer than the longest form
_SAME = 1e-9


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


def judge_card(manifest: GenerativeManifest) -> str:
    """The card as Markdown, with the fields that model pages read at its head."""
    whole = not manifest.adapter_sha256
    head = [
        "---",
        *([f"license: {manifest.licence}"] if manifest.licence else []),
        *([] if whole else [f"base_model: {_name(manifest.base)}", "library_name: peft"]),
        "tags:",
        "- judge",
        "- medical",
        "---",
    ]
    agreement = [
        f"| {one['language']} | {one['dimension'] or 'all, mean'} | {_figure(one, 'value')} "
        f"| {number_interval(_number(one, 'ci_low'), _number(one, 'ci_high'))} "
        f"| {one['answers']} of {one['encounters']} encounters |"
        for one in manifest.held_out
    ]
    dimensions = [
        f"- {language}: " + ", ".join(f"{name} ({', '.join(map(_short, levels))})" for name, levels in own.items())
        for language, own in manifest.dimensions.items()
    ]
    settings = [f"- {name}: {value}" for name, value in sorted(manifest.settings.items())]
    pictures = "It was trained with pictures." if manifest.pictures else "It is a model of texts and sees no picture."
    return "\n".join(
        [
            *head,
            "",
            "# A judge trained on people's ratings",
            "",
            (
                f"It fills in a level for each dimension of an answer, all in one reply. {pictures} Use it with "
                "`proctor score BENCHMARK --judge generative-judge:DIR`. It rates answers of automatic "
                "systems for research; it is no medical device, and no person's care may depend on it."
            ),
            "",
            "## Agreement with people",
            "",
            (
                "Mean of Kendall's τ-b, Pearson's and Spearman's correlation on encounters that had no part in training, "
                "with 95 % intervals over samples of encounters."
            ),
            "",
            "| language | dimension | agreement | interval | answers |",
            "|---|---|---|---|---|",
            *agreement,
            "",
            "## What it learned from",
            "",
            (
                f"{count_of(manifest.answers, 'rated answer')} of {count_of(manifest.encounters, 'encounter')}, those "
                f"included by which the checkpoint was chosen. SHA-256 of the data: `{manifest.data_sha256}`."
            ),
            "",
            *dimensions,
            "",
            "## How",
            "",
            *settings,
            f"- base: {_name(manifest.base)}, SHA-256 `{manifest.base_sha256}`",
            f"- chat template: SHA-256 `{manifest.template_sha256}`",
            f"- trained weights: SHA-256 `{manifest.adapter_sha256 or manifest.merged_sha256}`",
            "",
            f"Licence: {manifest.licence or 'not stated; that of the base and of the ratings hold.'}",
            "",
        ]
    )


def _name(base: str) -> str:
    """The base's folder, without the path on somebody's machine."""
    return base.rstrip("/").rpartition("/")[2]


def _number(row: Mapping[str, object], name: str) -> float | None:
    value = row[name]
    return float(value) if isinstance(value, int | float) else None


def _figure(row: Mapping[str, object], name: str) -> str:
    value = _number(row, name)
    return DASH if value is None else number(value)


def _short(level: float) -> str:
    return f"{level:g}"
