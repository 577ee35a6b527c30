"""Train judges on people's ratings: a classifier, or a fine-tuned language model."""

# No `from __future__ import annotations`: the command line reads these annotations.

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, Unpack

from pydantic import JsonValue

from proctor.core import (
    DASH,
    InputError,
    Option,
    content_hash,
    count_of,
    number,
    number_interval,
    plain_table,
    safe_cell,
    write_whole,
)
from proctor.shell import (
    Concurrency,
    Draws,
    LoraOptions,
    MediaFolder,
    ModelAccess,
    ModelOptions,
    Seed,
    StoredRuns,
    filled,
    judge_prompts_of,
    listed,
    media_at,
    open_store,
    ratings_in,
    stored,
    sync_twin,
)
from proctor_train.answerer_training import lora_settings
from proctor_train.judge_fit import FittedJudge

if TYPE_CHECKING:
    from proctor.core import Table
    from proctor.judges.dimensions import RatedCase
    from proctor.runs import PaidJudgements, Store
    from proctor_train import GenerativePlan, GrpoSettings, JudgeParts, TrainedGenerative
    from proctor_train.mediqa_eval.classifier import ClassifierRecipe, TrainedClassifier

    _Store = Store | str | Path | None
else:
    _Store = Any

_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]+)?")

_EMBEDDED = "all-MiniLM-L6-v2"

_CLASSIFIER = "classifier-judge"

_Rated = Mapping[tuple[str, str], "RatedCase"]


def _encoders(given: Any) -> dict[str, str]:
    """Encoders by language ('': all others)."""
    found = {"": _EMBEDDED}
    for one in listed(given):
        language, _, folder = one.partition("=")
        own = bool(folder) and _LANGUAGE.fullmatch(language)
        found |= {language: folder} if own else {"": one}
    return found


class ClassifierOptions(ModelOptions, total=False):
    """How a classifier is trained. `encoders` are names or folders by language ('': all others), of which the top
    `layers` are trained as well as the heads. `audited` is a store with answers for a later audit: training answers
    that share an encounter with them are refused. `on_change` is called with the number of finished networks and of
    all."""

    encoders: Annotated[
        Mapping[str, str],
        Option(
            "An encoder, or LANGUAGE=DIR for one language; may be repeated. [default: all-MiniLM-L6-v2, embedded]",
            "--encoder",
            {"": _EMBEDDED},
            shell=list[str],
            read=_encoders,
            metavar="[LANGUAGE=]DIR",
        ),
    ]
    layers: Annotated[int, Option("Top layers of the encoder to train.", default=0, low=0, high=200)]
    loss: Annotated[
        Literal["ordinal", "classes"], Option("Treat ratings as ordered levels, or as classes.", default="ordinal")
    ]
    class_weights: Annotated[Literal["balanced", "none"], Option(default="balanced")]
    references: Annotated[bool, Option("Include the reference answers in the input.", default=False)]
    caption_model: Annotated[
        str, Option("A model that writes captions of the pictures; they are kept in the store.", default="")
    ]
    media: MediaFolder
    max_tokens: Annotated[int, Option("Longest input; longer ones are truncated.", default=512, low=16)]
    seeds: Annotated[int, Option("Number of networks to average.", default=5, low=1, high=100)]
    folds: Annotated[int, Option("Folds of cross-validation over encounters; 0: none.", default=5, low=0, high=100)]
    epochs: Annotated[int, Option("Passes over the training answers, at most.", default=20, low=1, high=1000)]
    learning_rate: Annotated[float, Option("Learning rate of the encoder's layers.", default=5e-5, low=0.0)]
    audited: Annotated[
        _Store, Option("A store whose encounters must not be trained on: the audit's.", default=None, shell=str)
    ]
    shuffled: Annotated[
        bool, Option("A control: permute the ratings; no judge is written.", "--shuffled-ratings", default=False)
    ]
    concurrency: Concurrency
    draws: Draws
    seed: Seed
    on_change: Annotated[Callable[[int, int], None], Option(default=lambda _done, _of: None)]


async def train_classifier_judge_async(
    source: "StoredRuns | Store | str | Path | None" = None,
    benchmark: str = "",
    *,
    out: str | Path,
    **options: Unpack[ClassifierOptions],
) -> FittedJudge:
    """Train `classifier-judge` on people's ratings of stored answers.

    The folder `out` keeps settings, steps and states, so that the same call continues where it stopped. In the end it
    holds the judge (`judge`) and its out-of-fold scores (`out-of-fold.csv`), which are also stored as those of a
    scorer. Raises `InputError` if there are no ratings, for a folder of another training, and if an encounter is among
    the `audited` ones. The command is `proctor train classifier-judge`.
    """
    from proctor_train import RunFolder
    from proctor_train.mediqa_eval.classifier import classifier_settings, train_classifier

    given, path = filled("train_classifier_judge", ClassifierOptions, options), Path(out)
    where = stored(source, benchmark)
    store, name = where.store, where.benchmark
    images = media_at(given["media"])
    rated = dict(sorted(ratings_in(store, name, images)[1].items()))
    cases = list(rated.values())
    if given["audited"]:
        refuse_audited(cases, open_store(given["audited"], create=False), name, images)
    captions, captioner, paid = await _captions(store, name, cases, given)
    recipe = _recipe(given, captioner)
    with RunFolder.opened(path, classifier_settings(cases, captions, recipe)) as folder:
        trained = train_classifier(cases, captions, recipe, folder, given["on_change"])
        done = (
            _write_classifier(path, trained, rated, store, name)
            if trained.manifest
            else f"ratings shuffled: no judge in {path}"
        )
        folder.finish({"done": done})
    tables = (_classifier_agreement(cases, trained, recipe, given),) if trained.scores else ()
    return FittedJudge(path, done, tables, _classifier_notes(trained, recipe, cases, paid))


train_classifier_judge = sync_twin(train_classifier_judge_async)


def _recipe(given: ClassifierOptions, captioner: str) -> "ClassifierRecipe":
    from proctor_train.mediqa_eval.classifier import ClassifierRecipe

    return ClassifierRecipe(
        encoders=dict(given["encoders"]),
        loss=given["loss"],
        class_weights=given["class_weights"],
        references=given["references"],
        captions=captioner,
        layers=given["layers"],
        max_tokens=given["max_tokens"],
        seeds=given["seeds"],
        folds=given["folds"],
        epochs=given["epochs"],
        learning_rate=given["learning_rate"],
        seed=given["seed"],
        shuffled=given["shuffled"],
    )


def refuse_audited(cases: "Sequence[RatedCase]", store: "Store", benchmark: str, images: Path | None) -> None:
    """Raises `InputError` if a rated answer shares its encounter with an item of the store for the audit."""
    from proctor.judges.dimensions import case_of
    from proctor_train import refuse_leaks

    scheme = store.card(benchmark).rating
    if scheme is None:
        raise InputError(store.shown, f"benchmark {benchmark}", found="no dimensions", expected="a rated benchmark")
    items = [item for item in store.items(benchmark) if scheme.of(str(item.tags.get("language", "")))]
    held = (case_of(item, "", scheme, images) for item in items)
    refuse_leaks((case.case for case in cases), held, where=f"the audited answers of {store.shown}")


async def _captions(
    store: "Store", benchmark: str, cases: "Sequence[RatedCase]", given: ClassifierOptions
) -> tuple[list[str], str, "PaidJudgements | None"]:
    """A caption for each answer ('' without a model), the model's name, and the cost. Raises `InfrastructureError` if
    the model fails; captions that were written are kept for the next call."""
    if not given["caption_model"]:
        return [""] * len(cases), "", None
    from proctor.judges.dimensions import ClientPool
    from proctor.models import reachable
    from proctor.runs import PaidJudgements
    from proctor_train.mediqa_eval.classifier import write_captions

    if given["media"] is None:
        raise InputError("--caption-model needs the folder of the pictures: --media FOLDER")
    paid, pool = PaidJudgements(store), ClientPool(ModelAccess(given).specs([given["caption_model"]]))
    client = pool.client(
        pool.only(_CLASSIFIER), {"temperature": 0.0}
    )  # as the judge asks it, or all would be asked twice
    try:
        await reachable(client.servers)
        texts = [case.case for case in cases]
        found = await write_captions(
            texts, client, paid, judge_prompts_of(store.card(benchmark).read_by), given["concurrency"]
        )
    finally:
        await pool.aclose()
    return found, client.name, paid


def _write_classifier(path: Path, trained: "TrainedClassifier", rated: _Rated, store: "Store", benchmark: str) -> str:
    """Write the judge and the out-of-fold scores, if they are not there yet. Returns what was done."""
    from proctor.runs import add_recorded_scores
    from proctor_train.mediqa_eval.classifier import save_classifier

    assert trained.manifest is not None  # noqa: S101 - asked before
    judge = path / "judge"
    if not judge.exists():
        save_classifier(judge, trained.states, trained.manifest)
    counted = ", ".join(
        f"{count_of(one.answers, 'answer')} in {name}" for name, one in trained.manifest.languages.items()
    )
    done = f"{_CLASSIFIER}[{trained.manifest.sha256[:8]}] learned from {counted}: {judge}"
    if not trained.scores:
        return done
    keys = [(*key, name) for key, one in rated.items() for name in one.values]
    scorer = f"{_CLASSIFIER}/out-of-fold[{content_hash([dict(score) for score in trained.mean_scores])[:8]}]"
    columns = {_CLASSIFIER: trained.mean_scores} | {f"seed {k}": own for k, own in enumerate(trained.scores, start=1)}
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["item", "system", "dimension", *map(safe_cell, columns)])
    rows = {key: row for row, key in enumerate(rated)}
    for item, system, name in keys:
        writer.writerow(
            [*map(safe_cell, (item, system, name)), *(own[rows[item, system]][name] for own in columns.values())]
        )
    write_whole(path / "out-of-fold.csv", text.getvalue())
    found = {key: trained.mean_scores[rows[key[0], key[1]]][key[2]] for key in keys}
    add_recorded_scores(store, benchmark, scorer, found)
    return f"{done}; scores of left-out encounters as {scorer} in {store.shown} and in {path / 'out-of-fold.csv'}"


def _classifier_agreement(
    cases: "Sequence[RatedCase]", trained: "TrainedClassifier", recipe: "ClassifierRecipe", given: ClassifierOptions
) -> "Table":
    """The agreement on left-out encounters: the average of all seeds, and the variation between seeds."""
    from proctor_train import held_out_agreement, shuffled_ratings

    people = shuffled_ratings(cases, recipe.seed) if recipe.shuffled else list(cases)
    together = held_out_agreement(people, trained.mean_scores, draws=given["draws"], seed=given["seed"])
    level = held_out_agreement(people, trained.level_scores, draws=0)
    each = [held_out_agreement(people, score, draws=0) for score in trained.scores]
    rows = []
    for k, one in enumerate(together):
        own = [row[k].value for row in each]
        known = [value for value in own if value is not None]
        whole = len(known) == len(own)
        rows.append(
            (
                *(one.language, one.dimension or "ALL", number(one.value), number_interval(one.ci_low, one.ci_high)),
                number(mean(known)) if whole else DASH,
                number(stdev(known)) if whole and len(known) > 1 else DASH,
                f"{number(min(known))} to {number(max(known))}" if whole else DASH,
                number(level[k].value),
            )
        )
    heads = ("language", "dimension", ">all seeds", ">interval", ">one seed", ">SD", ">lowest to highest", ">as levels")
    what = "shuffled ratings, a control" if recipe.shuffled else f"{recipe.folds} folds"
    return plain_table(f"Agreement on left-out encounters ({what}, {count_of(recipe.seeds, 'seed')})", heads, rows)


def _classifier_notes(
    trained: "TrainedClassifier",
    recipe: "ClassifierRecipe",
    cases: "Sequence[RatedCase]",
    paid: "PaidJudgements | None",
) -> tuple[str, ...]:
    from proctor_train.mediqa_eval.classifier import CUT_RULE

    notes = [
        f"{language}: cut inputs: {', '.join(parts)}. {CUT_RULE}"
        for language, cut in trained.cut.items()
        if (parts := [f"{part} of {count_of(count, 'answer')}" for part, count in cut.items()])
    ]
    with_images = len({case.case.encounter for case in cases if case.case.images})
    if with_images and not recipe.captions:
        notes.append(
            f"No captions: the pictures of {count_of(with_images, 'encounter')} are not seen (--caption-model)."
        )
    if recipe.seeds < 5:
        notes.append(f"{count_of(recipe.seeds, 'seed')}: too few to say how far seeds are apart; 5 or more do.")
    if paid is not None:
        notes.append(count_of(paid.count, "new caption"))
    return tuple(notes)


_GENERATIVE = "generative-judge"

_REWARDS = "Rewards"


class RewardOptions(TypedDict, total=False):
    """Reinforcement learning after fine-tuning (see `GrpoSettings`)."""

    then: Annotated[
        Literal["nothing", "grpo"],
        Option("grpo: continue with rewards for sampled replies.", default="nothing", group=_REWARDS),
    ]
    reward: Annotated[
        Literal["graded", "exact"],
        Option("Distance and order, or exact match as published.", default="graded", group=_REWARDS),
    ]
    samples: Annotated[int, Option("Replies to each prompt.", default=8, low=2, group=_REWARDS)]
    step_prompts: Annotated[int, Option("Prompts per step.", default=8, low=2, group=_REWARDS)]
    reward_steps: Annotated[int, Option("Steps.", default=200, low=1, group=_REWARDS)]
    reward_rate: Annotated[float, Option("Learning rate.", default=1e-5, low=1e-9, group=_REWARDS)]
    kl: Annotated[
        float, Option("Weight of the KL divergence from the initial policy.", default=0.0, low=0, group=_REWARDS)
    ]
    sampling_temperature: Annotated[float, Option("Temperature of sampling.", default=1.0, low=0.01, group=_REWARDS)]


class GenerativeOptions(LoraOptions, RewardOptions, total=False):
    """How a judge is fine-tuned (see `LoraSettings`). Of the `folds` parts of the encounters, part `fold` is held out,
    the next one is used to choose the checkpoint, and the others are the training data. `audited` is a store with
    answers for a later audit: training answers that share an encounter with them are refused. `shuffled` permutes the
    ratings by the seed, as a control. `licence` goes into the model card."""

    media: MediaFolder
    folds: Annotated[int, Option("Parts of the encounters.", default=5, low=3, high=100)]
    fold: Annotated[int, Option("The part that is held out.", default=1, low=1)]
    audited: Annotated[
        _Store, Option("A store whose encounters must not be trained on: the audit's.", default=None, shell=str)
    ]
    shuffled: Annotated[
        bool, Option("A control: shuffle the ratings; no judge is written.", "--shuffled-ratings", default=False)
    ]
    licence: Annotated[str, Option("The licence of the weights, for the model card.", default="")]
    seed: Seed


def train_generative_judge(
    source: "StoredRuns | Store | str | Path | None" = None,
    benchmark: str = "",
    *,
    base: str | Path,
    out: str | Path,
    dry_run: bool = False,
    **options: Unpack[GenerativeOptions],
) -> FittedJudge:
    """Fine-tune the weights in the folder `base` as `generative-judge`, on people's ratings of stored answers.

    The folder `out` keeps settings, steps and checkpoints, so that the same call continues where it stopped. In the end
    it is the judge, with a model card. Its scores of the held-out answers are in `held-out.csv`, and in the store under
    a name that all folds share. `dry_run` trains nothing, and reports lengths, memory and the result of always giving
    the most frequent rating. Raises `InputError` if there are no ratings, for a folder of another training, and if an
    encounter is among the `audited` ones. The command is `proctor train generative-judge`.
    """
    from proctor_train import GenerativePlan, part_encounters

    given = filled("train_generative_judge", GenerativeOptions, options)
    where, path = stored(source, benchmark), Path(out)
    store, name = where.store, where.benchmark
    images = media_at(given["media"])
    rated = dict(sorted(ratings_in(store, name, images)[1].items()))
    cases = list(rated.values())
    if given["audited"]:
        refuse_audited(cases, open_store(given["audited"], create=False), name, images)
    parts = part_encounters(cases, given["folds"], given["fold"], given["seed"])
    plan = GenerativePlan(
        base=Path(base).expanduser(),
        settings=lora_settings(given),
        prompts=judge_prompts_of(store.card(name).read_by),
        folds=given["folds"],
        fold=given["fold"],
        shuffled=given["shuffled"],
        licence=given["licence"],
        then=_rewards(given),
    )
    notes = _generative_notes(cases, images)
    if dry_run:
        return _dry(parts, plan, path, notes)
    from proctor_train import train_generative

    trained = train_generative(parts, plan, path)
    shown = (_generative_agreement(trained, plan),)
    if plan.shuffled:
        return FittedJudge(path, f"ratings shuffled: no judge in {path}", shown, notes)
    done = _write_generative(path, trained, plan, rated, store, name)
    return FittedJudge(path, done, shown, notes)


def _rewards(given: RewardOptions) -> "GrpoSettings | None":
    from proctor_train import GrpoSettings

    if given["then"] == "nothing":
        return None
    return GrpoSettings(
        reward=given["reward"],
        samples=given["samples"],
        prompts=given["step_prompts"],
        steps=given["reward_steps"],
        learning_rate=given["reward_rate"],
        kl=given["kl"],
        temperature=given["sampling_temperature"],
    )


def _dry(parts: "JudgeParts", plan: "GenerativePlan", path: Path, notes: tuple[str, ...]) -> FittedJudge:
    from proctor_train import majority, rehearse

    rows = [
        (what, str(len(some)), str(len({rated_case.case.encounter for rated_case in some})))
        for what, some in (("learned from", parts.learn), ("chosen by", parts.choose), ("held out", parts.held))
    ]
    common = [(language, name, f"{value:g}", number(share)) for language, name, value, share in majority(parts)]
    tables = (
        plain_table("Parts", ("", ">answers", ">encounters"), rows),
        plain_table(
            "Always the commonest rating", ("language", "dimension", ">rating", ">share of held-out ratings"), common
        ),
    )
    return FittedJudge(path, "nothing trained", tables, (*rehearse(parts, plan), *notes))


def _generative_agreement(trained: "TrainedGenerative", plan: "GenerativePlan") -> "Table":
    rows = [
        (
            *(
                agreement.language,
                agreement.dimension or "ALL",
                number(agreement.value),
                number_interval(agreement.ci_low, agreement.ci_high),
            ),
            *(str(agreement.answers), str(agreement.encounters), agreement.reason),
        )
        for agreement in trained.agreement
    ]
    what = "shuffled ratings, a control" if plan.shuffled else f"fold {plan.fold} of {plan.folds}"
    heads = ("language", "dimension", ">agreement", ">interval", ">answers", ">encounters", "")
    return plain_table(f"Agreement on held-out encounters ({what})", heads, rows)


def _generative_notes(cases: "Sequence[RatedCase]", images: Path | None) -> tuple[str, ...]:
    unseen = len({case.case.encounter for case in cases if case.case.images})
    if images is not None or not unseen:
        return ()
    return (f"The pictures of {count_of(unseen, 'encounter')} are not at hand (--media): it learns from texts alone.",)


def _write_generative(
    path: Path,
    trained: "TrainedGenerative",
    plan: "GenerativePlan",
    rated: "Mapping[tuple[str, str], RatedCase]",
    store: "Store",
    benchmark: str,
) -> str:
    """Write the manifest, the card and the scores of held-out answers. Returns what was done."""
    from proctor.runs import add_recorded_scores
    from proctor_train import judge_card

    text = trained.manifest.model_dump_json(indent=1) + "\n"
    write_whole(path / "manifest.json", text)
    write_whole(path / "README.md", judge_card(trained.manifest))
    keys = {id(one): key for key, one in rated.items()}
    found = {
        (*keys[id(one)], name): value
        for one, own in zip(trained.held, trained.scores, strict=True)
        for name, value in own.items()
    }
    rows = io.StringIO(newline="")
    writer = csv.writer(rows, lineterminator="\n")
    writer.writerow(["item", "system", "dimension", _GENERATIVE])
    writer.writerows([*map(safe_cell, key), value] for key, value in found.items())
    write_whole(path / "held-out.csv", rows.getvalue())
    same: dict[str, JsonValue] = {
        "settings": plan.settings.model_dump(),
        "base": trained.manifest.base_sha256,
        "folds": plan.folds,
    }
    scorer = f"{_GENERATIVE}/out-of-fold[{content_hash(same)[:8]}]"
    add_recorded_scores(store, benchmark, scorer, found, more=True)
    learned = f"{_GENERATIVE} learned from {count_of(trained.manifest.answers, 'answer')}: {path}"
    return f"{learned}; scores of held-out encounters as {scorer} in {store.shown} and in {path / 'held-out.csv'}"
