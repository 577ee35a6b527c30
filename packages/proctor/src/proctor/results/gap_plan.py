"""What further runs would tell apart of what was asked: the first side's model, with some settings of the second side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

from proctor.core import clean
from proctor.results.explained_run import ExplainedRun
from proctor.results.run_differences import (
    CONDITION,
    FRAMES,
    MEDIA_FILES,
    MODEL,
    OPTIONS,
    OTHER,
    PROMPT,
    SAMPLING,
    UNRECORDED,
    RunDifference,
    StatedSettings,
)

STEPS = (CONDITION, FRAMES, PROMPT, SAMPLING)
"""The settings that a run can take from the other side, in the order of its name."""

_FRAME_OPTIONS = ("fps", "max_frames", "max_side", "overlay", "video_as")
_PORTABLE = ("temperature", "top_p", "max_tokens", "seed", "frequency_penalty", "presence_penalty")
"""Settings of a model that mean the same in other programs."""

_NOT_ASKED_HERE = "the first side is no plain run of a model by Proctor: give such a run first"
_OF_ANOTHER = {
    MODEL: "another model is another system",
    OPTIONS: "the order of a benchmark's options is part of its questions",
    OTHER: "no option of a run",
}
_NOT_HERE = "the template with this hash is not here (--prompt FILE)"
_LONGEST = 60


@dataclass(frozen=True)
class RunBetween:
    """A run of the first side's model that takes `steps` from the second side. `there` answers are in the store, `left` are
    to be asked. `pictures` and `tokens` are estimates (None: unknown, and `why` says why), `input_usd` is the cost of the
    tokens (None: no price is known)."""

    steps: tuple[str, ...]
    name: str
    condition: str
    there: int
    left: int
    pictures: int | None = None
    tokens: int | None = None
    input_usd: float | None = None
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        """The fields as plain data."""
        return asdict(self) | {"steps": list(self.steps)}


@dataclass(frozen=True)
class SwapPlan:
    """The `steps` between two sides, each with the options of a run that it changes; `base` are the options of the first side's
    own run. `fixed` are differences of what was asked that no run can swap, each with the reason. `ends_at_second`: all
    steps together are the second side, which is there."""

    base: Mapping[str, Any]
    steps: Mapping[str, Mapping[str, Any]]
    fixed: tuple[tuple[str, str], ...]
    ends_at_second: bool

    @property
    def subsets(self) -> list[tuple[str, ...]]:
        """The sets of steps that need a run: all but none, and all where that is the second side."""
        names = [name for name in STEPS if name in self.steps]
        every = [some for size in range(1, len(names) + 1) for some in combinations(names, size)]
        return every[:-1] if self.ends_at_second else every

    def options(self, steps: tuple[str, ...]) -> dict[str, Any]:
        """The options of the run with these steps."""
        found = dict(self.base)
        for name in steps:
            found |= self.steps[name]
        return found


def swap_plan(
    first: ExplainedRun, second: ExplainedRun, differences: tuple[RunDifference, ...], prompts: Mapping[str, str]
) -> SwapPlan:
    """Which of the differences of what was asked further runs can tell apart. `prompts` are the templates that are here: the
    choice (see `--prompt`) by hash."""
    asked = [one for one in differences if one.kind in (*STEPS, MODEL, OPTIONS, OTHER)]
    fixed = {one.kind: _OF_ANOTHER[one.kind] for one in asked if one.kind in _OF_ANOTHER}
    nothing = SwapPlan({}, {}, tuple(fixed.items()), ends_at_second=False)
    if not asked:
        return nothing
    own, other = StatedSettings.of(first.settings), StatedSettings.of(second.settings)
    here = _is_plain(first)
    if not here or (mine := _prompt(own, prompts)) is None:
        why = _NOT_HERE if here else _NOT_ASKED_HERE
        every = {one.kind: _why_not(one.kind, asked, why) for one in asked if one.kind in STEPS}
        return replace(nothing, fixed=tuple((fixed | every).items()))
    steps: dict[str, Mapping[str, Any]] = {}
    for kind, found in (
        (CONDITION, _condition(first, second, own, other)),
        (FRAMES, _frames(own, other)),
        (PROMPT, _prompt_step(own, other, prompts)),
        (SAMPLING, _sampling(own, other, here=second.asked_here)),
    ):
        if any(one.kind == kind for one in asked):
            if found:
                steps[kind] = found
            elif not _follows(kind, own, other, steps):
                fixed[kind] = _why_not(kind, asked, _NOT_HERE if kind == PROMPT else "no option of a run")
    fixed |= _left_over(own, other, steps) | _other_files(asked)
    ends = second.asked_here and bool(steps) and not fixed
    return SwapPlan(_base(first, own, mine), steps, tuple(fixed.items()), ends)


def _is_plain(side: ExplainedRun) -> bool:
    """Whether `proctor run --model` would ask a side's run again: no method, no code of another package, no own sampling."""
    system, code = side.settings.get("system"), side.settings.get("code")
    if not side.asked_here or not isinstance(system, dict) or (isinstance(code, dict) and "system" in code):
        return False
    sampling = system.get("sampling")
    drawn = isinstance(sampling, dict) and sampling.get("count") is None and sampling.get("fps") is None
    return drawn and {"model_settings", "prompt_sha256"} <= system.keys()


def _base(first: ExplainedRun, own: StatedSettings, prompt: str) -> dict[str, Any]:
    """The options of the first side's own run."""
    system = first.settings["system"]
    media = own.media or {}
    found: dict[str, Any] = {name: media[name] for name in _FRAME_OPTIONS if media.get(name) is not None}
    found |= {"model": system["model"], "settings": dict(own.sampling or {}), "prompt": prompt}
    found |= {"conditions": first.condition, "seed": first.settings.get("seed", 0)}
    more = {name: system[name] for name in ("base_url", "structured", "orders") if system.get(name)}
    budget = first.settings.get("budget_s")
    return found | more | ({} if budget is None else {"budget_s": budget})


def _prompt(stated: StatedSettings, prompts: Mapping[str, str]) -> str | None:
    """The choice of the template of a side, if it is here."""
    return prompts.get(str((stated.prompt or {}).get("prompt_sha256", "")))


def _condition(first: ExplainedRun, second: ExplainedRun, own: StatedSettings, other: StatedSettings) -> dict[str, Any]:
    """The second side's condition; with its frames, where the first side was shown none."""
    from proctor.media import CONDITIONS

    if second.condition not in CONDITIONS.names() or first.condition == second.condition:
        return {}
    media = {} if own.media else other.media or {}
    return {"conditions": second.condition} | {name: media[name] for name in _FRAME_OPTIONS if name in media}


def _frames(own: StatedSettings, other: StatedSettings) -> dict[str, Any]:
    mine, theirs = own.media or {}, other.media or {}
    return {
        name: theirs[name]
        for name in _FRAME_OPTIONS
        if theirs.get(name) is not None and mine.get(name) is not None and mine[name] != theirs[name]
    }


def _prompt_step(own: StatedSettings, other: StatedSettings, prompts: Mapping[str, str]) -> dict[str, Any]:
    choice = _prompt(other, prompts)
    return {} if choice is None or _prompt(own, prompts) == choice else {"prompt": choice}


def _sampling(own: StatedSettings, other: StatedSettings, *, here: bool) -> dict[str, Any]:
    """The settings of the model with those of the second side: all of a run of Proctor, of a log what means the same."""
    mine, theirs = dict(own.sampling or {}), dict(other.sampling or {})
    if here:
        return {"settings": theirs} if mine != theirs else {}
    taken = {name: theirs[name] for name in _PORTABLE if name in theirs and theirs[name] != mine.get(name)}
    return {"settings": mine | taken} if taken else {}


def _other_files(asked: list[RunDifference]) -> dict[str, str]:
    known = [one for one in asked if one.what == MEDIA_FILES and UNRECORDED not in (one.first, one.second)]
    return {MEDIA_FILES: "the files of a benchmark are no setting of a run"} if known else {}


def _left_over(own: StatedSettings, other: StatedSettings, steps: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Settings that a step should take and no option of a run has."""
    found = {}
    mine, theirs = own.media or {}, other.media or {}
    no_option = [name for name in theirs if theirs[name] != mine.get(name) and name not in steps.get(FRAMES, {})]
    if no_option and FRAMES in steps:
        found["frames: " + ", ".join(no_option)] = "no option of a run"
    given = steps.get(SAMPLING, {}).get("settings", {})
    not_taken = [
        name for name, one in (other.sampling or {}).items() if given.get(name, one) != one or name not in given
    ]
    if not_taken and SAMPLING in steps:
        found["sampling: " + ", ".join(not_taken)] = "another program's setting"
    return found


def _follows(kind: str, own: StatedSettings, other: StatedSettings, steps: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a difference of what was sent follows from a step: other frames under another condition, and the number of
    frames in the words of one and the same template."""
    same_template = kind == PROMPT and own.prompt == other.prompt
    return (kind == FRAMES and CONDITION in steps) or (same_template and bool(steps))


def _why_not(kind: str, asked: list[RunDifference], other: str) -> str:
    """Why a difference is no step: it is not known on a side, else another reason."""
    mine = [one for one in asked if one.kind == kind]
    return "one side has not recorded it" if all(UNRECORDED in (one.first, one.second) for one in mine) else other


def name_between(first: ExplainedRun, second: ExplainedRun, steps: tuple[str, ...]) -> str:
    """The name under which a run between two sides is stored."""
    own = first.run.system if first.run is not None else first.name
    other = second.name.replace(" / ", "/") if second.run is not None else second.name
    return " ".join(clean(f"{own} ({'+'.join(steps)} of {other[-_LONGEST:]})").split())
