"""Passages of documents for judges that look things up: read, cut, indexed, found, and ranked."""

from proctor.judges.retrieval.documents import (
    Chunking,
    Document,
    Page,
    Passage,
    cut,
    document_hashes,
    passages_of,
    read_document,
)
from proctor.judges.retrieval.index import (
    RANK_CONSTANT,
    IndexSettings,
    Match,
    Opened,
    PassageIndex,
    Words,
    default_folder,
    fused,
    load_pair_scorer,
    load_sentence_encoder,
    open_index,
)

__all__ = [
    "RANK_CONSTANT",
    "Chunking",
    "Document",
    "IndexSettings",
    "Match",
    "Opened",
    "Page",
    "Passage",
    "PassageIndex",
    "Words",
    "cut",
    "default_folder",
    "document_hashes",
    "fused",
    "load_pair_scorer",
    "load_sentence_encoder",
    "open_index",
    "passages_of",
    "read_document",
]
