"""Answers and scores in files: read for `import_answers`, written by `export`, checked by `validate`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from proctor import core
from proctor.api.rating_import import holds_ratings, import_ratings, rating_fields
from proctor.shell import (
    DECIDED,
    JUDGEMENTS,
    PLAIN_FORMATS,
    SUMS,
    TABLE_FORMATS,
    UNRESOLVED,
    ExportOptions,
    ImportOptions,
    Stored,
    StoredRuns,
    ValidateOptions,
    baseline_notes,
    filled,
    load,
    loaded_as,
    media_at,
    name_in,
    open_store,
    options_of,
    recalled,
    remember,
    stored,
)

if TYPE_CHECKING:
    from proctor.core import RecordedAnswers
    from proctor.interchange import Written
    from proctor.runs import Run, Store

_LINES = (".jsonl", ".ndjson")

_KINDS = {
    "jsonl": _LINES,
    "judgements": _LINES,
    "csv": (".csv", ".txt"),
    "parquet": (".parquet",),
    "xlsx": (".xlsx",),
    "unresolved": (".csv", ".txt"),
    "decided": (".csv", ".txt"),
    "sums": (".json",),
    "inspect": (".eval", ".json"),
    "hf-eval": (".yaml", ".yml"),
    "model-card": (".md",),
}

_SUBMISSIONS = (".json", ".jsonl", ".csv", ".tsv", ".txt", ".zip")
"""The endings of the files of each format."""


def export_location(where: Stored, out: Path, form: str, template: str | Path | None = None) -> Path:
    """The path to write an export to. Raises `InputError` for an ending that the format does not have, and if a file is
    there that is not an earlier export of the same kind."""
    from proctor.interchange import FORMATS

    kinds = _KINDS.get(form, () if form in FORMATS.written() else _SUBMISSIONS)
    return where.output(out, kinds, [] if template is None else [template])


def form_of(path: Path, named: str, reader: core.BenchmarkReader) -> str:
    """The format to read a file as: the one that is `named`, or the one recognised from its content; "" is the
    benchmark's own. A plain table that `proctor export` did not write is read in the benchmark's own format, if it has
    one for recorded answers."""
    from proctor.interchange import FORMATS, TABLE, is_export, recognised

    if named:
        return FORMATS.get(named, FORMATS.read()).name
    found = recognised(path)
    own = type(reader).read_recorded is not core.BenchmarkReader.read_recorded and not isinstance(
        reader, core.PathReader
    )
    own = own and not (reader.recorded_in_folders and path.is_file())
    own = own or reader.name in core.RATING_READERS.names()
    return "" if found == TABLE and own and not is_export(path) else found


def read_foreign(path: Path, form: str, benchmark: core.Benchmark, given: ImportOptions) -> RecordedAnswers:
    """Read the answers in a file of another program."""
    from proctor.interchange import FORMATS

    return FORMATS.get(form).read(
        path, benchmark, given["id_column"], given["answer_column"], given["name"], given["epoch"]
    )


def write_foreign(where: Stored, out: Path, form: str, given: ExportOptions) -> Written:
    """Write the chosen runs, or the benchmark, in the format of another program."""
    from proctor.interchange import FORMATS, ExportSource

    card = where.store.card(where.benchmark)
    media = given["media"] or card.folders.get("media")
    options = replace(options_of(where, {"failed": None}), all_items=given["all_items"])
    source = ExportSource(
        where.store,
        card,
        options,
        origin=given["origin"],
        media=media_at(media),
        copy_media=given["copy_media"],
        references=not given["no_references"],
    )
    return FORMATS.get(form).write(source, out)


async def import_recorded(benchmark: str | Path | core.Benchmark, path: str | Path, given: ImportOptions) -> StoredRuns:
    """The answers, ratings or scores of a file, in the store (see `import_answers`)."""
    from proctor.media import CONDITIONS
    from proctor.metrics import code_scorers
    from proctor.runs import add_baselines, check_given_name, import_answers, score_changed

    name, condition, path = given["name"], given["condition"], Path(path)
    own, of_questions = rating_fields(given["columns"])
    given["columns"] = of_questions
    if given["scorer"]:
        return _import_scores(benchmark, path, given["scorer"], given["store"], own)
    if condition:
        CONDITIONS.get(condition)
    loaded = loaded_as(benchmark, given)
    reader = _reader_of(loaded, given)
    if not given["form"] and holds_ratings(path, own):
        return await import_ratings(loaded, path, own, given)
    _use_columns(given, own)
    form = form_of(path, given["form"], reader)
    if not form and (ratings := core.RATING_READERS.of(reader.name)) is not None:
        return await _import_own_ratings(loaded, reader, ratings, path, given)
    if given["answers_only"]:
        raise core.UsageError(f"{path.name} holds no ratings. Leave --answers-only out.")
    if given["epoch"] is not None and not form:
        raise core.UsageError(f"Files of {loaded.name} have one answer to an item. Leave --epoch out.")
    with _there(path):
        recorded = read_foreign(path, form, loaded, given) if form else _own_recorded(reader, path, loaded, name)
    core.admit_recorded(recorded, loaded, path if form else _read_by(reader, path))
    recorded = _as_submission(path, recorded, loaded) if given["submission"] else recorded
    name = name or recorded.system
    if not name:
        raise core.UsageError("The file does not name its system. Give its name: --name NAME")
    check_given_name(name)
    if condition and recorded.condition and condition != recorded.condition:
        expected = f"{recorded.condition}, as the files' names say"
        raise core.InputError(path, "--condition", found=condition, expected=expected)
    under = condition or recorded.condition or "video"
    scorers, opened = code_scorers(loaded), open_store(given["store"])
    runs = [await import_answers(opened, loaded, recorded, name=name, condition=under, scorers=scorers)]
    again = await score_changed(opened, loaded.name, loaded.scorers)
    await add_baselines(opened, loaded, scorers, seed=given["seed"])
    kept = (
        f"{core.count_of(len(recorded.answers), 'answer')} and {core.count_of(len(recorded.judgements), 'judgement')}"
    )
    done = (f"{kept} as {name} / {under} in {opened.shown}",)
    notes = (*loaded.reading, *again, *baseline_notes(loaded), *recorded.notes, *_doubts(loaded, recorded))
    remember(opened, loaded)
    return StoredRuns(opened, loaded.name, tuple(runs), None, notes, done)


async def _import_own_ratings(
    benchmark: core.Benchmark,
    reader: core.BenchmarkReader,
    ratings: core.RatingReader,
    path: Path,
    given: ImportOptions,
) -> StoredRuns:
    """Answers and ratings in the benchmark's own format."""
    from proctor.runs import check_given_name, import_systems

    if given["name"]:
        raise core.UsageError(f"The file names its systems. Leave --name {given['name']} out.")
    with _there(path):
        found = core.RATING_READERS.make(
            reader.name, lambda: ratings.read_ratings(path, benchmark, answers_only=given["answers_only"])
        )
    for recorded in found:
        core.admit_recorded(recorded, benchmark, _read_by(reader, path))
        check_given_name(recorded.system)
    opened, under = open_store(given["store"]), given["condition"] or "video"
    runs = await import_systems(opened, benchmark, found, condition=under)
    notes = tuple(f"{recorded.system}: {line}" for recorded in found for line in recorded.notes)
    done = tuple(
        f"{core.count_of(len(recorded.answers), 'answer')} with {core.count_of(len(recorded.scores), 'rating')} as "
        f"{recorded.system} / {under} in {opened.shown}"
        for recorded in found
    )
    remember(opened, benchmark)
    return StoredRuns(opened, benchmark.name, tuple(runs), None, notes, done)


def _reader_of(benchmark: core.Benchmark, given: ImportOptions) -> core.BenchmarkReader:
    """The reader of the benchmark's own format, on the track that its items were read for."""
    if benchmark.read_by not in core.BENCHMARKS.names():
        return core.reader_of_paths()
    return core.reader_of(benchmark.read_by, benchmark.origin.track if benchmark.origin else given["track"])


def _use_columns(given: ImportOptions, own: Mapping[str, Sequence[str]]) -> None:
    """Takes the columns of a plain table of answers, named as those of a table of ratings. Raises `UsageError` for a
    column that only ratings have."""
    taken: dict[str, Literal["id_column", "answer_column"]] = {"item": "id_column", "candidate": "answer_column"}
    for field, columns in own.items():
        if field not in taken:
            raise core.UsageError(
                f"The file is no table of ratings. Leave --map {field}={columns[0]} out; answers have item and candidate."
            )
        given[taken[field]] = given[taken[field]] or columns[0]


@contextmanager
def _there(path: Path) -> Iterator[None]:
    """Where something can't be read, says first that nothing is at its path, and what is there of a similar name."""
    try:
        yield
    except core.UsageError:
        raise
    except core.InputError as error:
        if "no such" not in str(error) or core.near_path(path):
            core.existing(path, "recorded answers: a file or a folder")
        raise


def _as_submission(path: Path, recorded: RecordedAnswers, benchmark: core.Benchmark) -> RecordedAnswers:
    """The answers in a file as a challenge counts them: one to each item, where a missing one is not submitted, and one
    above the benchmark's time limit is late. Raises `InputError` for times in milliseconds."""
    if several := max((answer.repetition for answer in recorded.answers), default=0):
        found = f"{several + 1} repetitions"
        raise core.InputError(path, found=found, expected="a submission, which has one answer to each item")
    given, limit = {answer.item_id: answer for answer in recorded.answers}, benchmark.budget_s
    core.check_seconds(path, [one.timing.model_s for one in recorded.answers if one.timing is not None], limit)
    answers = []
    for item in benchmark.items:
        answer = given.get(item.id)
        if answer is None:
            answer = core.Answer(item_id=item.id, reason=core.NO_ANSWER, problem=core.NO_ANSWER)
        elif limit is not None and answer.timing is not None and answer.timing.model_s > limit:
            late = f"took {answer.timing.model_s:.1f} s of {limit:g} s"
            answer = answer.model_copy(update={"status": core.Status.TIMED_OUT, "reason": late, "parsed": None})
        answers.append(answer)
    return replace(recorded, answers=tuple(answers))


def _doubts(benchmark: core.Benchmark, recorded: RecordedAnswers) -> list[str]:
    """Warnings about imported answers that are valid one by one, and suspicious together."""
    keys = {
        item.id: (item.reference.answer, len(item.answer.write(item.reference.answer)))
        for item in benchmark.items
        if item.reference is not None and item.reference.answer is not None
    }
    if len(recorded.answers) > 4 and all(
        (answer.parsed, len(answer.text.strip())) == keys.get(answer.item_id) for answer in recorded.answers
    ):
        return ["All answers are the references word for word: are they of the right column (--answer-column)?"]
    return []


def _own_recorded(reader: core.BenchmarkReader, path: Path, benchmark: core.Benchmark, name: str) -> RecordedAnswers:
    """Answers in the benchmark's own format."""
    if not name:
        raise core.UsageError("The file does not name its system. Give its name: --name NAME")
    try:
        return core.BENCHMARKS.make(reader.name, lambda: reader.read_recorded(path, benchmark))
    except core.InputError as error:
        if path.is_file():
            error.add_note(
                "A file of another program, or a plain table of ids and answers: --from (proctor list formats)"
            )
        raise


def _read_by(reader: core.BenchmarkReader, path: Path) -> str:
    """A file, with the package of a reader that is not Proctor's own."""
    package = core.origin_of(reader)
    return f"{path} (read by {package})" if package else str(path)


def _import_scores(
    benchmark: str | Path | core.Benchmark,
    path: Path,
    scorer: str,
    store: Store | str | Path | None,
    columns: Mapping[str, Sequence[str]],
) -> StoredRuns:
    """Store an automatic scorer's scores of rated answers, from the benchmark's own format or from a table."""
    from proctor.audits import read_scores
    from proctor.results import answer_keys, people_ratings
    from proctor.runs import add_recorded_scores

    opened = open_store(store, create=False)
    name = benchmark.name if isinstance(benchmark, core.Benchmark) else name_in(opened, str(benchmark))
    ratings = core.RATING_READERS.of(opened.card(name).read_by)
    if ratings is not None:
        found = ratings.read_scores(path, answer_keys(opened, name))
    else:
        read = read_scores(path, people_ratings(opened, name), allow_missing=True, columns=columns)
        found = core.RecordedScores(read.scores, read.notes)
    added = add_recorded_scores(opened, name, scorer, found.scores)
    notes = tuple(f"{scorer}: {line}" for line in found.notes)
    return StoredRuns(
        opened,
        name,
        tuple(opened.runs(name)),
        None,
        notes,
        (f"{core.count_of(added, 'score')} by {scorer} in {opened.shown}",),
    )


def validate(
    benchmark: str,
    file: str | Path,
    *,
    store: Store | str | Path | None = None,
    media: str | Path | None = None,
    every: bool = False,
    options: Mapping[str, Any] | None = None,
    **files: Unpack[ValidateOptions],
) -> core.PluginReport:
    """Check a submission before it is sent; or a store, documents, a judge, a receipt, or another file that can be checked
    (`benchmark` names the kind: `proctor check --help` lists them).

    The report is not `ok` if the file is no submission: a challenge would refuse it. It is `partial` if the file would
    be accepted and some answers are counted as wrong: those that are missing, late, or not in their format.

    The benchmark's own files are those that the store remembers, unless `data` is given. For a benchmark without a
    validator, the file is read as recorded answers in any known format, and nothing is stored. Raises `InputError` for
    a file that can't be read at all. The command is `proctor check`.
    """
    given = filled("validate", ValidateOptions, files)
    data, track, path, known = given["data"], given["track"], Path(file), None
    if data is None and benchmark in core.BENCHMARKS.names():
        with suppress(core.UsageError):  # a check may do without
            known, media, track = recalled(benchmark, store, None, media, track)
    folder = None if data is None else Path(data)
    remembered = None if known is None else Path(known)
    request = core.ValidationRequest(
        folder,
        media_at(media),
        track,
        every,
        dict(options or {}),
        remembered,
        given["budget_s"],
        given["latency"],
        str(file),
    )
    if benchmark in core.VALIDATORS.names() or benchmark not in core.BENCHMARKS.names():
        validate = core.VALIDATORS.get(benchmark)
        with _there(path) if benchmark in core.BENCHMARKS.names() else nullcontext():
            report = core.VALIDATORS.make(benchmark, lambda: validate(path, request), "json", "shown", "notes", "ok")
        tracks = core.BENCHMARKS.get(benchmark).tracks if benchmark in core.BENCHMARKS.names() else ()
        if not tracks or track:
            return report
        choices = f"--track {', '.join(tracks[:-1])} or {tracks[-1]}"
        assumed = f"Checked as the {tracks[-1]} track, since none was named ({choices})."
        return replace(report, notes=(*report.notes, assumed))
    request.known_options()
    reader = core.reader_of(benchmark, track)
    loaded = load(benchmark, request.needed_data(f"the folder with the files of {benchmark}"), track=track)
    form = form_of(path, "", reader)
    with _there(path):
        if form:
            named: ImportOptions = {"name": path.stem}
            found = read_foreign(path, form, loaded, filled("validate", ImportOptions, named))
        else:
            found = _own_recorded(reader, path, loaded, path.stem)
    core.admit_recorded(found, loaded, path if form else _read_by(reader, path))
    return _recorded_report(path, loaded, found, request)


def _recorded_report(
    path: Path, benchmark: core.Benchmark, recorded: RecordedAnswers, request: core.ValidationRequest
) -> core.PluginReport:
    """What is wrong with recorded answers as a submission: to unknown items and repeated ones are errors; those that are
    missing, late, or not in their format are counted as wrong."""
    limit = benchmark.budget_s if request.budget_s is None else request.budget_s
    counted = _as_submission(path, recorded, replace(benchmark, budget_s=limit)).answers
    findings = [core.Finding("unknown", name, "an answer", "an item of the benchmark") for name in recorded.unknown]
    findings += [core.Finding("duplicate", name, "several answers", "one answer") for name in recorded.repeated]
    findings += [finding for answer in counted if (finding := _counted_as_wrong(answer)) is not None]
    missing = sum(finding.rule == "missing" for finding in findings)
    json: dict[str, Any] = {"missing": missing, "notes": [*recorded.notes]}
    json["findings"] = [
        {"rule": one.rule, "item": one.location, "found": one.found, "expected": one.expected, "severity": one.severity}
        for one in findings
    ]
    check = core.FileCheck(path, tuple(findings), {"answer": len(counted) - missing, "item": len(counted)})
    report = check.report(json, every=request.every)
    return replace(report, shown=(*recorded.notes, *report.shown))


def _counted_as_wrong(answer: core.Answer) -> core.Finding | None:
    """Why an answer is wrong whatever the reference is; None if it may be right."""
    name = answer.item_id
    if answer.reason == core.NO_ANSWER:
        return core.Finding("missing", name, "no answer", "an answer to every item", "wrong")
    if answer.status is core.Status.TIMED_OUT:
        return core.Finding("late", name, answer.reason, "an answer in time", "wrong")
    if answer.status is not core.Status.ANSWERED:
        return core.Finding("no-answer", name, answer.reason or answer.status.value, "an answer", "wrong")
    if answer.parsed is None:
        expected, _, found = answer.problem.removeprefix("expected ").rpartition(", found ")
        return core.Finding("format", name, found or "an answer that can't be read", expected or "its format", "wrong")
    return None


def export(
    source: StoredRuns | Store | str | Path | None = None,
    out: str | Path | None = None,
    benchmark: str = "",
    **options: Unpack[ExportOptions],
) -> Any:
    """Export one row per item, system, condition and metric: as a `pandas.DataFrame`, or written to `out` in the given
    `format` (by default that of the file's ending). Returns the frame, or the number of rows.

    In CSV, a text that a spreadsheet would take for a formula gets a leading apostrophe. For a format of another
    program, returns what was written, and what was dropped and why (`proctor.interchange.Written`). Raises `InputError`
    for an unknown system, condition, scorer or format, and if `out` can't be written or would replace anything but an
    earlier output of the same kind. The command is `proctor export`.
    """
    from proctor.interchange import FORMATS
    from proctor.results import export as write
    from proctor.results import export_rows, group_sums, write_sums
    from proctor.runs import chosen_runs, write_open

    given = filled("export", ExportOptions, options)
    where = stored(source, benchmark, given["systems"], given["conditions"])
    if out is None:
        import pandas as pd

        runs = chosen_runs(where.store, where.benchmark, where.systems, where.conditions)
        card = where.store.card(where.benchmark)
        _, rows = export_rows(where.store, where.benchmark, card, all_items=given["all_items"], runs=runs)
        return pd.DataFrame(list(rows))
    chosen = {"systems": where.systems, "conditions": where.conditions}
    form = given["format"] or Path(out).suffix.removeprefix(".")
    where.output(out)  # what it must not replace is reported first
    _check_form(where, Path(out), form, named=bool(given["format"]))
    path = export_location(where, Path(out), form, given["template"])
    if form in {UNRESOLVED, DECIDED}:
        return write_open(where.store, where.benchmark, path, **chosen, decided=form == DECIDED)
    if form == JUDGEMENTS:
        return _judgements(where, path, given["scorer"])
    if form == SUMS:
        return write_sums(group_sums(where.store, where.benchmark, **chosen, all_items=given["all_items"]), path)
    if form in FORMATS.written():
        return write_foreign(where, path, form, given)
    if form not in TABLE_FORMATS:
        return _submission(where, path, form, given)
    return write(
        where.store,
        where.benchmark,
        path,
        form,  # type: ignore[arg-type]
        all_items=given["all_items"],
        **chosen,
    )


def _submission(where: Stored, out: Path, form: str, given: ExportOptions) -> int:
    """Write a submission in the benchmark's format: the answers of one run, or the scores of one scorer."""
    from proctor.results import SCORE_WRITERS, scored_answers
    from proctor.runs import chosen_runs

    reader = where.store.card(where.benchmark).read_by
    scores, answers = SCORE_WRITERS.of(reader), core.SUBMISSION_WRITERS.of(reader)
    if scores is not None and form in scores.formats:
        scorer = given["scorer"]
        scored = scored_answers(where.store, where.benchmark, _scored_runs(where), _known_scorer(where, scorer))
        template = None if given["template"] is None else Path(given["template"])
        return scores.write_scores(form, scorer, scored, out, template=template, allow_missing=given["allow_missing"])
    if answers is not None and form in answers.formats:
        runs = chosen_runs(where.store, where.benchmark, where.systems, where.conditions)
        if len(runs) != 1:
            found = ", ".join(f"{run.system} / {run.condition}" for run in runs) or "no run"
            raise core.InputError(
                f"One run is exported, and this is not one: {found}. Choose it by --system and --condition."
            )
        return answers.write_submission(form, list(where.store.answers(runs[0]).values()), out)
    raise core.UsageError(f"--format {form!r} is no format of {where.benchmark}.")


def _check_form(where: Stored, out: Path, form: str, *, named: bool) -> None:
    """Raises `UsageError` for an unknown format, and `InputError` for an ending that is none if no format is `named`."""
    from proctor.interchange import FORMATS
    from proctor.results import SCORE_WRITERS

    reader = where.store.card(where.benchmark).read_by
    writers = (core.SUBMISSION_WRITERS.of(reader), SCORE_WRITERS.of(reader))
    own = [name for writer in writers if writer is not None for name in writer.formats]
    every = (*PLAIN_FORMATS, *own, *FORMATS.written())
    if form in every:
        return
    known = ", ".join(every)
    if named:
        raise core.UsageError(f"--format {form!r} is unknown: choose one of {known}.")
    found = f"a name that ends in .{form}" if form else "a name without an ending"
    endings = ", ".join(f".{name}" for name in TABLE_FORMATS)
    raise core.InputError(out, found=found, expected=f"one that ends in {endings}, or --format: {known}")


def _judgements(where: Stored, out: Path, scorer: str) -> int:
    from proctor.results import judgements_of

    found = judgements_of(where.store, where.benchmark, _scored_runs(where), _known_scorer(where, scorer))
    core.write_whole(out, "".join(core.json_line(judgement.to_json()) for judgement in found))
    return len(found)


def _known_scorer(where: Stored, scorer: str) -> str:
    """The scorer's name. Raises `InputError` if it has scored nothing."""
    from proctor.results import judges_of

    known = judges_of(where.store, where.benchmark)
    if scorer not in known:
        expected = f"one of {', '.join(known)}" if known else "a scorer, and none has scored anything"
        raise core.InputError(
            where.store.shown, f"--scorer of {where.benchmark}", found=repr(scorer), expected=expected
        )
    return scorer


def _scored_runs(where: Stored) -> list[Run]:
    """The runs to export scores of, one for each system. Baselines only if they are named."""
    from proctor.runs import BASELINES, chosen_runs

    runs = chosen_runs(where.store, where.benchmark, where.systems, where.conditions)
    runs = [run for run in runs if where.systems or run.system not in BASELINES]
    names = [run.system for run in runs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise core.InputError(f"{twice} was run under several conditions. Choose one: --condition NAME")
    return runs
