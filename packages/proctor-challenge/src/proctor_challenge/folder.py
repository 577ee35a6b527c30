"""The folder of a challenge: made from a benchmark's data, and checked before a phase opens, so that participants get
exactly the questions that are scored, and no references."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from proctor.api import load
from proctor.core import (
    Benchmark,
    InputError,
    Item,
    ProblemsError,
    ProctorError,
    count_of,
    generator,
    one_of,
    question_writer,
    reader_or_default,
    whole_folder,
    write_whole,
)
from proctor.interchange import file_hash
from proctor.media import CONDITIONS, MediaLibrary
from proctor.runs import why_unable
from proctor_challenge.admission import checked_submission
from proctor_challenge.challenge import SealedPart, check_reach
from proctor_challenge.rights import folder_rights
from proctor_challenge.settings import CHALLENGE_FILE, SEALED, Phase, read_challenge

TRAINING, PRE_EVALUATION, TEST = "training", "pre-evaluation", "test"
_EXAMPLES = 3  # problems of a kind that are named one by one
_TERMS = "public/terms.md"
_TERMS_TEXT = """\
# Terms

- A person has one account, and an institution one team.
- Nobody tries to reach the references, to identify patients, or to influence a judge. Who does is disqualified.
- Systems answer each question from what they are given with it, without a network.
- Results are published under the team's name unless it asks to be left out before the phase ends.
"""
_HEAD = """\
# A challenge (proctor challenge check tells what is wrong with it). Times need a zone: 2026-09-01T00:00:00Z
"""


@dataclass(frozen=True)
class NewChallenge:
    """How to make a challenge: from a benchmark's files with references and media (None: text only), and with how many
    groups in each phase. If all are 0, training and pre-evaluation get a quarter each and the test the rest. `seed`
    assigns the groups. With `files_only`, no phase takes images, so that no machine needs containers, and participants
    get the questions of the test, too, once it opens."""

    benchmark: str
    data: Path
    media: Path | None = None
    track: str = ""
    title: str = ""
    training: int = 0
    pre_evaluation: int = 0
    test: int = 0
    seed: int = 0
    files_only: bool = False

    def dealt(self, groups: Collection[str]) -> dict[str, set[str]]:
        """Assigns the groups to the phases. Raises `InputError` for too few groups."""
        wanted = {TRAINING: self.training, PRE_EVALUATION: self.pre_evaluation, TEST: self.test}
        if not any(wanted.values()):
            quarter = len(groups) // 4
            wanted = {TRAINING: quarter, PRE_EVALUATION: quarter, TEST: len(groups) - 2 * quarter}
        if sum(wanted.values()) > len(groups):
            expected = f"groups for {sum(wanted.values())} in {count_of(len(wanted), 'phase')}"
            raise InputError(self.data, found=count_of(len(groups), "group"), expected=expected)
        drawn = generator(self.seed, "phases of a challenge").permutation(len(groups))
        order = [sorted(groups)[index] for index in drawn]
        parts = {}
        for name, count in wanted.items():
            parts[name], order = set(order[:count]), order[count:]
        return {name: part for name, part in parts.items() if part}


def new_challenge(folder: Path, plan: NewChallenge) -> dict[str, int]:
    """Makes the folder atomically; returns the number of questions of each phase.

    The training phase is public with its references. Participants get the questions of the pre-evaluation without
    references, and nothing of the test, which takes images only (unless `files_only`). `challenge.yaml` is meant to be edited. Raises
    `InputError` when the benchmark can't write its questions, when media are missing, and when the folder is not empty.
    """
    benchmark = load(plan.benchmark, plan.data, plan.media, track=plan.track)
    blank = next((item.id for item in benchmark.items if item.reference is None), None)
    if blank is not None:
        raise InputError(plan.data, f"question {blank}", found="no reference", expected="one: a challenge scores")
    dealt = plan.dealt({item.group for item in benchmark.items})
    counts, phases = {}, []
    with whole_folder(folder) as half:
        for name in ("public", "uploads"):
            (half / name).mkdir()
        (half / SEALED).mkdir(mode=0o700)
        write_whole(half / _TERMS, _TERMS_TEXT)
        for name, groups in dealt.items():
            phases.append(_phase(half, plan, benchmark, name, groups))
            counts[name] = sum(item.group in groups for item in benchmark.items)
        write_whole(half / CHALLENGE_FILE, _HEAD + _yaml(_settings(plan, benchmark, phases)))
    (folder / SEALED).chmod(0o700)
    return counts


def _phase(half: Path, plan: NewChallenge, benchmark: Benchmark, name: str, groups: set[str]) -> dict[str, Any]:
    """Writes the parts of a phase; returns its settings."""
    items = [item for item in benchmark.items if item.group in groups]
    ids, write_questions = {item.id for item in items}, question_writer(plan.benchmark, plan.data)
    public, sealed = f"public/{name}", f"{SEALED}/{name}"
    settings: dict[str, Any] = {"name": name, "title": name.capitalize()}
    handed_out = name != TEST or plan.files_only
    for path, kept, references in ((public, handed_out, name == TRAINING), (sealed, name != TRAINING, True)):
        if kept:
            (half / path).mkdir()
            write_questions(plan.data, half / path, ids, references=references, track=plan.track)
            settings |= {"questions" if path == public else "sealed": path}
    if plan.media is None:
        settings["condition"] = "text-only"
    else:
        settings["media"] = f"{public if handed_out else sealed}/media"
        sources = {medium.source for item in items for medium in item.media}
        _copy_media(MediaLibrary(plan.media), sources, half / settings["media"])
    if plan.files_only:
        settings["accepts"] = ["file"]
    if name == TEST:
        settings |= {} if plan.files_only else {"accepts": ["image"]}
        settings |= {"quota": {"scored": 1, "attempted": 3}, "counts": "last", "results": {"boards": "organisers"}}
    if benchmark.budget_s is not None:
        settings["budget"] = {"question_s": benchmark.budget_s}
    return settings


def write_public_questions(folder: Path, phase: str) -> tuple[str, int]:
    """Writes the questions of a hidden phase without references into its public folder (`questions`, or public/PHASE),
    for a phase that was added by hand. Returns that folder, relative to the challenge's, and the number of questions.

    Raises `InputError` for an unknown phase, one without a sealed part, a folder that is not empty, and a benchmark that
    can't write its questions; `ProblemsError`, and writes nothing, if what was written differs from what is scored.
    """
    settings = read_challenge(folder, sealed=True, unwritten=phase)
    rules = next((one for one in settings.phases if one.name == phase), None)
    if rules is None:
        raise InputError("phase", found=repr(phase[:80]), expected=one_of([one.name for one in settings.phases], phase))
    if not rules.sealed:
        raise InputError(
            f"phase {phase}", found="no sealed questions", expected="some (sealed: …): the others are public"
        )
    location = rules.questions or f"public/{phase}"
    sealed, write_questions = SealedPart(folder, settings), question_writer(settings.benchmark, folder / rules.sealed)
    scored = sealed.benchmark(phase)
    with whole_folder(folder / location) as half:
        ids = {item.id for item in scored.items}
        write_questions(folder / rules.sealed, half, ids, references=False, track=settings.track)
        given = load(settings.benchmark, half, folder / (rules.media or rules.sealed), track=settings.track)
        if problems := list(handed_out_problems(scored, given)):
            raise ProblemsError(folder / location, problems)
    return location, len(scored.items)


def _copy_media(library: MediaLibrary, sources: Collection[str], out: Path) -> None:
    out.mkdir()
    for source in sorted(sources):
        file = library.locate(source).resolve()
        location = out / file.relative_to(Path(library.root or "").resolve())
        location.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, location)


def _settings(plan: NewChallenge, benchmark: Benchmark, phases: list[dict[str, Any]]) -> dict[str, Any]:
    settings: dict[str, Any] = {"title": plan.title or benchmark.title, "benchmark": plan.benchmark}
    settings |= {"track": plan.track} if plan.track else {}
    names = {phase["name"] for phase in phases}
    for phase in phases:
        if phase["name"] == TEST and PRE_EVALUATION in names:
            phase["gate"] = {"phase": PRE_EVALUATION}
    return settings | {"terms": _TERMS, "phases": phases, "baselines": []}


def _yaml(fields: dict[str, Any]) -> str:
    import yaml

    return yaml.safe_dump(fields, sort_keys=False, allow_unicode=True)


@dataclass(frozen=True)
class FolderCheck:
    """A line of facts per phase, and all problems."""

    facts: tuple[str, ...]
    problems: tuple[str, ...]

    def record(self) -> dict[str, JsonValue]:
        """The check as JSON."""
        return {"facts": [*self.facts], "problems": [*self.problems]}


def check_challenge(folder: Path, phase: str = "") -> FolderCheck:
    """Checks rights and all phases, or one, with the sealed part. Raises `ProblemsError` for invalid settings, and
    `InputError` for a user who may not open the sealed part."""
    check_reach(folder)
    settings = read_challenge(folder, sealed=True)
    sealed, rights = SealedPart(folder, settings), folder_rights(folder, settings)
    facts, problems = [*rights.facts], [*rights.problems, *_links(sealed)]
    for one in settings.phases:
        if phase in {"", one.name}:
            try:
                facts.append(_described(sealed, one))
                problems += [f"{one.name}: {line}" for line in _phase_problems(sealed, one)]
            except ProctorError as error:
                problems.append(f"{one.name}: {error}")
    return FolderCheck(tuple(facts), tuple(problems))


def _links(sealed: SealedPart) -> Iterator[str]:
    for link in sorted((sealed.folder / "public").rglob("*")):
        if link.is_symlink():
            yield f"{link.relative_to(sealed.folder)}: found a symbolic link, expected a file of its own"


def _described(sealed: SealedPart, phase: Phase) -> str:
    found = sealed.benchmark(phase.name)
    groups = len({item.group for item in found.items})
    kind = "hidden" if phase.hidden else "public"
    out = ", handed out without references" if phase.hidden and phase.questions else ""
    return f"{phase.name}: {count_of(len(found.items), 'question')} in {count_of(groups, 'group')}, {kind}{out}"


def _phase_problems(sealed: SealedPart, phase: Phase) -> Iterator[str]:
    scored = sealed.benchmark(phase.name)
    yield from _named([item.id for item in scored.items if item.reference is None], "no reference", "one to score by")
    if CONDITIONS.get(phase.condition).sees:
        library = MediaLibrary(scored.media_root)
        yield from _named(library.missing(scored.items), "no file of this name", "its media")
        unable = [item.id for item in scored.items if why_unable(item, phase.condition, library, seed=0)]
        yield from _named(unable, f"it, which can't be shown under {phase.condition}", "a condition for each question")
    free = sum(item.answer.kind == "free_text" for item in scored.items)
    if free and sealed.settings.judge is None and reader_or_default(sealed.settings.benchmark).rubric_judge:
        yield f"found {count_of(free, 'question')} in free text and no judge, expected one with its models (judge: …)"
    if phase.hidden:
        given = sealed.handed_out(phase.name)
        yield from _not_exposed(sealed.folder, phase, scored) if given is None else handed_out_problems(scored, given)
    yield from _baselines(sealed, phase)


def handed_out_problems(scored: Benchmark, given: Benchmark) -> Iterator[str]:
    """The differences between the questions that participants have and those that are scored, and references among
    the former."""
    secret, public = {item.id: item for item in scored.items}, {item.id: item for item in given.items}
    yield from _named(sorted(secret.keys() - public.keys()), "it not handed out", "each question that is scored")
    yield from _named(sorted(public.keys() - secret.keys()), "it handed out alone", "each question that is scored")
    both = sorted(secret.keys() & public.keys())
    revealed = [name for name in both if public[name].reference is not None]
    yield from _named(revealed, "its reference handed out", "none")
    shown = [name for name in both if public[name].evidence is not None]
    yield from _named(shown, "its evidence handed out", "none")
    different = [name for name in both if _visible(secret[name]) != _visible(public[name])]
    yield from _named(different, "other words, options, format or media handed out", "the same as are scored")


def _visible(item: Item) -> tuple[object, ...]:
    """The parts of a question that participants see."""
    return item.question, item.options, item.answer.kind, item.media, item.group


def _not_exposed(folder: Path, phase: Phase, scored: Benchmark) -> Iterator[str]:
    """The hidden media and questions of a phase without public questions that are in the public part."""
    public: dict[int, list[Path]] = {}
    for file in (folder / "public").rglob("*"):
        if file.is_file() and file.stat().st_size:
            public.setdefault(file.stat().st_size, []).append(file)
    media, ids = folder / phase.media if phase.media else None, [item.id.encode() for item in scored.items]
    for hidden in sorted(path for path in (folder / phase.sealed).rglob("*") if path.is_file()):
        for file in public.get(hidden.stat().st_size, []):
            if file_hash(file) == file_hash(hidden) and _reveals(hidden, media, ids):
                found, same = file.relative_to(folder), hidden.relative_to(folder)
                yield f"found {found}, which is {same}, expected nothing of this phase in public"


def _reveals(file: Path, media: Path | None, ids: Sequence[bytes]) -> bool:
    """Whether a file is one of the media or names a question; files that all phases share do neither."""
    if media is not None and file.is_relative_to(media):
        return True
    content = file.read_bytes()
    return any(one in content for one in ids)


def _baselines(sealed: SealedPart, phase: Phase) -> Iterator[str]:
    settings, data = sealed.settings, sealed.folder / (phase.sealed or phase.questions)
    for baseline in settings.baselines:
        file = sealed.answer_file(baseline.name, phase.name)
        if file is not None:
            try:
                checked_submission(settings.benchmark, settings.track, data, phase.budget, file)
            except ProctorError as error:
                yield f"baseline {baseline.name}: {error}"


def _named(ids: list[str], found: str, expected: str) -> Iterator[str]:
    for name in ids[:_EXAMPLES]:
        yield f"{name}: found {found}, expected {expected}"
    if len(ids) > _EXAMPLES:
        yield f"and {len(ids) - _EXAMPLES} more of the same"
