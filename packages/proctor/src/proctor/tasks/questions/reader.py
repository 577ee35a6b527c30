"""The reader of one's own questions: from files to a benchmark, or to all faults in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from proctor.core import PAGES, Benchmark, Item, PathReader, PluginReport, count_of, output_file, shell_word
from proctor.tasks.questions import READER_SUMMARY
from proctor.tasks.questions.folder import NAME, find_layout
from proctor.tasks.questions.question_set import QuestionSet, read_questions

_MOST_LINES = 200


class QuestionsReader(PathReader):
    """Reads plain paths; `columns` maps fields to columns."""

    name = "own-questions"
    summary = READER_SUMMARY

    def __init__(self, columns: Mapping[str, Sequence[str]] | None = None) -> None:
        self._columns = columns or {}

    def with_columns(self, columns: Mapping[str, Sequence[str]]) -> QuestionsReader:
        return QuestionsReader(columns)

    def load(self, data: Path, media: Path | None = None, *, seed: int = 0) -> Benchmark:
        """Reads the questions at a path. Raises `InputError` with all faults in its notes."""
        reading = read_questions(data, media, self._columns, seed=seed)
        reading.check()
        return benchmark_of(reading, seed)

    def question_files(self, data: Path) -> Sequence[Path]:
        layout = find_layout(data)
        return (*layout.files, layout.folder / NAME)

    def check(self, data: Path, media: Path | None, out: Path | None, *, every: bool = False) -> PluginReport:
        """Reports all faults in questions and their media files; without any, writes a page with ten questions."""
        from proctor.stats import fewest_groups
        from proctor.tasks.questions.preview import add_media_faults, write_preview

        if out is not None:
            output_file(out, PAGES)
        found = read_questions(data, media, self._columns)
        add_media_faults(found)
        counts = {"items": len(found.items), "groups": len({item.group for item in found.items})}
        faults: list[JsonValue] = [
            {"file": str(file), "row": one.row, "column": one.column, "found": one.found, "expected": one.expected}
            for file, one in found.faults
        ]
        told = [found.layout.name_line, *found.notes]
        report: dict[str, JsonValue] = {"name": found.layout.name, **counts, "faults": faults, "notes": [*told]}
        if faults:
            lines = found.lines(every=every)
            more = len(lines) - _MOST_LINES
            shown = (
                *lines[:_MOST_LINES],
                *([f"and {count_of(more, 'more line')} (--format json)"] if more > 0 else ()),
            )
            last = f"{data}: {count_of(len(faults), 'fault')}; nothing was written."
            return PluginReport(report, (*shown, last), tuple(told), ok=False)
        line = f"{count_of(counts['items'], 'question')} in {count_of(counts['groups'], 'group')}, no faults"
        if out is not None:
            line += f"; {write_preview(found, out)} of them in {out}"
            report["preview"] = str(out)
        needed = fewest_groups()
        few = f"With fewer than {needed} groups no difference between systems can be significant: add other videos or patients"
        notes = (*told, *([few] if len({item.group for item in found.items}) < needed else []))
        return PluginReport(report, (line,), (*notes, f"Next: proctor run {shell_word(data)} {_who(found.items)}"))

    def media_help(self, data: Path, missing: Sequence[str]) -> str:
        return f"{count_of(len(missing), 'file')} missing: proctor check {shell_word(data)} lists each with its row."


def _who(items: Sequence[Item]) -> str:
    """Who can be asked first: a baseline without a model, if it answers at least one question."""
    from proctor.systems import build_system

    able = build_system("random")
    return "--system random" if any(able.supports(item) for item in items) else "--model PROVIDER:NAME"


READER = QuestionsReader()


def benchmark_of(reading: QuestionSet, seed: int = 0) -> Benchmark:
    """The benchmark of questions without faults."""
    settings, layout = reading.layout.settings, reading.layout
    rubric = any(item.reference and item.reference.criteria for item in reading.items)
    licence = (f"Licence: {settings.licence}",) if settings.licence else ()
    return Benchmark(
        name=layout.name,
        title=settings.title or layout.name,
        items=tuple(reading.items),
        metrics=tuple(reading.metrics),
        headline=settings.headline,
        facets=tuple(reading.facets),
        conditions=tuple(settings.conditions),
        media_root=reading.folder.write_embedded(),
        only=settings.only,
        relevance=settings.relevance,
        failed=settings.failed,
        excerpts=settings.excerpts,
        seeds={**settings.seeds, **({"options": seed} if settings.shuffle_options else {})},
        simulated=settings.simulated,
        budget_s=settings.budget_s,
        notes=(*settings.notes, *licence, *reading.notes),
        buckets=tuple(settings.buckets),
        prompt=layout.folder / settings.prompt if settings.prompt else None,
        judge=settings.judge or ("criteria" if rubric else ""),
        reading=(layout.name_line, *reading.notes),
        numbered=not reading.columns.one("id"),
    )
