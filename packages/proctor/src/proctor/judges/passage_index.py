"""The index of a folder of documents, and the search for passages: by words (BM25), by meaning (vectors), and both fused.

`INDEX/<mark>/` is complete or absent: it is built in a draft folder and moved into place. The mark is a hash of the
documents' names and bytes and of the settings, so that an index of other documents is never used.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from proctor.core import (
    ConfigurationError,
    FrozenModel,
    InputError,
    content_hash,
    count_of,
    json_line,
    pip_install,
    read_text,
)
from proctor.judges.documents import Chunking, Passage, document_hashes, passages_of, read_document
from proctor.judges.prompt_injection import sanitize
from proctor.metrics.text import EMBEDDED_ENCODER, Encoder, default_encoder, tokens
from proctor.stats import Floats

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer


T = TypeVar("T")

CITES_UNSEEN = "cites-unseen-passage"
"""Flag: the judge cites a passage that it was not shown."""

PairScorer = Callable[[str, Sequence[str]], NDArray[np.float32]]
"""From a query and texts to the relevance of each text; higher is better."""


@cache
def load_sentence_encoder(name: str = EMBEDDED_ENCODER) -> Encoder:
    """The embedded encoder, or the one of sentence-transformers in a folder; runs on the CPU.

    Raises `ConfigurationError` without the extra, and `InputError` for a folder without an encoder.
    """
    if name == EMBEDDED_ENCODER:
        return default_encoder()

    def load(folder: str) -> SentenceTransformer:
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(folder, device="cpu", local_files_only=True)

    model = _loaded(load, name, "a sentence encoder")

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        found = model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(found, dtype=np.float32)

    return encode


@cache
def load_pair_scorer(name: str) -> PairScorer:
    """The cross-encoder of sentence-transformers in a folder. Raises as `load_sentence_encoder`."""

    def load(folder: str) -> CrossEncoder:
        from sentence_transformers import CrossEncoder

        return CrossEncoder(folder, device="cpu", local_files_only=True)

    model = _loaded(load, name, "a cross-encoder")

    def score(query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        pairs = [(query, text) for text in texts]
        found = model.predict(pairs, show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(found, dtype=np.float32).reshape(len(texts))

    return score


def _loaded(load: Callable[[str], T], name: str, what: str) -> T:
    if not Path(name).is_dir():
        raise InputError(name, found="no such folder", expected=f"{what} of sentence-transformers")
    try:
        return load(name)
    except ImportError as error:
        raise ConfigurationError(f"{what} needs the extra 'retrieval' ({pip_install('retrieval')}): {error}") from error
    except (OSError, ValueError, RuntimeError, KeyError, AttributeError) as error:
        reason = " ".join(str(error).split())
    raise InputError(name, found=f"what can't be loaded ({reason})", expected=what)


RANK_CONSTANT = 60
"""Dampens the weight of the first ranks; the value is that of the method's authors."""


def fused(rankings: Sequence[Sequence[T]]) -> list[tuple[T, float]]:
    """Everything in the rankings, best first, with its score: the sum of 1 / (60 + rank) over the rankings that list it,
    ranks from 1 (reciprocal rank fusion; Cormack, Clarke and Büttcher 2009, SIGIR). Ties keep the order of first
    occurrence.

    >>> [(name, round(score, 5)) for name, score in fused([["a", "b"], ["b", "c"]])]
    [('b', 0.03252), ('a', 0.01639), ('c', 0.01613)]
    """
    scores: dict[T, float] = {}
    for ranking in rankings:
        for rank, one in enumerate(ranking, start=1):
            scores[one] = scores.get(one, 0.0) + 1 / (RANK_CONSTANT + rank)
    return sorted(scores.items(), key=lambda pair: -pair[1])


_K1, _B = 1.2, 0.75
Vectors = NDArray[np.float32]


class Words:
    """BM25 over texts: the sum over the query's words of idf · tf / (tf + 1.2 · (0.25 + 0.75 · length / mean length)),
    with idf = ln(1 + (N − df + ½) / (df + ½)) (Robertson and Zaragoza 2009, as in Lucene). Words are those of `tokens`:
    characters in Chinese. Raises `ConfigurationError` without the extra `retrieval`.

    >>> Words(["ice water", "water", "burn"]).scores("Ice!").round(4).tolist()
    [0.3701, 0.0, 0.0]
    """

    def __init__(self, texts: Sequence[str]) -> None:
        try:
            from bm25s import BM25
        except ImportError as error:
            raise ConfigurationError(
                f"retrieval needs the extra 'retrieval' ({pip_install('retrieval')}): {error}"
            ) from error
        split = [tokens(text) for text in texts]
        self._known = {word for words in split for word in words}
        self._count = len(split)
        self._index: Any = BM25(method="lucene", k1=_K1, b=_B)
        if self._known:
            self._index.index(split, show_progress=False)

    def scores(self, query: str) -> Floats:
        """The score of each text; 0 if it shares no word with the query."""
        known = [word for word in tokens(query) if word in self._known]
        if not known:
            return np.zeros(self._count)
        return np.asarray(self._index.get_scores(known), dtype=np.float64)

    def ranking(self, query: str, most: int, among: NDArray[np.bool_] | None = None) -> list[int]:
        """The indices of the best texts that share a word with the query, best first; only texts that the mask `among`
        selects."""
        scores = self.scores(query)
        scores = scores if among is None else np.where(among, scores, 0.0)
        order = np.argsort(-scores, kind="stable")[:most]
        return [int(one) for one in order if scores[one] > 0]


@dataclass(frozen=True, slots=True)
class Match:
    """A retrieved passage with its fused score and its best ranks (from 1) by words and by meaning over the queries; None
    if it was not in the pool."""

    passage: Passage
    score: float
    by_words: int | None
    by_meaning: int | None


class PassageIndex:
    """Passages and their vectors, each of length 1. Thread-safe.

    A search compares the query with every passage in one matrix product. 100,000 passages of 384 numbers take 150 MB on
    disk, which are mapped into memory; a million take 1.5 GB and need as much free memory to be fast.
    """

    def __init__(self, passages: Sequence[Passage], vectors: Vectors, encoder: Encoder) -> None:
        self.passages = tuple(passages)
        self._vectors = vectors
        self._encoder = encoder
        self._words = Words([passage.text for passage in self.passages])
        self._lock = threading.Lock()
        self._found: dict[tuple[str, int, tuple[str, ...]], tuple[list[int], list[int]]] = {}

    def search(self, queries: Sequence[str], most: int, *, pool: int = 24, sources: Sequence[str] = ()) -> list[Match]:
        """The best `most` passages for any of the queries: the best `pool` of each query by words and by meaning, with all
        rankings fused. Queries without a letter or digit find nothing. `sources` restricts the search to some documents."""
        asked = [query for query in dict.fromkeys(queries) if tokens(query)]
        pairs = [self._rankings(one, pool, tuple(sources)) for one in asked]
        by_words, by_meaning = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        return [
            Match(self.passages[position], score, _best(position, by_words), _best(position, by_meaning))
            for position, score in fused([ranking for pair in pairs for ranking in pair])[:most]
        ]

    def _rankings(self, query: str, pool: int, sources: tuple[str, ...]) -> tuple[list[int], list[int]]:
        with self._lock:  # encoders are not thread-safe
            if (query, pool, sources) not in self._found:
                named = set(sources)
                among = np.array([passage.source in named for passage in self.passages]) if sources else None
                found = (self._words.ranking(query, pool, among), self._near(query, pool, among))
                self._found[query, pool, sources] = found
            return self._found[query, pool, sources]

    def _near(self, query: str, pool: int, among: NDArray[np.bool_] | None) -> list[int]:
        vector = np.asarray(self._encoder([query])[0], dtype=np.float32)
        length = float(np.linalg.norm(vector))
        apart = 1 - self._vectors @ (vector / (length or 1.0))
        # Rounded, so that passages with the same text keep their order on every CPU.
        order = np.argsort(np.round(apart, 6), kind="stable")
        return [int(position) for position in (order if among is None else order[among[order]])[:pool]]


def _best(position: int, rankings: Sequence[Sequence[int]]) -> int | None:
    ranks = [ranking.index(position) + 1 for ranking in rankings if position in ranking]
    return min(ranks, default=None)


_FORMAT = "proctor passages 2"
_PASSAGES = "passages.jsonl"
_VECTORS = "vectors.npy"
_LOCK = ".lock"
_BUILDING = ".building-"
_MARK = 24  # hex digits


class IndexSettings(FrozenModel):
    """Settings that change an index. `encoder` is "all-MiniLM-L6-v2" (embedded; trained on English) or a folder with a
    model of sentence-transformers."""

    chunking: Chunking = Chunking()
    encoder: str = EMBEDDED_ENCODER


@dataclass(frozen=True)
class Opened:
    """An index and its documents, by name with the hash of their bytes; `built` says whether it was built now."""

    index: PassageIndex
    documents: Mapping[str, str]
    mark: str
    built: bool


def default_folder(documents: Path) -> Path:
    """The default folder of an index: beside the folder of documents."""
    folder = documents.resolve()
    return folder.with_name(f"{folder.name}.index")


def open_index(documents: Path, folder: Path | None = None, settings: IndexSettings | None = None) -> Opened:
    """The index of a folder of documents as they are now. If `folder` has none, it is built, and an index of other
    documents or settings there is removed. Concurrent processes build it once.

    Raises `InputError` for documents that can't be read, a `folder` with other files, and a damaged index;
    `ConfigurationError` if the encoder can't be loaded.
    """
    settings = settings or IndexSettings()
    known = document_hashes(documents)
    folder = default_folder(documents) if folder is None else folder
    _refuse_inside(documents, folder)
    identity: dict[str, JsonValue] = {"format": _FORMAT, "settings": settings.model_dump(mode="json")}
    mark = content_hash({**identity, "documents": dict(known)})[:_MARK]
    built = False
    if not (folder / mark).is_dir():
        with _alone(folder):
            if not (folder / mark).is_dir():
                _build(documents, known, folder / mark, settings)
                built = True
    return Opened(_opened(folder / mark, settings), known, mark, built)


def _build(documents: Path, known: Mapping[str, str], target: Path, settings: IndexSettings) -> None:
    passages = tuple(passages_of((read_document(documents, source, known) for source in known), settings.chunking))
    vectors = load_sentence_encoder(settings.encoder)([passage.text for passage in passages])
    part = target.with_name(f"{_BUILDING}{target.name}")
    part.mkdir()
    try:
        _write(part, passages, np.asarray(vectors, dtype=np.float32))
        written = {"format": _FORMAT, "settings": settings.model_dump(mode="json"), "passages": len(passages)}
        (part / "index.json").write_text(json.dumps(written | {"documents": dict(known)}, indent=1), "utf-8")
        part.replace(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    for other in target.parent.iterdir():
        if other.is_dir() and other != target:
            shutil.rmtree(other, ignore_errors=True)


def _write(folder: Path, passages: Sequence[Passage], vectors: Vectors) -> None:
    """Writes the passages as JSON lines, and their vectors, scaled to length 1, as a NumPy array without pickled data."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.save(folder / _VECTORS, vectors / np.where(lengths > 0, lengths, 1), allow_pickle=False)
    with (folder / _PASSAGES).open("w", encoding="utf-8") as out:
        out.writelines(json_line(asdict(passage)) for passage in passages)


def _opened(folder: Path, settings: IndexSettings) -> PassageIndex:
    try:
        written = json.loads(read_text(folder / "index.json"))
        with (folder / _PASSAGES).open(encoding="utf-8") as lines:
            passages = tuple(Passage(**json.loads(line)) for line in lines)
        vectors = np.load(folder / _VECTORS, mmap_mode="r", allow_pickle=False)
        if len(passages) != written["passages"] or len(vectors) != len(passages):
            raise ValueError(f"{count_of(len(passages), 'passage')} instead of {written['passages']}")
    except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
        reason = " ".join(str(error).split())[:200]
    else:
        return PassageIndex(passages, vectors, load_sentence_encoder(settings.encoder))
    raise InputError(folder, found=f"a damaged index ({reason})", expected="one as it was built: remove it")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Makes the folder, locks it against other processes, and removes half-built indexes."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        strange = next((path.name for path in folder.iterdir() if not _ours(path)), None)
        if strange is not None:
            raise InputError(folder, found=f"a folder with {strange!r}", expected="an empty one, or an index")
        with (folder / _LOCK).open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for left in folder.glob(f"{_BUILDING}*"):
                shutil.rmtree(left, ignore_errors=True)
            yield
    except OSError as error:
        raise InputError(
            folder, found=error.strerror or str(error), expected="a writable path for the index"
        ) from error


def _ours(entry: Path) -> bool:
    name = entry.name
    return (
        name == _LOCK
        or name.startswith(_BUILDING)
        or (len(name) == _MARK and set(name) <= set("0123456789abcdef") and entry.is_dir())
    )


def _refuse_inside(documents: Path, folder: Path) -> None:
    inside, outside = documents.resolve(), folder.resolve()
    if outside == inside or inside in outside.parents:
        raise InputError(folder, found="a folder inside the documents", expected="one beside them")


def _shown(passage: Passage) -> dict[str, JsonValue]:
    """A passage as a prompt shows it: sanitized, with its source on one line."""
    source = " ".join(sanitize(passage.source).split())
    return {"source": source, "page": passage.page, "text": sanitize(passage.text)}


def passages_shown(matches: Sequence[Match]) -> list[JsonValue]:
    """Passages as values of a prompt."""
    return [_shown(match.passage) for match in matches]


def passage_records(matches: Sequence[Match], cited: Iterable[int]) -> list[JsonValue]:
    """The passages that were shown, as evidence: number, id, source, page, text, ranks, and whether they were cited."""
    named = set(cited)
    return [
        {
            "number": number,
            "id": one.passage.id,
            **_shown(one.passage),
            "start": one.passage.start,
            "score": round(one.score, 6),
            "rank_by_words": one.by_words,
            "rank_by_meaning": one.by_meaning,
            "cited": number in named,
        }
        for number, one in enumerate(matches, start=1)
    ]
