"""The judge `embedded-judge`: no model is asked, it has learned from rated answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from pydantic import BaseModel, JsonValue

from proctor.core import InputError
from proctor.judges.dimensions import (
    Case,
    DimensionJudge,
    DimensionScores,
    JudgeSetup,
    RatedCase,
    RatesDimensions,
    read_options,
)
from proctor.judges.dimensions.case import steering_flags
from proctor.judges.embedded.answers import Answers, Encoders, read_answers
from proctor.judges.embedded.designs import LIKENESS
from proctor.judges.embedded.learning import Learned, Recipe, relative
from proctor.judges.embedded.storage import Manifest, encounter_mark, load_model, manifest_of, save_model
from proctor.judges.embedded.validation import RatedAnswers, train

TRAINED_ON = "trained-on"
"""Flag: the judge has learned from ratings of this encounter. Its score says nothing of how good it is."""

NO_OTHERS = "no-other-answers"
"""Flag: the judge compares answers to one question, and was shown no other answer to this one."""

IMAGES_UNSEEN = "images-unseen"
"""Flag: the question has images, which this judge never looks at."""

_DIGITS = 6  # beyond them, encoding a text beside other texts changes its embedding


class EmbeddedJudge:
    """Scores answers by what was learned from rated ones: `DimensionJudge` and `JudgesAll`.

    A score tells better from worse; it is no expected rating: 0.5 of the scale is as good as the mean of
    the answers learned from, each standard deviation is a tenth. The expected rating is in the evidence.
    The same cases get the same scores, in every process and in any order.
    """

    def __init__(self, learned: Mapping[str, Learned], manifest: Manifest, *, encoders: Encoders | None = None) -> None:
        self._learned = dict(learned)
        self._encoders = encoders
        self._trained_on = frozenset(manifest.trained_on)
        self.manifest = manifest

    @classmethod
    def load(cls, folder: Path, *, encoders: Encoders | None = None) -> EmbeddedJudge:
        """The judge that `proctor judge train` wrote. Raises `InputError` as `load_model` does."""
        return cls(*load_model(folder), encoders=encoders)

    @classmethod
    def train(
        cls,
        rated: Sequence[RatedCase],
        known: Sequence[RatedAnswers],
        recipe: Recipe,
        *,
        encoders: Encoders | None = None,
    ) -> EmbeddedJudge:
        """A judge that learned from rated answers; `known` is what `read_rated` made of them."""
        learned = {one.answers.language: train(one, recipe) for one in known}
        name = "all-MiniLM-L6-v2" if encoders is None else "given"
        return cls(learned, manifest_of(rated, learned, recipe, name), encoders=encoders)

    def save(self, folder: Path) -> None:
        """Writes it to a new folder (see `save_model`)."""
        save_model(folder, self._learned, self.manifest)

    @property
    def name(self) -> str:
        """With the weights, since other weights are another judge."""
        return f"embedded-judge[{self.manifest.weights_sha256[:8]}]"

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Where the scores come from."""
        return {
            "judge": "embedded-judge",
            "weights_sha256": self.manifest.weights_sha256,
            "data_sha256": self.manifest.data_sha256,
            "encoder": self.manifest.encoder,
            "recipe": dict(self.manifest.recipe),
        }

    async def judge(self, case: Case) -> DimensionScores:
        """The scores of one answer by itself (see `score`)."""
        return self.score([case])[0]

    async def judge_all(self, cases: Sequence[Case]) -> list[DimensionScores]:
        """The scores of each answer, in the order of the cases (see `score`)."""
        return self.score(cases)

    def score(self, cases: Sequence[Case]) -> list[DimensionScores]:
        """The scores of each answer, in the order of the cases. Cases with the same `id` are answers to one
        question, and are compared with each other unless the judge learned `alone`.

        Raises `InputError` for a language, dimension or scale that it has not learned, and a case without
        references.
        """
        for case in cases:
            self._refuse(case)
        found: dict[int, DimensionScores] = {}
        for language in dict.fromkeys(case.language for case in cases):
            places = [k for k, case in enumerate(cases) if case.language == language]
            inside = [cases[k] for k in places]
            answers = read_answers(inside, self._encoders)
            self._refuse_others(answers, self._learned[language])
            scored = self._scored(inside, answers, self._learned[language])
            found |= dict(zip(places, scored, strict=True))
        return [found[k] for k in range(len(cases))]

    def _scored(self, cases: Sequence[Case], answers: Answers, learned: Learned) -> list[DimensionScores]:
        rated = learned.rate(answers)
        scores, expected = np.round(relative(rated), _DIGITS), np.round(learned.expected(rated), _DIGITS)
        others = np.bincount(answers.question)[answers.question] > 1
        rows = []
        for k, case in enumerate(cases):
            values: dict[str, float] = {}
            ratings: dict[str, JsonValue] = {}
            for one in case.dimensions:
                column = learned.dimensions.index(one.name)
                low, high = one.levels[0], one.levels[-1]
                values[one.name] = low + (high - low) * float(scores[k, column])
                ratings[one.name] = low + (high - low) * float(expected[k, column])
            flags = [*steering_flags(case)]
            flags += [TRAINED_ON] if encounter_mark(case.encounter) in self._trained_on else []
            flags += [] if others[k] or self.manifest.recipe["alone"] else [NO_OTHERS]
            flags += [IMAGES_UNSEEN] if case.images else []
            rows.append(DimensionScores(values, flags=tuple(flags), evidence=({"expected ratings": ratings},)))
        return rows

    def _refuse_others(self, answers: Answers, learned: Learned) -> None:
        """Where the weights are for other measures, or another encoder, than what the answers were read with."""
        views = learned.views
        measured, encoded = len(answers.names), answers.meanings["candidate"].shape[1]
        wanted = (max(views.columns) + 1, len(views.scaling["meaning"][0]))
        names = {answers.names[k] for k in views.columns if k < measured}
        if wanted[0] > measured or wanted[1] != encoded or not names.issuperset(LIKENESS):
            found = f"weights for {wanted[0]} measures and embeddings of {wanted[1]} numbers"
            expected = f"{measured} measures and {encoded} numbers: train the judge again"
            raise InputError(None, "embedded-judge", found=found, expected=expected)

    def _refuse(self, case: Case) -> None:
        place = f"embedded-judge: case {case.id}"
        if case.language not in self._learned:
            learned = ", ".join(self._learned)
            raise InputError(
                None, place, found=f"the language {case.language!r}", expected=f"one that it has learned: {learned}"
            )
        levels = self.manifest.languages[case.language].levels
        for one in case.dimensions:
            if levels.get(one.name) != one.levels:
                learned = ", ".join(f"{name} {_scale(scale)}" for name, scale in levels.items())
                found = f"the dimension {one.name!r} {_scale(one.levels)}"
                raise InputError(None, place, found=found, expected=f"what it has learned: {learned}")


class _Options(BaseModel):
    folder: Path


@RatesDimensions
def build(setup: JudgeSetup) -> DimensionJudge:
    """Asks no model: learned from rated answers (`proctor judge train`); option `folder`.

    Raises `InputError` for a folder without a learned judge.
    """
    return EmbeddedJudge.load(read_options("embedded", _Options, setup.options).folder)


def _scale(levels: Sequence[float]) -> str:
    return f"({', '.join(f'{one:g}' for one in levels)})"
