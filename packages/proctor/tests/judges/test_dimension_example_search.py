"""The search for good examples: what it tries, what it keeps, and that no rating helps to judge its own encounter."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from proctor.core import InfrastructureError, InputError
from proctor.judges.dimensions.calibration import agreement
from proctor.judges.dimensions.few_shot import (
    ExampleSearch,
    FixedExamples,
    HeldOutAnswer,
    LanguageSearch,
    RatedPool,
    SearchedExamples,
    SearchPlan,
    case_score,
    draw_examples,
    few_shot_judge,
    read_search,
    search_examples,
)
from tests.support.dimension_cases import case
from tests.support.judgements import Judgements
from tests.support.rated_pool import CHINESE, RATED, Model, encounters_of, few, searched


def test_what_is_drawn_parts_held_out_encounters_from_those_shown() -> None:
    plan = SearchPlan(sets=6, shots=3, held_out=4, seed=3)
    pool = RatedPool(RATED)
    drawn = draw_examples(pool, plan)
    assert draw_examples(RatedPool(RATED[::-1]), plan) == drawn
    assert draw_examples(pool, plan.model_copy(update={"seed": 4})) != drawn
    held = {one.case.encounter for tried in drawn.values() for one in tried.held_out}
    assert len(held) == 4  # the same in both languages
    for tried in drawn.values():
        assert tried.calls == 24
        everywhere = set(encounters_of(tried.sets[0]))
        for chosen in tried.sets:
            assert len(set(encounters_of(chosen))) == 3
            assert not held & set(encounters_of(chosen))
            everywhere &= set(encounters_of(chosen))
        assert not everywhere  # so that each encounter has a set without it


def test_the_number_of_calls_is_what_was_said() -> None:
    model, judgements, pool = Model(), Judgements(), RatedPool(RATED)
    plan = SearchPlan(sets=3, shots=2, held_out=4)
    from proctor.judges.dimensions import ClientPool
    from proctor.models import ModelSpec
    from tests.support.faulty_server import FaultyServer

    with FaultyServer(model) as server:
        spec = ModelSpec(name="openai:judge", base_url=server.url, retries=0)

        async def run() -> ExampleSearch:
            clients = ClientPool([spec])
            try:
                client = clients.client(spec)
                return await search_examples(pool, plan, lambda chosen: few_shot_judge(client, judgements, chosen))
            finally:
                await clients.aclose()

        first = asyncio.run(run())
        assert len(model.asked) == sum(one.calls for one in draw_examples(pool, plan).values()) == 24
        assert asyncio.run(run()) == first
        assert len(model.asked) == 24
    assert first.judge == "few-shot-judge[openai:judge]"
    row = first.languages["zh"].held_out[0]
    assert row.scores[0] == CHINESE


def language_search(scores: list[list[float]], ratings: list[float]) -> LanguageSearch:
    return LanguageSearch(
        sets=[["a"], ["b"]],
        held_out=[
            HeldOutAnswer(
                score=f"m{k}",
                encounter=f"e{k}",
                ratings={"overall": one, "writing-style": 1.0},
                scores=[{"overall": row[k], "writing-style": 0.5} for row in scores],
            )
            for k, one in enumerate(ratings)
        ],
    )


def test_the_merit_of_a_set_by_hand() -> None:
    tried = language_search([[0.1, 0.5, 0.9, 0.2], [0.5, 0.5, 0.5, 0.5]], [0.0, 0.5, 1.0, 1.0])
    # Writing style is rated the same everywhere and tells nothing; overall alone counts.
    assert tried.merit(0) == agreement([0.1, 0.5, 0.9, 0.2], [0.0, 0.5, 1.0, 1.0])
    assert tried.merit(0, leaving="e3") == pytest.approx(0.9972, abs=0.01)
    assert tried.merit(1) == 0.0  # scores that are all the same agree with nothing
    # By hand: Pearson 0.2875 / √(0.3875 · 0.6875), Spearman 3 / √(5 · 4.5), Kendall's τ-b 3 / √(6 · 5).
    assert tried.merit(0) == pytest.approx((0.55701 + 0.63246 + 0.54772) / 3, abs=1e-4)


def test_an_encounters_own_ratings_do_not_choose_its_examples() -> None:
    """Whatever the held-out encounter's own ratings are, it is judged with the same examples."""
    pool = RatedPool(RATED)
    found = searched(pool, SearchPlan(sets=4, shots=3, held_out=4, seed=1))
    tried = found.languages["en"]
    for row in tried.held_out:
        other = row.model_copy(update={"ratings": {name: 1 - value for name, value in row.ratings.items()}})
        rows = [other if one is row else one for one in tried.held_out]
        changed = found.model_copy(
            update={"languages": {**found.languages, "en": tried.model_copy(update={"held_out": rows})}}
        )
        judged = next(one.case for one in RATED if case_score(one.case) == row.score)
        assert SearchedExamples(pool, changed).of(judged) == SearchedExamples(pool, found).of(judged)


def test_the_best_set_serves_new_encounters_and_the_file_says_it_again(tmp_path: Path) -> None:
    pool = RatedPool(RATED)
    found = searched(pool, SearchPlan(sets=5, shots=2, held_out=4))
    file = tmp_path / "exemplars.json"
    file.write_text(found.model_dump_json())
    assert read_search(file) == found
    tried = found.languages["en"]
    best = max(range(5), key=tried.merit)
    chosen = SearchedExamples(pool, read_search(file)).of(case(encounter="new"))
    assert [case_score(one.case) for one in chosen] == tried.sets[best]
    said = few(case(encounter="new"), options={"examples": str(file)})
    assert said.evidence[0]["exemplars"] == [{"item": one.case.id, "score": case_score(one.case)} for one in chosen]
    fewer = [one for one in RATED if one.case.encounter != "iiyi/E1"]
    with pytest.raises(InputError, match="found a search on other rated answers, expected one on those of --rated"):
        few(rated=fewer, options={"examples": str(file)})
    file.write_text('{"kind": "x"}')
    with pytest.raises(InputError, match=r"exemplars\.json: field 'kind': found 'x', expected 'proctor exemplars 1'"):
        read_search(file)


def test_a_missing_score_prefers_no_set() -> None:
    pool, plan = RatedPool(RATED), SearchPlan(sets=3, shots=2, held_out=4)
    missing = frozenset({draw_examples(pool, plan)["en"].held_out[0].case.id})
    with pytest.raises(
        InfrastructureError, match=r"^by-length: no score for 1 of 4 held-out answers in 'en': no reply$"
    ):
        searched(pool, plan, missing=missing)
    found = searched(pool, plan, missing=missing, allow_missing=True)
    assert (len(found.languages["en"].held_out), len(found.languages["zh"].held_out)) == (3, 4)
    many = frozenset(one.case.id for one in draw_examples(pool, plan)["en"].held_out[:3])
    with pytest.raises(InfrastructureError, match="3 of 4"):
        searched(pool, plan, missing=many, allow_missing=True)


def test_too_small_a_rated_set_is_told_before_anything_is_asked() -> None:
    with pytest.raises(InputError, match="found 12 encounters in 'en', expected 30 or more"):
        draw_examples(RatedPool(RATED), SearchPlan(shots=5, held_out=20))


def test_fixed_ones_are_the_same_for_all() -> None:
    assert FixedExamples(RATED[:1]).of(case(encounter="new")) == tuple(RATED[:1])
