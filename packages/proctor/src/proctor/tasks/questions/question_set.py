"""Read a person's own questions: items, notes on how they were understood, and every fault with its location."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from proctor import core
from proctor.core.formats import option_letters
from proctor.media import CONDITIONS, IMAGE_EXTENSIONS, VIDEO_EXTENSIONS
from proctor.metrics import code_scorers
from proctor.stats import linked
from proctor.tasks.questions.answers import SHOWN, are_criteria, is_unit
from proctor.tasks.questions.cells import undirected
from proctor.tasks.questions.columns import ColumnMap, recognise
from proctor.tasks.questions.folder import NAME, Layout, find_layout
from proctor.tasks.questions.media import MediaFolder, names_recordings, sound_line
from proctor.tasks.questions.rows import MADE_UP, RowLocation, RowReader

_MOST_VALUES = 30
_REPEATED_SHOWN = 3
_OWN_GROUP = "\0"  # of an item without a group in its row


@dataclass
class QuestionSet:
    """Questions as read. `items` are complete only without faults; `locations` are their rows, `shown` the media of all
    rows, including those with faults."""

    layout: Layout
    folder: MediaFolder
    columns: ColumnMap = field(default_factory=ColumnMap)
    items: list[core.Item] = field(default_factory=list)
    locations: dict[str, RowLocation] = field(default_factory=dict)
    faults: list[tuple[Path, core.TableFault]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    shown: list[tuple[RowLocation, tuple[core.Media, ...]]] = field(default_factory=list)
    facets: list[str] = field(default_factory=list)
    metrics: list[core.Metric] = field(default_factory=list)

    def lines(self, *, every: bool = False) -> list[str]:
        """The faults: a line for each cause, with its rows, or for `every` fault."""
        findings = core.table_findings(self.faults)
        return [str(finding) for finding in findings] if every else core.by_cause(findings)

    def fault(self, location: Path | RowLocation, column: str, found: str, expected: str) -> None:
        """Adds a fault of a file, or of a row."""
        file, row = (location.file, location.row) if isinstance(location, RowLocation) else (location, 0)
        self.faults.append((file, core.TableFault(row, column, found, expected)))

    def check(self) -> None:
        """Raises one `InputError` for all faults, with a note for each cause, if there are any."""
        if self.faults:
            raise core.error_of_faults(self.layout.path, self.faults)


def read_questions(
    path: Path, media: Path | None = None, columns: Mapping[str, Sequence[str]] | None = None, *, seed: int = 0
) -> QuestionSet:
    """Reads the questions at a path; `seed` shuffles options if the settings say so. Errors in questions are collected
    in `faults`. Raises `InputError` if nothing is at the path, and for an unknown kind of file."""
    layout = find_layout(path)
    sheets = [core.read_sheet(file, sheet=layout.settings.sheet) for file in layout.files]
    given = {name: [one] if isinstance(one, str) else list(one) for name, one in layout.settings.columns.items()}
    names = list(dict.fromkeys(name for sheet in sheets for name in sheet.columns))
    exact, named = layout.settings.exact, {**given, **(columns or {})}
    mapping = _mapping(names, named, exact=exact)
    folder = MediaFolder(layout.folder, media, _paths(sheets, mapping), layout.settings)
    reading = QuestionSet(layout, folder, mapping)
    reading.faults += layout.faults
    reading.notes += layout.notes
    for sheet in sheets:
        reading.faults += [(sheet.file, fault) for fault in sheet.faults]
        reading.notes += [] if exact else sheet.notes
    if not names:
        return reading
    if exact:
        if named:
            reading.fault(layout.folder / NAME, "exact", "it with columns that somebody named", "one of both")
        reading.notes.append(f"As a program wrote it; facets: {', '.join(mapping.facets) or 'none'}")
    else:
        _keep_facets(reading, sheets, ("audio",), given={*named})
        _find_media(reading, sheets, media)
        _keep_facets(reading, sheets, ("window", "unit", "criteria"), given={*named})
        reading.notes += [line for line in (mapping.line, mapping.near_line) if line]
    reading.faults += [(sheets[0].file, fault) for fault in mapping.faults]
    if not mapping.faults:
        _read_items(reading, sheets, seed)
    return reading


def _mapping(names: Sequence[str], given: Mapping[str, Sequence[str]], *, exact: bool) -> ColumnMap:
    """The fields of the columns: as a program wrote them, or recognised beside those that somebody named."""
    if not names:
        return ColumnMap()
    if not exact:
        return recognise(names, given)
    from proctor.tasks.questions.exact import exact_columns  # few questions need what it imports

    return exact_columns(names)


def _read_items(reading: QuestionSet, sheets: Sequence[core.Sheet], seed: int) -> None:
    """Reads all rows, checks them against the settings, and shuffles options by the seed if these say so."""
    _read_rows(reading, sheets)
    _check_protocol(reading)
    line = keys_line(reading.items)
    if reading.layout.settings.shuffle_options:
        reading.items, line = shuffle_options(reading.items, seed)
    reading.notes += [line] if line else []


def _find_media(reading: QuestionSet, sheets: Sequence[core.Sheet], media: Path | None) -> None:
    """Without a column called media, uses those that hold only names of videos or images."""
    mapping = reading.columns
    if mapping.fields.get("media"):
        return
    endings = (*VIDEO_EXTENSIONS, *IMAGE_EXTENSIONS)
    for column in [*mapping.fields.get("group", ()), *mapping.facets]:
        texts = [text for sheet in sheets for text in sheet.texts(column)]
        if texts and all(part.strip().lower().endswith(endings) for text in texts for part in text.split(";")):
            mapping.fields.setdefault("media", []).append(column)
            mapping.facets = [facet for facet in mapping.facets if facet != column]
    if mapping.fields.get("media"):
        layout = reading.layout
        reading.folder = MediaFolder(layout.folder, media, _paths(sheets, mapping), layout.settings)


def _keep_facets(
    reading: QuestionSet, sheets: Sequence[core.Sheet], fields: Sequence[str], *, given: Container[str]
) -> None:
    """Turns the columns of `fields` into facets if their content does not fit: no windows, units or criteria at all, or
    anything but names of audio files."""
    mapping = reading.columns

    def fitting(name: str, fits: Callable[[Any], bool]) -> list[bool]:
        cells = (row.cells.get(mapping.one(name)) for sheet in sheets for row in sheet.rows)
        return [fits(cell) for cell in cells if not core.is_empty(cell)]

    held: dict[str, Callable[[], bool]] = {
        "window": lambda: reading.folder.holds_scans(_paths(sheets, mapping)),
        "unit": lambda: any(fitting("unit", lambda cell: is_unit(core.cell_text(undirected(cell))))),
        "criteria": lambda: any(fitting("criteria", are_criteria)),
        "audio": lambda: all(fitting("audio", names_recordings) or [False]),
    }
    names = list(dict.fromkeys(name for sheet in sheets for name in sheet.columns))
    for name in fields:
        column = mapping.one(name)
        if column and name not in given and not held[name]():
            del mapping.fields[name]
            mapping.facets = [one for one in names if one in {*mapping.facets, column}]


def _paths(sheets: Iterable[core.Sheet], mapping: ColumnMap) -> list[str]:
    columns = [*mapping.fields.get("media", ()), *mapping.fields.get("audio", ())]
    cells = (row.cells.get(column) for sheet in sheets for row in sheet.rows for column in columns)
    texts = (text for cell in cells for text in (cell if isinstance(cell, list) else [cell]))
    return [
        path for text in texts if isinstance(text, str) for path in text.replace("\n", ";").split(";") if path.strip()
    ]


def _read_rows(reading: QuestionSet, sheets: Sequence[core.Sheet]) -> None:
    columns, exact = reading.columns, reading.layout.settings.exact
    if not exact and not columns.one("answer") and not columns.one("criteria"):
        listed = ", ".join(map(repr, [*columns.facets, *columns.options]))
        found = f"no column for the right answer{f' among {listed}' if listed else ''}"
        reading.fault(RowLocation(sheets[0].file, 1), "", found, "one, or --map answer=COLUMN")
        return
    reader_of_rows = RowReader
    if exact:
        from proctor.tasks.questions.exact import ExactReader

        reader_of_rows = ExactReader
    reader = reader_of_rows(sheets[0], columns, reading.layout.settings, reading.folder)
    for sheet in sheets:
        reader.sheet = sheet
        for row in sheet.rows:
            item = reader.item(row, len(reading.locations) + 1)
            item_id = item.id if item is not None else _id_of(row, reading)
            known = reading.locations.get(item_id)
            if known is not None:
                file = "" if known.file == sheet.file else f" of {known.file.name}"
                reader.fault(row, columns.one("id"), f"{item_id!r} again (row {known.row}{file})", "each id once")
                item_id = f"{item_id}\0{row.number}"
            reading.locations[item_id] = RowLocation(sheet.file, row.number)
            if item is not None and known is None:
                reading.items.append(item)
    reading.faults += reader.faults
    _check_letters(reading, reader)
    reading.shown += reader.shown
    reading.notes.append(_formats_line(reading, reader.guessed))
    if exact:
        reading.facets = reading.layout.settings.facets or []
    else:
        lines = (
            _ids_line(columns),
            _doubts_line(reader.doubted),
            _locations_line(reading.items),
            _shares_line(reading.items),
        )
        reading.notes += [line for line in (*lines, sound_line(reading.items), _repeated_line(reading)) if line]
        _add_groups(reading)
        _add_facets(reading)
    reading.faults.sort(key=lambda fault: (fault[0], fault[1].row))


def _check_letters(reading: QuestionSet, reader: RowReader) -> None:
    """Adds a fault if answers are letters of options that nobody wrote down: no model could choose one of them."""
    lettered, columns = reader.doubted.get("choice", ()), reading.columns
    lacking = not columns.options and not columns.one("options")
    if not lettered or (lacking and 2 * len(lettered) < len(reader.bare)):
        return  # a blood group or the name of a marker among other answers
    found = f"single letters in {_rows(lettered)}, and {'no columns of options' if lacking else 'no options there'}"
    expected = "the options too, in columns A, B, C …; or a column 'format' that says preference or short text"
    reading.fault(RowLocation(reader.sheet.file, lettered[0]), columns.one("answer"), found, expected)


def _id_of(row: core.SheetRow, reading: QuestionSet) -> str:
    """The id of a row with faults, by which its repetition is found."""
    return core.cell_text(row.cells.get(reading.columns.one("id"))) or f"\0{row.number}"


def _ids_line(columns: ColumnMap) -> str:
    if columns.one("id"):
        return ""
    return f"No column of ids: questions are called {MADE_UP}1, {MADE_UP}2, … (--map id=COLUMN names theirs)"


def _formats_line(reading: QuestionSet, guessed: Mapping[str, Sequence[tuple[int, str]]]) -> str:
    parts = []
    for kind, rows in sorted(guessed.items(), key=lambda pair: -len(pair[1])):
        row, text = rows[0]
        parts.append(f"{SHOWN.get(kind, kind)} {len(rows):,} (row {row}: {text[:30]!r})")
    declared = Counter(str(item.answer.kind) for item in reading.items) - Counter(
        {kind: len(rows) for kind, rows in guessed.items()}
    )
    given = [f"{SHOWN.get(kind, kind)} {count:,} (declared)" for kind, count in declared.items()]
    how = ", guessed from the references; a column 'format' declares them" if parts else ""
    return f"Answer formats: {', '.join((*given, *parts)) or 'none'}{how}"


def _doubts_line(doubted: Mapping[str, Sequence[int]]) -> str:
    """A note on references read as free text that may be meant otherwise."""
    formats = [f"{kind} ({_rows(rows)})" for kind, rows in doubted.items() if kind != "choice"]
    every = sorted(row for rows in doubted.values() for row in rows)
    note = f"Read as free text, which a judge must score: {_rows(every)}."
    if formats:
        note += f" If that is wrong, a column 'format' says so: {', '.join(formats)}."
    if choices := doubted.get("choice"):
        note += f" If {_rows(choices)} {'is a choice' if len(choices) == 1 else 'are choices'}, add columns for the options."
    return note if every else ""


def _rows(rows: Sequence[int]) -> str:
    several = f"rows {', '.join(map(str, rows[:5]))}{' …' if len(rows) > 5 else ''}"
    return f"row {rows[0]}" if len(rows) == 1 else several


def _locations_line(items: Iterable[core.Item]) -> str:
    """A note on how boxes and points are read without settings."""
    found = {item.answer.kind for item in items if getattr(item.answer, "width", 0) == 1000}
    named = " and ".join(one for one in ("boxes", "point") if one in found).replace("point", "points")
    how = (
        "x and y run from 0 to 1000 across the picture, not in pixels (width and height under `formats` say otherwise)"
    )
    return f"{named.capitalize()}: {how}" if named else ""


def _shares_line(items: Iterable[core.Item]) -> str:
    given = (item.reference.answer for item in items if item.answer.kind == "percentage" and item.reference)
    small = next((one for one in given if isinstance(one, float) and 0 < one <= 1), None)
    return f"Percentages: {small:g} is read as {small:g} %, not {100 * small:g} %" if small else ""


def _repeated_line(reading: QuestionSet) -> str:
    """A note on questions that are there more than once: the same words, options (in any order) and media."""

    def plain(text: str) -> str:
        return " ".join(text.casefold().split())

    same: dict[tuple[object, ...], list[core.Item]] = {}
    for item in reading.items:
        media = tuple(map(str, item.media))
        same.setdefault((plain(item.question), tuple(sorted(map(plain, item.options))), media), []).append(item)
    repeated = [some for some in same.values() if len(some) > 1]
    told = []
    for some in repeated[:_REPEATED_SHOWN]:
        indices = [reading.locations[item.id] for item in some]
        rows = ", ".join(
            str(index.row) if index.file == indices[0].file else f"{index.row} of {index.file.name}"
            for index in indices
        )
        answers = {_answer_text(item) for item in some}
        differ = ", with different answers" if len(answers) > 1 else ""
        told.append(f"rows {rows}{differ} ({some[0].question[:40]!r})")
    more = " …" if len(repeated) > _REPEATED_SHOWN else ""
    count = core.count_of(len(repeated), "question")
    return f"Asked more than once, with the same media: {count}: {'; '.join(told)}{more}" if told else ""


def _answer_text(item: core.Item) -> str:
    """The right answer, of a choice in words, since options may have another order."""
    answer = None if item.reference is None else item.reference.answer
    letters = option_letters(len(item.options)) if item.answer.kind == "choice" else ()
    return item.options[letters.index(answer)] if isinstance(answer, str) and answer in letters else repr(answer)


def _add_groups(reading: QuestionSet) -> None:
    """Groups items without a group by common files."""
    column = reading.columns.one("group")
    without = [item for item in reading.items if item.group == _OWN_GROUP]
    if not without:
        if column and reading.items:
            reading.notes.append(f"Groups: {len({item.group for item in reading.items}):,}, from the column {column!r}")
        return
    bare = [item for item in without if not item.media]
    for item in bare[: len(bare) if column or len(bare) < len(without) else 1]:
        expected = "a column with what must be resampled together (--map group=COLUMN; the id, where each stands alone)"
        reading.fault(reading.locations[item.id], column, "no group, and no media to take it from", expected)
    groups = _by_files(without, reading.folder.frame_folders)
    reading.items = [
        item.model_copy(update={"group": groups[item.id]}) if item.id in groups else item for item in reading.items
    ]
    rest = f" of the {core.count_of(len(without), 'row')} without one" if len(without) < len(reading.items) else ""
    line = f"Groups: {len(set(groups.values())):,}, from the media{rest}: questions on one file belong together"
    joined = _joined(without, groups)
    held = f"; {'one holds' if joined == 1 else f'{joined:,} hold'} several, since a question shows them together"
    reading.notes.append(line + (held if joined else ""))


def _joined(items: Sequence[core.Item], groups: Mapping[str, str]) -> int:
    """The number of groups that hold several sets of files."""
    sets: dict[str, set[frozenset[str]]] = {}
    for item in items:
        if item.id in groups:
            sets.setdefault(groups[item.id], set()).add(frozenset(medium.source for medium in item.media))
    return sum(len(one) > 1 for one in sets.values())


def _by_files(items: Iterable[core.Item], folders: Mapping[str, str]) -> dict[str, str]:
    """By item the first name among all files that connect it with other items; a folder of frames counts as one."""
    shown = {
        item.id: [folders.get(medium.source, medium.source) for medium in item.media] for item in items if item.media
    }
    if not shown:
        return {}
    codes = linked(list(shown.values())).tolist()
    first: dict[int, str] = {}
    for code, names in zip(codes, shown.values(), strict=True):
        first[code] = min([*names, *([first[code]] if code in first else [])])
    return dict(zip(shown, (first[code] for code in codes), strict=True))


def _add_facets(reading: QuestionSet) -> None:
    settings = reading.layout.settings
    kinds = {item.answer.kind for item in reading.items}
    if len(kinds) > 1 and "format" not in reading.columns.facets:
        tagged = [item.model_copy(update={"tags": {**item.tags, "format": item.answer.kind}}) for item in reading.items]
        reading.items, reading.facets = tagged, ["format"]
    for name in reading.columns.facets:
        values = {item.tags[name] for item in reading.items if name in item.tags}
        if 1 < len(values) <= _MOST_VALUES:
            reading.facets.append(name)
        elif len(values) > _MOST_VALUES:
            reading.notes.append(f"No facet, but kept: {name!r} has {len(values):,} values")
    if settings.facets is not None:
        reading.facets = settings.facets


def _check_protocol(reading: QuestionSet) -> None:
    settings, file = reading.layout.settings, reading.layout.folder / NAME
    reading.metrics = _metrics(reading.items)
    for where, names, choices in _named_choices(reading):
        for name in names:
            if name not in choices:
                reading.fault(file, where, repr(name), core.one_of(choices, name))
    for name in settings.conditions if reading.items and not reading.faults else ():
        why = CONDITIONS.get(name).unfit(reading.items)
        if why:
            reading.fault(file, "conditions", f"{name!r}, and {why}", "another condition")
    if settings.prompt:
        _check_prompt(reading, file)
    if reading.layout.name in core.BENCHMARKS.names():
        found = f"{reading.layout.name!r}, the name of an installed benchmark"
        reading.fault(file, "name", found, "another one (`name: …`)")


def _named_choices(reading: QuestionSet) -> list[tuple[str, Iterable[str], Sequence[str]]]:
    """The settings that name something, with the names and the choices."""
    settings = reading.layout.settings
    known = list(dict.fromkeys(name for item in reading.items for name in item.tags))
    tags = [
        ("facets", settings.facets or ()),
        ("buckets", settings.buckets),
        ("only", settings.only),
        ("relevance", [settings.relevance] if settings.relevance else ()),
    ]
    judge = settings.judge.partition(":")[0]
    named: list[tuple[str, Iterable[str], Sequence[str]]] = []
    if reading.items:
        named += [(where, names, known) for where, names in tags]
    if settings.conditions:
        named.append(("conditions", settings.conditions, CONDITIONS.names()))
    if judge:
        from proctor.judges import JUDGES

        named.append(("judge", [judge], JUDGES.names()))
    named.append(("headline", [settings.headline], [metric.name for metric in reading.metrics]))
    return named


def _check_prompt(reading: QuestionSet, file: Path) -> None:
    prompt = reading.layout.settings.prompt
    if not (file.parent / prompt).resolve().is_relative_to(file.parent.resolve()):
        reading.fault(file, "prompt", repr(prompt), "a template in this folder")
    elif not (file.parent / prompt).is_file():
        reading.fault(file, "prompt", f"no file {prompt!r}", "a template in this folder")


def _metrics(items: Sequence[core.Item]) -> list[core.Metric]:
    """The metrics of code scorers for these items; always accuracy, which judges give for free text."""
    found: dict[str, core.Metric] = {}
    for scorer in code_scorers():
        if scorer.name == "code" and (not found or any(scorer.applies(item) for item in items)):
            found |= {metric.name: metric for metric in scorer.metrics if metric.name not in found}
    return list(found.values())


_KINDS = ("choice", "choices")
_LEAST = 8  # choices below which uneven keys are no surprise
_SPREADS = 3  # standard deviations above an even spread of keys
_POINTING = re.compile(
    r"\b(?:above|below|both|neither|none|all of|oben|genannten|beides?|keine[sr]?|ci-dessus|aucune?|toutes)\b"
    r"|\b[A-H]\s?(?:and|or|und|oder|et|ou|&|,|/)\s?[A-H]\b|以上|均|都",
    re.IGNORECASE,
)


def shuffle_options(items: Sequence[core.Item], seed: int) -> tuple[list[core.Item], str]:
    """The items with shuffled options of choices, and a note.

    Options are sorted by text, so that their written order does not matter, then shuffled by the seed and the item's id;
    every system gets the same order. Questions with an option that refers to others ("none of the above", "A and B")
    keep their order.
    """
    found, moved, kept = [], 0, 0
    for item in items:
        if item.answer.kind not in _KINDS or not item.options:
            found.append(item)
        elif any(_POINTING.search(option) for option in item.options):
            found.append(item)
            kept += 1
        else:
            found.append(_shuffled(item, seed))
            moved += 1
    left = f"; {kept} kept as written, since an option points to others" if kept else ""
    return found, f"Options: those of {core.count_of(moved, 'question')} shuffled by seed {seed}{left}"


def _shuffled(item: core.Item, seed: int) -> core.Item:
    by_text = sorted(item.options)
    options = tuple(by_text[row] for row in core.generator(seed, "options", item.id).permutation(len(by_text)))
    letters = option_letters(len(options))
    new = {old: letters[options.index(text)] for old, text in zip(letters, item.options, strict=True)}

    def moved(value: JsonValue) -> JsonValue:
        return [*sorted(new[str(one)] for one in value)] if isinstance(value, list) else new[str(value)]

    reference: core.Reference | None = item.reference
    if reference is not None and item.has_answer:
        accepted = tuple(moved(one) for one in reference.accepted)
        reference = reference.model_copy(update={"answer": moved(reference.answer), "accepted": accepted})
    return item.model_copy(update={"options": options, "reference": reference})


def keys_line(items: Sequence[core.Item]) -> str:
    """A note if one letter is right far more often than by an even spread; else empty."""
    keys = [
        (str(item.reference.answer), 1 / len(item.options))
        for item in items
        if item.answer.kind == "choice" and item.reference is not None and item.has_answer and item.options
    ]
    if len(keys) < _LEAST:
        return ""
    letter, count = Counter(key for key, _ in keys).most_common(1)[0]
    share = sum(chance for _, chance in keys) / len(keys)
    if count <= len(keys) * share + _SPREADS * sqrt(len(keys) * share * (1 - share)):
        return ""
    return (
        f"Keys: {letter} is right in {count} of {len(keys)} choices, so that always {letter} scores "
        f"{100 * count / len(keys):.0f} % on them; `shuffle_options: true` in benchmark.yaml shuffles options by the seed"
    )
