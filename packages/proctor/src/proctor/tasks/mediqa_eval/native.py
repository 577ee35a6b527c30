"""MEDIQA-EVAL 2026 as published: its datasets, dimensions and sizes, and the readers of ratings.csv, of submissions in the
same columns, and of encounters.jsonl."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field, field_validator

from proctor import core
from proctor.audits import Key, MetricScores, Rating, RatingsTable
from proctor.judges.dimensions import ReferenceAnswer

DATASETS = ("iiyi", "woundcare")

DIMENSIONS = {
    "en": ("disagree_flag", "completeness", "factual-accuracy", "relevance", "writing-style", "overall"),
    "zh": ("factual-consistency-wgold", "writing-style"),
}
"""What clinicians rated, by language."""

LOWER_IS_BETTER = frozenset({"disagree_flag"})

ORDER = tuple((language, dimension) for language, names in DIMENSIONS.items() for dimension in names)

COLUMNS = ("dataset", "encounter_id", "lang", "candidate", "candidate_author_id", "metric", "rater_id", "value")
"""Of ratings and of submissions alike; `metric` is the dimension."""

LEVELS = (0.0, 0.5, 1.0)

OPTED_OUT = -1.0
"""The value of a row that a submission deliberately leaves out (a language that it does not score)."""

ANSWERS = {"valid": {"iiyi": 168, "woundcare": 315}, "test": {"iiyi": 300, "woundcare": 279}}
"""Answers in each language of the published splits: encounters × three systems."""

SPLITS = tuple(ANSWERS)


_NAMES = (*DIMENSIONS["en"][:-2], DIMENSIONS["zh"][0], *DIMENSIONS["en"][-2:])
"""An order of all dimensions that keeps the task's order in both languages."""

_PARTS = ("completeness", "factual-accuracy")


def levels(dimension: str) -> tuple[float, ...]:
    """The possible ratings on a dimension.

    >>> levels("disagree_flag")
    (0.0, 1.0)
    """
    return (0.0, 1.0) if dimension == "disagree_flag" else LEVELS


SCHEME = core.RatingScheme(
    dimensions=tuple(
        core.Dimension(
            name,
            levels(name),
            lower_is_better=name in LOWER_IS_BETTER,
            languages=tuple(language for language, names in DIMENSIONS.items() if name in names),
        )
        for name in _NAMES
    ),
    rules=(
        core.RatingRule(name="overall-above-both", dimension="overall", others=_PARTS),
        core.RatingRule(name="overall-above-half", dimension="overall", others=_PARTS, limit=0.5, where=0.5),
    ),
    derived=(
        core.DerivedDimension(dimension="overall", others=_PARTS, how="lowest"),
        core.DerivedDimension(dimension="disagree_flag", others=("factual-accuracy",), how="at-lowest"),
    ),
    step=0.05,
)
"""The dimensions of ratings in the task's order, with the task's rules.

Where a judge rates by levels, overall and disagreement are derived as in the clinicians' ratings: overall is the lower of
completeness and factual accuracy in 330 of 363 ratings of the validation data, and a candidate disagrees with the
references where its factual accuracy is 0 in 327 of 363. The task's overview does not define them.
"""


def dimensions(language: str) -> tuple[core.Dimension, ...]:
    """The dimensions of a language in the task's order.

    >>> [one.name for one in dimensions("zh")]
    ['factual-consistency-wgold', 'writing-style']
    """
    return tuple(
        dimension for name in DIMENSIONS[language] for dimension in SCHEME.dimensions if dimension.name == name
    )


LOOKED_AT = tuple(name for name in COLUMNS if name not in {"rater_id", "value"})


@dataclass(frozen=True)
class AnswerRow:
    """One row of a future submission: an answer and a dimension; the fields are in the order of the columns."""

    dataset: str
    encounter: str
    language: str
    candidate: str
    system: str
    dimension: str

    @property
    def item(self) -> str:
        return item_id(self.dataset, self.encounter, self.language)

    @property
    def key(self) -> Key:
        return self.item, self.system, self.dimension


@dataclass(frozen=True)
class Entry(AnswerRow):
    """One row of ratings or of a submission with valid cells."""

    rater: str = field(kw_only=True)
    value: float = field(kw_only=True)
    row: int = field(kw_only=True)


class Encounter(core.FrozenModel):
    """A patient's question in one language, and clinicians' answers. `images` are paths below the folder of images. A
    reference in a file is a text, or `{"text": …, "frequency": …, "completeness": …}`."""

    dataset: str
    encounter_id: str = Field(min_length=1)
    lang: str
    query: str = Field(min_length=1)
    expert_answers: tuple[ReferenceAnswer, ...] = Field(alias="references", min_length=1)
    images: tuple[str, ...] = ()

    @field_validator("expert_answers", mode="before")
    @classmethod
    def _texts_alone(cls, given: object) -> object:
        if not isinstance(given, list | tuple):
            return given
        return [{"text": one} if isinstance(one, str) else one for one in given]

    @property
    def references(self) -> tuple[str, ...]:
        """The texts of the clinicians' answers, in the file's order."""
        return tuple(answer.text for answer in self.expert_answers)

    @property
    def item(self) -> str:
        return item_id(self.dataset, self.encounter_id, self.lang)


def item_id(dataset: str, encounter: str, language: str) -> str:
    """The id of an encounter's question in one language.

    >>> item_id("iiyi", "ENC00853", "en")
    'iiyi/ENC00853/en'
    """
    return f"{dataset}/{encounter}/{language}"


def shown(key: Key) -> str:
    """A key for error messages."""
    return ", ".join(core.printable(part) for part in (*key[0].split("/"), *key[1:]))


def entries(rows: Iterable[core.TableRow], *, rated: bool) -> tuple[list[Entry], list[core.TableFault]]:
    """The valid rows, and the faults of all others; `rated`: values are clinicians' ratings."""
    good: list[Entry] = []
    faults: list[core.TableFault] = []
    for row in rows:
        wrong = _faults(row, rated)
        if wrong:
            faults += wrong
            continue
        answer = (row.cells[name] for name in LOOKED_AT)
        good.append(Entry(*answer, rater=row.cells["rater_id"], value=float(row.cells["value"]), row=row.number))
    return good, faults


def read_native_ratings(file: Path) -> RatingsTable:
    """The clinicians' ratings. An item is an encounter's question in one language, a group the encounter in both. An
    empty candidate is an answer without text, as in the task's data.

    Raises `InputError`, with the row, for an invalid cell, a rater's second rating of an answer's dimension, and two
    candidates of one system for one encounter and language.
    """
    good, faults = entries(core.read_table(file, COLUMNS).checked(file), rated=True)
    if faults:
        raise faults[0].error(file)
    seen: dict[tuple[Key, str], int] = {}
    texts: dict[tuple[str, str], Entry] = {}
    for entry in good:
        first = seen.setdefault((entry.key, entry.rater), entry.row)
        if first != entry.row:
            found = f"a second rating by {entry.rater!r} of {shown(entry.key)}"
            raise core.TableFault(entry.row, "", found, f"only that of row {first}").error(file)
        before = texts.setdefault(entry.key[:2], entry)
        if before.candidate != entry.candidate:
            raise core.TableFault(entry.row, "candidate", "another text", f"that of row {before.row}").error(file)
    ratings = tuple(
        Rating(
            item=entry.key[0],
            candidate=entry.candidate,
            system=entry.system,
            dimension=entry.dimension,
            rater=entry.rater,
            value=entry.value,
            group=f"{entry.dataset}/{entry.encounter}",
            dataset=entry.dataset,
            language=entry.language,
        )
        for entry in good
    )
    return RatingsTable(ratings, ORDER, LOWER_IS_BETTER)


def read_submission(file: Path, table: RatingsTable) -> MetricScores:
    """A metric's scores of all rated answers, named after the file (see `read_scores`)."""
    found = read_scores(file, {rating.key: rating.candidate for rating in table.ratings})
    return MetricScores(file.stem, found.scores, found.notes)


def read_scores(file: Path, texts: Mapping[Key, str]) -> core.RecordedScores:
    """The scores of a submission; `texts` are the rated answers by item, system and dimension.

    As in the task, the first of two rows with one key counts, and −1 opts out; both are noted. Raises `InputError`,
    with the row, for an invalid cell, an answer without rating or with another text, a rated answer without a score, and
    a dataset, language and dimension that is opted out in part.
    """
    good, faults = entries(core.read_table(file, COLUMNS).checked(file), rated=False)
    if faults:
        raise faults[0].error(file)
    first: dict[Key, Entry] = {}
    repeated: list[int] = []
    for entry in good:
        if entry.key not in texts:
            raise core.TableFault(entry.row, "", shown(entry.key), "an answer that was rated").error(file)
        if entry.candidate != texts[entry.key]:
            raise core.TableFault(entry.row, "candidate", "another text than the rated one", "the same").error(file)
        if first.setdefault(entry.key, entry) is not entry:
            repeated.append(entry.row)
    for key in texts:
        if key not in first:
            raise core.TableFault(0, "", f"no row for {shown(key)}", "one for every rated answer").error(file)
    _opted_out_whole(file, first.values())
    scores = {key: None if one.value == OPTED_OUT else one.value for key, one in first.items()}
    return core.RecordedScores(scores, _notes(list(first.values()), repeated))


def read_encounters(file: Path) -> tuple[Encounter, ...]:
    """The encounters, one JSON object a line. Raises `InputError`, with the line."""
    found: dict[str, Encounter] = {}
    for location, value in core.read_jsonl(file, "a file of encounters"):
        one = _encounter(file, location, value)
        if one.item in found:
            raise core.InputError(file, location, found=f"{one.item} again", expected="each encounter once")
        found[one.item] = one
    if not found:
        raise core.InputError(file, found="no encounters", expected="one JSON object a line")
    return tuple(found.values())


def cell_faults(row: core.TableRow) -> list[core.TableFault]:
    """The faults of a row's cells, except those of rater and value."""
    cells, faults = row.cells, []
    if cells["dataset"] not in DATASETS:
        faults.append(_wrong(row, "dataset", f"one of {', '.join(DATASETS)}"))
    named = ("encounter_id", "candidate_author_id")
    faults += [_wrong(row, name, "a name") for name in named if not cells[name].strip()]
    if lost := core.lost_text(cells.get("candidate", "")):
        faults.append(core.TableFault(row.number, "candidate", lost, "the whole answer"))
    if cells["lang"] not in DIMENSIONS:
        faults.append(_wrong(row, "lang", f"one of {', '.join(DIMENSIONS)}"))
    elif cells["metric"] not in DIMENSIONS[cells["lang"]]:
        faults.append(_wrong(row, "metric", f"one of {', '.join(DIMENSIONS[cells['lang']])}"))
    return faults


def _faults(row: core.TableRow, rated: bool) -> list[core.TableFault]:
    cells, faults = row.cells, cell_faults(row)
    if rated and not cells["rater_id"].strip():
        faults.append(_wrong(row, "rater_id", "a name"))
    value = core.cell_number(cells["value"])
    known = cells["metric"] in DIMENSIONS.get(cells["lang"], ())
    if rated and known and value not in levels(cells["metric"]):
        faults.append(_wrong(row, "value", f"one of {', '.join(f'{level:g}' for level in levels(cells['metric']))}"))
    elif value is None:
        faults.append(_wrong(row, "value", "a finite number"))
    return faults


def _wrong(row: core.TableRow, column: str, expected: str) -> core.TableFault:
    cell = row.cells[column]
    return core.TableFault(row.number, column, repr(cell)[:80] if cell else "nothing", expected)


def _opted_out_whole(file: Path, rows: Iterable[Entry]) -> None:
    cells: dict[tuple[str, str, str], Entry] = {}
    for row in rows:
        before = cells.setdefault((row.dataset, row.language, row.dimension), row)
        if (before.value == OPTED_OUT) != (row.value == OPTED_OUT):
            raise core.TableFault(
                row.row,
                "value",
                f"{row.value:g}, and {before.value:g} in row {before.row}",
                f"-1 (opted out) in all rows or none of {row.dataset}, {row.language}, {row.dimension}",
            ).error(file)


def _notes(rows: list[Entry], repeated: list[int]) -> tuple[str, ...]:
    notes = []
    if repeated:
        locations = ", ".join(str(row) for row in repeated[:5]) + (", …" if len(repeated) > 5 else "")
        notes.append(
            f"{core.count_of(len(repeated), 'row')} with a repeated key; the first counts (repeated in row {locations})"
        )
    out = sum(row.value == OPTED_OUT for row in rows)
    if out:
        notes.append(f"{out} of {core.count_of(len(rows), 'row')} opted out (-1)")
    beyond = [row for row in rows if row.value != OPTED_OUT and not 0 <= row.value <= 1]
    if beyond:
        notes.append(f"{core.count_of(len(beyond), 'score')} outside 0 to 1 (first in row {beyond[0].row})")
    return tuple(notes)


def _encounter(file: Path, location: str, value: object) -> Encounter:
    one = core.validated(Encounter, value, file, location)
    if one.dataset not in DATASETS:
        raise core.InputError(
            file, f"{location}, field 'dataset'", found=repr(one.dataset), expected=f"one of {', '.join(DATASETS)}"
        )
    if one.lang not in DIMENSIONS:
        raise core.InputError(
            file, f"{location}, field 'lang'", found=repr(one.lang), expected=f"one of {', '.join(DIMENSIONS)}"
        )
    return one


def answers_to_judge(file: Path) -> tuple[AnswerRow, ...]:
    """The rows that a submission must have, each once, in the order of the file.

    The columns `value` and `rater_id` are ignored and may be absent. Raises `InputError`, with the row, for an invalid
    cell, and for two candidates of one system for one encounter and language.
    """
    found: dict[Key, AnswerRow] = {}
    texts: dict[tuple[str, str], tuple[int, str]] = {}
    for row in core.read_table(file, LOOKED_AT).checked(file):
        wrong = cell_faults(row)
        if wrong:
            raise wrong[0].error(file)
        one = AnswerRow(*(row.cells[name] for name in LOOKED_AT))
        location, text = texts.setdefault(one.key[:2], (row.number, one.candidate))
        if text != one.candidate:
            raise core.TableFault(row.number, "candidate", "another text", f"that of row {location}").error(file)
        found.setdefault(one.key, one)
    return tuple(found.values())
