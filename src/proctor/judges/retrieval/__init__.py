"""Passages of documents for judges that look things up: read, cut, indexed, found, and ranked."""

from proctor.judges.retrieval.documents import Document, Page, document_hashes, read_document
from proctor.judges.retrieval.fusing import RANK_CONSTANT, fused
from proctor.judges.retrieval.index import IndexSettings, Opened, default_folder, open_index
from proctor.judges.retrieval.loading import load_pair_scorer, load_sentence_encoder
from proctor.judges.retrieval.passages import Chunking, Passage, cut, passages_of
from proctor.judges.retrieval.ranking import Match, PassageIndex, Words

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
