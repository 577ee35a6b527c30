"""`proctor judge index`: the passages of a folder of documents, ready to be looked up, or looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proctor.cli.output import console, print_table


def index(
    documents: Annotated[
        Path, typer.Argument(metavar="DOCUMENTS", help="A folder with text, Markdown and PDF.", show_default=False)
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Where the index is kept. [default: beside the folder]", show_default=False),
    ] = None,
    encoder: Annotated[
        str, typer.Option("--encoder", help="The embedded encoder, or a folder with one of sentence-transformers.")
    ] = "all-MiniLM-L6-v2",
    size: Annotated[int, typer.Option("--size", min=8, max=2000, help="Words of a passage, at most.")] = 160,
    overlap: Annotated[
        int | None,
        typer.Option(
            "--overlap",
            min=0,
            help="Words that a passage shares with the one before. [default: a fifth of --size]",
            show_default=False,
        ),
    ] = None,
    query: Annotated[
        str, typer.Option("--query", help="Show which passages are found for it.", show_default=False)
    ] = "",
    top: Annotated[int, typer.Option("--top", min=1, help="So many of them.")] = 5,
) -> None:
    """Index documents for judges.

    retrieval-judge and evidence-judge look into the index; where it is current, nothing is done. The judges build it themselves where it is not there. Built ahead, one sees what can be read, and what is
    found for a question.

    Example: proctor judge index guidelines --query "Can I put ice on a burn?"
    """
    from proctor.core import InputError
    from proctor.judges.documents import Chunking
    from proctor.judges.passage_index import IndexSettings, default_folder, open_index

    if overlap is not None and overlap > size // 2:
        raise InputError(None, "--overlap", found=str(overlap), expected=f"at most half of --size, {size // 2}")
    folder = out or default_folder(documents)
    settings = IndexSettings(chunking=Chunking.of(size, overlap), encoder=encoder)
    opened = open_index(documents, folder, settings)
    state = "built" if opened.built else "current"
    passages = opened.index.passages
    console.print(
        f"{len(passages)} passages of {len(opened.documents)} documents, {state}: {folder}",
        markup=False,
        highlight=False,
    )
    if query:
        print_table(
            f"Found for {query!r}",
            ["source", ">page", ">by words", ">by meaning", "passage"],
            [
                [
                    one.passage.source,
                    "–" if one.passage.page is None else str(one.passage.page),
                    "–" if one.by_words is None else str(one.by_words),
                    "–" if one.by_meaning is None else str(one.by_meaning),
                    " ".join(one.passage.text.split())[:160],
                ]
                for one in opened.index.search([query], top)
            ],
        )
