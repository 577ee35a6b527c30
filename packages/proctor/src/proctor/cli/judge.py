"""`proctor judge index`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from proctor.cli.output import print_blocks, print_line
from proctor.core import InputError, Option, count_of


def index(
    documents: Annotated[Path, Option("A folder with text, Markdown and PDF.", metavar="DOCUMENTS", argument=True)],
    out: Annotated[Path | None, Option("Where the index is kept. [default: beside the folder]")] = None,
    encoder: Annotated[
        str, Option("The embedded encoder, or a folder with one of sentence-transformers.")
    ] = "all-MiniLM-L6-v2",
    size: Annotated[int, Option("Words of a passage, at most.", low=8, high=2000)] = 160,
    overlap: Annotated[
        int | None, Option("Words that a passage shares with the one before. [default: a fifth of --size]", low=0)
    ] = None,
    query: Annotated[str, Option("Show the passages that are found for it.")] = "",
    top: Annotated[int, Option("How many of them.", low=1)] = 5,
) -> None:
    """Index documents for judges.

    retrieval-judge and evidence-judge use the index, and build it if it is missing. Build it ahead to see which
    documents can be read, and which passages are found for a question. A current index is not rebuilt.

    Example: proctor judge index guidelines --query "Can I put ice on a burn?"
    """
    from proctor.judges import Chunking, IndexSettings, default_folder, open_index

    if overlap is not None and overlap > size // 2:
        raise InputError(f"--overlap {overlap} is too much: give at most half of --size, {size // 2}.")
    folder = out or default_folder(documents)
    opened = open_index(documents, folder, IndexSettings(chunking=Chunking.of(size, overlap), encoder=encoder))
    state = "built" if opened.built else "current"
    passages, read = count_of(len(opened.index.passages), "passage"), count_of(len(opened.documents), "document")
    print_line(f"{passages} of {read}, {state}: {folder}")
    if query:
        from proctor.reports import passages_table

        print_blocks(passages_table(query, opened.index.search([query], top)))
