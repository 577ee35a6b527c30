"""The states of a submission: what follows what, and what it costs."""

from __future__ import annotations

from proctor_challenge.states import HOLDING, RULES, Blame, SubmissionState


def reachable(start: SubmissionState) -> set[SubmissionState]:
    seen, waiting = {start}, [start]
    while waiting:
        for one in RULES[waiting.pop()].next - seen:
            seen.add(one)
            waiting.append(one)
    return seen


def test_every_state_has_a_rule_and_is_reached() -> None:
    assert set(RULES) == set(SubmissionState) == reachable(SubmissionState.RECEIVED)


def test_from_every_state_an_end_is_reached() -> None:
    ends = {one for one, rule in RULES.items() if rule.final} | {SubmissionState.SCORED}
    assert all(reachable(one) & ends for one in SubmissionState)
    assert {one for one, rule in RULES.items() if rule.final} == {
        *(
            SubmissionState.REFUSED,
            SubmissionState.TIMED_OUT,
            SubmissionState.CRASHED,
            SubmissionState.LOST,
            SubmissionState.CANCELLED,
        )
    }


def test_what_the_platform_or_the_organiser_does_wrong_costs_nothing() -> None:
    free = (Blame.PLATFORM, Blame.ORGANISER)
    assert {one for one, rule in RULES.items() if rule.fault in free} == {
        SubmissionState.LOST,
        SubmissionState.SCORER_FAULT,
    }
    assert all((rule.attempted, rule.scored) == (0, 0) for rule in RULES.values() if rule.fault in free)


def test_only_a_result_counts_as_scored() -> None:
    assert [one for one, rule in RULES.items() if rule.scored] == [SubmissionState.SCORED]
    assert set(HOLDING) == {one for one in SubmissionState if SubmissionState.SCORED in reachable(one)} - {
        SubmissionState.RECEIVED,
        SubmissionState.SCORED,
        SubmissionState.SCORER_FAULT,
    }
