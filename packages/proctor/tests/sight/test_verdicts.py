"""Readings to findings, without a model: what each pattern is called, and what is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from proctor.core import Item, Reference
from proctor.core.formats import CountFormat, TimestampsFormat
from proctor.sight import verdicts
from proctor.sight.asking import Reading, State
from proctor.sight.evidence import RightOf
from proctor.sight.pictures import RUNGS
from proctor.sight.probes import Kind, SightProbe

SIZE = 64
CLIP = {100 + k: k for k in range(SIZE)}
ALL = RightOf(5, 5)


def item(truth: object, words: str = "Which number?") -> Item:
    form = TimestampsFormat() if isinstance(truth, list) else CountFormat()
    return Item(id="q", group="g", question=words, answer=form, reference=Reference(answer=truth))  # type: ignore[arg-type]


def reading(kind: Kind, at: int, shown: int | None, *, route: str = "frames", state: State | None = None) -> Reading:
    """A reply to a question for the frame `at` with the number of the frame `shown` (None: it sees nothing)."""
    probe = SightProbe(item(100 + at), kind, route, at=at, clip=CLIP)
    told: State = "nothing seen" if shown is None else "right" if shown == at else "wrong"
    return Reading(probe, state or told, None if shown is None else 100 + shown)


def clip(shown: Mapping[int, int | None], ends: tuple[int | None, int | None]) -> list[Reading]:
    """Two clips' ends, and frames by time."""
    both = [reading(Kind.END, 0, ends[0]), reading(Kind.END, SIZE - 1, ends[1])] * 2
    return [*both, *(reading(Kind.FRAME, at, one) for at, one in shown.items())]


def stills(values: Sequence[int | None], truths: Sequence[int]) -> list[Reading]:
    made = []
    for value, truth in zip(values, truths, strict=True):
        state: State = "nothing seen" if value is None else "right" if value == truth else "wrong"
        made.append(Reading(SightProbe(item(truth), Kind.NUMBER), state, value))
    return made


def suspect(readings: Sequence[Reading], size: int) -> verdicts.Suspicion | None:
    """The likeliest suspicion."""
    return next(iter(verdicts.suspected_parts(readings, size)), None)


ASKED = (4, 15, 22, 29, 39, 44, 53, 62)


def test_only_the_first_sixteen() -> None:
    first = clip({at: at if at < 16 else None for at in ASKED}, (0, 15))
    suspicion = suspect(first, SIZE)
    assert suspicion is not None
    assert suspicion[:3] == ("first", 16, 16)
    fresh = [reading(Kind.FRAME, at, None) for at in (22, 34, 46, 58) * 2] + [reading(Kind.FRAME, 5, 5)]
    found = verdicts.part(suspicion, fresh, [*first, *fresh], ALL, SIZE)
    assert found is not None
    assert (found.code, found.text) == ("first", "Only the first 16 of 64 frames arrive.")


def test_a_late_frame_that_is_read_clears_the_server() -> None:
    first = clip({at: at if at < 16 else None for at in ASKED}, (0, 15))
    suspicion = suspect(first, SIZE)
    assert suspicion is not None
    fresh = [reading(Kind.FRAME, at, at if at == 58 else None) for at in (22, 34, 46, 58)]
    assert verdicts.part(suspicion, fresh, [*first, *fresh], ALL, SIZE) is None


def test_the_last_eight_and_every_second() -> None:
    last = suspect(clip({at: at if at >= 56 else None for at in ASKED}, (56, 63)), SIZE)
    assert last is not None
    assert last[:3] == ("last", 8, 8)
    halves = clip({at: at if at % 2 == 0 else None for at in ASKED}, (0, 62))
    second = suspect(halves, SIZE)
    assert second is not None
    assert second[:2] == ("dropped", 2)


def test_where_it_ends_is_a_range_if_nobody_says_so() -> None:
    unsure = suspect(clip({at: at if at < 16 else None for at in ASKED}, (0, None)), SIZE)
    assert unsure is not None
    assert unsure[:3] == ("first", 16, 22)  # 15 is read (the sixteenth), 22 is not


def test_one_misread_number_hides_no_part() -> None:
    """A misread number may be that of another frame; two are no accident."""
    once = clip({at: at if at < 16 else 60 if at == 39 else None for at in ASKED}, (0, 15))
    assert verdicts.arrived(once) == [0, 4, 15]


def test_scattered_misses_are_no_part() -> None:
    assert suspect(clip({at: None if at in {15, 44} else at for at in ASKED}, (0, 63)), SIZE) is None


def test_backwards_and_shuffled_are_an_order() -> None:
    turned = clip({at: SIZE - 1 - at for at in ASKED}, (63, 0))
    found = verdicts.order(turned)
    assert found is not None
    assert found.code == "order"
    mixed = clip(dict(zip(ASKED, (61, 2, 40, 11, 50, 7, 20, 33), strict=True)), (17, 30))
    assert verdicts.order(mixed) is not None


def test_two_slips_of_eight_are_no_order() -> None:
    slips = {at: at + 1 if at in {15, 44} else at for at in ASKED}
    assert verdicts.order(clip(slips, (0, 63))) is None
    assert verdicts.order(clip({at: at + 1 for at in ASKED}, (0, 63))) is None  # the ends are right: it is the times


def test_frames_that_all_come_one_too_early_are_out_of_step() -> None:
    shifted = clip({at: at - 1 for at in ASKED}, (0, 63))
    assert verdicts.may_be_out_of_step(shifted)
    assert verdicts.out_of_step(shifted, ALL, "frames") is None  # eight are too few
    found = verdicts.out_of_step([*shifted, *clip({at: at - 1 for at in ASKED[:4]}, (0, 63))], ALL, "frames")
    assert found is not None
    assert found.evidence == (
        "asked for by time: 0 of 12 right, 12 times another frame, 12 times 1 earlier; first and last: 8 of 8"
    )
    one_right = clip({at: at - 1 if at != 4 else 4 for at in ASKED}, (0, 63))
    assert not verdicts.may_be_out_of_step(one_right)
    assert not verdicts.may_be_out_of_step(clip({at: at - 1 for at in ASKED}, (5, 30)))  # another order


def small_digits(told: Mapping[int, tuple[int, int]], *, large: bool) -> list[Reading]:
    """Of digits of each height so many are right, of so many."""
    made = []
    for height, (right, of) in told.items():
        probe = SightProbe(item(300), Kind.SMALL_DIGITS, height=height, large=large)
        made += [Reading(probe, "right", 300)] * right + [Reading(probe, "nothing seen")] * (of - right)
    return made


def test_what_is_legible_is_measured_in_small_pictures() -> None:
    assert verdicts.legible(small_digits({11: (5, 5)}, large=False)) == (7.0, 9.0)  # nothing else was asked
    assert verdicts.legible(small_digits({11: (5, 5), 8: (2, 2), 6: (1, 2), 4: (0, 2)}, large=False)) == (4, 6)
    assert verdicts.legible(small_digits({11: (5, 5), 8: (0, 2), 6: (0, 2), 4: (0, 2)}, large=False)) == (8, 11)
    low, high = verdicts.legible(small_digits({11: (5, 5), 8: (2, 2)}, large=False))
    assert low == pytest.approx(6.4)
    assert high == 8  # all were read: the next smaller one is not known


def test_the_size_follows_from_what_is_legible() -> None:
    """Digits of 15 pixels are read in 512 and those of 11 are not; in small ones 6 are and 4 are not: 512 × 4 / 15 to
    512 × 6 / 11."""
    readings = [
        *small_digits({11: (0, 5), 15: (2, 2)}, large=True),
        *small_digits({11: (5, 5), 6: (2, 2), 4: (0, 2)}, large=False),
    ]
    found = verdicts.shrunk(readings, ALL, 512, 11)
    assert found is not None
    assert found.text == "Pictures of 512 pixels are seen as if shrunk to about 195 (137 to 279)."


def timed(right: int, wrong: int) -> list[Reading]:
    probe = SightProbe(item([62.0]), Kind.TIME)
    return [Reading(probe, "right", [62.0])] * right + [Reading(probe, "wrong", [2.0])] * wrong


def test_times_that_are_invented() -> None:
    ends = clip({}, (0, 63))
    found = verdicts.times([*ends, *timed(1, 11)], ALL, "frames")
    assert found is not None
    assert found.evidence == "1 of 12 times right, first and last numbers 4 of 4; such as 2 s for 62 s"
    assert verdicts.times([*ends, *timed(3, 9)], ALL, "frames") is None
    assert verdicts.times(timed(0, 12), ALL, "frames") is None  # no frame is read at all: another fault


def test_blind_is_no_better_than_a_constant_answer() -> None:
    nothing = stills([None] * 6, range(200, 206))
    found = verdicts.blind(nothing)
    assert found is not None
    assert "6 replies say nothing can be seen" in found.evidence
    assert verdicts.blind(stills([200, *[None] * 5], range(200, 206))) is None  # one number of 900 is read
    assert verdicts.blind(nothing[:5]) is None  # too few replies to say so


@pytest.mark.parametrize("state", ["unreadable", "refused", "failed", "rejected", "pending", "not asked"])
def test_what_is_no_reply_is_no_blindness(state: State) -> None:
    assert verdicts.blind([reading(Kind.FRAME, at, None, state=state) for at in range(20)]) is None


def test_every_question_that_was_asked_is_counted_once() -> None:
    states: list[State] = ["right", "wrong", "nothing seen", "unreadable", "refused", "rejected", "failed", "pending"]
    (one,) = verdicts.kind_results([reading(Kind.FRAME, at, None, state=state) for at, state in enumerate(states * 2)])
    counts = one.model_dump(include={state.replace(" ", "_") for state in states})
    assert set(counts.values()) == {2}
    assert one.asked == sum(counts.values()) == 16


def test_a_number_of_another_request_twice_is_a_cache() -> None:
    assert verdicts.cached(stills([200, 200, 200], (200, 201, 202))) is not None
    assert verdicts.cached(stills([200, 200, 202], (200, 201, 202))) is None  # once may be a guess
    assert verdicts.cached(stills([200, 777, 778], (200, 201, 202))) is None  # wrong, and of no picture
    assert verdicts.cached(stills([300, 200, 201], (200, 201, 202))) is not None  # each is that of the one before


def test_a_constant_answer_that_is_right_once_is_blind_and_no_cache() -> None:
    """It always says 203, and the fourth picture shows 203."""
    constant = stills([203] * 8, range(200, 208))
    assert verdicts.cached(constant) is None
    found = verdicts.blind(constant)
    assert found is not None
    assert found.evidence.startswith("1 of 8 numbers right")
    assert "8 replies say 203" in found.evidence


def small(height: int, large: int, little: int) -> list[Reading]:
    made = []
    for right, is_large in ((large, True), (little, False)):
        probe = SightProbe(item(300), Kind.SMALL_DIGITS, height=height, large=is_large)
        made += [Reading(probe, "right", 300)] * right + [Reading(probe, "nothing seen")] * (5 - right)
    return made


def ladder(rung: int) -> Reading:
    rungs = tuple(range(300, 300 + len(RUNGS)))
    return Reading(SightProbe(item(rungs[-1]), Kind.SMALLEST, rungs=rungs), "right", rungs[rung])


def test_a_shrunk_picture_hides_digits_that_a_small_one_shows() -> None:
    ladders = [ladder(4), ladder(3)]  # 20 pixels are read
    assert verdicts.suspected_height(ladders) == 11
    found = verdicts.shrunk([*ladders, *small(11, 0, 5)], ALL, 512, 11)
    assert found is not None
    # 512 · 7 / 20 to 512 · 9 / 11: how small is legible was not asked, and neither were digits of 15 pixels
    assert found.text == "Pictures of 512 pixels are seen as if shrunk to about 274 (179 to 419)."
    assert verdicts.shrunk([*ladders, *small(11, 0, 1)], ALL, 512, 11) is None  # weak eyes: small pictures neither
    assert verdicts.suspected_height([ladder(6)]) == 8  # 11 pixels are read: no fault any more
    assert (verdicts.is_fault(11), verdicts.is_fault(8)) == (True, False)
    assert verdicts.suspected_height([ladder(7)]) is None
    assert verdicts.suspected_height([]) is None


def test_a_route_that_loses_pictures() -> None:
    found = verdicts.lost("tools", RightOf(0, 8), ALL)
    assert found is not None
    assert found.text == "Pictures are stripped when tools are given."
    assert verdicts.lost("tools", RightOf(1, 8), ALL) is None
    assert verdicts.lost("tools", RightOf(0, 4), ALL) is None  # too few


def test_single_pictures_arrive_and_many_do_not() -> None:
    alone = stills(range(200, 205), range(200, 205))
    many = clip(dict.fromkeys(ASKED), (None, None))
    found = verdicts.single(alone, many)
    assert found is not None
    assert found.code == "single"
    assert verdicts.single(alone, clip(dict.fromkeys(ASKED), (0, None))) is None  # one arrives
