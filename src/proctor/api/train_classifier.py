"""`proctor train classifier-judge`: a trained judge of dimensions, and its scores of encounters that it was not trained
on."""

# No `from __future__ import annotations`: the command line reads these annotations.

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack

from proctor.api.access import ModelAccess
from proctor.api.fitting import FittedJudge
from proctor.api.options import Concurrency, Draws, MediaFolder, ModelOptions, Seed, filled, listed
from proctor.api.scores import judge_prompts_of, ratings_in
from proctor.api.sources import Evaluation, media_at, open_store, stored, sync_twin
from proctor.core import (
    DASH,
    InputError,
    Option,
    content_hash,
    count_of,
    number,
    number_interval,
    plain_table,
    write_whole,
)

if TYPE_CHECKING:
    from proctor.core import Table
    from proctor.judges.dimensions import RatedCase
    from proctor.runs import PaidVotes, Store
    from proctor.training import ClassifierRecipe, TrainedClassifier

    _Store = Store | str | Path | None
else:
    _Store = Any

_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]+)?")
_EMBEDDED = "all-MiniLM-L6-v2"
_JUDGE = "classifier-judge"
_Rated = Mapping[tuple[str, str], "RatedCase"]


def _encoders(given: Any) -> dict[str, str]:
    """Encoders by language ('': of every other one)."""
    found = {"": _EMBEDDED}
    for one in listed(given):
        language, _, folder = one.partition("=")
        own = bool(folder) and _LANGUAGE.fullmatch(language)
        found |= {language: folder} if own else {"": one}
    return found


class ClassifierOptions(ModelOptions, total=False):
    """How a classifier is trained. `encoders` are names or folders by language ('': of every other one), of which the
    top `layers` are trained besides the heads. `audited` is a store with answers that the judge is to be audited on: what
    shares an encounter with them is refused. `on_change` is told how many networks are done, of how many."""

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
    layers: Annotated[int, Option("Top layers of the encoder that are trained.", default=0, low=0, high=200)]
    loss: Annotated[
        Literal["ordinal", "classes"], Option("Ordered levels, or classes without an order.", default="ordinal")
    ]
    class_weights: Annotated[
        Literal["balanced", "none"], Option("Rare levels weigh more, or as much as all.", default="balanced")
    ]
    references: Annotated[bool, Option("Read the reference answers, too.", default=False)]
    caption_model: Annotated[
        str, Option("A model that puts the pictures into words; its captions are kept in the store.", default="")
    ]
    media: MediaFolder
    max_tokens: Annotated[int, Option("Longest input; longer ones are cut and counted.", default=512, low=16)]
    seeds: Annotated[int, Option("Networks that are averaged.", default=5, low=1, high=100)]
    folds: Annotated[
        int, Option("Parts of the encounters that are left out in turn; 0: no figures.", default=5, low=0, high=100)
    ]
    epochs: Annotated[int, Option("Passes over the training answers, at most.", default=20, low=1, high=1000)]
    learning_rate: Annotated[float, Option("Of the encoder's layers.", default=5e-5, low=0.0)]
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
    source: "Evaluation | Store | str | Path | None" = None,
    benchmark: str = "",
    *,
    out: str | Path,
    **options: Unpack[ClassifierOptions],
) -> FittedJudge:
    """Trains `classifier-judge` on people's ratings of stored answers.

    The folder `out` keeps settings, steps and states, so that the same call goes on where it was stopped; in the end it
    holds the judge (`judge`) and its scores of the answers of left-out encounters (`out-of-fold.csv`), which are in the
    store as well, as those of a scorer. Raises `InputError` where nobody rated anything, for a folder of another
    training, and where an encounter is among the `audited` ones. The command is `proctor train classifier-judge`.
    """
    from proctor.training import RunFolder, classifier_settings, train_classifier

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
            _written(path, trained, rated, store, name) if trained.manifest else f"ratings shuffled: no judge in {path}"
        )
        folder.finish({"done": done})
    tables = (_figures(cases, trained, recipe, given),) if trained.scores else ()
    return FittedJudge(path, done, tables, _notes(trained, recipe, cases, paid))


train_classifier_judge = sync_twin(train_classifier_judge_async)


def _recipe(given: ClassifierOptions, captioner: str) -> "ClassifierRecipe":
    from proctor.training import ClassifierRecipe

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
    """Raises `InputError` where a rated answer shares its encounter with an item that another store is audited on."""
    from proctor.judges.dimensions import case_of
    from proctor.training import refuse_leaks

    scheme = store.card(benchmark).rating
    if scheme is None:
        raise InputError(store.shown, f"benchmark {benchmark}", found="no dimensions", expected="a rated benchmark")
    items = [one for one in store.items(benchmark) if scheme.of(str(one.tags.get("language", "")))]
    held = (case_of(one, "", scheme, images) for one in items)
    refuse_leaks((one.case for one in cases), held, where=f"the audited answers of {store.shown}")


async def _captions(
    store: "Store", benchmark: str, cases: "Sequence[RatedCase]", given: ClassifierOptions
) -> tuple[list[str], str, "PaidVotes | None"]:
    """A caption for each answer ('' without a model), the model's name, and what was paid. Raises `InfrastructureError`
    where the model gives none: those that it gave are kept, and not asked for again."""
    if not given["caption_model"]:
        return [""] * len(cases), "", None
    from proctor.judges.classifier import write_captions
    from proctor.judges.dimensions import ClientPool
    from proctor.models import reachable
    from proctor.runs import PaidVotes

    if given["media"] is None:
        raise InputError("--caption-model", found="no --media", expected="the folder of the pictures")
    paid, pool = PaidVotes(store), ClientPool(ModelAccess(given).specs([given["caption_model"]]))
    client = pool.client(pool.only(_JUDGE), {"temperature": 0.0})  # as the judge asks it, or all would be asked twice
    try:
        await reachable(client.spec.servers)
        texts = [one.case for one in cases]
        found = await write_captions(texts, client, paid, judge_prompts_of(benchmark), given["concurrency"])
    finally:
        await pool.aclose()
    return found, client.name, paid


def _written(path: Path, trained: "TrainedClassifier", rated: _Rated, store: "Store", benchmark: str) -> str:
    """Writes the judge and the scores of left-out encounters, where they are not there yet; says what."""
    from proctor.judges.classifier import save_classifier
    from proctor.runs import add_recorded_scores

    assert trained.manifest is not None  # noqa: S101 - asked before
    judge = path / "judge"
    if not judge.exists():
        save_classifier(judge, trained.states, trained.manifest)
    counted = ", ".join(
        f"{count_of(one.answers, 'answer')} in {name}" for name, one in trained.manifest.languages.items()
    )
    done = f"{_JUDGE}[{trained.manifest.sha256[:8]}] learned from {counted}: {judge}"
    if not trained.scores:
        return done
    keys = [(*key, name) for key, one in rated.items() for name in one.values]
    scorer = f"{_JUDGE}/out-of-fold[{content_hash([dict(one) for one in trained.mean_scores])[:8]}]"
    columns = {_JUDGE: trained.mean_scores} | {f"seed {k}": own for k, own in enumerate(trained.scores, start=1)}
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["item", "system", "dimension", *columns])
    places = {key: place for place, key in enumerate(rated)}
    for item, system, name in keys:
        writer.writerow([item, system, name, *(own[places[item, system]][name] for own in columns.values())])
    write_whole(path / "out-of-fold.csv", text.getvalue())
    found = {key: trained.mean_scores[places[key[0], key[1]]][key[2]] for key in keys}
    add_recorded_scores(store, benchmark, scorer, found)
    return f"{done}; scores of left-out encounters as {scorer} in {store.shown} and in {path / 'out-of-fold.csv'}"


def _figures(
    cases: "Sequence[RatedCase]", trained: "TrainedClassifier", recipe: "ClassifierRecipe", given: ClassifierOptions
) -> "Table":
    """The agreement on left-out encounters: of all seeds together, and how far the seeds are apart."""
    from proctor.training import held_out_agreement, shuffled_ratings

    people = shuffled_ratings(cases, recipe.seed) if recipe.shuffled else list(cases)
    together = held_out_agreement(people, trained.mean_scores, draws=given["draws"], seed=given["seed"])
    level = held_out_agreement(people, trained.level_scores, draws=0)
    each = [held_out_agreement(people, one, draws=0) for one in trained.scores]
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


def _notes(
    trained: "TrainedClassifier", recipe: "ClassifierRecipe", cases: "Sequence[RatedCase]", paid: "PaidVotes | None"
) -> tuple[str, ...]:
    from proctor.judges.classifier import CUT_RULE

    notes = [
        f"{language}: cut inputs: {', '.join(parts)}. {CUT_RULE}"
        for language, cut in trained.cut.items()
        if (parts := [f"{part} of {count_of(count, 'answer')}" for part, count in cut.items()])
    ]
    with_images = len({one.case.encounter for one in cases if one.case.images})
    if with_images and not recipe.captions:
        notes.append(
            f"No captions: the pictures of {count_of(with_images, 'encounter')} are not seen (--caption-model)."
        )
    if recipe.seeds < 5:
        notes.append(f"{count_of(recipe.seeds, 'seed')}: too few to say how far seeds are apart; 5 or more do.")
    if paid is not None:
        notes.append(count_of(paid.count, "new caption"))
    return tuple(notes)
