"""`proctor build convert` and `proctor build repair`, and the arguments of commands that read annotated videos."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import JsonValue

from proctor import core
from proctor.core.formats import ChoiceFormat
from proctor.tracks import ReadDefaults
from proctor_build.checks import Completion, complete
from proctor_build.files import files_of, read_annotations, write_folder

if TYPE_CHECKING:
    from proctor.audits.items import FormatAudit
    from proctor.stats import Estimate
    from proctor_build.repair import RepairedChoices, RepairSettings


class TracksAs(StrEnum):
    """Formats that tracks are written in."""

    CVAT = "cvat"
    COCO = "coco"
    JSON = "json"


TrackFiles = Annotated[
    list[Path],
    core.Option(
        "CVAT for video 1.1, COCO or Proctor's own files, or folders of them.", metavar="TRACKS", argument=True
    ),
]
Fps = Annotated[float | None, core.Option("Frames per second, where a file does not say (CVAT).", "--fps")]
ProcedureName = Annotated[str, core.Option("The kind of procedure, where a file does not say.", "--procedure")]


def convert(
    tracks: TrackFiles,
    out: Annotated[Path, core.Option("A new folder.")],
    to: Annotated[TracksAs, core.Option("What to write.")],
    steps: core.Steps,
    fill: Annotated[int, core.Option("Fill gaps of up to this many seconds in a track.", low=0, high=60)] = 0,
    fps: Fps = None,
    procedure: ProcedureName = "",
) -> core.PluginReport:
    """Convert tracks: CVAT, COCO, JSON.

    CVAT for video 1.1, COCO, or Proctor's own JSON.

    Example: proctor build convert simulated/tracks --to cvat --out for-cvat
    """
    completions = completed(tracks, ReadDefaults(fps, procedure), fill, steps)
    files = write_folder([completion.annotation for completion in completions], to.value, out)
    filled = sum(len(completion.filled) for completion in completions)
    line = f"{core.count_of(len(completions), 'video')} in {core.count_of(len(files), 'file')} in {out}"
    line += f"; {core.count_of(filled, 'gap')} filled" if filled else ""
    return core.PluginReport({"videos": len(completions), "files": [*files], "filled": filled}, (line,))


def completed(tracks: Sequence[Path], defaults: ReadDefaults, fill: int, steps: core.Steps) -> list[Completion]:
    """The annotations in track files, checked, with short gaps filled."""
    files = files_of(tracks)
    with steps("reading tracks", len(files)) as progress:
        annotations = read_annotations(files, defaults, progress=progress)
    with steps("checking tracks", len(annotations)) as progress:
        completions = []
        for number, one in enumerate(annotations, start=1):
            completions.append(complete(one, fill))
            progress(number, len(annotations))
    return completions


RECORD = "repair.json"
TABLE = "to-confirm.csv"
_ALWAYS = (
    "least-offered", "nearest-to-question", "nearest-in-characters", "nearest-to-group", "most-like-group-name", "nearest-in-meaning",
    "similar-questions", "right-elsewhere", "not-right-elsewhere", "nearest-to-question-once", "nearest-in-characters-once",
    "logistic-features-once", "logistic-words-once", "logistic-pairs-once",
)  # fmt: skip
"""Baselines that are always shown: exchanged options could help them."""
_BEST = 6


def repair(
    benchmark: Annotated[
        str,
        core.Option("A benchmark's name, or a path.", metavar="BENCHMARK", names=core.BENCHMARKS.names, argument=True),
    ],
    out: Annotated[Path, core.Option("A new folder.")],
    steps: core.Steps,
    data: Annotated[Path | None, core.Option("The folder with the benchmark's own files.")] = None,
    same: Annotated[
        list[str] | None,
        core.Option("Exchange only where this tag is the same; repeatable. [default: the benchmark's]", metavar="TAG"),
    ] = None,
    similar: Annotated[float, core.Option("Maximum similarity of wrong options to the key.", low=0, high=1)] = 0.5,
    keep: Annotated[float, core.Option("The share of the items that must stay.", low=0, high=1)] = 0.9,
    embeddings: Annotated[bool, core.Option("Also bound semantic similarity (extra semantic).")] = False,
    limit: Annotated[int, core.Option("Rounds of the search: proposals for each item.", low=1)] = 100,
    draws: Annotated[int, core.Option("Bootstrap draws behind each interval.", low=100)] = 2000,
    seed: Annotated[int, core.Option("The seed of every draw; recorded.")] = 0,
) -> core.PluginReport:
    """Repair choices that can be guessed.

    Right answers of other questions of the same kind replace wrong options, so that length, form, wording, overlap and
    position reveal nothing. No model is asked. Writes the benchmark's own files, repair.json with every replaced option,
    and to-confirm.csv for a clinician. Exit code 1 if questions can still be guessed.

    Example: proctor build repair my-questions/ --out repaired
    """
    from proctor.audits.items import audit_items
    from proctor.metrics.text import default_encoder
    from proctor_build.repair import RepairSettings, accepted_repair

    reader, data = _reader(benchmark, data)
    writer = core.option_writer(reader.name, data)
    loaded = reader.load(data)
    items = [item for item in loaded.counted() if isinstance(item.answer, ChoiceFormat)]
    known = {tag for item in items for tag in item.tags}
    within = tuple(same) if same is not None else tuple(writer.exchange_within)
    if unknown := [tag for tag in within if tag not in known]:
        raise core.InputError("--same", found=repr(unknown[0]), expected=f"one of {', '.join(sorted(known)) or 'none'}")
    encode = default_encoder() if embeddings else None
    settings = RepairSettings(seed=seed, same=within, similar=similar, keep=keep, rounds=limit)
    with steps("searching", 1) as progress:
        made, settings = accepted_repair(items, settings, beside=loaded.items, encode=encode, progress=progress)
    with core.whole_folder(out) as folder:
        writer.write_choices(data, folder, {item.id: made.items.get(item.id) for item in items})
        again = {item.id: item for item in reader.load(folder).counted() if isinstance(item.answer, ChoiceFormat)}
        _check_same(made.items, again, folder)
        with steps("auditing", 2) as progress:
            audits = []
            for number, some in enumerate((items, list(again.values())), start=1):
                found = audit_items(some, seed=seed, draws=draws, facets=(), encode=encode).format("choice")
                audits.append(found)
                progress(number, 2)
        before, after = audits
        record = _record(loaded.name, settings, made, before, after, embeddings=embeddings)
        core.write_whole(folder / RECORD, json.dumps(record, ensure_ascii=False, indent=2, allow_nan=False) + "\n")
        core.write_whole(folder / TABLE, _table_to_confirm(made, items))
    return _report(record, made, before, after, out)


def _reader(benchmark: str, data: Path | None) -> tuple[core.BenchmarkReader, Path]:
    """The reader of a benchmark and the path of its files; a path instead of a name gives both."""
    path = core.benchmark_path(benchmark) if data is None else None
    if path is not None:
        return core.reader_at(path), path
    reader = core.BENCHMARKS.get(benchmark)
    if data is None:
        raise core.UsageError(f"--data is missing. Give the folder with the files of {benchmark}: --data FOLDER")
    return reader, data


def _check_same(made: dict[str, core.Item], read: dict[str, core.Item], folder: Path) -> None:
    """Raises `InputError` if the repaired items differ when read again."""
    first, again = ({key: (one.options, one.reference) for key, one in some.items()} for some in (made, read))
    wrong = [name for name in first.keys() | again.keys() if first.get(name) != again.get(name)]
    if wrong:
        raise core.InputError(
            folder, f"item {min(wrong)}", found="other options when read again", expected="those written"
        )


def _record(
    benchmark: str,
    settings: RepairSettings,
    made: RepairedChoices,
    before: FormatAudit | None,
    after: FormatAudit | None,
    *,
    embeddings: bool,
) -> dict[str, JsonValue]:
    plain = {
        "benchmark": benchmark,
        "settings": {**asdict(settings), "embeddings": embeddings},
        "kept": len(made.items),
        "left_out": made.left_out,
        "pools": made.pools,
        "objective": made.objective,
        "cues_above_chance": made.cues,
        "before": asdict(before) if before else None,
        "after": asdict(after) if after else None,
        "options": [asdict(option) for option in made.options],
    }
    found: dict[str, JsonValue] = json.loads(json.dumps(plain))
    return found


def _table_to_confirm(made: RepairedChoices, items: Sequence[core.Item]) -> str:
    import csv
    import io

    by_id = {item.id: item for item in items}
    table = io.StringIO(newline="")
    rows = csv.writer(table, lineterminator="\n")
    heads = (
        "item",
        "letter",
        "question",
        "right option",
        "new wrong option",
        "old wrong option",
        "from",
        "right there?",
    )
    rows.writerow(
        (*heads, "similarity to the right option", "seconds apart", "state", "true of the clip too? (yes/no)")
    )
    for option in made.options:
        if option.to_confirm:
            item = made.items[option.item]
            key = item.options[ord(str(item.reference.answer)) - ord("A")] if item.reference else ""
            gap = "" if option.gap_s is None else f"{option.gap_s:g}"
            texts = (by_id[option.item].question, key, option.new, option.old)
            rows.writerow(
                (
                    *map(core.safe_cell, (option.item, option.letter, *texts, option.source)),
                    "yes" if option.right_there else "no",
                    option.similarity,
                    gap,
                    option.state,
                    "",
                )
            )
    return table.getvalue()


def _report(
    record: dict[str, JsonValue],
    made: RepairedChoices,
    before: FormatAudit | None,
    after: FormatAudit | None,
    out: Path,
) -> core.PluginReport:
    rows = [] if before is None or after is None else _rows(before, after)
    heads = ("Text-only baseline", ">Before", ">95 % interval before", ">After", ">95 % interval after")
    table = core.plain_table("What can be answered without looking.", heads, tuple(rows))
    total = len(made.items) + len(made.left_out)
    replaced = sum(option.to_confirm for option in made.options)
    lines = [
        f"{len(made.items)} of {core.count_of(total, 'item')} repaired, in {core.count_of(len(made.pools), 'pool')}; {out}",
        f"{core.count_of(replaced, 'option')} to be confirmed by a clinician: {out / TABLE}",
        *(f"Left out: {name}: {why}" for name, why in sorted(made.left_out.items())),
    ]
    notes = [
        "Options of a pool are right answers of one another: keep pools together in every split.",
        "Ask one question at a time: a system that sees all of them gains from using each option once.",
    ]
    return core.PluginReport(record, (table, *lines), tuple(notes), ok=after is not None and _silent(after))


def _rows(before: FormatAudit, after: FormatAudit) -> list[tuple[str, ...]]:
    old, new = ({baseline.name: baseline for baseline in audit.baselines} for audit in (before, after))
    names = dict.fromkeys([*list(old)[:_BEST], *list(new)[:_BEST], *(name for name in _ALWAYS if name in new)])
    rows: list[tuple[str, ...]] = []
    for label, one, other in (
        ("best, chosen on other groups", before.selected, after.selected),
        *((name, old.get(name), new.get(name)) for name in names),
    ):
        cells = [_accuracy(found.accuracy if found else None) for found in (one, other)]
        rows.append((label, *cells[0], *cells[1]))
    if after.pools is not None:
        rows.append(
            ("knows the right answers of all other groups", core.DASH, core.DASH, *_accuracy(after.pools.known))
        )
        if (both := after.pools.together) is not None:
            label = f"sees all at once, {core.percent(both.alone)} alone"
            rows.append((label, core.DASH, core.DASH, core.percent(both.together), "simulated"))
    rows.append(("chance", core.percent(before.chance), "", core.percent(after.chance), ""))
    return rows


def _accuracy(found: Estimate | None) -> tuple[str, str]:
    return (
        (core.DASH, core.DASH)
        if found is None
        else (core.percent(found.value), core.interval(core.ACCURACY, found.ci_low, found.ci_high))
    )


def _silent(after: FormatAudit) -> bool:
    """Whether no baseline is significantly above chance, and the best one's interval covers chance."""
    loud = any(baseline.p_holm is not None and baseline.p_holm <= 0.05 for baseline in after.baselines)
    return not loud and (after.selected is None or after.selected.covers_chance is not False)
