"""The options of what comes in from other programs and goes out to them."""

# No `from __future__ import annotations`: the command line reads these annotations.

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from proctor.api.option_texts import texts
from proctor.api.options import AllItems, Columns, Files, MediaFolder, Seed, Selection, StoreUrl
from proctor.core import Option


def read_formats() -> list[str]:
    """The formats of other programs that are read."""
    from proctor.interchange import FORMATS

    return FORMATS.read()


class ImportOptions(Files, total=False):
    """How answers are read: `name` is that of the system, `condition` what it had seen (as the files say, else
    `video`), `track` and `seed` as they were asked; `answers_only` leaves people's ratings in the file alone. `scorer`
    is the name of the automatic scorer whose scores of stored answers the file holds. `form` is the format of another
    program (what the file's content says, where none is named), `id_column` and `answer_column` are where its ids and
    answers stand."""

    name: Annotated[str, Option("The system's name in the store. [default: as the file says]", default="")]
    condition: Annotated[str, Option("What the system had seen. [default: as the files say, else video]", default="")]
    answers_only: Annotated[bool, Option("Do not read people's ratings in the file.", default=False)]
    scorer: Annotated[str, Option("The file holds this automatic scorer's scores of answers in the store.", default="")]
    columns: Columns
    store: StoreUrl
    seed: Seed
    form: Annotated[
        str,
        Option(
            "Another program's format (proctor list formats). [default: as the content says]",
            "--from",
            "",
            names=read_formats,
        ),
    ]
    id_column: Annotated[
        str, Option("Where the item's id stands; \"position\": its number is the item's place, from 0.", default="")
    ]
    answer_column: Annotated[str, Option("Of a table: where the answer stands.", default="")]


class ExportOptions(Selection, total=False):
    """What is exported: `format` is jsonl, csv or parquet for a row per item, system, condition and metric; judgements
    for what `scorer` said; unresolved (decided: also those) for what waits for a person; sums of groups; or one of the benchmark's
    formats of submissions, of one run or of the scores of `scorer`: of these the rows alone that `template` has, those
    without a score left out where `allow_missing`; or a format of another program (`proctor list formats`). For these
    `origin` says where data and results come from, `media` is the folder of videos or images, copied only with
    `copy_media`, and `no_references` leaves out the reference answers."""

    format: Annotated[
        str,
        Option(
            "jsonl, csv or parquet; judgements: what a scorer said, as JSON Lines; unresolved: what judges left open "
            "(decided: also what a person decided); sums: of groups alone, for proctor pool; one run as a submission: answer or responses (focus), submission "
            "(clinicalskillqa); a scorer's scores: submission (mediqa-eval); another program's format (proctor list "
            "formats). [default: by the file's name]",
            default="",
        ),
    ]
    all_items: AllItems
    scorer: Annotated[str, Option("Whose scores, for judgements and submissions of scores.", default="")]
    template: Annotated[
        str | Path | None, Option("Only the rows of this file, in its order (submissions of scores).", shell=Path)
    ]
    allow_missing: Annotated[bool, Option("Leave rows out that have no score (submissions of scores).", default=False)]
    origin: Annotated[
        Mapping[str, str],
        Option(
            "For other programs' formats, where it comes from: licence, citation, url, creator, dataset, model, "
            "organisation, relationship; may be repeated.",
            "--origin",
            {},
            shell=list[str],
            read=texts,
            metavar="KEY=VALUE",
        ),
    ]
    media: MediaFolder
    copy_media: Annotated[bool, Option("Other programs' formats: copy the media, too.", default=False)]
    no_references: Annotated[bool, Option("Other programs' formats: leave out reference answers.", default=False)]
