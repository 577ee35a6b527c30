"""The task's own records: instances, references and predictions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from proctor.benchmarks.clinicalskillqa.files import read_unique
from proctor.core import InputError
from proctor.core.files import read_bytes

__all__ = [
    "SCENARIOS",
    "About",
    "NativeInstance",
    "NativePrediction",
    "NativeReference",
    "Scenario",
    "labels_of",
    "read_about",
    "read_instances",
    "read_predictions",
    "read_references",
]

Scenario = Literal["CPR", "AED", "BMV"]

SCENARIOS: dict[Scenario, str] = {
    "CPR": "cardiopulmonary resuscitation",
    "AED": "the use of an automated external defibrillator",
    "BMV": "bag-mask ventilation",
}

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_JOINT = re.compile(r"\s*(?:>|→|->|,|;)\s*|\s+")


def labels_of(count: int) -> tuple[str, ...]:
    """The labels of so many frames: the first letters of the alphabet (2 to 26).

    >>> labels_of(4)
    ('A', 'B', 'C', 'D')
    """
    return tuple(_LETTERS[:count])


def _order(value: object) -> object:
    """`D > B > A > C` (also joined by commas, arrows or spaces) as a list; a list stays one."""
    if isinstance(value, str):
        return tuple(label for label in _JOINT.split(value.strip()) if label)
    if isinstance(value, list):
        return tuple(label.strip() if isinstance(label, str) else label for label in value)
    if value is None:
        return ()
    if not isinstance(value, tuple):
        raise ValueError("a list of labels, or a text such as D > B > A > C")
    return value


Order = Annotated[tuple[str, ...], BeforeValidator(_order)]


class _Native(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    id: str = Field(min_length=1)


class NativeInstance(_Native):
    """One entry of a manifest: `frames` names a picture below the media folder for each label."""

    frames: dict[str, str] = Field(min_length=2, max_length=26)
    scenario: Scenario | None = None
    video: str = ""


class NativeReference(_Native):
    """The right order with why; scenario and source video where the file tells them."""

    order: Order
    rationale: str = ""
    scenario: Scenario | None = None
    video: str = ""


class NativePrediction(_Native):
    """One answer. Its order may miss, repeat or invent labels; empty is no answer."""

    order: Order = ()
    rationale: str = ""


class About(BaseModel):
    """`about.json` of a folder that was built: from what seed, and whether its videos are simulated."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    simulated: bool = False
    seed: int | None = None


def read_about(data: Path) -> About:
    """What `about.json` says; a folder without it is the task's own. Raises `InputError` where it can't be read."""
    file = data / "about.json"
    if not file.is_file():
        return About()
    try:
        return About.model_validate_json(read_bytes(file))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        place = f"field {field!r}" if field else ""
        raise InputError(file, place, found=repr(first["input"])[:80], expected=first["msg"]) from error


def read_instances(file: Path) -> dict[str, NativeInstance]:
    """A manifest, by id. Raises `InputError` for labels that are not the first letters, a picture named twice
    in one instance, and what `read_unique` refuses."""
    found = read_unique(file, "instances", NativeInstance)
    for one in found.values():
        place = f"item {one.id!r}"
        expected = labels_of(len(one.frames))
        if set(one.frames) != set(expected):
            shown = ", ".join(sorted(one.frames))
            raise InputError(file, f"{place}, field 'frames'", found=shown, expected=", ".join(expected))
        twice = _twice(one.frames.values())
        if twice:
            raise InputError(file, place, found=f"the image {twice!r} twice", expected="an image per label")
    return found


def read_references(file: Path) -> dict[str, NativeReference]:
    """References by id. Raises `InputError` for an order that is no permutation of the first letters (A, B, C …),
    two references for one item, and what `read_unique` refuses."""
    found = read_unique(file, "references", NativeReference)
    for one in found.values():
        labels = labels_of(len(one.order))
        if len(one.order) < 2 or sorted(one.order) != list(labels):
            expected = f"a permutation of {', '.join(labels)}" if len(labels) > 1 else "two labels or more"
            shown = " > ".join(one.order) or "an empty order"
            raise InputError(file, f"item {one.id!r}, field 'order'", found=shown, expected=expected)
    return found


def read_predictions(file: Path) -> dict[str, NativePrediction]:
    """Predictions by id: JSON, JSON lines or CSV (columns id, order, rationale). Labels are not checked here: a
    wrong order is an answer. Raises `InputError` for two predictions for one item, and what `read_unique` refuses."""
    return read_unique(file, "predictions", NativePrediction)


def _twice(values: Iterable[str]) -> str:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return ""
