"""The last stages: `split` (final order of options, disjoint parts) and `export` (the benchmark's files and a
datasheet)."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field, JsonValue, StringConstraints

from proctor.audits import split_items, split_leaks
from proctor.audits.items import audit_items
from proctor.core import (
    DASH,
    InputError,
    Item,
    count_of,
    input_text,
    p_value,
    percent,
    read_model,
    shell_word,
    write_whole,
)
from proctor.core.formats import option_letters
from proctor.stats import Estimate
from proctor.tracks import deal_options
from proctor_build.pipeline.project import Project, SourceVideo
from proctor_build.pipeline.readback import DATASHEET, ExportedBenchmark, about_export, check_read_back, write_about
from proctor_build.pipeline.records import DraftQuestion, FromSource, Record, UnitFile
from proctor_build.pipeline.review import REJECTED, REVIEW
from proctor_build.pipeline.rework import Reworked
from proctor_build.pipeline.screening import Screening, as_item, blind_answers
from proctor_build.pipeline.stage import ALL, Made, Stage, StageSettings, Work
from proctor_build.pipeline.status import first_causes

REVIEWED = "reviewed.md"
"""The file of a project with the datasheet's section on its review."""


PartName = Annotated[str, StringConstraints(pattern=r"^\w[\w.-]{0,39}$")]
"""The name of a part: letters, digits, `_`, `.` and `-`."""


class SplitSettings(StageSettings):
    """The share of items by part. Groups of sources stay together, and sources with the same value of each of the tags
    `together` (a site, a device), directly or through others. Without shares there is a single, unnamed part. A part's
    name is that of a folder, and the end of a benchmark's."""

    shares: dict[PartName, float] = Field(default={})
    together: tuple[str, ...] = ()


class FinalQuestion(DraftQuestion):
    """A question for publication: options in final order, its part ("" if there is only one), and its screening."""

    part: str = ""
    screening: Screening


class SplitStage(Stage[FinalQuestion]):
    """Orders options so that every letter is right equally often, and assigns groups to parts."""

    name: ClassVar[str] = "split"
    summary: ClassVar[str] = "Order of options, and parts"
    after: ClassVar[tuple[str, ...]] = ("repair",)
    also_after: ClassVar[tuple[str, ...]] = (REVIEW,)
    whole: ClassVar[bool] = True
    states: ClassVar[tuple[str, ...]] = ("tags",)
    record = FinalQuestion
    settings = SplitSettings

    async def make(self, work: Work) -> Made[FinalQuestion]:
        stays = work.records(REVIEW if REVIEW in work.before else "repair", Reworked)
        part, notes = dealt_parts(work, [as_item(stay, work.project.settings.groups) for stay in stays])
        choices = [stay for stay in stays if stay.kind == "mcq"]
        dealt = deal_options(
            [choice.options for choice in choices], [choice.key or 0 for choice in choices], work.generator("options")
        )
        decks = {one.id: deck for one, deck in zip(choices, dealt, strict=True)}
        return Made([_final(stay, part[stay.id], decks.get(stay.id)) for stay in stays], notes=notes)


def dealt_parts(work: Work, items: Sequence[Item]) -> tuple[dict[str, str], list[str]]:
    """The part of each item by id ("" if the settings name none), and a note on their sizes. The group of an item is that
    of its source. Raises `InputError` for parts that are not disjoint, and for a source without a tag by which sources
    stay together."""
    settings = work.settings(SplitSettings)
    shares, together = settings.shares, settings.together
    if not shares:
        return dict.fromkeys((item.id for item in items), ""), []
    tags = _tags_of_groups(work, together)
    items = [item.model_copy(update={"tags": {**item.tags, **tags[item.group]}}) for item in items]
    part = split_items(items, shares, seed=work.project.settings.seed, together=together)
    leaks = split_leaks(items, part, together=together)
    if leaks:
        first, ids = leaks[0], ", ".join(leaks[0].items[:3])
        found = f"{first.kind} {first.what!r} in {' and '.join(first.parts)} ({ids})"
        named = shell_word(work.project.folder)
        expected = (
            f"parts that share nothing: another seed, or `proctor build run {named} --redo questions` with one of these"
        )
        raise InputError(work.project.file, "stages: split", found=found, expected=expected)
    sizes = Counter(part.values())
    return part, [", ".join(f"{name} {sizes[name]}" for name in shares)]


def _tags_of_groups(work: Work, together: Sequence[str]) -> dict[str, dict[str, tuple[str, ...]]]:
    """The values of these tags that the sources of each group have."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for source in work.sources:
        own = found.setdefault(source.patient, {})
        for name in together:
            if not source.tags.get(name):
                expected = "one, since the split keeps sources with the same one together"
                raise InputError(
                    work.project.file, f"source {source.id!r}", found=f"no tag {name!r}", expected=expected
                )
            own[name] = tuple(dict.fromkeys((*own.get(name, ()), source.tags[name])))
    return found


def _final(reworked: Reworked, part: str, deck: tuple[list[str], str] | None) -> FinalQuestion:
    fields = reworked.model_dump(include=set(FinalQuestion.model_fields)) | {"part": part}
    if deck is not None:
        options, letter = deck
        fields |= {"options": tuple(options), "key": option_letters(len(options)).index(letter)}
    return FinalQuestion.model_validate(fields)


class ExportedFile(Record):
    """A file of the benchmark in `items/`."""

    sha256: str
    size: int = Field(ge=0)


@dataclass(frozen=True)
class WrittenExport:
    """What an export has written: in words ("12 questions"), and its benchmarks as the project holds them."""

    what: str
    benchmarks: Sequence[ExportedBenchmark]


class FilesStage(Stage[ExportedFile]):
    """Writes the benchmark into `items/`, all of it or nothing, and only if its `reader` (an installed benchmark) reads it
    back as the project holds it: items, keys, options in their order, groups, tags, name, title, whether it is simulated.
    `about.json` there says whose it is (see `proctor.core.AboutFiles`)."""

    name: ClassVar[str] = "export"
    summary: ClassVar[str] = "The benchmark's own files"
    whole: ClassVar[bool] = True
    makes: ClassVar[str] = "files"
    states: ClassVar[tuple[str, ...]] = ("name", "title", "licence", "simulated")
    version: ClassVar[int] = 2
    reader: ClassVar[str]
    record = ExportedFile

    @abstractmethod
    def fill(self, work: Work, folder: Path) -> WrittenExport:
        """Writes all files but `about.json` into an empty folder. Raises `InputError` if there is nothing to write."""

    def reads(self, work: Work) -> Sequence[Path]:
        reviewed = work.project.folder / REVIEWED
        videos = [work.project.path(source, "video") for source in work.sources]
        return [*videos, *([reviewed] if reviewed.is_file() else [])]

    def stands(self, project: Project, made: UnitFile) -> bool:
        """Whether the files still exist with the same sizes."""
        files = [(project.items / str(record["id"]), record["size"]) for record in made.records]
        return all(file.is_file() and file.stat().st_size == size for file, size in files)

    async def make(self, work: Work) -> Made[ExportedFile]:
        project = work.project
        draft = project.folder / ".items.part"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        try:
            filled = self.fill(work, draft)
            for one in filled.benchmarks:
                about = about_export(project, self.reader, one)
                write_about(about, draft / one.folder)
                check_read_back(one, about, draft / one.folder, project.items)
            files = sorted(path for path in draft.rglob("*") if path.is_file())
            made = [_file(file, draft) for file in files]
            old = project.folder / ".items.old"
            shutil.rmtree(old, ignore_errors=True)
            if project.items.exists():
                project.items.replace(old)
            draft.replace(project.items)
            shutil.rmtree(old, ignore_errors=True)
        except OSError as error:
            expected = "a writable path with free space"
            raise InputError(project.items, found=error.strerror or str(error), expected=expected) from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return Made(made, notes=[f"{filled.what} in {project.items.name}/"])


class ExportStage(FilesStage):
    """Exports questions: the task's own files, the videos, and a datasheet."""

    after: ClassVar[tuple[str, ...]] = ("transcript", "events", "questions", "screen", "repair", "split")
    also_after: ClassVar[tuple[str, ...]] = (REVIEW,)

    def reads(self, work: Work) -> Sequence[Path]:
        settled = [unit_file(work.project, REVIEW)] if REVIEW in work.before else []
        return [*super().reads(work), *settled]

    @abstractmethod
    def write(self, project: Project, questions: Sequence[FinalQuestion], folder: Path) -> ExportedBenchmark:
        """Writes the benchmark's own files into an empty folder; returns what they hold."""

    def fill(self, work: Work, folder: Path) -> WrittenExport:
        project, questions = work.project, work.records("split", FinalQuestion)
        if not questions:
            raise nothing_stays(project, "question")
        exported = self.write(project, questions, folder)
        for source in work.sources:
            lend_video(project.path(source, "video"), folder / "videos" / f"{source.id}{Path(source.video).suffix}")
        write_whole(folder / DATASHEET, datasheet(work, questions))
        return WrittenExport(count_of(len(questions), "question"), (exported,))


def nothing_stays(project: Project, what: str) -> InputError:
    """The error of an export without anything to write, with the first cause."""
    named = shell_word(project.folder)
    causes = first_causes(project)
    cause = f" ({causes[0]})" if causes else ""
    expected = (
        f"at least one; `proctor build status {named}` says why, `proctor build run {named} --redo STAGE` asks again"
    )
    return InputError(project.folder, "export", found=f"no {what} that stays{cause}", expected=expected)


def lend_video(video: Path, target: Path) -> None:
    """Links a video to another name, or copies it where the disk can't link."""
    target.parent.mkdir(exist_ok=True)
    try:
        os.link(video.resolve(), target)
    except OSError:
        shutil.copyfile(video, target)


def _file(file: Path, folder: Path) -> ExportedFile:
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return ExportedFile(id=file.relative_to(folder).as_posix(), sha256=digest, size=file.stat().st_size)


def datasheet(work: Work, questions: Sequence[FinalQuestion]) -> str:
    """A datasheet in Markdown: sources, funnel, models and prompts, how well questions can be guessed before and after
    repair, the review, and what a clinician must still confirm."""
    drafts = work.records("questions", DraftQuestion)
    kinds = Counter(question.kind for question in questions)
    what = f"{count_of(len(questions), 'question')} ({kinds['mcq']} choices, {kinds['free']} free responses)"
    lines = about_sources(work, what, "From words to questions", questions)
    lines += ["## What can be guessed", ""]
    for title, some in (("Before repair", drafts), ("As published", questions)):
        choices = [as_item(draft, work.project.settings.groups) for draft in some if draft.kind == "mcq"]
        lines.append(f"- {title}: {guessed_by_rules(choices, work.project.settings.seed)}")
    lines += _blind(work, questions)
    lines += ["", *_reviewed(work)]
    flags = Counter(flag for question in questions for flag in question.flags)
    if flags:
        lines += ["", "## To be looked at by a clinician", ""]
        lines += [f"- {flag}: {count_of(count, 'question')}" for flag, count in flags.most_common()]
    return "\n".join(lines) + "\n"


def unit_file(project: Project, stage: str) -> Path:
    """The file of what a whole stage made."""
    return project.work / stage / f"{ALL}.json"


def made_by(project: Project, stage: str) -> UnitFile:
    """What a whole stage made, rejected and noted."""
    return read_model(unit_file(project, stage), UnitFile, "a stage's records")


def reviewed_by(project: Project) -> list[str]:
    """The section on the review, from `reviewed.md` (`proctor review export --what datasheet`)."""
    file = project.folder / REVIEWED
    if file.is_file():
        return input_text(file, "the section of a datasheet").rstrip().splitlines()
    return ["## Reviewed by", "", "By whom and with which agreement is not recorded in this project."]


def _reviewed(work: Work) -> list[str]:
    """The section on the review, and its outcome."""
    settled = work.before.get(REVIEW)
    if settled is None and not (work.project.folder / REVIEWED).is_file():
        return ["## Reviewed by", "", "Nobody yet: no reading of a clinician is recorded in this project."]
    lines = reviewed_by(work.project)
    if settled is None:
        return lines
    made = made_by(work.project, REVIEW)
    outcome = ["", "### What became of the questions", "", f"{'; '.join(made.notes)}."]
    rejected = [refused for refused in made.refused if refused.kind == REJECTED]
    return [
        *lines,
        *outcome,
        *([""] if rejected else []),
        *(f"- {refused.id}: {_plain(refused.reason)}" for refused in rejected),
    ]


def _plain(text: str) -> str:
    """A person's text with Markdown's special characters escaped."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", text) or "no reason given"


def about_sources(work: Work, what: str, funnel: str, items: Sequence[FromSource]) -> list[str]:
    """The first sections of every datasheet: title, licence, contents, sources, the number of records of each stage
    under the heading `funnel`, models, and prompts."""
    settings = work.project.settings
    shown = count_of(len({item.source for item in items}), "video")
    lines = [
        f"# {settings.title or 'A benchmark'}",
        "",
        f"Licence: {settings.licence or 'not stated'}. Seed: {settings.seed}.",
        "",
        f"{what} on {shown} of {count_of(len({settings.groups[item.source] for item in items}), 'group')}.",
    ]
    lines += ["", "## Sources", "", "| video | procedure | used | licence | from |", "|---|---|---|---|---|"]
    lines += [_source_row(source, settings.licence) for source in work.sources]
    lines += ["", f"## {funnel}", "", "| stage | records |", "|---|---|"]
    lines += [f"| {name} | {len(some)} |" for name, some in work.before.items()]
    lines += ["", "## Models and prompts", "", "| role | model |", "|---|---|"]
    lines += [f"| {role} | {spec.name} |" for role in settings.models for spec in settings.specs(role)]
    every = [*items, *(record for some in work.before.values() for record in some)]
    prompts = sorted({call.prompt_sha256 for record in every for call in record.calls if call.prompt_sha256})
    return [*lines, "", f"Prompts, by SHA-256: {', '.join(prompt[:16] for prompt in prompts) or DASH}", ""]


def _source_row(source_video: SourceVideo, licence: str) -> str:
    end = "end" if source_video.end is None else f"{source_video.end:g} s"
    cells = (
        source_video.id,
        source_video.procedure,
        f"{source_video.start:g} s to {end}",
        source_video.licence or licence,
        source_video.provenance,
    )
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") or DASH for cell in cells) + " |"


def guessed_by_rules(items: Sequence[Item], seed: int) -> str:
    """What rules that read only the options reach on choice items: the best in sample with its p, and, without this
    selection, what was chosen on other groups."""
    choice = audit_items(items, seed=seed).format("choice") if items else None
    best = choice.best_rule if choice is not None else None
    if choice is None or best is None or best.accuracy.value is None:
        return "no rule could be tried."
    rules = sum(baseline.kind == "rule" for baseline in choice.baselines)
    line = f"the best of {rules} rules ({best.label}) answers {_share(best.accuracy)} of {choice.n} choices"
    if best.p_holm is not None:
        line += f" (p above chance {p_value(best.p_holm)}, adjusted for all baselines)"
    line += f"; chance is {percent(choice.chance)}."
    if choice.selected is None:
        return f"{line} Luck among the rules is not excluded: {choice.unselected}."
    return f"{line} What was chosen on other groups answers {_share(choice.selected.accuracy)}."


def _share(estimate: Estimate) -> str:
    """An accuracy in percent, with its interval if it has one."""
    if estimate.ci_low is None or estimate.ci_high is None:
        return percent(estimate.value)
    return f"{percent(estimate.value)} [{percent(estimate.ci_low)}, {percent(estimate.ci_high)}]"


def _blind(work: Work, questions: Sequence[FinalQuestion]) -> list[str]:
    first = work.records("screen", Screening)
    lines = []
    for title, some in (("before repair", first), ("as published", [question.screening for question in questions])):
        if any(screening.asked or screening.missing for screening in some):
            lines.append(f"- Models without the video, {title}: {blind_answers(some)}.")
    return lines


def as_json(entries: Sequence[Mapping[str, JsonValue]] | Mapping[str, Any]) -> str:
    """JSON as written into a benchmark's files."""
    return json.dumps(entries, ensure_ascii=False, indent=2) + "\n"
