"""Training of `classifier-judge`: networks from several seeds, the best epoch of each chosen on training answers that were
set aside, and scores of left-out encounters."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import JsonValue
from safetensors.torch import load_file

from proctor.core import InputError, content_hash
from proctor.judges.dimensions import RatedCase, RatedPool, all_scores
from proctor_train import (
    RunFolder,
    encounter_folds,
    held_out_agreement,
    refuse_constant,
    refuse_leaks,
    shuffled_ratings,
)
from proctor_train.mediqa_eval import classifier
from proctor_train.mediqa_eval.classifier.epochs import (
    ClassifierRecipe,
    EpochPlan,
    FittedEpoch,
    TrainingRows,
    fit_epochs,
)

_CHOOSING = 5  # the epoch is chosen by one fifth of the training encounters, another one for each seed
_LIBRARIES = ("numpy", "torch", "transformers", "safetensors")
_EVERYTHING = -1  # the "fold" of the networks that learn from all encounters


@dataclass(frozen=True)
class TrainedClassifier:
    """The result of a training: weights by language and member, and the manifest (None if ratings were shuffled, since such
    a judge is never used).

    `scores` are those of left-out encounters by the networks of each seed, by dimension, in the order of the rated answers
    (empty without folds); `mean_scores` those of all seeds together, and `level_scores` their most probable levels. `cut`
    counts the answers whose input was cut, by language and part."""

    states: dict[str, list[dict[str, Any]]]
    manifest: classifier.ClassifierManifest | None
    scores: list[list[dict[str, float]]]
    mean_scores: list[dict[str, float]]
    level_scores: list[dict[str, float]]
    cut: dict[str, dict[str, int]]


@dataclass
class _Language:
    """The rated answers of one language, with `positions` their indices among all, and what networks read of them. Raises
    `InputError` if answers differ in their dimensions, and as `refuse_constant`."""

    name: str
    rated: list[RatedCase]
    positions: list[int]
    captions: list[str]
    recipe: ClassifierRecipe
    encoder: classifier.FrozenEncoder = field(init=False)
    inputs: list[classifier.TokenizedCase] = field(init=False)

    def __post_init__(self) -> None:
        self.encoder = classifier.FrozenEncoder(self.recipe.encoder(self.name), self.recipe.layers)
        limit, tokenizer = min(self.recipe.max_tokens, self.encoder.limit), self.encoder.tokenizer
        self.inputs = [
            classifier.tokenized(one.case, caption, tokenizer, limit, references=self.recipe.references)
            for one, caption in zip(self.rated, self.captions, strict=True)
        ]
        self.dimensions = self.rated[0].case.dimensions
        if any(rated_case.case.dimensions != self.dimensions for rated_case in self.rated):
            raise InputError(f"answers in {self.name!r}", found="several sets of dimensions", expected="one")
        refuse_constant(self.rated)
        self.shares = {
            dimension.name: classifier.level_shares(
                [each.values.get(dimension.name) for each in self.rated], dimension.levels
            )
            for dimension in self.dimensions
        }

    @cached_property
    def states(self) -> list[Any]:
        """The states of the frozen layers for each input; computed only if a network is left to train."""
        return self.encoder.states(self.inputs)

    @cached_property
    def fixed(self) -> Any:
        """The features of each input, which are the same for all networks if no layer is trained; else None."""
        if self.recipe.layers:
            return None
        begin = {dimension.name: [1.0] * len(dimension.levels) for dimension in self.dimensions}
        plain = classifier.LevelClassifier(self.encoder, self.recipe.loss, begin, references=self.recipe.references)
        return classifier.features_of(plain, self.states, self.inputs)

    def rows(self, indices: Sequence[int]) -> TrainingRows:
        """Some answers as training data."""
        return TrainingRows(
            [self.states[k] for k in indices],
            [self.inputs[k] for k in indices],
            {name: shares[list(indices)] for name, shares in self.shares.items()},
            None if self.fixed is None else self.fixed[list(indices)],
        )

    def scores(self, found: Sequence[Any], readout: Any = "expected") -> list[dict[str, float]]:
        """Scores by dimension from probabilities (dimension → rows × levels, or members × rows × levels)."""
        stacked = [np.asarray(one, dtype=np.float64) for one in found]
        each = [one[None] if one.ndim == 2 else one for one in stacked]
        return [
            {one.name: classifier.read_levels(each[k][:, row], one, readout) for k, one in enumerate(self.dimensions)}
            for row in range(each[0].shape[1])
        ]


def classifier_settings(
    rated: Sequence[RatedCase], captions: Sequence[str], recipe: ClassifierRecipe
) -> dict[str, JsonValue]:
    """Everything that changes the result, for the run folder."""
    settings: dict[str, JsonValue] = json.loads(json.dumps(asdict(recipe)))
    hashes: dict[str, JsonValue] = {
        "data_sha256": RatedPool(rated).sha256,
        "captions_sha256": content_hash([*captions]),
    }
    return {"trainer": "classifier-judge", **settings, **hashes}


def train_classifier(
    rated: Sequence[RatedCase],
    captions: Sequence[str],
    recipe: ClassifierRecipe,
    folder: RunFolder,
    on_change: Callable[[int, int], None] = lambda _done, _of: None,
) -> TrainedClassifier:
    """Trains the networks of all folds, seeds and languages, and those that learn from everything, except networks that
    `folder` has already; `captions` has one text for each rated answer.

    No encounter is on both sides of a fold, in any language, or of the choice of an epoch. On one CPU core the same
    settings give identical bits, even if training was killed and continued. Raises `InputError` for no ratings, fewer
    encounters than folds, and constant ratings.
    """
    if not rated:
        raise InputError("ratings", found="none", expected="answers with ratings")
    given = shuffled_ratings(rated, recipe.seed) if recipe.shuffled else list(rated)
    folds = encounter_folds(given, recipe.folds, recipe.seed) if recipe.folds else []
    for inside, outside in folds:
        refuse_leaks((given[k].case for k in inside), (given[k].case for k in outside), where="the fold left out")
    languages = _languages(given, captions, recipe)
    parts = list(enumerate(folds))
    if not recipe.shuffled:
        parts.append((_EVERYTHING, (list(range(len(given))), [])))
    planned = [
        _planned(language, member, fold, sides)
        for fold, sides in parts
        for language in languages
        for member in range(recipe.seeds)
    ]
    found: dict[tuple[str, int, int], tuple[FittedEpoch, Path]] = {}
    first_step = 0
    for done, one in enumerate(planned):
        on_change(done, len(planned))
        found[one.language.name, one.fold, one.member] = one.fitted(folder, first_step)
        first_step += one.steps
    on_change(len(planned), len(planned))
    each, mean, level = _left_out(given, languages, found, folds) if folds else ([], [], [])
    states = {
        language.name: [load_file(found[language.name, _EVERYTHING, member][1]) for member in range(recipe.seeds)]
        for language in languages
        if not recipe.shuffled
    }
    manifest = None if recipe.shuffled else _manifest(given, languages, found, states, recipe)
    return TrainedClassifier(
        states,
        manifest,
        each,
        mean,
        level,
        {language.name: classifier.cut_counts(language.inputs) for language in languages},
    )


def _languages(given: Sequence[RatedCase], captions: Sequence[str], recipe: ClassifierRecipe) -> list[_Language]:
    """The answers and their captions by language."""
    rows: dict[str, list[int]] = {}
    for k, answer in enumerate(given):
        rows.setdefault(answer.case.language, []).append(k)
    return [
        _Language(name, [given[k] for k in own], own, [captions[k] for k in own], recipe) for name, own in rows.items()
    ]


@dataclass(frozen=True)
class _PlannedNetwork:
    """A network to be trained: the answers (indices in the language) to learn from, to choose the epoch by, and left out."""

    language: _Language
    member: int
    fold: int
    learning: list[int]
    choosing: list[int]
    outside: list[int]

    @property
    def steps(self) -> int:
        """The number of training steps."""
        recipe = self.language.recipe
        return recipe.epochs * math.ceil(len(self.learning) / recipe.batch_size)

    def fitted(self, folder: RunFolder, first_step: int) -> tuple[FittedEpoch, Path]:
        """Trains the network, or reads the result from the folder."""
        own, recipe = self.language, self.language.recipe
        part = "all" if self.fold == _EVERYTHING else f"fold {self.fold + 1}"
        plan = EpochPlan(
            name=f"{own.name}, {part}, seed {self.member + 1}",
            recipe=recipe,
            seed=recipe.seed + self.member,
            first_step=first_step,
            keep=self.fold == _EVERYTHING,
        )
        shares = {name: one[self.learning] for name, one in own.shares.items()}
        balanced = recipe.class_weights == "balanced"
        weights = {name: classifier.level_weights(one, balanced=balanced) for name, one in shares.items()}
        begin = {name: ((one.sum(dim=0) + 1) * weights[name]).tolist() for name, one in shares.items()}
        rows = (self.learning, self.choosing, self.outside)
        return fit_epochs(
            plan,
            folder,
            lambda: classifier.LevelClassifier(own.encoder, recipe.loss, begin, references=recipe.references),
            weights,
            lambda: (own.rows(rows[0]), own.rows(rows[1]), own.rows(rows[2])),
            self._agreement,
        )

    def _agreement(self, found: Sequence[Any]) -> float | None:
        """The mean agreement over the dimensions for which it is defined."""
        cases = [self.language.rated[k] for k in self.choosing]
        rows = held_out_agreement(cases, self.language.scores(found), draws=0)
        values = [row.value for row in rows if row.dimension and row.value is not None]
        return sum(values) / len(values) if values else None


def _planned(language: _Language, member: int, fold: int, sides: tuple[list[int], list[int]]) -> _PlannedNetwork:
    number = {location: k for k, location in enumerate(language.positions)}
    inside, outside = ([number[k] for k in side if k in number] for side in sides)
    cases = [language.rated[k] for k in inside]
    try:
        learning, choosing = encounter_folds(cases, _CHOOSING, language.recipe.seed)[member % _CHOOSING]
    except InputError as error:
        location, expected = (
            f"encounters in {language.name!r} to train on",
            f"{_CHOOSING}, since a part of them chooses the epoch",
        )
        raise InputError(
            location, found=str(len({case.case.encounter for case in cases})), expected=expected
        ) from error
    refuse_leaks((cases[k].case for k in learning), (cases[k].case for k in choosing), where="the part that chooses")
    return _PlannedNetwork(
        language, member, fold, [inside[k] for k in learning], [inside[k] for k in choosing], outside
    )


def _left_out(
    rated: Sequence[RatedCase],
    languages: Sequence[_Language],
    found: Mapping[tuple[str, int, int], tuple[FittedEpoch, Path]],
    folds: Sequence[tuple[list[int], list[int]]],
) -> tuple[list[list[dict[str, float]]], list[dict[str, float]], list[dict[str, float]]]:
    """The scores of left-out answers: by each seed, by all seeds together, and their most probable levels."""
    each: list[list[dict[str, float]]] = [[{} for _ in rated] for _ in range(languages[0].recipe.seeds)]
    mean: list[dict[str, float]] = [{} for _ in rated]
    level: list[dict[str, float]] = [{} for _ in rated]
    for fold, (_, outside) in enumerate(folds):
        for language in languages:
            inside = set(language.positions)
            rows = [k for k in outside if k in inside]
            own = [found[language.name, fold, member][0].outside or [] for member in range(language.recipe.seeds)]
            for member, given in enumerate(own):
                for row, scores in zip(rows, language.scores(given), strict=True):
                    each[member][row] = scores
            together = [np.stack([np.asarray(given[k]) for given in own]) for k in range(len(language.dimensions))]
            for row, scores, most in zip(
                rows, language.scores(together), language.scores(together, "level"), strict=True
            ):
                mean[row], level[row] = scores, most
    return each, mean, level


def _manifest(
    rated: Sequence[RatedCase],
    languages: Sequence[_Language],
    found: Mapping[tuple[str, int, int], tuple[FittedEpoch, Path]],
    states: Mapping[str, Sequence[Mapping[str, Any]]],
    recipe: ClassifierRecipe,
) -> classifier.ClassifierManifest:
    return classifier.ClassifierManifest(
        format=1,
        judge="classifier-judge",
        loss=recipe.loss,
        references=recipe.references,
        captions=recipe.captions,
        max_tokens=recipe.max_tokens,
        recipe=json.loads(json.dumps(asdict(recipe))),
        languages={
            language.name: classifier.ClassifierLanguage(
                encoder=language.encoder.name,
                encoder_sha256=language.encoder.sha256,
                layers=recipe.layers,
                levels={dimension.name: dimension.levels for dimension in language.dimensions},
                answers=len(language.rated),
                encounters=len({each.case.encounter for each in language.rated}),
                cut=classifier.cut_counts(language.inputs),
                members=tuple(
                    _member(recipe.seed + k, found[language.name, _EVERYTHING, k][0], state)
                    for k, state in enumerate(states.get(language.name, ()))
                ),
            )
            for language in languages
        },
        data_sha256=RatedPool(rated).sha256,
        trained_on=tuple(sorted(all_scores(rated_case.case for rated_case in rated))),
        versions={name: version(name) for name in _LIBRARIES},
    )


def _member(seed: int, fitted: FittedEpoch, state: Mapping[str, Any]) -> classifier.ClassifierMember:
    return classifier.ClassifierMember(
        seed=seed, epoch=fitted.epoch, chosen_by=fitted.agreement, weights_sha256=classifier.state_hash(state)
    )
