"""A benchmark goes out as a dataset folder and comes back with the same items: same fingerprint, same scores."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from PIL import Image as Picture
from pyarrow import parquet

import proctor
from proctor.core import Benchmark, Criterion, Image, InputError, Item, Reference, Region, Reliability, Scan, VideoClip
from proctor.core.formats import (
    EVERY_KIND,
    BinaryFormat,
    FreeTextFormat,
    PercentageFormat,
    QuantityFormat,
    TimestampsFormat,
    format_of_kind,
)
from proctor.runs import Store
from tests.support.program import proctor as shell
from tests.support.text_folder import write_text_folder
from tools.format_examples import CELLS, EXAMPLES

TABLE = "data/test-00000-of-00001.parquet"
KINDS: dict[str, type[Any]] = {kind: format_of_kind(kind) for kind in EVERY_KIND}


def trip(benchmark: Benchmark, folder: Path, **more: Any) -> Benchmark:
    """The benchmark as it comes back from a dataset folder."""
    store = Store(folder / "out.db")
    store.add_benchmark(benchmark)
    proctor.export(store, folder / "out", format="hf-dataset", all_items=True, **more)
    return proctor.load(folder / "out")


def made(items: Sequence[Item]) -> Benchmark:
    return Benchmark("mine", "Mine", tuple(items), (proctor.ACCURACY,), "accuracy", conditions=("text-only",))


def item(name: str, answer: Any, reference: Any = None, **more: Any) -> Item:
    given = reference if isinstance(reference, Reference) or reference is None else Reference(answer=reference)
    return Item(**{"id": name, "group": "g", "question": "?", "answer": answer, "reference": given, **more})


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_every_format_comes_back_with_its_settings_and_references(kind: str, strict: bool, tmp_path: Path) -> None:
    form, options = EXAMPLES[kind](KINDS[kind])
    form = form.model_copy(update={"strict": strict}) if "strict" in KINDS[kind].model_fields else form
    items = []
    for number, cell in enumerate(CELLS[kind]):
        answer, *accepted = form.read_reference(cell, options)
        right = Reference(answer=answer, accepted=tuple(accepted), rationale="so " * number)
        items.append(item(f"q{number}", form, right, options=options))
    back = trip(made(items), tmp_path)
    assert back.items == tuple(items)
    assert back.fingerprint == made(items).fingerprint
    table = parquet.read_table(tmp_path / "out" / TABLE)
    assert "details" not in table.column_names, table.column("details").to_pylist()


AWKWARD = [
    item("spaces", FreeTextFormat(), "  two \n lines \\| and | a bar ", question=" Leading, and ² µ ﬁ （full width） "),
    item("empty", FreeTextFormat(), ""),
    item("rtl \u200f name", BinaryFormat(), True, group=" a group "),
    item("digits", PercentageFormat(tolerance=1 / 3), 100 / 3),
    item("fine", QuantityFormat(unit="mm", relative=0.07, tolerance=0.1), 0.1 + 0.2),
    item("whole", PercentageFormat(), 40),  # not 40.0: the fingerprint is that of the number as it was given
    item("times", TimestampsFormat(several=True, strict=True, tolerance=1.9), [65.123456, 70.0]),
    item("lettered", KINDS["choice"](), "A", options=("A) liver", "B) spleen ", "liver; spleen")),
    item("own options", KINDS["classes"](classes=("a", "b")), ["a"], options=("c", "d")),
    item("none", BinaryFormat()),
    item("why", BinaryFormat(), Reference(answer=None, rationale="nobody knows")),
    item("rubric", FreeTextFormat(), Reference(answer=None, criteria=(Criterion(criterion="says 5: x", points=2, tags=("t",)),))),
    item("sure", FreeTextFormat(max_chars=40), Reference(answer="a", accepted=("b",), reliability=(Reliability(frequency=2.0), Reliability()))),
    item("two clips", BinaryFormat(), True, media=(VideoClip(source="a.mp4", end=3.0), VideoClip(source="a.mp4", start=4.0, end=5.0))),
    item("region", BinaryFormat(), True, media=(VideoClip(source="no ending", start=1.5, region=Region(x=0, y=0, width=0.5, height=1)),)),
    item("labels", BinaryFormat(), True, media=(Image(source="a.png", label="before"), Image(source="b.png", label="after"))),
    item("usual labels", BinaryFormat(), True, media=(Image(source="a.png", label="A"), Image(source="b.png", label="B"))),
    item("scan", BinaryFormat(), True, media=(Image(source="ct/IM1", scan=Scan(window=(40, 400))),)),
    item("tags", BinaryFormat(), True, tags={"format": "other", "video": "v", "mixed": 1, "n": 2.0, "yes": True, "several": ("a", "b"), "window": "w"}),
    item("more tags", BinaryFormat(), True, tags={"format": "x", "mixed": "1", "n": 0.5, "yes": False, "several": (), "facet_format": "z", "details": "d", " s ": "t", "big": 2**70}),
]  # fmt: skip


@pytest.mark.parametrize("one", AWKWARD, ids=lambda one: one.id)
def test_an_awkward_item_comes_back_alone(one: Item, tmp_path: Path) -> None:
    assert trip(made([one]), tmp_path).items == (one,)


def test_awkward_items_come_back_together(tmp_path: Path) -> None:
    back = trip(made(AWKWARD), tmp_path)
    assert back.items == tuple(AWKWARD)
    assert back.fingerprint == made(AWKWARD).fingerprint
    again = trip(back, (tmp_path / "again"))
    assert (again.fingerprint, again.notes) == (back.fingerprint, back.notes)


def test_the_protocol_comes_back(tmp_path: Path) -> None:
    benchmark = proctor.load("simulated", write_text_folder(tmp_path / "data", 40))
    back = trip(benchmark, tmp_path, origin={"licence": "CC-BY-4.0"})
    assert back.fingerprint == benchmark.fingerprint
    for name in (
        "facets",
        "buckets",
        "conditions",
        "only",
        "failed",
        "seeds",
        "simulated",
        "budget_s",
        "title",
        "headline",
    ):
        assert getattr(back, name) == getattr(benchmark, name), name
    assert (back.name, back.simulated, back.notes[len(benchmark.notes)]) == (
        "simulated-dataset",
        True,
        "Licence: CC-BY-4.0",
    )


def test_rexsonovqa_comes_back(data: Path, tmp_path: Path) -> None:
    benchmark = proctor.load("rexsonovqa", data / "rexsonovqa")
    back = trip(benchmark, tmp_path)
    assert (len(back.items), back.fingerprint) == (657, benchmark.fingerprint)
    assert (len(back.counted()), back.excerpts) == (514, benchmark.excerpts)
    assert (back.facets, back.only, back.seeds) == (benchmark.facets, {"keep": True}, {"options": 0})


def test_focus_comes_back_and_the_same_answers_have_the_same_scores(data: Path, tmp_path: Path) -> None:
    """The official toolkit's questions, and what a made-up system said to the first of them."""
    folder = data / "focus-toolkit"
    benchmark = proctor.load("focus", folder)
    back = trip(benchmark, tmp_path)
    assert back.fingerprint == benchmark.fingerprint
    assert (back.buckets, back.relevance, back.failed, back.budget_s) == (
        benchmark.buckets,
        benchmark.relevance,
        benchmark.failed,
        benchmark.budget_s,
    )
    done = shell("check", tmp_path / "out", "--format", "json")
    faults = json.loads(done.stdout)["faults"]
    assert {one["column"] for one in faults} <= {"media"}  # the videos are not here; nothing else is wrong
    said = {one["qID"]: one["content"] for one in json.loads((folder / "responses.json").read_text())}
    found = []
    for number, one in enumerate((benchmark, back)):
        ran = proctor.run(
            one,
            lambda item: said.get(item.id, ""),
            name="me",
            conditions="text-only",
            limit=150,
            baselines=False,
            store=tmp_path / f"{number}.db",
        )
        found.append(ran.results(by=["capability"]).to_pandas().drop(columns="benchmark", errors="ignore"))
    assert len(found[0]) > 4
    assert found[0].equals(found[1])


def test_orders_of_key_frames_come_back_and_are_checked_with_their_pictures(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    for number in (1, 2):
        location = folder / "CPR" / f"case-{number}"
        location.mkdir(parents=True)
        for shade, label in enumerate("ABC"):
            Picture.new("RGB", (32, 24), (40 * shade, 80, 40 * number)).save(location / f"{label}.jpg")
    keys = [
        {"id": f"case-{number}", "scenario": "CPR", "order": ["B", "A", "C"], "rationale": "so"} for number in (1, 2)
    ]
    (folder / "references.json").write_text(json.dumps(keys))
    benchmark = proctor.load("clinicalskillqa", folder)
    back = trip(benchmark, tmp_path, copy_media=True, media=benchmark.media_root)
    assert (back.items, back.fingerprint) == (benchmark.items, benchmark.fingerprint)
    checked = proctor.check(tmp_path / "out", out=tmp_path / "page.html")
    assert (checked.rows, checked.items) == ([], 2)
    ran = proctor.run(back, "as-given", conditions="video", store=tmp_path / "s.db")
    assert ran.results().to_pandas().query("system == 'as-given' and metric == 'accuracy'")["value"].tolist() == [0.0]


def changed(folder: Path, **cells: Any) -> Path:
    """The folder with other cells in its first row."""
    table = parquet.read_table(folder / TABLE)
    rows = table.to_pylist()
    rows[0] |= cells
    parquet.write_table(pa.Table.from_pylist(rows), folder / TABLE)
    return folder


CLIP = VideoClip(source="a.mp4", start=1.0, end=2.0, region=Region(x=0, y=0, width=0.5, height=1))


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ({"answer": "maybe"}, "column 'answer': found 'maybe', expected"),
        ({"format": "binary-2"}, ("column 'format': found 'binary-2', expected a format that needs no settings, or one "
                                 "of")),
        ({"tolerance": 2.0}, "column 'format': found 'binary', 2.0, expected settings that fit binary"),
        ({"details": "{"}, "column 'details': found '{', expected JSON with some of options, media, reference, tags"),
        ({"details": '{"id": "x"}'}, "expected JSON with some of options, media, reference, tags"),
        ({"start": 0.5}, "column 'start': found 0.5, expected 1.0, as the column 'details' says"),
        ({"id": "q2"}, "column 'id': found 'q2' again (row 1), expected each id once"),
        ({"question": ""}, "column 'question': found '', expected a text"),
        ({"media": ["../a.mp4"], "details": None, "start": None, "end": None}, ("column 'media': found '../a.mp4', "
                                                                               "expected a path below")),
    ],
)  # fmt: skip
def test_rows_that_nobody_wrote_so_are_faults(cells: dict[str, Any], told: str, tmp_path: Path) -> None:
    trip(made([item("q1", BinaryFormat(), True, media=(CLIP,)), item("q2", BinaryFormat(), False)]), tmp_path)
    with pytest.raises(InputError) as caught:
        proctor.load(changed(tmp_path / "out", **cells))
    assert told in " ".join((str(caught.value), *getattr(caught.value, "__notes__", ())))


def test_details_can_lead_nowhere_else(tmp_path: Path) -> None:
    hostile = json.dumps({"media": [{"kind": "image", "source": "/etc/passwd"}]})
    trip(made([item("q1", BinaryFormat(), True)]), tmp_path)
    with pytest.raises(InputError, match="expected a path below the folder of the questions"):
        proctor.load(changed(tmp_path / "out", details=hostile, media=["/etc/passwd"]))


def test_without_references_the_folder_is_read_and_can_be_run(tmp_path: Path) -> None:
    back = trip(
        made([item("q1", BinaryFormat(), True), item("q2", BinaryFormat(), False)]), tmp_path, no_references=True
    )
    assert [one.reference for one in back.items] == [None, None]


def test_the_settings_name_what_is_not_usual(tmp_path: Path) -> None:
    trip(
        made([item("q1", TimestampsFormat(strict=True, tolerance=3), [3.0]), item("q2", BinaryFormat(), True)]),
        tmp_path,
    )
    settings = yaml.safe_load((tmp_path / "out" / "benchmark.yaml").read_text())
    assert settings["formats"] == {"timestamps-1": {"kind": "timestamps", "strict": True}}
    rows = parquet.read_table(tmp_path / "out" / TABLE).to_pylist()
    assert [(row["format"], row["answer"], row["tolerance"]) for row in rows] == [
        ("timestamps-1", "00:00:03", 3.0),
        ("binary", "yes", None),
    ]
