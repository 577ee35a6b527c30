"""Refusing to train on what a system is examined on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from proctor.core import InputError, count_of, generator
from proctor.judges.dimensions import Case, RatedCase, encounter_marks

_NAMED = 3


def refuse_leaks(train: Iterable[Case], held: Iterable[Case], *, where: str = "the held-out part") -> None:
    """Raises `InputError` where an encounter stands on both sides: by its name, or by its content (see
    `encounter_marks`): the same question with the same references, or the same picture, under another name."""
    learned = _by_mark(train)
    shared: dict[str, str] = {}
    for mark, encounter in _by_mark(held).items():
        if mark in learned:
            told = mark.partition(":")[0]
            by = "its name" if told == "name" else f"the same {told} as {learned[mark]}"
            shared.setdefault(encounter, by)
    if shared:
        first = ", ".join(f"{name} ({by})" for name, by in list(shared.items())[:_NAMED])
        more = f" and {len(shared) - _NAMED} more" if len(shared) > _NAMED else ""
        raise InputError(
            f"training and {where}", found=f"encounters in both: {first}{more}", expected="each in one of them"
        )


def _by_mark(cases: Iterable[Case]) -> dict[str, str]:
    """An encounter by each of its marks; the same in two languages is read twice, since its texts differ."""
    found: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    for case in cases:
        if (case.id, case.query) in seen:
            continue
        seen.add((case.id, case.query))
        for mark in sorted({f"name:{case.encounter}", *encounter_marks(case)}):
            found.setdefault(mark, case.encounter)
    return found


def encounter_folds(rated: Sequence[RatedCase], folds: int, seed: int) -> list[tuple[list[int], list[int]]]:
    """Places (training, held out) of each of `folds` parts: every encounter is held out once, in all its languages and
    with all its answers, and so is what shares a mark with it (a copy under another name).

    Raises `InputError` for fewer groups of encounters than folds.
    """
    group = _joined(rated)
    names = sorted(set(group))
    if not 2 <= folds <= len(names):
        found = f"{count_of(len(names), 'encounter')} with nothing shared"
        raise InputError(f"{folds} folds", found=found, expected=f"2 folds or more, and {folds} encounters")
    order = generator(seed, "training folds").permutation(len(names))
    fold = {names[int(at)]: number % folds for number, at in enumerate(order)}
    return [
        (
            [k for k, name in enumerate(group) if fold[name] != number],
            [k for k, name in enumerate(group) if fold[name] == number],
        )
        for number in range(folds)
    ]


def _joined(rated: Sequence[RatedCase]) -> list[str]:
    """One name for encounters that share a mark, directly or through others."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            name = parent[name]
        return name

    owner: dict[str, str] = {}
    for case in {(one.case.id, one.case.query): one.case for one in rated}.values():
        for mark in encounter_marks(case):
            first, second = root(owner.setdefault(mark, case.encounter)), root(case.encounter)
            parent[max(first, second)] = min(first, second)
    return [root(one.case.encounter) for one in rated]
