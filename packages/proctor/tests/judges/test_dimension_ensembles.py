"""Ensembles: the median of scores, the majority of flags, members without a judgement, and how far they are apart."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from proctor.core import ConfigurationError, InputError
from proctor.judges.dimensions import Case, ClientPool, DimensionScores
from proctor.judges.dimensions.ensemble import median_ensemble, pooled
from proctor.models import ModelSpec
from proctor.runs import Store
from tests.support.dimension_cases import built_from, case, judged, rating, setup
from tests.support.faulty_server import Fault, FaultyServer, Request
from tests.support.judgements import Judgements
from tests.support.rated_task import CHINESE, score, stored


class Says:
    """A member that says the same of every case; an error is raised instead."""

    def __init__(self, name: str, values: Mapping[str, float], error: Exception | None = None) -> None:
        self.name = name
        self.settings: dict[str, JsonValue] = {}
        self._values = values
        self._error = error

    async def judge(self, what: Case) -> DimensionScores:
        if self._error is not None:
            raise self._error
        names = [one.name for one in what.dimensions]
        missing = {name: f"{self.name} was away" for name in names if name not in self._values}
        return DimensionScores(self._values, missing)


def pool(*members: Mapping[str, float], quorum: int | None = None, language: str = "en") -> DimensionScores:
    ensemble = median_ensemble("e", [Says(f"m{n}", one) for n, one in enumerate(members)], quorum=quorum)
    return asyncio.run(ensemble.judge(case(language=language)))


def full(flag: float, score: float) -> dict[str, float]:
    names = ("completeness", "factual-accuracy", "relevance", "writing-style", "overall")
    return {"disagree_flag": flag, **dict.fromkeys(names, score)}


def by_temperature(request: Request) -> str:
    temperature = request.body["temperature"]
    flag = int(temperature > 0)
    return rating(disagree_flag=flag, completeness=0.2 + temperature, overall=0.5, reason=f"at {temperature}")


def test_three_temperatures_median_and_majority() -> None:
    judgements = Judgements()
    with FaultyServer(by_temperature) as server:
        (said,) = judged("temperature-ensemble", server, [case()], judgements)
    assert sorted(request.body["temperature"] for request in server.requests) == [0.0, 0.3, 0.7]
    # completeness 0.2, 0.5, 0.9: the median is 0.5, the distance 0.7; flags 0, 1, 1
    assert said.values["completeness"] == 0.5
    assert said.disagreement["completeness"] == pytest.approx(0.7)
    assert said.values["disagree_flag"] == 1.0
    assert said.disagreement["disagree_flag"] == pytest.approx(1 / 3)
    assert said.disagreement["relevance"] == 0.0
    assert [one["member"] for one in said.evidence] == [
        "mediqa-judge/temperature-0[openai:judge]",
        "mediqa-judge/temperature-0.3[openai:judge]",
        "mediqa-judge/temperature-0.7[openai:judge]",
    ]
    assert {judgement.judge for judgement in judgements.kept.values()} == {one["member"] for one in said.evidence}
    assert set(said.judgements) == set(judgements.kept)


def test_the_judgement_at_temperature_0_is_the_single_judges_too() -> None:
    judgements = Judgements()
    with FaultyServer(by_temperature) as server:
        judged("mediqa-judge", server, [case()], judgements)
        judged("temperature-ensemble", server, [case()], judgements)
    assert server.count == 3


def test_three_personas_read_with_their_own_eye() -> None:
    with FaultyServer(rating()) as server:
        (said,) = judged("persona-ensemble", server, [case()])
    texts = [request.text for request in server.requests]
    for eye in ("diagnostic consistency", "clinical safety", "professional communication"):
        assert sum(f"Your part on the panel is {eye}." in text for text in texts) == 1
    assert {request.body["temperature"] for request in server.requests} == {0.0}
    assert len(said.values) == 6


def test_any_odd_list_of_models_is_an_ensemble() -> None:
    scores = {"a": 0.1, "b": 0.6, "c": 0.8}

    def reply(request: Request) -> str:
        return rating(relevance=scores[request.model])

    with FaultyServer(reply) as server:
        (said,) = judged("model-ensemble", server, [case()], models=["openai:a", "openai:b", "openai:c"])
        assert said.values["relevance"] == 0.6
        (six,) = judged("temperature-ensemble", server, [case()], models=["openai:a", "openai:b", "openai:c"])
        assert len(six.evidence) == 9
        with pytest.raises(ConfigurationError, match="odd number of members, found 2"):
            judged("model-ensemble", server, [case()], models=["openai:a", "openai:b"])
        with pytest.raises(ConfigurationError, match="the model openai:a is named twice"):
            judged("model-ensemble", server, [case()], models=["openai:a", "openai:b", "openai:a"])
        with pytest.raises(ConfigurationError, match="model-ensemble: expected a model, found none"):
            judged("model-ensemble", server, [case()], models=[])


def test_a_missing_member_is_a_missing_judgement_and_no_number() -> None:
    judgements = Judgements()

    def reply(request: Request) -> str:
        return "no" if request.body["temperature"] == 0.7 else by_temperature(request)

    with FaultyServer(reply) as server:
        (said,) = judged("temperature-ensemble", server, [case()], judgements)
    # completeness 0.2 and 0.5: halfway; flags 0 and 1: nobody knows
    assert said.values["completeness"] == pytest.approx(0.35)
    assert said.missing == {"disagree_flag": "the 2 members that gave a score are split evenly"}
    assert len(judgements.kept) == 2
    assert "no readable reply" in str(said.evidence[2]["missing"])
    with FaultyServer(by_temperature, port=server.port) as server:
        (said,) = judged("temperature-ensemble", server, [case()], judgements)
    assert (server.count, said.missing) == (1, {})


def test_below_the_quorum_there_is_no_score() -> None:
    with FaultyServer(rating(), script=[Fault.BAD_REQUEST, Fault.BAD_REQUEST]) as server:
        (said,) = judged("persona-ensemble", server, [case()])
    assert said.values == {}
    assert said.missing["overall"].startswith("1 of 3 members gave a score, 2 are needed: ")
    with FaultyServer(rating(), script=[Fault.BAD_REQUEST]) as server:
        (said,) = judged("persona-ensemble", server, [case()], options={"quorum": "3"})
    assert said.missing["overall"].startswith("2 of 3 members gave a score, 3 are needed: ")


@pytest.mark.parametrize(
    ("quorum", "error", "text"),
    [
        ("1", ConfigurationError, "expected a quorum of 2 to 3, found 1"),
        ("4", ConfigurationError, "expected a quorum of 2 to 3, found 4"),
        ("some", InputError, "option 'quorum': found 'some', expected a whole number"),
    ],
)
def test_a_quorum_that_can_not_be(quorum: str, error: type[Exception], text: str) -> None:
    with FaultyServer(rating()) as server, pytest.raises(error, match=text):
        judged("persona-ensemble", server, [case()], options={"quorum": quorum})


def test_an_unknown_option_is_refused_with_those_that_there_are() -> None:
    text = "persona-ensemble: option 'quorm': expected one of references, images, reason, prompt, quorum"
    with FaultyServer(rating()) as server, pytest.raises(InputError, match=text):
        judged("persona-ensemble", server, [case()], options={"quorm": "2"})


def test_the_temperatures_are_the_ensembles_own() -> None:
    with FaultyServer(rating()) as server, pytest.raises(ConfigurationError, match="leave temperature out"):
        judged("temperature-ensemble", server, [case()], settings={"temperature": 0.5})


def test_a_model_without_a_temperature_is_no_ensemble_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another judge would like a temperature of 0, and does without it."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "no-key-at-all")
    pool = ClientPool([ModelSpec(name="anthropic:claude-opus-4-7", base_url="http://127.0.0.1:9")])
    text = r"claude-opus-4-7: Sampling parameters \['temperature'\] are not supported"
    with pytest.raises(ConfigurationError, match=text):
        built_from("temperature-ensemble", setup(pool, Judgements()))
    assert (
        built_from("persona-ensemble", setup(pool, Judgements())).name == "persona-ensemble[anthropic:claude-opus-4-7]"
    )
    asyncio.run(pool.aclose())


def test_the_result_is_held_to_the_rules_again() -> None:
    # overall 0.6 is the median while completeness comes to 0.5
    members = [full(0, 0.6) | {"completeness": low} for low in (0.4, 0.5, 0.9)]
    assert pool(*members).breaks == ("overall-above-half",)


def test_what_can_not_get_better_ends_it_and_no_group_of_errors_is_seen() -> None:
    members = [Says("a", full(0, 1)), Says("b", {}, ConfigurationError("no access")), Says("c", full(0, 1))]
    with pytest.raises(ConfigurationError, match="no access"):
        asyncio.run(median_ensemble("e", members).judge(case()))


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.floats(0, 1)), min_size=3, max_size=7).filter(
        lambda x: len(x) % 2
    )
)
def test_the_order_of_members_changes_no_score(judgements: list[tuple[float, float]]) -> None:
    members = [full(flag, score) for flag, score in judgements]
    said, turned = pool(*members), pool(*reversed(members))
    assert (said.values, said.disagreement) == (turned.values, turned.disagreement)
    scores = sorted(score for _, score in judgements)
    assert said.values["relevance"] == scores[len(scores) // 2]
    assert said.values["disagree_flag"] == float(sum(flag for flag, _ in judgements) > len(judgements) / 2)


def test_scores_that_are_missing_and_given_are_a_bug() -> None:
    with pytest.raises(ValueError, match="overall has a value and is missing"):
        DimensionScores({"overall": 0.5}, {"overall": "no"})
    with pytest.raises(ValueError, match="overall is nan"):
        DimensionScores({"overall": float("nan")})


def test_pooled_flags_name_each_once() -> None:
    said: dict[str, Any] = {
        name: DimensionScores(full(0, 0.5), flags=("prompt-injection",)) for name in ("a", "b", "c")
    }
    assert pooled(case(), said, 2).flags == ("prompt-injection",)


NAME = "temperature-ensemble[openai:judge]"


def both(request: Request) -> str:
    if "患者的问题" in request.text:
        return rating(dict.fromkeys(CHINESE, 0.5))
    return rating(disagree_flag=0, completeness=0.2 + request.body["temperature"])


def test_a_member_whose_call_failed_is_asked_again_alone(tmp_path: Path) -> None:
    """The others' median stands meanwhile, the exit code says that something lacks, and nothing else is paid again."""

    def away(request: Request) -> str:
        return "I would rather not." if request.body["temperature"] == 0.7 else both(request)

    def completeness() -> list[float]:
        opened = Store(store, create=False)
        return [
            row.value for row in opened.score_rows(opened.runs("mediqa-eval")[0], metric="completeness", scorer=NAME)
        ]

    store = stored(tmp_path, {"S1": "Eczema."})
    more = ("--judge", "temperature-ensemble", "--model", "openai:judge", "--timeout", "60", "--retries", "0")
    with FaultyServer(away, port=0) as server:
        for _ in range(2):
            code, said = score(store, *more, "--base-url", server.url)
            assert code == 3
            assert "2 answers without a member's score (no reply came): run the same command again." in said
        assert "2 answers scored by" in said
        asked = Counter((request.body["temperature"], "患者的问题" in request.text) for request in server.requests)
        assert {key: count for key, count in asked.items() if key[0] != 0.7} == {
            (temperature, chinese): 1 for temperature in (0.0, 0.3) for chinese in (False, True)
        }
        assert asked[0.7, True] == asked[0.7, False] > 1
        assert completeness() == pytest.approx([0.35])  # of 0.2 and 0.5
        server._reply = both
        before = len(server.requests)
        code, said = score(store, *more, "--base-url", server.url)
        assert (code, len(server.requests) - before) == (0, 2), said
        assert completeness() == pytest.approx([0.5])  # of 0.2, 0.5 and 0.9
        code, said = score(store, *more, "--base-url", server.url)
        assert (code, len(server.requests) - before) == (0, 2), said
