"""Answers as rows of measures, texts and embeddings; changed answers to learn from; and views of answers, the blocks of
columns that a linear model weighs.

Clinicians rate few answers that say "none of this is true", so ratings alone do not teach a judge how much it costs. Each
wording in `contrasts.yaml` is put around some training answers; the mean change of their columns is one more row to learn
from, with the expected change of the rating (after the tangent vectors of Simard et al. 1992, NIPS 4:895).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from proctor.core import InputError, generator, read_json, read_yaml
from proctor.judges import load_sentence_encoder
from proctor.judges.dimensions import Case
from proctor.metrics.text import BertScore, Encoder, EncoderSettings, TokenEncoder, default_encoder, load_encoder
from proctor.stats import Floats, Ints
from proctor_train.mediqa_eval.embedded.measures import (
    LANGUAGES,
    Matched,
    Reading,
    TextVectors,
    beside_others,
    measures,
)
from proctor_train.mediqa_eval.embedded.sentences import cores, sentence_kinds, sentences

Part = Literal["candidate", "references", "query"]

STACKED = "judge:"
"""The prefix of measures that are other judges' scores."""

BESIDE_OTHERS = ("others-", "beside-")
"""The prefixes of measures that compare with other answers to the same question."""

PARTS: tuple[Part, ...] = ("candidate", "references", "query")
"""The texts of a case, each with a vocabulary of its own."""

_GRAMS = {"en": ("char_wb", (2, 4)), "zh": ("char", (1, 3))}


@dataclass(frozen=True)
class Encoders:
    """Encoders of whole texts, and of each token of a text (for BERTScore)."""

    texts: Encoder
    tokens: TokenEncoder


def encoders_in(folder: Path) -> Encoders:
    """The encoder of sentence-transformers in a folder, for texts and, with its last layer, for tokens. Raises
    `InputError` for a folder without an encoder, and `ConfigurationError` without the extra."""
    texts = load_sentence_encoder(str(folder))
    config = read_json(folder / "config.json", "the folder of an encoder")
    layers = config.get("num_hidden_layers") if isinstance(config, dict) else None
    if not isinstance(layers, int):
        raise InputError(folder / "config.json", "field 'num_hidden_layers'", found=repr(layers), expected="a number")
    return Encoders(texts, load_encoder(EncoderSettings(str(folder), layer=layers)))


_Worded = tuple[str, str, tuple[str, ...]]  # candidate, query and references of a case


@dataclass(frozen=True)
class Counts:
    """The counts of character n-grams: texts × n-grams (sparse), and the column of each n-gram."""

    table: Any
    column: dict[str, int]


@dataclass(frozen=True)
class Answers:
    """Answers in one language, one per row. `question` is the number of each answer's question.

    `measured` is rows × `names`, NaN where an input of a measure is missing; `meanings` are the embeddings of each part of
    a case (the mean over references), rows × width.
    """

    language: str
    names: tuple[str, ...]
    measured: Floats
    meanings: dict[Part, Floats]
    question: Ints
    texts: dict[Part, tuple[str, ...]]
    _counts: dict[Part, Counts] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.measured)

    def part(self, rows: Sequence[int] | Ints) -> Answers:
        """Some rows. Measures that compare with other answers stay as they are, and n-grams are not counted again; nothing
        is learned from them here."""
        kept = np.asarray(rows, dtype=np.int64)
        return Answers(
            self.language,
            self.names,
            self.measured[kept],
            {name: block[kept] for name, block in self.meanings.items()},
            np.unique(self.question[kept], return_inverse=True)[1],
            {name: tuple(texts[k] for k in kept) for name, texts in self.texts.items()},
            {name: Counts(self.counts(name).table[kept], self.counts(name).column) for name in PARTS},
        )

    def stacked(self, names: Sequence[str], values: Floats) -> Answers:
        """The answers with other judges' scores (rows × `names`) as further measures."""
        return replace(self, names=(*self.names, *names), measured=np.hstack([self.measured, values]))

    def counts(self, part: Part) -> Counts:
        """The n-grams of a part of all cases, counted on first use."""
        if part not in self._counts:
            from sklearn.feature_extraction.text import CountVectorizer

            analyzer, sizes = _GRAMS[self.language]
            counter = CountVectorizer(analyzer=analyzer, ngram_range=sizes)
            # Each distinct text is read once. The extra last text prevents an error for texts without any n-gram.
            index = {text: row for row, text in enumerate(dict.fromkeys(self.texts[part]))}
            table = counter.fit_transform([*index, "no"]).tocsr()
            self._counts[part] = Counts(table[[index[text] for text in self.texts[part]]], dict(counter.vocabulary_))
        return self._counts[part]


def read_answers(cases: Sequence[Case], encoders: Encoders | None = None) -> Answers:
    """Reads the question, references and candidate of cases in one language; the default encoders are the embedded
    all-MiniLM-L6-v2. Answers are compared with the other cases of the same `id`.

    Raises `InputError` for no cases, several languages, an unsupported language, and a case without references;
    `ConfigurationError` without the extra `train`.
    """
    language = _their_language(cases)
    bare = next((case for case in cases if not case.references), None)
    if bare is not None:
        raise InputError(f"case {bare.id}", found="no references", expected="one or more")
    encoders = encoders or Encoders(default_encoder(), load_encoder())
    vectors = TextVectors(encoders.texts)
    kinds = sentence_kinds(language, encoders.texts)
    told = cores([case.candidate for case in cases], kinds, vectors.rows)
    texts = [_texts(case, core.text) for case, core in zip(cases, told, strict=True)]
    _prepare(vectors, texts)
    matched = _matched(texts, encoders.tokens)
    keys = [(text, core.parts) for text, core in zip(texts, told, strict=True)]
    read = {key: Reading(*key[0], language, vectors, matched, key[1]) for key in dict.fromkeys(keys)}
    measured_once = {key: measures(reading) for key, reading in read.items()}
    readings, own = [read[key] for key in keys], [measured_once[key] for key in keys]
    question = _question_numbers(cases)
    rows = _compared(own, readings, question)
    names = tuple(rows[0])
    return Answers(
        language,
        names,
        np.array([[row[name] for name in names] for row in rows]),
        _meanings(readings, vectors),
        question,
        _parts(readings),
    )


def _meanings(readings: Sequence[Reading], vectors: TextVectors) -> dict[Part, Floats]:
    """The embeddings of each part; of references, their mean."""
    return {
        "candidate": np.array([one.meaning for one in readings]),
        "references": np.array([one.reference_meanings.mean(axis=0) for one in readings]),
        "query": np.array([vectors(one.query) for one in readings]),
    }


def _parts(readings: Sequence[Reading]) -> dict[Part, tuple[str, ...]]:
    """The text of each part; of references, their lines."""
    return {
        "candidate": tuple(one.candidate for one in readings),
        "references": tuple("\n".join(one.references) for one in readings),
        "query": tuple(one.query for one in readings),
    }


def _their_language(cases: Sequence[Case]) -> str:
    """The one language of all cases; refuses none, several, and one without rules."""
    languages = sorted({case.language for case in cases})
    if len(languages) != 1 or languages[0] not in LANGUAGES:
        found = ", ".join(repr(language) for language in languages) or "no cases"
        expected = f"one of {', '.join(LANGUAGES)} (the questions' column 'language'), which this judge's rules are for"
        raise InputError("language", found=found, expected=f"{expected}; others: judge fit --method choice or examples")
    return languages[0]


def _prepare(vectors: TextVectors, texts: Sequence[_Worded]) -> None:
    """Embeds in two batches: whole texts, and the sentences of answers and references."""
    vectors.prepare([text for candidate, query, references in texts for text in (candidate, query, *references)])
    answering = [text for candidate, _, references in texts for text in (candidate, *references)]
    vectors.prepare([sentence for text in answering for sentence in sentences(text)])


def _question_numbers(cases: Sequence[Case]) -> Ints:
    """The number of each case's question, in the order of first appearance."""
    order = {name: number for number, name in enumerate(dict.fromkeys(case.id for case in cases))}
    return np.array([order[case.id] for case in cases], dtype=np.int64)


def _compared(own: Sequence[dict[str, float]], readings: Sequence[Reading], question: Ints) -> list[dict[str, float]]:
    """The measures of each answer, and how it stands beside the other answers to its question."""
    rows = []
    for row, (measured, reading) in enumerate(zip(own, readings, strict=True)):
        others = [int(k) for k in np.flatnonzero(question == question[row]) if k != row]
        rows.append(measured | beside_others(measured, reading, [(own[k], readings[k]) for k in others]))
    return rows


def _matched(texts: Sequence[_Worded], encoder: TokenEncoder) -> Matched:
    """BERTScore of each answer and its references, computed in one batch in alphabetical order."""
    pairs = sorted({(candidate, reference) for candidate, _, references in texts for reference in references})
    found = BertScore(encoder).score(pairs)
    rows = np.column_stack([found.precision, found.recall, found.f1]).tolist()
    known: dict[tuple[str, str], tuple[float, float, float]] = {
        pair: (row[0], row[1], row[2]) for pair, row in zip(pairs, rows, strict=True)
    }
    return lambda candidate, reference: known[candidate, reference]


def _texts(case: Case, core: str) -> tuple[str, str, tuple[str, ...]]:
    return core, case.query, tuple(reference.text for reference in case.references)


DENIAL = -1.0
"""The expected change of a rating by a denial, in standard deviations of the ratings."""

_EACH = 12  # answers for each wording


@dataclass(frozen=True)
class Contrasts:
    """Denied answers, each with the unchanged other answers to its question. Row `changed[k]` of `answers` was made from
    row `origin[k]` of the training answers by the wording number `wording[k]`."""

    answers: Answers
    changed: Ints
    origin: Ints
    wording: tuple[int, ...]

    def part(self, rows: Ints) -> Contrasts:
        """The contrasts made from some rows of the training answers, renumbered from 0."""
        index = {row: k for k, row in enumerate(rows.tolist())}
        kept = [k for k, row in enumerate(self.origin.tolist()) if row in index]
        origin = np.array([index[int(self.origin[k])] for k in kept], dtype=np.int64)
        return Contrasts(self.answers, self.changed[kept], origin, tuple(self.wording[k] for k in kept))

    @property
    def kinds(self) -> tuple[int, ...]:
        """The wordings, each once."""
        return tuple(dict.fromkeys(self.wording))

    @property
    def expected(self) -> Floats:
        """The expected change of a rating by each wording."""
        return np.full(len(self.kinds), DENIAL)

    def differences(self, changed: Floats, own: Floats) -> Floats:
        """The mean change of a block of columns by each wording: wordings × columns. `changed` are the rows of these
        answers, `own` those of the training answers."""
        apart = changed[self.changed] - own[self.origin]
        code = np.array([self.kinds.index(one) for one in self.wording], dtype=np.int64)
        return _group_means(apart, code)


@cache
def _wordings() -> dict[str, list[str]]:
    return read_yaml(Path(__file__).with_name("contrasts.yaml"))


def changed_cases(cases: Sequence[Case], seed: int) -> tuple[list[Case], list[int], list[int], list[int]]:
    """Cases of one language with denied answers, each with the other answers to its question under an id of their own; the
    indices of the changed cases, the indices of their originals, and the numbers of the wordings."""
    made: list[Case] = []
    changed: list[int] = []
    origin: list[int] = []
    numbers: list[int] = []
    by_question: dict[str, list[int]] = {}
    for row, case in enumerate(cases):
        by_question.setdefault(case.id, []).append(row)
    given = [row for row, case in enumerate(cases) if case.candidate.strip()]
    given.sort(key=lambda row: (cases[row].id, cases[row].candidate))
    for number, wording in enumerate(_wordings().get(cases[0].language, [])):
        rng = generator(seed, "embedded-judge", "contrasts", cases[0].language, f"denied/{number}")
        for drawn in rng.permutation(len(given))[:_EACH]:
            row = given[drawn]
            own = cases[row]
            text = wording.replace("{text}", own.candidate.strip())
            changed.append(len(made))
            origin.append(row)
            numbers.append(number)
            others = [cases[k] for k in by_question[own.id] if k != row]
            made += [replace(one, id=f"{own.id}#{number}#{row}") for one in (replace(own, candidate=text), *others)]
    return made, changed, origin, numbers


VIEWS = {
    "measures": "measures of the answer, each standardised",
    "bends": "the same, with bends and interactions (random Fourier features of a Gaussian kernel)",
    "wording": "n-grams of characters of the answer (TF-IDF)",
    "wording-apart": "how far they differ from those of the references",
    "wording-shared": "those that the references have too",
    "wording-of-references": "n-grams of the references",
    "wording-of-all": "n-grams of all answers to the question, on average",
    "wording-of-query": "n-grams of the question",
    "meaning": "embedding of the answer",
    "meaning-of-references": "mean embedding of the references",
    "meaning-of-query": "embedding of the question",
    "meaning-shared": "product of the answer's and the references' embeddings",
    "meaning-apart": "how far they differ",
    "likeness": "the mean of plain measures of likeness to the references (`LIKENESS`)",
    "denial": "how far the answer denies what the references say, or what they do not deny",
    "judges": "scores that other judges gave, each standardised; no column where none was stacked",
}
"""The views by name, with a description. Each view is a block of columns that a linear model weighs."""

FREE = ("likeness", "judges", "denial")
"""Views with few columns, which designs penalise very little."""

OF_OTHERS = ("wording-of-all",)
"""Views that use other answers to the same question (some measures do too)."""

LIKENESS = ("rouge-1-mean", "bert-f1-mean")
"""Measures that are good metrics by themselves."""

_MAX_DEVIATION = 4.0  # standardised measures are clipped there
_DENIED = (0.25, 0.5)  # contrary words: 49 of 50 rated answers have fewer than the first, denials more than the second
_WAVES = 400
_MIN_TEXTS = 2  # n-grams in fewer training texts are left out


@dataclass(frozen=True)
class Views:
    """The transformation of answers into blocks of columns, fitted on training answers alone.

    `means` are the column means of each view and `sizes` the scale of its block, so that every block has mean 0 and mean
    squared length 1 over the training answers.
    """

    columns: tuple[int, ...]
    centre: Floats
    spread: Floats
    waves: Floats
    phases: Floats
    grams: dict[str, tuple[str, ...]]
    rarity: dict[str, Floats]
    means: dict[str, Floats]
    sizes: dict[str, float]

    def blocks(self, answers: Answers) -> dict[str, Floats]:
        """The blocks of answers: rows × columns, by view."""
        return self.scaled(_raw(self, answers))

    def scaled(self, raw: dict[str, Floats]) -> dict[str, Floats]:
        """Centred and scaled blocks."""
        return {name: (raw[name] - mean) / self.sizes[name] for name, mean in self.means.items()}


def fit_views(answers: Answers, rows: Ints, seed: int, *, alone: bool = False) -> tuple[Views, dict[str, Floats]]:
    """Fits all views to these rows of answers, and gives the blocks of all rows; `alone` leaves out measures that use other
    answers."""
    columns = tuple(k for k, name in enumerate(answers.names) if not (alone and name.startswith(BESIDE_OTHERS)))
    training = answers.measured[rows][:, list(columns)]
    centre, spread = _moments(training)
    rng = generator(seed, "embedded-judge", "waves")
    # exp(−|x − y|² / 2n) for n measures: a Gaussian kernel as wide as the distance of random pairs.
    waves = rng.standard_normal((len(columns), _WAVES)) / np.sqrt(len(columns))
    phases = rng.uniform(0, 2 * np.pi, _WAVES)
    grams: dict[str, tuple[str, ...]] = {}
    rarity: dict[str, Floats] = {}
    for part in PARTS:
        grams[part], rarity[part] = _vocabulary(answers, part, rows)
    views = Views(columns, centre, spread, waves, phases, grams, rarity, {}, {})
    raw = _raw(views, answers)
    for name, block in raw.items():
        views.means[name] = block[rows].mean(axis=0)
        size = float(np.sqrt(((block[rows] - views.means[name]) ** 2).sum(axis=1).mean()))
        views.sizes[name] = size if size > 1e-9 else 1.0
    return views, views.scaled(raw)


def _raw(views: Views, answers: Answers) -> dict[str, Floats]:
    measured = (answers.measured[:, list(views.columns)] - views.centre) / views.spread
    measured = np.clip(np.nan_to_num(measured, nan=0.0), -_MAX_DEVIATION, _MAX_DEVIATION)
    wording = _tfidf(answers, "candidate", views, "candidate")
    expected = _tfidf(answers, "references", views, "candidate")
    meaning, meant, asked = (answers.meanings[part] for part in ("candidate", "references", "query"))
    names = [answers.names[k] for k in views.columns]
    blocks = {
        "likeness": measured[:, [names.index(one) for one in LIKENESS]].mean(axis=1, keepdims=True),
        "denial": _denial(answers.measured[:, [answers.names.index("contrary")]]),
        "judges": measured[:, [k for k, name in enumerate(names) if name.startswith(STACKED)]],
        "measures": measured,
        "bends": np.cos(measured @ views.waves + views.phases),
        "wording": wording,
        "wording-apart": np.abs(wording - expected),
        "wording-shared": np.minimum(wording, expected),
        "wording-of-references": _tfidf(answers, "references", views, "references"),
        "wording-of-all": _group_means(wording, answers.question)[answers.question],
        "wording-of-query": _tfidf(answers, "query", views, "query"),
        "meaning": meaning,
        "meaning-of-references": meant,
        "meaning-of-query": asked,
        "meaning-shared": meaning * meant,
        "meaning-apart": np.abs(meaning - meant),
    }
    return {name: blocks[name] for name in VIEWS}


def _denial(contrary: Floats) -> Floats:
    """0 for the share of words that sound answers deny, 1 where nearly all is denied."""
    return np.asarray(np.clip((contrary - _DENIED[0]) / (_DENIED[1] - _DENIED[0]), 0.0, 1.0), dtype=np.float64)


def _moments(values: Floats) -> tuple[Floats, Floats]:
    """The mean and standard deviation of each column without NaN; 0 and 1 for a column of NaN."""
    known = ~np.isnan(values)
    count = np.maximum(known.sum(axis=0), 1)
    centre = np.where(known, values, 0.0).sum(axis=0) / count
    squares = np.where(known, (values - centre) ** 2, 0.0).sum(axis=0) / count
    spread = np.sqrt(squares)
    return centre, np.where(spread > 1e-9, spread, 1.0)


def _vocabulary(answers: Answers, part: Part, rows: Ints) -> tuple[tuple[str, ...], Floats]:
    """The n-grams in two or more of the rows' texts, sorted, and their idf, ln((1 + n) / (1 + texts with it)) + 1."""
    counts = answers.counts(part)
    having = np.asarray((counts.table[rows] > 0).sum(axis=0)).ravel()
    kept = sorted((name, k) for name, k in counts.column.items() if having[k] >= _MIN_TEXTS)
    within = having[[k for _, k in kept]]
    return tuple(name for name, _ in kept), np.log((1 + len(rows)) / (1 + within)) + 1


def _tfidf(answers: Answers, texts: Part, views: Views, vocabulary: Part) -> Floats:
    """TF-IDF (1 + ln of counts, times rarity) of a part's texts; each row is a unit vector, or zeros without n-grams."""
    counts = answers.counts(texts)
    names = views.grams[vocabulary]
    found = np.zeros((len(answers), len(names)))
    rows = [(k, counts.column[name]) for k, name in enumerate(names) if name in counts.column]
    if rows:
        here, there = (np.array(one) for one in zip(*rows, strict=True))
        times = counts.table[:, there].astype(np.float64)
        times.data = (np.log(times.data) + 1) * views.rarity[vocabulary][here[times.indices]]
        length = np.sqrt(np.asarray(times.power(2).sum(axis=1)).ravel())
        times.data /= np.repeat(length, np.diff(times.indptr))
        found[:, here] = times.toarray()
    return found


def _group_means(values: Floats, code: Ints) -> Floats:
    """The mean of the rows of each group, 0 to the highest `code`: groups × columns."""
    sums = np.zeros((int(code.max()) + 1, values.shape[1]))
    np.add.at(sums, code, values)
    return np.asarray(sums / np.bincount(code)[:, None], dtype=np.float64)
