"""Edited code of a package is another system, condition or scorer, and never goes on in the same run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from sqlalchemy import update

import proctor
from proctor.core import code_hash
from proctor.media import MediaLibrary
from proctor.runs import PlanOptions, Store, join, schema
from tests.support.broken_package import FIELDS, GOOD, HEAD, JUDGE, READER, SYSTEM, Offer, offering, refusal
from tests.support.faulty_server import FaultyServer
from tests.support.lamp_benchmark import lamps


@pytest.fixture
def offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Offer]:
    yield from offering(tmp_path / "site", monkeypatch)


@pytest.fixture(autouse=True)
def _site(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()


CODE: dict[str, tuple[str, dict[str, str]]] = {
    "condition class": (
        "conditions.mine",
        {
            "m": "from PIL import Image\nfrom io import BytesIO\nfrom proctor.media import Condition\n"
            "from .other import SIZE\nclass Mine(Condition):\n    summary = 'mine'\n    def paint(self, jpeg):\n"
            "        return small(jpeg)\ndef small(jpeg):\n    out = BytesIO()\n"
            "    Image.open(BytesIO(jpeg)).resize((SIZE, 8)).save(out, 'JPEG')\n    return out.getvalue()\n"
            "WIDE = 3\nX = Mine()\n",
            "other": "SIZE = 8\n",
        },
    ),
    "system class": ("systems.mine", {"m": HEAD + SYSTEM + "WIDE = 3\nX = S\n", "other": ""}),
    "system function": (
        "systems.mine",
        {
            "m": HEAD + "from .other import SIZE\n@proctor.system(name='mine')\ndef X(question): return said()\n"
            "def said(): return ['yes', 'no'][SIZE - 8]\nWIDE = 3\n",
            "other": "SIZE = 8\n",
        },
    ),
}
EDITS = [
    ("condition class", "m", "resize((SIZE, 8))", "resize((SIZE, 9))"),
    ("condition class", "other", "SIZE = 8", "SIZE = 9"),
    ("condition class", "m", "return small(jpeg)", "return jpeg"),
    ("system class", "m", '"yes"', '"no"'),
    ("system class", "m", "X = S", "class X(S):\n    def supports(self, item): return item.id != 'room-1/q1'"),
    ("system function", "m", "SIZE - 8", "9 - SIZE"),
    ("system function", "other", "SIZE = 8", "SIZE = 9"),
]


def ask(tmp_path: Path, point: str, **more: Any) -> Any:
    file = tmp_path / "q.csv"
    rows = [f"q{number},p{number},p.png,Is the lamp on?,yes" for number in range(3)]
    file.write_text("id,group,media,question,answer\n" + "\n".join(rows) + "\n", encoding="utf-8")
    Image.new("RGB", (32, 32), "white").save(tmp_path / "p.png")
    condition = "mine" if point.startswith("conditions") else "video"
    system = "mine" if point.startswith("systems") else lambda frames: "yes" if frames else "no"
    named: dict[str, Any] = {} if isinstance(system, str) else {"name": "looks"}
    return proctor.run(file, system, conditions=condition, store=tmp_path / "s.db", baselines=False, **named, **more)


@pytest.mark.parametrize(("kind", "module", "before", "after"), EDITS)
def test_edited_code_is_another_system_or_condition(
    offer: Offer, tmp_path: Path, kind: str, module: str, before: str, after: str
) -> None:
    point, modules = CODE[kind]
    points = {point: "brk.m:X"}
    offer(modules, points)
    ask(tmp_path, point, limit=1)
    offer({**modules, "m": modules["m"].replace("WIDE = 3", "WIDE = 4  # nothing uses it")}, points)
    assert ask(tmp_path, point, limit=2).done[0].startswith("Asked 1: ")
    assert before in modules[module]
    offer({**modules, module: modules[module].replace(before, after)}, points)
    what = point.partition("s.")[0]
    told = refusal(lambda: ask(tmp_path, point))
    assert f"under {'mine' if what == 'condition' else 'video'}: found other settings (" in told
    assert f"the code of the {what} has changed" in told
    offer(modules, points)
    assert ask(tmp_path, point).done[0].startswith("Asked 1: ")


def test_a_run_of_an_older_store_goes_on_and_its_code_is_known_from_then_on(offer: Offer, tmp_path: Path) -> None:
    point, modules = CODE["system class"]
    offer(modules, {point: "brk.m:X"})
    (run,) = ask(tmp_path, point, limit=1).runs
    store = Store(tmp_path / "s.db")
    assert list(run.settings["code"]) == ["system"]
    with store.writing() as connection:  # as before 0.1.0
        older = {name: value for name, value in run.settings.items() if name != "code"}
        connection.execute(update(schema.runs).values(settings=older))
    assert ask(tmp_path, point, limit=2).done[0].startswith("Asked 1: ")
    assert store.runs("q")[0].settings == run.settings
    offer({**modules, "m": modules["m"].replace('"yes"', '"no"')}, {point: "brk.m:X"})
    assert "the code of the system has changed" in refusal(lambda: ask(tmp_path, point))


def test_proctors_own_code_is_its_version() -> None:
    run = proctor.run(lamps(), "majority", conditions="text-only", store=":memory:")
    assert "code" not in run.runs[0].settings
    assert code_hash(proctor.core) == ""


def test_an_edited_scorer_of_a_benchmark_scores_all_answers_again(offer: Offer, tmp_path: Path) -> None:
    metric = "@proctor.metric(name='long')\ndef long(text): return len(text) > LEAST\nLEAST = {}\n"
    fields = FIELDS + ", scorers=(long,)"

    def loaded(least: int) -> proctor.Benchmark:
        code = HEAD + metric.format(least) + READER.format(judge=None, reference="A", fields=fields)
        offer({"m": code.replace("(item,)", "tuple(item.model_copy(update={'id': f'q{n}'}) for n in range(4))")},
              {"benchmarks.b": "brk.m:READER"})  # fmt: skip
        return proctor.load("b", tmp_path)

    def run(benchmark: proctor.Benchmark, limit: int) -> Any:
        return proctor.run(benchmark, lambda question: "A", name="a", conditions="text-only", baselines=False,
                           limit=limit, store=tmp_path / "s.db")  # fmt: skip

    def values() -> list[float]:
        store = Store(tmp_path / "s.db")
        return [row.value for row in store.score_rows(store.runs("b")[0], metric="long")]

    run(loaded(0), 2)
    assert values() == [1.0, 1.0]
    store = Store(tmp_path / "s.db")
    with pytest.raises(proctor.ProctorError) as told:  # another machine with other code
        join(store, loaded(5), (), (), MediaLibrary(None), scorers=(), options=PlanOptions())
    assert str(told.value).endswith(
        "s.db: scores by long: found other settings here (the code of the scorer has changed), expected those of where "
        "it was planned"
    )
    assert "long has changed: 2 stored answers scored again" in run(loaded(5), 3).notes
    assert values() == [0.0, 0.0, 0.0]
    assert not any("has changed" in note for note in run(loaded(5), 4).notes)


def test_an_edited_judge_is_another_judge(offer: Offer, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    code = HEAD + JUDGE.format(body=f"return [{GOOD}]")
    proctor.run(lamps(free_text=True), lambda question: "yes", name="y", conditions="text-only", store=store)
    with FaultyServer('{"tone": 1}') as server:
        given: dict[str, Any] = {"judge": "mine", "model": "judge", "base_url": server.url, "systems": "y"}
        offer({"m": code}, {"judges.mine": "brk.m:J"})
        proctor.score(store, **given, limit=2)
        offer({"m": code.replace("value=1.0", "value=0.5")}, {"judges.mine": "brk.m:J"})
        told = refusal(lambda: proctor.score(store, **given))
        offer({"m": code}, {"judges.mine": "brk.m:J"})
        assert proctor.score(store, **given).by == {"mine[judge]": 14}
    assert "scores by mine[judge]: found other settings (the code of the scorer has changed), expected" in told
    assert "proctor store change delete lamps --scorer 'mine[judge]'" in told


def test_a_picture_that_is_no_jpeg_is_not_sent(offer: Offer, tmp_path: Path) -> None:
    point, modules = CODE["condition class"]
    offer({**modules, "m": modules["m"].replace("'JPEG'", "'PNG'")}, {point: "brk.m:X"})
    told = refusal(lambda: ask(tmp_path, point))
    assert told.startswith("condition mine, item 'q")
    assert told.endswith(" bytes that are no JPEG, expected a JPEG: save(out, 'JPEG')")
