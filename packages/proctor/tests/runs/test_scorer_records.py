"""One name is one scorer: changed dimensions, prompts and models' settings are refused before anything is paid, until the
scores are deleted."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from pydantic import JsonValue

from proctor.core import ACCURACY, Answer, Benchmark, InputError, Item, Metric, RecordedAnswers, Score
from proctor.core.formats import FreeTextFormat
from proctor.runs import Store, count_scores, declare_scorer, delete_scores, import_systems, merge_stores
from tests.support.dimension_cases import ENGLISH, rating
from tests.support.faulty_server import FaultyServer
from tests.support.program import within
from tests.support.rated_task import CHINESE, score, stored

NAME = "rating-judge[openai:judge]"
LOW, HIGH = "[0, 0.5, 1]", "[1, 2, 3, 4, 5]"


def dimensions(folder: Path, levels: str = LOW, about: str = "One thing.", name: str = "clarity") -> Path:
    file = folder / "dimensions.yaml"
    file.write_text(f"dimensions:\n- {{name: {name}, levels: {levels}, description: {about}}}\n", encoding="utf-8")
    return file


def judged(store: Path, file: Path, server: FaultyServer, *more: str | Path) -> tuple[int, str]:
    return score(store, "--judge", "rating-judge", "--dimensions", file, *more, server=server)


def values(store: Path, scorer: str = NAME) -> list[float]:
    opened = Store(store, create=False)
    return [row.value for run in opened.runs("mediqa-eval") for row in opened.score_rows(run, scorer=scorer)]


@pytest.mark.parametrize(
    ("levels", "about", "more", "said"),
    [
        (LOW, "Quite another thing.", (), "scheme.dimensions.clarity.description 'One thing.' then, 'Quite another"),
        ("[0, 1]", "One thing.", (), "scheme.dimensions.clarity.levels [0.0, 0.5, 1.0] then, [0.0, 1.0] now"),
        (LOW, "One thing.", ("--model", "openai:judge temperature=1"), "temperature 0.0 then, 1 now"),
        (
            HIGH,
            "One thing.",
            (),
            "expected the same range and direction (rating-judge[openai:judge]: low 1.0, in the store 0.0, high",
        ),
    ],
)
def test_a_changed_judge_is_no_judge_of_that_name(
    levels: str, about: str, more: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    """After a trial of one answer as after all of them; and once its scores are deleted it may score."""
    store = stored(tmp_path)
    with FaultyServer(json.dumps({"reason": "r", "clarity": 1})) as server:
        for trial in (("--limit", "1"), ()):
            assert judged(store, dimensions(tmp_path), server, *trial)[0] == 0
            before, paid, card = values(store), server.count, Store(store, create=False).card("mediqa-eval")
            file = dimensions(tmp_path, levels, about)
            given = (*(more or ("--model", "openai:judge")), "--base-url", server.url, "--timeout", "60")
            code, text = score(store, "--judge", "rating-judge", "--dimensions", file, *given)
            assert code == 1
            assert said in text
            way_out = f"proctor store change delete mediqa-eval --scorer '{NAME}' --store {store}"
            assert way_out in text
            assert (values(store), server.count) == (before, paid)
            assert Store(store, create=False).card("mediqa-eval") == card
        code, text = within("store", "change", "delete", "mediqa-eval", "--scorer", NAME, "--store", store, "--yes")
        assert (code, text.strip()) == (0, f"Deleted 3 scores by {NAME}")
        assert values(store) == []
        code, text = score(store, "--judge", "rating-judge", "--dimensions", file, *given)
        assert (code, len(values(store))) == (0, 3), text


def test_another_server_and_the_same_file_again_are_the_same_judge(tmp_path: Path) -> None:
    store = stored(tmp_path)
    for _ in range(2):
        with FaultyServer(json.dumps({"reason": "r", "clarity": 1})) as server:
            code, said = judged(store, dimensions(tmp_path), server, "--limit", "1")
            assert (code, server.count) == (0, 1), said
    assert len(values(store)) == 2
    assert "base_url" not in json.dumps(Store(store, create=False).card("mediqa-eval").scorers)


def test_an_edited_prompt_is_refused(tmp_path: Path) -> None:
    store, prompts = stored(tmp_path), tmp_path / "own"
    prompts.mkdir()
    template = prompts / "rating.txt.j2"
    names = " ".join([*ENGLISH, "disagree_flag", *CHINESE])
    template.write_text(
        "{% block system %}Rate " + names + "{% endblock %}{% block user %}{{ candidate }}{% endblock %}",
        encoding="utf-8",
    )
    more = ("--judge", "rating-judge", "--option", f"prompt={prompts}", "--limit", "1")
    with FaultyServer(rating(dict.fromkeys(ENGLISH, 0.5) | {"disagree_flag": 0})) as server:
        code, said = score(store, *more, server=server)
        assert code == 0, said
        template.write_text(template.read_text(encoding="utf-8").replace("Rate", "Rate strictly"), encoding="utf-8")
        code, said = score(store, *more, server=server)
        assert (code, server.count) == (1, 1)
        assert "found other settings (prompt_sha256. '" in said


def test_a_dimension_of_the_benchmark_on_another_scale_is_refused_before_a_call(tmp_path: Path) -> None:
    store, file = stored(tmp_path), dimensions(tmp_path, HIGH, name="overall")
    with FaultyServer(json.dumps({"reason": "r", "overall": 4})) as server:
        code, said = judged(store, file, server)
        assert (code, server.count) == (1, 0)
    assert (
        f"metric overall: found another declaration, expected the same range and direction ({NAME}: low 1.0, " in said
    )
    assert "store delete" not in said  # no deleting makes the benchmark's own name free
    assert within("results", "mediqa-eval", "--store", store, "--draws", "100")[0] == 0


def test_scores_out_of_range_are_named_with_the_way_out(tmp_path: Path) -> None:
    """As stores have them that were written before they were refused."""
    store = stored(tmp_path)
    opened = Store(store)
    run = opened.runs("mediqa-eval")[0]
    item = next(iter(opened.answers(run)))
    opened.add_scores(run, [Score(item_id=item, metric="overall", value=4.0, scorer=NAME)])
    code, said = within("results", "mediqa-eval", "--store", store, "--draws", "100")
    delete = f"proctor store change delete mediqa-eval --scorer '{NAME}' --store {store}"
    assert code == 1
    assert f"overall by {NAME}: found 4, expected a number from 0 to 1; to be rid of these scores: {delete}" in said
    assert within("store", "change", "delete", "mediqa-eval", "--scorer", NAME, "--store", store, "--yes")[0] == 0
    assert within("results", "mediqa-eval", "--store", store, "--draws", "100")[0] == 0


class Settled:
    """A scorer with settings."""

    name = "settled"

    def __init__(self, settings: dict[str, JsonValue], metric: str = "m") -> None:
        self.settings, self.metrics = settings, (Metric(metric, metric, percent=metric == "accuracy"),)

    def applies(self, item: Item) -> bool:
        return bool(item)

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        del answer
        return [Score(item_id=item.id, metric=self.metrics[0].name, value=0.5, scorer=self.name)]


def toy(file: Path, *settings: dict[str, JsonValue], value: float = 0.5) -> Store:
    """A store whose first answer has been scored by a scorer of these settings."""
    store = Store(file)
    asyncio.run(import_systems(store, tiny(), [recorded()], condition="video"))
    for one in settings:
        declare_scorer(store, "tiny", Settled(one))
    if settings:
        store.add_scores(store.runs("tiny")[0], [Score(item_id="a", metric="m", value=value, scorer="settled")])
    return store


def tiny() -> Benchmark:
    items = tuple(Item(id=name, group=name, question="?", answer=FreeTextFormat()) for name in "ab")
    return Benchmark(name="tiny", title="Tiny", items=items, metrics=(ACCURACY,), headline="accuracy")


def recorded() -> RecordedAnswers:
    return RecordedAnswers(tuple(Answer(item_id=name, text="t", parsed="t") for name in "ab"), system="s")


def test_settings_without_scores_may_change_and_scores_without_settings_are_taken_over(tmp_path: Path) -> None:
    store = toy(tmp_path / "a.db", {"k": 1}, {"k": 2})
    assert store.card("tiny").scorers["settled"]["k"] == 2
    declare_scorer(store, "tiny", Settled({"k": 2, "base_url": "http://b"}))
    former = toy(tmp_path / "b.db")
    former.add_scores(former.runs("tiny")[0], [Score(item_id="a", metric="m", value=1, scorer="settled")])
    declare_scorer(former, "tiny", Settled({"k": 3}))
    with pytest.raises(InputError, match=r"scores by settled: found other settings \(k 3 then, 4 now\)"):
        declare_scorer(former, "tiny", Settled({"k": 4}))


def test_what_is_deleted_is_one_scorers_and_what_is_no_longer_used(tmp_path: Path) -> None:
    store = toy(tmp_path / "a.db", {"k": 1})
    run = store.runs("tiny")[0]
    declare_scorer(store, "tiny", Settled({"k": 1}, "accuracy"))
    shared = [Score(item_id="a", metric="m", value=1, scorer="other")]
    store.add_scores(run, [*shared, Score(item_id="b", metric="accuracy", value=1, scorer="settled")])
    assert count_scores(store, "tiny", "settled") == delete_scores(store, "tiny", "settled") == 2
    assert [row.scorer for row in store.score_rows(run)] == ["other"]
    assert [one.name for one in store.card("tiny").metrics] == ["accuracy", "m"]  # its own, and another's
    assert store.card("tiny").scorers == {}
    delete_scores(store, "tiny", "other")
    assert [one.name for one in store.card("tiny").metrics] == ["accuracy"]
    with pytest.raises(InputError, match="scores of tiny: found none by 'othe', expected one of none"):
        count_scores(store, "tiny", "othe")


@pytest.mark.parametrize(("settings", "left"), [({"k": 1}, [0.25, 0.5]), ({"k": 2}, [0.5])])
def test_stores_are_joined_where_a_name_is_one_scorer(
    settings: dict[str, JsonValue], left: list[float], tmp_path: Path
) -> None:
    """The scores of another scorer of that name are refused."""
    target, source = toy(tmp_path / "a.db", {"k": 1}), toy(tmp_path / "b.db", settings)
    source.add_scores(source.runs("tiny")[0], [Score(item_id="b", metric="m", value=0.25, scorer="settled")])
    told = merge_stores(target, [source])
    assert sorted(row.value for row in target.score_rows(target.runs("tiny")[0])) == left
    refused = [one.first for one in told if one.refused]
    assert refused == ([] if len(left) == 2 else ["item b: a score by settled with other settings"])
    assert target.card("tiny").scorers["settled"]["k"] == 1
