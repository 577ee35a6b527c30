"""Benchmarks go out: a Hugging Face dataset folder that is read again, and Croissant by mlcroissant."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest
import yaml
from pyarrow import parquet

import proctor
from proctor.core import Image, InputError, Item, Reference, UsageError, VideoClip
from proctor.core.formats import BinaryFormat, ChoiceFormat, CountFormat
from tests.support.foreign import foreign

_CROISSANT = """
import json, sys
import mlcroissant as mlc
dataset = mlc.Dataset(sys.argv[1])
def plain(value):
    if isinstance(value, bytes):
        return value.decode()
    return [plain(one) for one in value] if isinstance(value, list) else value
rows = [{name: plain(value) for name, value in row.items()} for row in dataset.records("items")]
issues = dataset.metadata.ctx.issues
print(json.dumps({"errors": sorted(map(str, issues.errors)), "warnings": sorted(map(str, issues.warnings)), "rows": rows}))
"""
ORIGIN = {"licence": "CC-BY-4.0", "creator": "A hospital", "citation": "Us, 2026", "url": "https://example.org"}


def _mine(media: Path | None) -> proctor.Benchmark:
    clip = VideoClip(source="clips/a.mp4", start=1.5, end=4.0)
    items = (
        Item(
            id="q1",
            group="p1",
            question="Which tool?",
            answer=ChoiceFormat(),
            options=("=grasper", "scissors"),
            media=(clip,),
            reference=Reference(answer="B", rationale="By its tip."),
            tags={"phase": "end", "views": ("a", "b")},
        ),
        Item(
            id="q2",
            group="p2",
            question="Is a clip seen?",
            answer=BinaryFormat(),
            media=(Image(source="b.png"),),
            reference=Reference(answer=True),
        ),
        Item(
            id="q3",
            group="p2",
            question="How many?",
            answer=CountFormat(),
            reference=Reference(answer=2, accepted=(3,)),
        ),
    )
    metrics = (proctor.ACCURACY,)
    return proctor.Benchmark(
        "mine",
        "Mine",
        items,
        metrics,
        "accuracy",
        conditions=("text-only",),
        media_root=media,
        notes=("Licence: CC0-1.0",),
    )


@pytest.fixture
def media(tmp_path: Path) -> Path:
    folder = tmp_path / "media"
    (folder / "clips").mkdir(parents=True)
    (folder / "clips" / "a.mp4").write_bytes(b"no real video")
    (folder / "b.png").write_bytes(b"no real picture")
    return folder


@pytest.fixture
def made(media: Path, tmp_path: Path) -> proctor.Evaluation:
    store = tmp_path / "s.db"
    return proctor.run(
        _mine(media), lambda frames: "Answer: B", name="b", conditions="text-only", store=store, baselines=False
    )


def test_croissant_is_valid_and_its_records_are_the_items(
    made: proctor.Evaluation, media: Path, tmp_path: Path
) -> None:
    written = made.export(tmp_path / "out", format="croissant", origin=ORIGIN, media=media)
    assert written.dropped == ()
    found = foreign(_CROISSANT, tmp_path / "out" / "croissant.json")
    assert (found["errors"], found["warnings"]) == ([], [])
    first, second, third = found["rows"]
    assert first["items/id"] == "q1"
    assert first["items/options"] == ["=grasper", "scissors"]
    assert (first["items/answer"], first["items/start"], first["items/end"]) == ("B", 1.5, 4.0)
    assert (first["items/media"], json.loads(first["items/views"])) == (["clips/a.mp4"], ["a", "b"])
    assert second["items/answer"] == "yes"
    assert (third["items/answer"], third["items/accepted"]) == ("2", ["3"])
    record = json.loads((tmp_path / "out" / "croissant.json").read_text(encoding="utf-8"))
    assert record["conformsTo"][0] == "http://mlcommons.org/croissant/1.1"
    assert (record["license"], record["citeAs"]) == ("https://creativecommons.org/licenses/by/4.0/", "Us, 2026")
    files = {one["@id"]: one["sha256"] for one in record["distribution"]}
    assert files["clips/a.mp4"] == sha256(b"no real video").hexdigest()
    assert not (tmp_path / "out" / "clips").exists()  # described, not copied


def test_a_dataset_folder_is_read_again(made: proctor.Evaluation, media: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    written = made.export(out, format="hf-dataset", media=media, copy_media=True, origin={"citation": "Us, *2026*"})
    assert written.dropped == ()
    read = proctor.load(out)
    assert [(one.id, one.group, one.question, one.options) for one in read.items] == [
        (one.id, one.group, one.question, one.options) for one in _mine(media).items
    ]
    assert [one.reference.answer for one in read.items if one.reference] == ["B", True, 2]
    assert read.items[0].media == (VideoClip(source="clips/a.mp4", start=1.5, end=4.0),)
    assert (out / "clips" / "a.mp4").read_bytes() == b"no real video"
    text = (out / "README.md").read_text(encoding="utf-8")
    head = yaml.safe_load(text.split("---")[1])
    assert head["license"] == "cc0-1.0"  # as the benchmark's notes say
    assert r"Citation: Us, \*2026\*" in text
    assert yaml.safe_load((out / "eval.yaml").read_text(encoding="utf-8"))["name"] == "Mine"


@pytest.mark.parametrize(
    ("stated", "head"),
    [
        ("CC BY 4.0", {"license": "cc-by-4.0"}),  # as `proctor new` writes it
        ("Creative Commons Attribution-NonCommercial 4.0 International", {"license": "cc-by-nc-4.0"}),
        ("Apache License 2.0", {"license": "apache-2.0"}),
        ("on request", {"license": "other", "license_name": "on request"}),
    ],
)
def test_a_licence_is_spelled_as_the_hub_knows_it(
    made: proctor.Evaluation, stated: str, head: dict[str, str], tmp_path: Path
) -> None:
    made.export(tmp_path / "out", format="hf-dataset", origin={"licence": stated})
    found = yaml.safe_load((tmp_path / "out" / "README.md").read_text(encoding="utf-8").split("---")[1])
    assert {name: value for name, value in found.items() if name.startswith("license")} == head


def test_references_stay_at_home(made: proctor.Evaluation, tmp_path: Path) -> None:
    for form in ("hf-dataset", "croissant", "every-eval-ever"):
        written = made.export(tmp_path / form, format=form, no_references=True)
        assert any("reference answers: left out on request" in line for line in written.dropped)
    rows = parquet.read_table(tmp_path / "hf-dataset" / "data" / "test-00000-of-00001.parquet").to_pylist()
    assert [(row["answer"], row["accepted"], row["rationale"]) for row in rows] == [(None, [], "")] * 3
    assert "By its tip" not in (tmp_path / "croissant" / "items.jsonl").read_text(encoding="utf-8")
    assert any("2 media" in line for line in written.dropped) is False


def test_media_that_are_not_here(made: proctor.Evaluation, media: Path, tmp_path: Path) -> None:
    (media / "b.png").unlink()
    written = made.export(tmp_path / "a", format="croissant", media=media)
    assert any(line.startswith("media without a FileObject: 1;") for line in written.dropped)
    assert "Croissant needs a creator: --origin creator=…" in written.notes
    with pytest.raises(InputError, match=r"found no b\.png and 0 more, expected all media \(2\)"):
        made.export(tmp_path / "b", format="hf-dataset", media=media, copy_media=True)
    assert not (tmp_path / "b").exists()
    homeless = proctor.run(_mine(None), lambda: "B", name="b", conditions="text-only", store=tmp_path / "n.db")
    with pytest.raises(UsageError, match="--media"):
        homeless.export(tmp_path / "c", format="hf-dataset", copy_media=True)
    outside = tmp_path / "secret.png"
    outside.write_bytes(b"secret")
    (media / "b.png").symlink_to(outside)
    with pytest.raises(InputError, match="which leads out of it"):
        made.export(tmp_path / "d", format="croissant", media=media)


def test_nothing_is_written_over(made: proctor.Evaluation, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "kept").write_text("mine")
    for form in ("hf-dataset", "croissant"):
        with pytest.raises(InputError, match="something there already"):
            made.export(tmp_path / "out", format=form)
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["kept"]
