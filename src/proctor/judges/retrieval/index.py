"""The index of a folder of documents: built once, found by the hashes of what it was built from.

`INDEX/<mark>/` is whole or not there: it is built beside and moved into place. The mark follows from the
documents' names and bytes and from the settings, so an index of other documents is never taken for theirs.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, JsonValue

from proctor.core import InputError, content_hash, read_text
from proctor.judges.retrieval.documents import document_hashes, read_document
from proctor.judges.retrieval.loading import load_sentence_encoder
from proctor.judges.retrieval.passages import Chunking, Passage, passages_of
from proctor.judges.retrieval.ranking import PassageIndex, Vectors
from proctor.metrics.text import EMBEDDED_ENCODER

_FORMAT = "proctor passages 2"
_PASSAGES = "passages.jsonl"
_VECTORS = "vectors.npy"
_LOCK = ".lock"
_BUILDING = ".building-"
_MARK = 24  # hex digits


class IndexSettings(BaseModel):
    """What changes an index beside its documents. `encoder` is "all-MiniLM-L6-v2" (embedded; trained on
    English) or a folder with a model of sentence-transformers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    chunking: Chunking = Chunking()
    encoder: str = EMBEDDED_ENCODER


@dataclass(frozen=True)
class Opened:
    """An index with what it is of: documents by name with the hash of their bytes; `built` says whether that
    was done now."""

    index: PassageIndex
    documents: Mapping[str, str]
    mark: str
    built: bool


def default_folder(documents: Path) -> Path:
    """Where the index of a folder is kept where no place is named: beside it."""
    whole = documents.resolve()
    return whole.with_name(f"{whole.name}.index")


def open_index(documents: Path, folder: Path | None = None, settings: IndexSettings | None = None) -> Opened:
    """The index of a folder of documents as they are now; built where `folder` has none of them, and then the
    index of other documents or settings that was there is removed. Two processes build it once.

    Raises `InputError` for documents that can't be read, a `folder` with files that are no index, and an
    index that is damaged; `ConfigurationError` where the encoder can't be loaded.
    """
    settings = settings or IndexSettings()
    known = document_hashes(documents)
    folder = default_folder(documents) if folder is None else folder
    _refuse_inside(documents, folder)
    stated: dict[str, JsonValue] = {"format": _FORMAT, "settings": settings.model_dump(mode="json")}
    mark = content_hash({**stated, "documents": dict(known)})[:_MARK]
    built = False
    if not (folder / mark).is_dir():
        with _alone(folder):
            if not (folder / mark).is_dir():
                _build(documents, known, folder / mark, settings)
                built = True
    return Opened(_opened(folder / mark, settings), known, mark, built)


def _build(documents: Path, known: Mapping[str, str], target: Path, settings: IndexSettings) -> None:
    passages = tuple(passages_of((read_document(documents, source, known) for source in known), settings.chunking))
    vectors = load_sentence_encoder(settings.encoder)([one.text for one in passages])
    part = target.with_name(f"{_BUILDING}{target.name}")
    part.mkdir()
    try:
        _write(part, passages, np.asarray(vectors, dtype=np.float32))
        told = {"format": _FORMAT, "settings": settings.model_dump(mode="json"), "passages": len(passages)}
        (part / "index.json").write_text(json.dumps(told | {"documents": dict(known)}, indent=1), "utf-8")
        part.replace(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    for other in target.parent.iterdir():
        if other.is_dir() and other != target:
            shutil.rmtree(other, ignore_errors=True)


def _write(folder: Path, passages: Sequence[Passage], vectors: Vectors) -> None:
    """The passages one a line, and their vectors, each of length 1, in NumPy's own form: nothing in them is run."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.save(folder / _VECTORS, vectors / np.where(lengths > 0, lengths, 1), allow_pickle=False)
    with (folder / _PASSAGES).open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in passages)


def _opened(folder: Path, settings: IndexSettings) -> PassageIndex:
    try:
        told = json.loads(read_text(folder / "index.json"))
        with (folder / _PASSAGES).open(encoding="utf-8") as lines:
            passages = tuple(Passage(**json.loads(line)) for line in lines)
        vectors = np.load(folder / _VECTORS, mmap_mode="r", allow_pickle=False)
        if len(passages) != told["passages"] or len(vectors) != len(passages):
            raise ValueError(f"{len(passages)} passages instead of {told['passages']}")
    except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
        reason = " ".join(str(error).split())[:200]
    else:
        return PassageIndex(passages, vectors, load_sentence_encoder(settings.encoder))
    raise InputError(folder, found=f"a damaged index ({reason})", expected="one as it was built: remove it")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Makes the folder, and keeps other builders out. What one of them left half-built is removed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        strange = next((one.name for one in folder.iterdir() if not _ours(one)), None)
        if strange is not None:
            raise InputError(folder, found=f"a folder with {strange!r}", expected="an empty one, or an index")
        with (folder / _LOCK).open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for left in folder.glob(f"{_BUILDING}*"):
                shutil.rmtree(left, ignore_errors=True)
            yield
    except OSError as error:
        raise InputError(folder, found=error.strerror or str(error), expected="a place for the index") from error


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
        raise InputError(folder, found="a place inside the documents", expected="one beside them")
