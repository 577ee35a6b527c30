"""`proctor train generative-judge`: local weights fine-tuned to judge, and their scores of held-out encounters."""

# No `from __future__ import annotations`: the command line reads these annotations.

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, Unpack

from pydantic import JsonValue

from proctor.api.fitting import FittedJudge
from proctor.api.lora_options import LoraOptions, lora_settings
from proctor.api.options import MediaFolder, Seed, filled
from proctor.api.scores import judge_prompts_of, ratings_in
from proctor.api.sources import Evaluation, media_at, open_store, stored
from proctor.api.train_classifier import refuse_audited
from proctor.core import Option, content_hash, count_of, number, number_interval, plain_table, write_whole

if TYPE_CHECKING:
    from proctor.core import Table
    from proctor.judges.dimensions import RatedCase
    from proctor.runs import Store
    from proctor.training import GenerativePlan, GrpoSettings, JudgeParts, TrainedGenerative

    _Store = Store | str | Path | None
else:
    _Store = Any

_JUDGE = "generative-judge"
_REWARDS = "Rewards"


class RewardOptions(TypedDict, total=False):
    """Whether a judge learns on from rewards after it was fine-tuned, and how (see `GrpoSettings`)."""

    then: Annotated[
        Literal["nothing", "grpo"],
        Option("grpo: learn on from rewards for sampled replies.", default="nothing", group=_REWARDS),
    ]
    reward: Annotated[
        Literal["graded", "exact"],
        Option("Distance and order, or exact match as published.", default="graded", group=_REWARDS),
    ]
    samples: Annotated[int, Option("Replies to each prompt.", default=8, low=2, group=_REWARDS)]
    step_prompts: Annotated[int, Option("Prompts of a step.", default=8, low=2, group=_REWARDS)]
    reward_steps: Annotated[int, Option("Steps.", default=200, low=1, group=_REWARDS)]
    reward_rate: Annotated[float, Option("Rate of learning.", default=1e-5, low=1e-9, group=_REWARDS)]
    kl: Annotated[float, Option("Weight of the distance from before.", default=0.0, low=0, group=_REWARDS)]
    sampling_temperature: Annotated[float, Option("Temperature of sampling.", default=1.0, low=0.01, group=_REWARDS)]


class GenerativeOptions(LoraOptions, RewardOptions, total=False):
    """How a judge is fine-tuned (see `LoraSettings`), on all encounters but those of `fold`, one of `folds`, and
    those of the next one, by which the checkpoint is chosen. `audited` is a store with answers that the judge is to be
    audited on: what shares an encounter with them is refused. `shuffled` permutes the ratings by the seed, as a control.
    `licence` goes into the model card."""

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
    source: "Evaluation | Store | str | Path | None" = None,
    benchmark: str = "",
    *,
    base: str | Path,
    out: str | Path,
    dry_run: bool = False,
    **options: Unpack[GenerativeOptions],
) -> FittedJudge:
    """Fine-tunes the weights in the folder `base` on people's ratings of stored answers, as `generative-judge`.

    The folder `out` keeps settings, steps and checkpoints, so that the same call goes on where it was stopped; in the
    end it is the judge, with a model card. Its scores of the held-out answers are in `held-out.csv`, and in the store
    under a name that all folds share. With `dry_run` nothing is trained: lengths, memory and what the commonest rating
    earns are told. Raises `InputError` where nobody rated anything, for a folder of another training, and where an
    encounter is among the `audited` ones. The command is `proctor train generative-judge`.
    """
    from proctor.training import GenerativePlan, part_encounters

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
        prompts=judge_prompts_of(name),
        folds=given["folds"],
        fold=given["fold"],
        shuffled=given["shuffled"],
        licence=given["licence"],
        then=_rewards(given),
    )
    notes = _notes(cases, images)
    if dry_run:
        return _dry(parts, plan, path, notes)
    from proctor.training import train_generative

    trained = train_generative(parts, plan, path)
    shown = (_agreement(trained, plan),)
    if plan.shuffled:
        return FittedJudge(path, f"ratings shuffled: no judge in {path}", shown, notes)
    done = _written(path, trained, plan, rated, store, name)
    return FittedJudge(path, done, shown, notes)


def _rewards(given: RewardOptions) -> "GrpoSettings | None":
    from proctor.training import GrpoSettings

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
    from proctor.training import majority, rehearse

    rows = [
        (what, str(len(some)), str(len({one.case.encounter for one in some})))
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


def _agreement(trained: "TrainedGenerative", plan: "GenerativePlan") -> "Table":
    rows = [
        (
            *(one.language, one.dimension or "ALL", number(one.value), number_interval(one.ci_low, one.ci_high)),
            *(str(one.answers), str(one.encounters), one.reason),
        )
        for one in trained.agreement
    ]
    what = "shuffled ratings, a control" if plan.shuffled else f"fold {plan.fold} of {plan.folds}"
    heads = ("language", "dimension", ">agreement", ">interval", ">answers", ">encounters", "")
    return plain_table(f"Agreement on held-out encounters ({what})", heads, rows)


def _notes(cases: "Sequence[RatedCase]", images: Path | None) -> tuple[str, ...]:
    unseen = len({one.case.encounter for one in cases if one.case.images})
    if images is not None or not unseen:
        return ()
    return (f"The pictures of {count_of(unseen, 'encounter')} are not at hand (--media): it learns from texts alone.",)


def _written(
    path: Path,
    trained: "TrainedGenerative",
    plan: "GenerativePlan",
    rated: "Mapping[tuple[str, str], RatedCase]",
    store: "Store",
    benchmark: str,
) -> str:
    """Writes manifest, card and the scores of held-out answers; says what."""
    from proctor.runs import add_recorded_scores
    from proctor.training import judge_card

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
    writer.writerow(["item", "system", "dimension", _JUDGE])
    writer.writerows([*key, value] for key, value in found.items())
    write_whole(path / "held-out.csv", rows.getvalue())
    same: dict[str, JsonValue] = {
        "settings": plan.settings.model_dump(),
        "base": trained.manifest.base_sha256,
        "folds": plan.folds,
    }
    scorer = f"{_JUDGE}/out-of-fold[{content_hash(same)[:8]}]"
    add_recorded_scores(store, benchmark, scorer, found, more=True)
    learned = f"{_JUDGE} learned from {count_of(trained.manifest.answers, 'answer')}: {path}"
    return f"{learned}; scores of held-out encounters as {scorer} in {store.shown} and in {path / 'held-out.csv'}"
