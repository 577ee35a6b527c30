"""A challenge's folder made from a benchmark's data: its groups dealt to phases, hidden questions handed out blind. A challenge's folder checked before a phase opens: what is handed out is what is marked, and nothing of it tells."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from proctor.api import load, validate
from proctor.challenges.challenge import SealedPart
from proctor.challenges.settings import CHALLENGE_FILE, SEALED, ChallengeSettings, Phase, read_challenge
from proctor.core import (
    Benchmark,
    InputError,
    Item,
    ProctorError,
    count_of,
    generator,
    reader_of,
    reader_or_default,
    whole_folder,
    write_whole,
)
from proctor.interchange import file_hash
from proctor.media import CONDITIONS, MediaLibrary

TRAINING, PRE_EVALUATION, TEST = "training", "pre-evaluation", "test"
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
    """What a folder is made from: a benchmark's own files with references and media (None: nobody looks at any), and
    how many groups go to each phase; all 0: a quarter each to training and pre-evaluation, the rest to the test. `seed`
    deals them."""

    benchmark: str
    data: Path
    media: Path | None = None
    track: str = ""
    title: str = ""
    training: int = 0
    pre_evaluation: int = 0
    test: int = 0
    seed: int = 0

    def dealt(self, groups: Collection[str]) -> dict[str, set[str]]:
        """The groups of each phase that has some. Raises `InputError` where there are too few."""
        wanted = {TRAINING: self.training, PRE_EVALUATION: self.pre_evaluation, TEST: self.test}
        if not any(wanted.values()):
            quarter = len(groups) // 4
            wanted = {TRAINING: quarter, PRE_EVALUATION: quarter, TEST: len(groups) - 2 * quarter}
        if sum(wanted.values()) > len(groups):
            expected = f"groups for {sum(wanted.values())} in {count_of(len(wanted), 'phase')}"
            raise InputError(self.data, found=count_of(len(groups), "group"), expected=expected)
        order = [sorted(groups)[one] for one in generator(self.seed, "phases of a challenge").permutation(len(groups))]
        parts = {}
        for name, count in wanted.items():
            parts[name], order = set(order[:count]), order[count:]
        return {name: part for name, part in parts.items() if part}


def new_challenge(folder: Path, plan: NewChallenge) -> dict[str, int]:
    """Makes the folder, whole or not at all; returns how many questions each phase has.

    Training is public with its references. Of the pre-evaluation participants get the questions without, of the test
    nothing: it takes images alone. `challenge.yaml` is meant to be edited: dates, quotas, baselines, who sees what.
    Raises `InputError` where the benchmark can't write its questions, where media are missing, and where the folder
    holds something.
    """
    benchmark = load(plan.benchmark, plan.data, plan.media, track=plan.track)
    blank = next((item.id for item in benchmark.items if item.reference is None), None)
    if blank is not None:
        raise InputError(plan.data, f"question {blank}", found="no reference", expected="one: a challenge marks")
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
    """Writes the parts of a phase; what its settings say."""
    items = [item for item in benchmark.items if item.group in groups]
    ids, reader = {item.id for item in items}, reader_of(plan.benchmark, plan.track)
    public, sealed = f"public/{name}", f"{SEALED}/{name}"
    said: dict[str, Any] = {"name": name, "title": name.capitalize()}
    for path, kept, references in ((public, name != TEST, name == TRAINING), (sealed, name != TRAINING, True)):
        if kept:
            (half / path).mkdir()
            reader.write_questions(plan.data, half / path, ids, references=references)
            said |= {"questions" if path == public else "sealed": path}
    if plan.media is None:
        said["condition"] = "text-only"
    else:
        said["media"] = f"{sealed if name == TEST else public}/media"
        _copy_media(
            MediaLibrary(plan.media), {one.source for item in items for one in item.media}, half / said["media"]
        )
    if name == TEST:
        said |= {"accepts": ["image"], "quota": {"scored": 1, "attempted": 3}, "counts": "last"}
        said |= {"results": {"boards": "organisers"}}
    if benchmark.budget_s is not None:
        said["budget"] = {"question_s": benchmark.budget_s}
    return said


def _copy_media(library: MediaLibrary, sources: Collection[str], out: Path) -> None:
    out.mkdir()
    for source in sorted(sources):
        file = library.locate(source).resolve()
        place = out / file.relative_to(Path(library.root or "").resolve())
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)


def _settings(plan: NewChallenge, benchmark: Benchmark, phases: list[dict[str, Any]]) -> dict[str, Any]:
    said: dict[str, Any] = {"title": plan.title or benchmark.title, "benchmark": plan.benchmark}
    said |= {"track": plan.track} if plan.track else {}
    names = {one["name"] for one in phases}
    for one in phases:
        if one["name"] == TEST and PRE_EVALUATION in names:
            one["gate"] = {"phase": PRE_EVALUATION}
    return said | {"terms": _TERMS, "phases": phases, "baselines": []}


def _yaml(fields: dict[str, Any]) -> str:
    import yaml

    return yaml.safe_dump(fields, sort_keys=False, allow_unicode=True)


_MOST = 3  # problems of a kind that are named one by one


@dataclass(frozen=True)
class FolderCheck:
    """What was looked at, a line a phase, and all that is wrong."""

    facts: tuple[str, ...]
    problems: tuple[str, ...]

    def record(self) -> dict[str, JsonValue]:
        """As programs read it."""
        return {"facts": [*self.facts], "problems": [*self.problems]}


def check_challenge(folder: Path, phase: str = "") -> FolderCheck:
    """Checks all phases, or one. Raises `ProblemsError` where the settings do not fit; needs the sealed part."""
    settings = read_challenge(folder, sealed=True)
    sealed = SealedPart(folder, settings)
    facts, problems = [], [*_rights(sealed)]
    for one in settings.phases:
        if phase in {"", one.name}:
            try:
                facts.append(_described(sealed, one))
                problems += [f"{one.name}: {line}" for line in _phase_problems(sealed, one)]
            except ProctorError as error:
                problems.append(f"{one.name}: {error}")
    return FolderCheck(tuple(facts), tuple(problems))


def _rights(sealed: SealedPart) -> Iterator[str]:
    if sealed.place.exists() and stat.S_IMODE(sealed.place.stat().st_mode) & 0o077:
        mode = stat.S_IMODE(sealed.place.stat().st_mode)
        yield f"{SEALED}/: found mode {mode:04o}, expected 0700: the scorer's user alone may open it"
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
    marked = sealed.benchmark(phase.name)
    yield from _named([item.id for item in marked.items if item.reference is None], "no reference", "one to mark by")
    if CONDITIONS.get(phase.condition).sees:
        yield from _named(MediaLibrary(marked.media_root).missing(marked.items), "no file of this name", "its media")
    free = sum(item.answer.kind == "free_text" for item in marked.items)
    if free and sealed.settings.judge is None and reader_or_default(sealed.settings.benchmark).rubric_judge:
        yield f"found {count_of(free, 'question')} in free text and no judge, expected one with its models (judge: …)"
    if phase.hidden:
        given = sealed.handed_out(phase.name)
        yield from _not_exposed(sealed.folder, phase, marked) if given is None else handed_out_problems(marked, given)
    yield from _baselines(sealed, phase)


def handed_out_problems(marked: Benchmark, given: Benchmark) -> Iterator[str]:
    """Where participants have other questions than those that are marked, or more than questions."""
    there, here = {one.id: one for one in marked.items}, {one.id: one for one in given.items}
    yield from _named(sorted(there.keys() - here.keys()), "it not handed out", "each question that is marked")
    yield from _named(sorted(here.keys() - there.keys()), "it handed out alone", "each question that is marked")
    both = sorted(there.keys() & here.keys())
    yield from _named([name for name in both if here[name].reference is not None], "its reference handed out", "none")
    apart = [name for name in both if _as_seen(there[name]) != _as_seen(here[name])]
    yield from _named(apart, "other words, options, format or media handed out", "the same as are marked")


def _as_seen(item: Item) -> tuple[object, ...]:
    """What a participant sees of a question."""
    return item.question, item.options, item.answer.kind, item.media, item.group


def _not_exposed(folder: Path, phase: Phase, marked: Benchmark) -> Iterator[str]:
    """Media of a phase that hands out nothing, and files about its questions, which lie in the public part."""
    public: dict[int, list[Path]] = {}
    for file in (folder / "public").rglob("*"):
        if file.is_file() and file.stat().st_size:
            public.setdefault(file.stat().st_size, []).append(file)
    media, ids = folder / phase.media if phase.media else None, [item.id.encode() for item in marked.items]
    for hidden in sorted(one for one in (folder / phase.sealed).rglob("*") if one.is_file()):
        for file in public.get(hidden.stat().st_size, []):
            if file_hash(file) == file_hash(hidden) and _tells(hidden, media, ids):
                names = file.relative_to(folder), hidden.relative_to(folder)
                yield f"found {names[0]}, which is {names[1]}, expected nothing of this phase in public"


def _tells(file: Path, media: Path | None, ids: Sequence[bytes]) -> bool:
    """Whether a file is one of the media, or names a question; settings that all phases share do neither."""
    if media is not None and file.is_relative_to(media):
        return True
    content = file.read_bytes()
    return any(one in content for one in ids)


def _baselines(sealed: SealedPart, phase: Phase) -> Iterator[str]:
    settings: ChallengeSettings = sealed.settings
    for one in settings.baselines:
        file = sealed.answer_file(one.name, phase.name)
        if file is not None:
            data = sealed.folder / (phase.sealed or phase.questions)
            try:
                validate(settings.benchmark, file, data=data, track=settings.track)
            except ProctorError as error:
                yield f"baseline {one.name}: {error}"


def _named(ids: list[str], found: str, expected: str) -> Iterator[str]:
    for name in ids[:_MOST]:
        yield f"{name}: found {found}, expected {expected}"
    if len(ids) > _MOST:
        yield f"and {len(ids) - _MOST} more of the same"
