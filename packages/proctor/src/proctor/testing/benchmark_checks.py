"""Checks of benchmarks: what a reader makes of good files, of damaged ones, and of recorded answers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from tempfile import TemporaryDirectory
from unittest import SkipTest

from pydantic import JsonValue

from proctor.core import (
    BENCHMARKS,
    PUBLISHED_FIGURES,
    QUESTION_WRITERS,
    Benchmark,
    BenchmarkReader,
    InputError,
    Item,
    ParseError,
    PathReader,
    ProctorError,
    PublishedFigures,
    RecordedAnswers,
    Verified,
    admit_recorded,
    error_at,
)
from proctor.media import CONDITIONS
from proctor.models import Prompt, load_prompt
from proctor.shell import admitted
from proctor.systems import Sent, prompt_for_benchmark, prompt_text
from proctor.testing.checks import Check, CheckReport, Faults, awaited, expecting, run_checks
from proctor.testing.damaged_files import copy_of, damaged, native_files
from proctor.testing.metric_checks import metric_checks

_LONG = 20  # characters of a reference that stands nowhere by chance
_NO_ID = "no-such-id-7319"
_FEW = 200
_MOST_FAULTS = 10
_LINES = {".csv", ".tsv", ".jsonl"}


def check_benchmark(
    reader: str | BenchmarkReader,
    data: str | Path,
    media: str | Path | None = None,
    *,
    recorded: str | Path | None = None,
    published: str | Path | None = None,
    expected_failures: Mapping[str, str] | None = None,
) -> CheckReport:
    """Run `benchmark_checks`. Raises `CheckFailedError` with all faults."""
    return run_checks(
        benchmark_checks(
            reader, data, media, recorded=recorded, published=published, expected_failures=expected_failures
        )
    )


def benchmark_checks(
    reader: str | BenchmarkReader,
    data: str | Path,
    media: str | Path | None = None,
    *,
    recorded: str | Path | None = None,
    published: str | Path | None = None,
    expected_failures: Mapping[str, str] | None = None,
) -> list[Check]:
    """The checks of a benchmark by its reader (or its name) and its files: `data`, its `media`, `recorded` answers in its
    own format, and the folder of those behind `published` figures.

    It loads the same each time, and declares nothing that does not exist; references are values of their formats, and
    neither questions nor prompts hold them; media lie in the media folder; damaged files are refused in one line, and
    nothing else is raised or written; recorded answers are read, and refused if they are damaged, repeated or unknown;
    questions to hand out reveal no answer; its own figures do not depend on the order of items. Its scorers pass
    `metric_checks`. `expected_failures` are reasons by the names of checks.
    """
    made = BENCHMARKS.get(reader) if isinstance(reader, str) else reader
    paths = [None if path is None else Path(path) for path in (media, recorded, published)]
    tried = _Tried(made, Path(data), *paths)
    checks: dict[str, Callable[[], Iterator[str]]] = {
        "it_has_a_name_and_a_summary": tried.it_has_a_name_and_a_summary,
        "it_declares_what_exists": tried.it_declares_what_exists,
        "it_loads_the_same_each_time": tried.it_loads_the_same_each_time,
        "another_seed_has_the_same_questions": tried.another_seed_has_the_same_questions,
        "it_writes_nothing": tried.it_writes_nothing,
        "ids_are_unique": tried.ids_are_unique,
        "there_are_groups": tried.there_are_groups,
        "media_lie_in_the_media_folder": tried.media_lie_in_the_media_folder,
        "the_first_condition_fits": tried.the_first_condition_fits,
        "references_are_read_back": tried.references_are_read_back,
        "questions_hold_no_reference": tried.questions_hold_no_reference,
        "prompts_are_filled_in": tried.prompts_are_filled_in,
        "unknown_tracks_are_refused": tried.unknown_tracks_are_refused,
        "media_help_says_a_text": tried.media_help_says_a_text,
        "damaged_files_are_refused": tried.damaged_files_are_refused,
        "recorded_answers_are_read": tried.recorded_answers_are_read,
        "damaged_recorded_answers_are_refused": tried.damaged_recorded_answers_are_refused,
        "unknown_and_repeated_answers_are_refused": tried.unknown_and_repeated_answers_are_refused,
        "questions_to_hand_out_reveal_nothing": tried.questions_to_hand_out_reveal_nothing,
        "published_figures_are_the_same": tried.published_figures_are_the_same,
    }
    named = [Check(f"benchmark {made.name}", name, find) for name, find in checks.items()]
    return expecting([*named, *_of_scorers(tried)], expected_failures)


def _of_scorers(tried: _Tried) -> Iterator[Check]:
    """The checks of a benchmark's own scorers, on its first items of each format."""
    try:
        benchmark = tried.load()
    except Exception:  # noqa: BLE001  (reported by the checks of the reader)
        return
    for scorer in benchmark.scorers:
        for check in metric_checks(scorer, items=_of_each_format(benchmark)):
            yield replace(check, subject=f"benchmark {benchmark.name}", name=f"{scorer.name}_{check.name}")


def _of_each_format(benchmark: Benchmark, count: int = 3) -> list[Item]:
    kept: dict[str, list[Item]] = {}
    for item in benchmark.items:
        kept.setdefault(item.answer.kind, []).append(item)
    return [item for items in kept.values() for item in items[:count]]


@dataclass(frozen=True)
class _Tried:
    """A reader that is checked, and its files."""

    reader: BenchmarkReader
    data: Path
    media: Path | None = None
    recorded: Path | None = None
    published: Path | None = None

    def load(self, *, seed: int = 0) -> Benchmark:
        return self.reader.load(self.data, self.media, seed=seed)

    def it_has_a_name_and_a_summary(self) -> Faults:
        for field in ("name", "summary"):
            value: object = getattr(self.reader, field, None)
            if not isinstance(value, str) or not value.strip() or "\n" in value:
                yield f"`{field}`: found {value!r}, expected a text of one line"

    def it_declares_what_exists(self) -> Faults:
        found: object = self.load()
        if not isinstance(found, Benchmark):
            yield f"`load` returned {type(found).__name__}, expected a Benchmark"
            return
        if self.reader.name != found.read_by and not isinstance(self.reader, PathReader):
            yield f"`name`: found {found.name!r}, expected {self.reader.name!r}, as its reader"
        if not found.items:
            yield "`items`: found none, expected questions"
        if not found.conditions:
            yield "`conditions`: found none, expected at least one"
        admitted(found, str(self.data), self.reader.rubric_judge)

    def it_loads_the_same_each_time(self) -> Faults:
        first, again = self.load(), self.load()
        if first.fingerprint != again.fingerprint:
            yield "found other items the second time, expected the same: draw by proctor.core.generator(seed, …)"

    def another_seed_has_the_same_questions(self) -> Faults:
        first, other = self.load(), self.load(seed=1)
        one, two = ({item.id: item.question for item in benchmark.items} for benchmark in (first, other))
        if one != two:
            differ = sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))
            yield f"item {differ[0]!r}: found another question with seed 1, expected the same"
        if first.fingerprint != other.fingerprint and not first.seeds:
            yield "`seeds`: found none, expected the seed of what is drawn: another seed makes other items"

    def it_writes_nothing(self) -> Faults:
        before = _listing(self.data)
        self.load()
        after = _listing(self.data)
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                yield f"{name}: found it changed after `load`, expected that reading writes nothing"

    def ids_are_unique(self) -> Faults:
        names = [item.id for item in self.load().items]
        for name in sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else ():
            yield f"item {name!r}: found it {names.count(name)} times, expected each id once"

    def there_are_groups(self) -> Faults:
        items = self.load().items
        if len(items) > 1 and len({item.group for item in items}) == 1:
            yield f"found 1 group of {len(items)} items, expected several: intervals are made by resampling groups"

    def media_lie_in_the_media_folder(self) -> Faults:
        for item in self.load().items:
            for medium in item.media:
                parts = PurePosixPath(medium.source).parts
                if (
                    not parts
                    or ".." in parts
                    or PurePosixPath(medium.source).is_absolute()
                    or PureWindowsPath(medium.source).drive
                    or "\\" in medium.source
                ):
                    yield f"item {item.id!r}: found the medium {medium.source!r}, expected a path inside the media folder"

    def the_first_condition_fits(self) -> Faults:
        benchmark = self.load()
        for name in benchmark.conditions[:1]:
            if unfit := CONDITIONS.get(name).unfit(benchmark.items):
                yield f"condition {name!r}: {unfit}, expected that the first of `conditions` fits"

    def references_are_read_back(self) -> Faults:
        for item in self.load().items:
            if item.reference is None or not item.has_answer:
                continue
            for value in (item.reference.answer, *item.reference.accepted):
                if (problem := _not_read_back(item, value)) is not None:
                    yield f"item {item.id!r}, reference {value!r}: {problem}"

    def questions_hold_no_reference(self) -> Faults:
        for item in self.load().items:
            for text in _texts(item):
                if text in item.question:
                    yield f"item {item.id!r}: found its reference {text[:60]!r} in the question, expected no answer there"

    def prompts_are_filled_in(self) -> Faults:
        benchmark = self.load()
        for name, prompt in self.prompts():
            for item in _of_each_format(benchmark):
                for sent in (Sent(0, timed=False, blind=True), Sent(3, timed=True), Sent(1, timed=False)):
                    try:
                        system, user = prompt_text(prompt, item.as_asked(), self.reader.briefing, sent)
                    except InputError as error:
                        yield f"{name}, item {item.id!r}: {error}"
                        break
                    yield from _faults_of_prompt(f"{name}, item {item.id!r}", item, system, user)

    def prompts(self) -> Iterator[tuple[str, Prompt]]:
        """The prompts for models: its own and its variants, or the general one."""
        folder, name = self.reader.prompts, self.reader.name
        if folder is not None and not any(folder.glob("*.txt.j2")):
            raise InputError(folder, found="no template", expected=f"{name}.txt.j2 in the folder that `prompts` states")
        files = [] if folder is None else sorted([*folder.glob(f"{name}.txt.j2"), *folder.glob(f"{name}.*.txt.j2")])
        for file in files:
            yield file.name, load_prompt(file)
        if not any(file.name == f"{name}.txt.j2" for file in files):
            yield "the general prompt", prompt_for_benchmark("", "")

    def unknown_tracks_are_refused(self) -> Faults:
        for track in self.reader.tracks:
            if self.reader.on_track(track).name != self.reader.name:
                yield f"track {track!r}: found the name {self.reader.on_track(track).name!r}, expected {self.reader.name!r}"
        found = _raised(self.reader.on_track, "no-such-track")
        if not isinstance(found, InputError):
            yield f"track 'no-such-track': found {_told(found)}, expected an InputError"

    def media_help_says_a_text(self) -> Faults:
        sources = sorted({medium.source for item in self.load().items for medium in item.media})
        for missing in (sources[:1], sources) if sources else ():
            said: object = self.reader.media_help(self.data, missing)
            if not isinstance(said, str) or not said.strip():
                yield f"`media_help` returned {said!r} for {len(missing)} files, expected a text"

    def damaged_files_are_refused(self) -> Faults:
        files = [file for file in native_files(self.data) if file.is_file()]
        if not files:
            raise SkipTest("it has no text files to damage")
        count = 0
        for file in files:
            with copy_of(self.data, file) as (copy, location):
                for how, content in damaged(file):
                    location.write_bytes(content)
                    if fault := _as_refusal(_raised(self.reader.load, copy, self.media), copy):
                        count += 1
                        yield f"{file.name}, {how}: {fault}"
                    if count == _MOST_FAULTS:
                        return

    def recorded_answers_are_read(self) -> Faults:
        if self.recorded is None:
            raise SkipTest("no recorded= were given")
        benchmark = self.load()
        found: object = self.reader.read_recorded(self.recorded, benchmark)
        if not isinstance(found, RecordedAnswers):
            yield f"`read_recorded` returned {type(found).__name__}, expected RecordedAnswers"
            return
        if not found.answers:
            yield f"{self.recorded.name}: found no answers, expected some"
        admit_recorded(found, benchmark, self.recorded)

    def damaged_recorded_answers_are_refused(self) -> Faults:
        benchmark = self.load()
        contents: list[tuple[str, str, bytes]] = [
            ("answers.json", "empty", b""),
            ("answers.csv", "not UTF-8", b"\xff\xfe\x80"),
            ("answers.jsonl", "binary", bytes(range(256))),
        ]
        with TemporaryDirectory(prefix="proctor-check-") as named:
            missing = Path(named) / "no-such-file.json"
            found = _raised(self.reader.read_recorded, missing, benchmark)
            if not isinstance(found, ProctorError):
                yield f"a missing file: found {_told(found)}, expected an InputError"
            for name, how, content in contents:
                file = Path(named) / name
                file.write_bytes(content)
                found = _raised(self.reader.read_recorded, file, benchmark)
                if not isinstance(found, InputError):
                    yield f"{name}, {how}: found {_told(found)}, expected an InputError"
        yield from () if self.recorded is None else self._damaged(self.recorded, benchmark)

    def _damaged(self, recorded: Path, benchmark: Benchmark) -> Faults:
        for file in native_files(recorded):
            with copy_of(recorded, file) as (copy, location):
                for how, content in damaged(file):
                    location.write_bytes(content)
                    if fault := _as_refusal(_raised(self.reader.read_recorded, copy, benchmark), copy):
                        yield f"{file.name}, {how}: {fault}"

    def unknown_and_repeated_answers_are_refused(self) -> Faults:
        if self.recorded is None:
            raise SkipTest("no recorded= were given")
        benchmark = self.load()
        known = self.reader.read_recorded(self.recorded, benchmark)
        name = next((answer.item_id for answer in known.answers), "")
        for file in native_files(self.recorded):
            content = file.read_bytes()
            if name.encode() not in content:
                continue
            with copy_of(self.recorded, file) as (copy, location):
                location.write_bytes(content.replace(name.encode(), _NO_ID.encode()))
                found = _raised(self.reader.read_recorded, copy, benchmark)
                if isinstance(found, RecordedAnswers) and _NO_ID not in found.unknown:
                    yield f"{file.name}: found an answer to the unknown id {_NO_ID!r}, expected it refused, or in `unknown`"
                last = content.rstrip().rsplit(b"\n", 1)[-1]
                location.write_bytes(content.rstrip() + b"\n" + last + b"\n")
                found = _raised(self.reader.read_recorded, copy, benchmark)
                if file.suffix.lower() in _LINES and isinstance(found, RecordedAnswers):
                    admit_recorded(found, benchmark, f"{file.name}, its last line twice")

    def questions_to_hand_out_reveal_nothing(self) -> Faults:
        benchmark = self.load()
        names = [item.id for item in benchmark.items]
        with TemporaryDirectory(prefix="proctor-check-") as named:
            out = Path(named) / "questions"
            out.mkdir()
            write = QUESTION_WRITERS.of(self.reader.name)
            if write is None:
                raise SkipTest("no writer of questions is registered beside it")
            write(self.data, out, names, references=False)
            handed = self.reader.load(out if self.data.is_dir() else next(iter(sorted(out.iterdir()))), self.media)
        given = {item.id: item for item in handed.items}
        for item in benchmark.items:
            other = given.get(item.id)
            if other is None or other.as_asked() != item.as_asked():
                yield f"item {item.id!r}: found another question in the written files, expected the same"
            elif other.has_answer or other.reference is not None:
                yield f"item {item.id!r}: found its reference in the written files, expected none"

    def published_figures_are_the_same(self) -> Faults:
        published = PUBLISHED_FIGURES.of(self.reader.name)
        if published is None or (published.files and self.published is None):
            raise SkipTest("it verifies no figures" if published is None else "no published= were given")
        for figure in awaited(_verified(published, self.published or self.data)):
            if figure[1] is Verified.DIFFERENT:
                yield f"figure {figure[0]!r}: found {figure[3]}, expected {figure[2]}, as published"


async def _verified(published: PublishedFigures, folder: Path) -> list[tuple[str, Verified, float, float | None]]:
    return [(one.name, one.state, one.published, one.ours) for one in await published.verify(folder)]


def _not_read_back(item: Item, value: JsonValue) -> str | None:
    """What is wrong with a reference: it can't be written so that its format reads the same value, or does not match
    itself."""
    try:
        written = item.answer.write(value)
        for name in ("parse", "from_cell"):
            back = getattr(item.answer, name)(written, item.options)
            if back != value and not item.answer.match(value, back):
                return f"found {back!r} when it is written and read (`{name}`), expected the same"
        if not item.answer.match(value, value):
            return "found that it does not match itself, expected that the right answer is right"
    except (ParseError, ValueError, TypeError, AttributeError) as error:
        return f"found {error}, expected that it can be written and read back"
    return None


def _texts(item: Item) -> list[str]:
    """The references in free text that are too long to stand somewhere by chance."""
    if item.reference is None or item.answer.kind != "free_text":
        return []
    return [str(one) for one in (item.reference.answer, *item.reference.accepted) if len(str(one or "")) >= _LONG]


def _faults_of_prompt(location: str, item: Item, system: str, user: str) -> Faults:
    if item.question.strip() not in user:
        yield f"{location}: found no question in the user's message, expected {{{{ question }}}}"
    for text in _texts(item):
        if text in f"{system}\n{user}" and text not in item.question:
            yield f"{location}: found its reference {text[:60]!r} in the prompt, expected no answer there"


def _raised(work: Callable[..., object], *given: object) -> object:
    """What work returns, or the exception that it raises."""
    try:
        return work(*given)
    except Exception as error:  # noqa: BLE001  (other people's code: reported by the caller)
        return error


def _as_refusal(found: object, copy: Path) -> str:
    """What is wrong with the outcome of reading a damaged file: any exception but an error with the file's name; "" for
    such an error, and for files that can be read all the same."""
    if isinstance(found, ProctorError):
        names = {copy.name, *(file.name for file in copy.rglob("*"))} if copy.is_dir() else {copy.name}
        named = isinstance(found, InputError) and any(name in str(found) for name in names)
        return "" if named else f"found {_told(found)}, expected an InputError that names the file"
    return (
        f"found {_told(found)}, expected an InputError with file and location" if isinstance(found, Exception) else ""
    )


def _told(found: object) -> str:
    return error_at(found) if isinstance(found, Exception) else f"{type(found).__name__} instead of an error"


def _listing(path: Path) -> dict[str, str]:
    """The files at a path, with their sizes and times; small ones with the hash of their content."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    found = {}
    for file in (file for file in files if file.is_file()):
        facts = file.stat()
        content = hashlib.sha256(file.read_bytes()).hexdigest() if facts.st_size < 100_000 else ""
        found[str(file.relative_to(path.parent))] = f"{facts.st_size} {facts.st_mtime_ns} {content}"
    return found
