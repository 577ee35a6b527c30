"""`local-pipeline`: encoders that run here measure how an answer matches the pictures, the question and the references;
these signals are weighed by a fit on rated answers or given to a model.

After SloCal-Net (Kocbek et al. 2026, in section 6.2 of the overview), whose local pipeline joins DermLIP, SBERT and
KeyBERT. The overview does not say which figures it takes of them; these are ours. Key phrases are those of KeyBERT
(Grootendorst 2020): phrases whose embeddings are similar to the text's and different from one another. This is the only
module that imports `keybert` (the extra `pipeline`).
"""

from __future__ import annotations

import asyncio
import re
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field, JsonValue, model_validator

from proctor.core import ConfigurationError, FrozenModel, InputError, content_hash, pip_install, read_model
from proctor.judges import load_sentence_encoder, sanitize
from proctor.judges.dimensions import (
    IMAGES_UNSEEN,
    RATING,
    Case,
    Context,
    DimensionJudge,
    DimensionScores,
    JudgeSetup,
    ModelJudge,
    NoOptions,
    PerFold,
    Pictures,
    RatesDimensions,
    encounter_scores,
    injection_flags,
    look,
    read_options,
)
from proctor.metrics.text import EMBEDDED_ENCODER, Encoder, tokens
from proctor.models import MultimodalEncoder, weights_hash
from proctor.stats import Floats
from proctor_train.mediqa_eval import PROMPTS
from proctor_train.mediqa_eval.embedded.measures import TextVectors
from proctor_train.mediqa_eval.embedded.sentences import sentences

LONGEST = 400
"""The number of words (characters in a script without spaces) at the start of a text that are searched for phrases."""

KEPT = 8
"""The number of key phrases of a text."""

_DIVERSITY = 0.5  # KeyBERT's own
_WORDS, _CHARACTERS = (1, 2), (2, 3)
_BREAKS = re.compile(r"[^\w\s/%.'-]+|\.\s|\n")
_NO_STOPS = {"fire", "serious", "thick", "thin"}  # stop words for scikit-learn, but meaningful here
_STOP_CHARACTERS = frozenset("的了是在和与及或也就都而于对为有这那你您我他她它们不请可以能会")


def phrases_in(text: str) -> list[str]:
    """The candidate phrases of a text, each once: one or two words that do not begin or end with a stop word, or two or
    three characters in Chinese. Punctuation ends a phrase.

    >>> phrases_in("Keep the wound clean.")
    ['wound', 'clean', 'wound clean']
    >>> phrases_in("湿疹，外用激素。")[:3]
    ['湿疹', '外用', '用激']
    """
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    parts = [tokens(one) for one in _BREAKS.split(text)]
    words = [word for part in parts for word in part]
    spaced = sum(len(word) > 1 for word in words) * 2 >= len(words)
    stops, (low, high), between = (
        (ENGLISH_STOP_WORDS - _NO_STOPS, _WORDS, " ") if spaced else (_STOP_CHARACTERS, _CHARACTERS, "")
    )
    found: dict[str, None] = {}
    left = LONGEST
    for part in parts:
        kept, left = part[:left], left - len(part[:left])
        for size in range(low, high + 1):
            for start in range(len(kept) - size + 1):
                piece = kept[start : start + size]
                if not stops & {piece[0], piece[-1]} and any(one.isalpha() for one in "".join(piece)):
                    found[between.join(piece)] = None
    return list(found)


def key_phrases(texts: Sequence[str], embed: Callable[[Sequence[str]], Floats]) -> list[tuple[str, ...]]:
    """At most `KEPT` phrases for each text, the most relevant first; none for a text without words. `embed` gives a unit
    vector for each text. Raises `ConfigurationError` without the extra `pipeline`."""
    worded = [text for text in dict.fromkeys(texts) if phrases_in(text)]
    if not worded:
        return [()] * len(texts)
    from sklearn.feature_extraction.text import CountVectorizer

    model = _keybert(embed)
    counter = CountVectorizer(analyzer=phrases_in)
    # The first text is given twice, since for a single text the library returns a list of another form.
    found = model.extract_keywords(
        [*worded, worded[0]], vectorizer=counter, top_n=KEPT, use_mmr=True, diversity=_DIVERSITY
    )
    by_text = {text: tuple(phrase for phrase, _ in one) for text, one in zip(worded, found, strict=False)}
    return [by_text.get(text, ()) for text in texts]


def _keybert(embed: Callable[[Sequence[str]], Floats]) -> Any:
    try:
        with warnings.catch_warnings():  # importing it changes the filters of the whole process
            from keybert import KeyBERT
            from keybert.backend import BaseEmbedder
    except ImportError as error:
        raise ConfigurationError(
            f"key phrases need the extra 'pipeline' ({pip_install('pipeline')}): {error}"
        ) from error

    class Given(BaseEmbedder):  # type: ignore[misc]  # the library has no types
        """The pipeline's own sentence encoder."""

        def embed(self, documents: Any, verbose: bool = False) -> Floats:
            del verbose
            return embed([str(document) for document in documents])

    return KeyBERT(model=Given())


_SAID = {
    "answer-references": "likeness in meaning of the candidate and the references, on average",
    "answer-best-reference": "likeness in meaning of the candidate and the most similar reference",
    "answer-question": "likeness in meaning of the candidate and the question",
    "references-covered": "how well each sentence of the references is met by a sentence of the candidate",
    "answer-supported": "how well each sentence of the candidate is met by a sentence of the references",
    "phrases-covered": "how well the references' key phrases are met by those of the candidate",
    "phrases-supported": "how well the candidate's key phrases are met by those of the references",
    "phrases-shared": "share of the references' key phrases whose words all stand in the candidate",
    "length": "logarithm of the candidate's number of words over the references' mean number",
}
_SEEN = {
    "picture-answer": "likeness of the pictures and the candidate's sentences, on average",
    "picture-references": "likeness of the pictures and the references' sentences, on average",
    "picture-excess": "by how much the pictures are more like the candidate than like the references",
}
SIGNALS: Mapping[str, str] = {**_SAID, **_SEEN}
"""The signals by name, in words. Likenesses are cosines, −1 to 1."""

_DIGITS = 6  # more digits of an embedding depend on the other texts of the batch


@dataclass(frozen=True)
class Signals:
    """The signals of one answer (None where an input is missing), and the key phrases of the answer (`own`) and of all
    references (`expected`)."""

    values: Mapping[str, float | None]
    own: tuple[str, ...]
    expected: tuple[str, ...]

    @property
    def record(self) -> dict[str, JsonValue]:
        """The signals as evidence."""
        return {"signals": dict(self.values), "key phrases": {"candidate": [*self.own], "references": [*self.expected]}}


class SignalReader:
    """Reads the signals of answers by a sentence encoder and optionally an encoder of pictures and texts.

    `encoder` is a name as in `load_sentence_encoder`, `pictures` a folder or id of a model like CLIP. An answer has the
    same signals in any batch. Raises `ConfigurationError` and `InputError` as these do.
    """

    def __init__(self, encoder: str = "", pictures: str = "", *, embed: Encoder | None = None) -> None:
        name = encoder or EMBEDDED_ENCODER
        self._texts = TextVectors(embed or load_sentence_encoder(name), digits=_DIGITS)
        self._sight = MultimodalEncoder(pictures) if pictures else None
        self._seen: dict[str, Floats] = {}
        self._guard = threading.Lock()
        self.names = (*_SAID, *(_SEEN if pictures else ()))
        self.settings: dict[str, JsonValue] = {
            "encoder": _known_as(name),
            "pictures": _known_as(pictures) if pictures else None,
        }

    @property
    def sees(self) -> bool:
        """Whether it uses pictures."""
        return self._sight is not None

    def read(self, cases: Sequence[Case], pictures: Sequence[Pictures]) -> list[Signals]:
        """The signals of each answer; `pictures` are those of each case."""
        texts = [text for case in cases for text in (case.candidate, case.query, *_references(case))]
        parts = [part for case in cases for text in (case.candidate, *_references(case)) for part in sentences(text)]
        with self._guard:
            self._texts.prepare([*texts, *parts])
            phrases = dict(zip(texts, key_phrases(texts, self._texts.rows), strict=True))
            self._texts.prepare([phrase for some in phrases.values() for phrase in some])
            return [self._of(case, seen, phrases) for case, seen in zip(cases, pictures, strict=True)]

    def _of(self, case: Case, pictures: Pictures, phrases: Mapping[str, tuple[str, ...]]) -> Signals:
        own = phrases[case.candidate]
        expected = tuple(dict.fromkeys(phrase for reference in _references(case) for phrase in phrases[reference]))
        values = self._meanings(case) | self._phrases(case, own, expected) | _length(case)
        if self._sight is not None:
            values |= self._pictures(case, pictures, self._sight)
        rounded = {
            name: None if (value := values[name]) is None else round(float(value), _DIGITS) for name in self.names
        }
        return Signals(rounded, own, expected)

    def _meanings(self, case: Case) -> dict[str, float | None]:
        answer, references = self._texts.rows([case.candidate]), self._texts.rows(_references(case))
        alike = (references @ answer.T)[:, 0]
        own = self._texts.rows(sentences(case.candidate))
        theirs = self._texts.rows([part for text in _references(case) for part in sentences(text)])
        return {
            "answer-references": _mean(alike),
            "answer-best-reference": _mean(alike.max(keepdims=True)) if len(alike) else None,
            "answer-question": _mean(self._texts.rows([case.query]) @ answer.T),
            "references-covered": _met(theirs, own),
            "answer-supported": _met(own, theirs),
        }

    def _phrases(self, case: Case, own: Sequence[str], expected: Sequence[str]) -> dict[str, float | None]:
        words = set(tokens(case.candidate))
        mine, theirs = self._texts.rows(own), self._texts.rows(expected)
        return {
            "phrases-covered": _met(theirs, mine),
            "phrases-supported": _met(mine, theirs),
            "phrases-shared": _mean([words.issuperset(tokens(one)) for one in expected]),
        }

    def _pictures(self, case: Case, pictures: Pictures, sight: MultimodalEncoder) -> dict[str, float | None]:
        """Texts are compared by sentences, since these encoders read only a few dozen words."""
        own, theirs = sentences(case.candidate), [part for text in _references(case) for part in sentences(text)]
        if not pictures.frames:
            return dict.fromkeys(_SEEN)
        shown = self._looked([str(one) for one in pictures.hashes], [frame.jpeg for frame in pictures.frames], sight)
        said = _mean(shown @ self._told(own, sight).T) if own else None
        expected = _mean(shown @ self._told(theirs, sight).T) if theirs else None
        excess = None if said is None or expected is None else said - expected
        return {"picture-answer": said, "picture-references": expected, "picture-excess": excess}

    def _told(self, texts: Sequence[str], sight: MultimodalEncoder) -> Floats:
        for text in texts:  # one by one, so that a vector does not depend on other texts
            if f"text:{text}" not in self._seen:
                self._seen[f"text:{text}"] = sight.read([text])[0]
        return np.array([self._seen[f"text:{text}"] for text in texts])

    def _looked(self, names: Sequence[str], jpegs: Sequence[bytes], sight: MultimodalEncoder) -> Floats:
        for name, jpeg in zip(names, jpegs, strict=True):
            if name not in self._seen:
                self._seen[name] = sight.see([jpeg])[0]
        return np.array([self._seen[name] for name in names])


def _references(case: Case) -> list[str]:
    return [reference.text for reference in case.sorted_references]


def _met(wanted: Floats, given: Floats) -> float | None:
    """The mean over the wanted vectors of the cosine with the nearest given vector."""
    return _mean((wanted @ given.T).max(axis=1)) if len(wanted) and len(given) else None


def _length(case: Case) -> dict[str, float | None]:
    lengths = [len(tokens(reference)) for reference in _references(case)]
    expected = _mean(lengths)
    return {"length": None if not expected else float(np.log((1 + len(tokens(case.candidate))) / (1 + expected)))}


def _mean(values: Floats | Sequence[float]) -> float | None:
    return float(np.mean(values)) if np.size(values) else None


def _known_as(name: str) -> str:
    """An encoder's name in settings: for a folder the hash of its weights."""
    return weights_hash(Path(name)) or name


class LinearRating(FrozenModel):
    """The expected rating, `start` + Σ `weights` · (signal − `centres`); a missing signal counts as its mean. `mean` and
    `spread` (standard deviation) are those of the expected ratings of the training answers.

    >>> one = LinearRating(start=0.5, weights={"length": 0.2}, centres={"length": 1.0}, mean=0.5, spread=0.1)
    >>> one.expected({"length": 2.0}), one.expected({"length": None}), round(one.relative({"length": 2.0}), 9)
    (0.7, 0.5, 0.7)
    """

    start: float
    weights: dict[str, float]
    centres: dict[str, float]
    mean: float
    spread: float = Field(gt=0)

    @model_validator(mode="after")
    def _matching(self) -> LinearRating:
        if self.weights.keys() != self.centres.keys():
            raise ValueError("a centre for each weight is expected")
        return self

    def expected(self, signals: Mapping[str, float | None]) -> float:
        """The expected rating of an answer with these signals."""
        known = ((name, value) for name in self.weights if (value := signals.get(name)) is not None)
        return self.start + sum(self.weights[name] * (value - self.centres[name]) for name, value in known)

    def relative(self, signals: Mapping[str, float | None]) -> float:
        """A score from 0 to 1: the mean training answer gets 0.5, and each standard deviation is 0.1. Unlike expected
        ratings, these scores are on one scale in all folds."""
        return min(max(0.5 + 0.1 * (self.expected(signals) - self.mean) / self.spread, 0.0), 1.0)


class PipelineFit(FrozenModel):
    """Linear functions by language and dimension ("en/overall"), and the fold of each training encounter, by its name and
    by its scores.

    Such an encounter is judged by the functions without its fold, any other by those on everything. So no encounter's own
    ratings are used to judge it, in any language. `signals` are the settings of the `SignalReader`, `levels` those of
    each dimension, `penalties` the ridge penalties by language."""

    kind: Literal["proctor pipeline 1"] = "proctor pipeline 1"
    signals: dict[str, JsonValue]
    seed: int
    folds: dict[str, int] = Field(min_length=1)
    scores: dict[str, int]
    levels: dict[str, tuple[float, ...]]
    penalties: dict[str, float]
    ratings: dict[str, PerFold[LinearRating]]

    @model_validator(mode="after")
    def _complete(self) -> PipelineFit:
        used = {*self.folds.values(), *self.scores.values()}
        if min(used) < 0 or any(len(rating.without) <= max(used) for rating in self.ratings.values()):
            raise ValueError("a function for every fold is expected")
        if self.ratings.keys() != self.levels.keys():
            raise ValueError("levels of every dimension are expected")
        return self

    @property
    def sha256(self) -> str:
        """The hash of its content."""
        return content_hash(self)

    def fold_of(self, case: Case) -> int | None:
        """The fold of a case's encounter, by name or content; None if it was not trained on. Raises `InputError` for a case
        that shares its name, text or pictures with encounters of several folds."""
        found = {self.scores[score] for score in encounter_scores(case) if score in self.scores}
        found |= {self.folds[case.encounter]} if case.encounter in self.folds else set()
        if len(found) > 1:
            expected = "one that nothing was learned from, or those of one fold"
            raise InputError(f"case {case.id}", found="the texts or pictures of several encounters", expected=expected)
        return found.pop() if found else None

    def rated(self, case: Case, signals: Mapping[str, float | None]) -> tuple[dict[str, float], dict[str, float]]:
        """The scores (see `LinearRating.relative`, scaled to the levels) and the expected ratings of a case, by dimension.
        Raises `InputError` for a dimension or scale that it has not learned, and as `fold_of`."""
        fold = self.fold_of(case)
        scores, expected = {}, {}
        for dimension in case.dimensions:
            row, (low, high) = f"{case.language}/{dimension.name}", (dimension.levels[0], dimension.levels[-1])
            if self.levels.get(row) != dimension.levels:
                found, learned = (
                    f"{row} ({', '.join(f'{level:g}' for level in dimension.levels)})",
                    ", ".join(self.levels),
                )
                raise InputError(f"case {case.id}", found=found, expected=f"one that was learned: {learned}")
            functions = self.ratings[row]
            own = functions.everything if fold is None else functions.without[fold]
            scores[dimension.name] = round(low + (high - low) * own.relative(signals), _DIGITS)
            expected[dimension.name] = round(min(max(own.expected(signals), low), high), _DIGITS)
        return scores, expected


def read_pipeline(file: Path) -> PipelineFit:
    """A fit from its JSON file. Raises `InputError`, with the field, for other content."""
    return read_model(file, PipelineFit, "a pipeline (proctor judge fit --method pipeline)")


class CombinedJudge:
    """Scores answers by their signals, without a model: a `DimensionJudge`. The fit did not use the encounter that is
    judged (see `PipelineFit`). A score ranks answers; the expected rating is in the evidence."""

    def __init__(self, reader: SignalReader, fit: PipelineFit) -> None:
        _refuse_others(reader, fit)
        self._reader, self._fit = reader, fit
        self.name = f"local-pipeline[{fit.sha256[:8]}]"  # another fit is another judge
        self.settings: dict[str, JsonValue] = {"fit_sha256": fit.sha256, **reader.settings}

    async def judge(self, case: Case) -> DimensionScores:
        """The scores of one answer (see `DimensionJudge`)."""
        pictures = await look(case)
        (signals,) = await asyncio.to_thread(self._reader.read, [case], [pictures])
        flags = pictures.flags if self._reader.sees else ()
        scores, expected = self._fit.rated(case, signals.values)
        evidence: dict[str, JsonValue] = {"judge": self.name, "expected ratings": dict(expected)}
        return DimensionScores(
            scores,
            flags=(*injection_flags(case), *_unseen(case, self._reader), *flags),
            evidence=(evidence | signals.record | pictures.evidence,),
        )


class SignalContext:
    """Gives a model the signals and, with `fit`, the expected ratings: a `ContextProvider`. The fit did not use the
    encounter that is judged (see `PipelineFit`)."""

    cites = False

    def __init__(self, reader: SignalReader, fit: PipelineFit | None) -> None:
        if fit is not None:
            _refuse_others(reader, fit)
        self._reader, self._fit = reader, fit

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The encoders and the fit."""
        return {**self._reader.settings, "fit_sha256": None if self._fit is None else self._fit.sha256}

    async def context(self, case: Case) -> Context:
        """See `ContextProvider`."""
        (signals,) = await asyncio.to_thread(self._reader.read, [case], [await look(case)])
        expected = {} if self._fit is None else self._fit.rated(case, signals.values)[1]
        words = set(tokens(case.candidate))
        met = {phrase: words.issuperset(tokens(phrase)) for phrase in signals.expected}
        # The prompt is part of a judgement's key. Two decimals are the same on every CPU.
        values: list[JsonValue] = [
            {"name": name, "about": SIGNALS[name], "value": None if value is None else round(value, 2)}
            for name, value in signals.values.items()
        ]
        fill: dict[str, JsonValue] = {
            "signals": values,
            "shared": [sanitize(phrase) for phrase, found in met.items() if found],
            "missing": [sanitize(phrase) for phrase, found in met.items() if not found],
            "phrases": [sanitize(phrase) for phrase in signals.own],
            "learned": [{"name": name, "value": round(value, 2)} for name, value in expected.items()],
        }
        ratings: dict[str, JsonValue] = {"expected ratings": dict(expected)} if expected else {}
        return Context(fill, signals.record | ratings, _unseen(case, self._reader))


class PipelineOptions(NoOptions):
    """`fit` is a file that `proctor judge fit --method pipeline` wrote, `encoder` and `pictures` are encoders (see
    `SignalReader`)."""

    fit: Path | None = None
    encoder: str = ""
    pictures: str = ""


@RatesDimensions
def build(setup: JudgeSetup) -> DimensionJudge:
    """Likeness of pictures, sentences and key phrases, weighed by what was learned or by a model.

    Options: fit=FILE (`proctor judge fit --method pipeline`), encoder=FOLDER (sentence-transformers), pictures=FOLDER
    (CLIP and the like). With a model (any, or local weights) it is told the signals and rates at temperature 0, one call
    for an answer; `fit` then adds the ratings that are expected. Raises `ConfigurationError` without a model and a file,
    `InputError` for a file that was learned with other encoders.
    """
    name = "local-pipeline"
    options = read_options(name, PipelineOptions, setup.options)
    fit = None if options.fit is None else read_pipeline(options.fit)
    if setup.clients.specs:
        client = setup.clients.client(setup.clients.only(name), {"temperature": 0.0})
        context = SignalContext(SignalReader(options.encoder, options.pictures), fit)
        scale = replace(RATING, template="pipeline", built_in=PROMPTS)
        variant = "" if fit is None else "learned"
        return ModelJudge(
            name, client, setup.judgements, scale=scale, contexts=[context], variant=variant, prompts=setup.prompts
        )
    if fit is None:
        expected = "a model (--model), or fit=FILE (proctor judge fit --method pipeline)"
        raise ConfigurationError(f"{name}: expected {expected}")
    return CombinedJudge(SignalReader(options.encoder, options.pictures), fit)


def _unseen(case: Case, reader: SignalReader) -> tuple[str, ...]:
    return (IMAGES_UNSEEN,) if case.images and not reader.sees else ()


def _refuse_others(reader: SignalReader, fit: PipelineFit) -> None:
    if fit.signals != reader.settings:
        found, expected = _encoders(reader.settings), _encoders(fit.signals)
        raise InputError("local-pipeline", found=found, expected=f"those that were learned with, {expected}")


def _encoders(settings: dict[str, JsonValue]) -> str:
    named: Sequence[JsonValue] = (settings.get("encoder"), settings.get("pictures") or "no pictures")
    return " and ".join(str(one)[:24] for one in named)
