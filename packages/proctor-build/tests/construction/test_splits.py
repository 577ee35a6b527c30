"""Splits by group: parts share nothing, and what they would share is named."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from proctor.audits.splits import SHARES, split_items, split_leaks
from proctor.core import OPTION_POOL, InputError, Item, Reference, TagValue, VideoClip
from proctor.core.formats import ChoiceFormat
from proctor_build.pipeline import Project, Work, dealt_parts
from proctor_build.pipeline.finish import SplitStage
from proctor_build.pipeline.speech import TranscriptStage
from proctor_build.pipeline.stage import made_from


def item(number: int, group: str, *, source: str = "", key: str = "", wrong: str = "", **tags: TagValue) -> Item:
    return Item(
        id=f"q{number}",
        group=group,
        question=f"What is done in clip {number}?",
        media=(VideoClip(source=source or group),),
        answer=ChoiceFormat(),
        options=(key or f"the right answer to {number}", wrong or f"a wrong answer to {number}"),
        reference=Reference(answer="A"),
        tags=tags,
    )


def test_parts_have_their_shares_and_share_nothing() -> None:
    items = [item(number, f"v{number // 5}") for number in range(200)]
    part = split_items(items, seed=3)
    assert {name: list(part.values()).count(name) for name in SHARES} == {"train": 120, "validation": 40, "test": 40}
    assert split_leaks(items, part) == []
    assert part == split_items(items[::-1], seed=3)
    assert part != split_items(items, seed=4)


def test_what_is_linked_stays_together() -> None:
    """Ten patients with two videos each, of which two share a file, and a pool that links two patients more."""
    items = [item(number, f"v{number // 2}", patient=f"p{number // 4}") for number in range(40)]
    items[0] = items[0].model_copy(update={"media": (VideoClip(source="shared"),)})
    items[7] = items[7].model_copy(update={"media": (VideoClip(source="shared"),)})
    items[20] = items[20].model_copy(update={"tags": {**items[20].tags, OPTION_POOL: "1"}})
    items[39] = items[39].model_copy(update={"tags": {**items[39].tags, OPTION_POOL: "1"}})
    for seed in range(10):
        part = split_items(items, {"train": 0.5, "test": 0.5}, seed=seed, together=("patient",))
        assert split_leaks(items, part, together=("patient",)) == []
        assert len({part[f"q{number}"] for number in (*range(4), *range(4, 8))}) == 1
        assert len({part[f"q{number}"] for number in (*range(20, 24), *range(36, 40))}) == 1


def test_a_value_links_items_that_have_others_too() -> None:
    """Sites p0 … p9 in pairs of items: one names its site twice, the other its site and one that nobody else has."""
    items = [
        item(number, f"v{number}", site=(f"p{number // 2}", f"own{number}" if number % 2 else f"p{number // 2}"))
        for number in range(20)
    ]
    for seed in range(10):
        part = split_items(items, {"train": 0.5, "test": 0.5}, seed=seed, together=("site",))
        assert all(part[f"q{number}"] == part[f"q{number + 1}"] for number in range(0, 20, 2))
    apart = {one.id: "train" if number % 2 else "test" for number, one in enumerate(items)}
    assert {leak.what for leak in split_leaks(items, apart, together=("site",))} == {
        f"p{number}" for number in range(10)
    }


def test_every_leak_is_named() -> None:
    items = [
        item(0, "v0", key="slide the probe to the left"),
        item(1, "v0"),
        item(2, "v2", source="v0"),
        item(3, "v3", wrong="Slide the probe  to the left"),
        item(4, "v4", patient="p"),
        item(5, "v5", patient="p"),
        item(6, "v6", option_pool="1"),
        item(7, "v7", option_pool="1"),
        item(8, "v8", source="same"),
        item(8, "v9", source="same").model_copy(update={"id": "q9"}),
    ]
    part = {one.id: "train" if number % 2 else "test" for number, one in enumerate(items)}
    part["q2"] = "train"
    leaks = split_leaks(items, part, together=("patient",))
    assert [(leak.kind, leak.what, leak.items) for leak in leaks if leak.kind not in {"question", "answer"}] == [
        ("group", "v0", ("q0", "q1")),
        ("medium", "same", ("q8", "q9")),
        ("medium", "v0", ("q0", "q1", "q2")),
        ("option pool", "1", ("q6", "q7")),
        ("patient", "p", ("q4", "q5")),
    ]
    assert [leak.items for leak in leaks if leak.kind == "question"] == [("q8", "q9")]
    answers = {leak.what: leak.items for leak in leaks if leak.kind == "answer"}
    assert answers["slide the probe to the left"] == ("q0", "q3")  # right in one part, wrong in another
    assert all(leak.parts == ("test", "train") for leak in leaks)


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({"train": 0.5, "test": 0.6}, "shares: found train 0.5, test 0.6, expected positive shares that make 1"),
        ({"train": 1.5, "test": -0.5}, "shares: found train 1.5, test -0.5, expected positive shares that make 1"),
        ({}, "shares: found none, expected positive shares that make 1"),
        (SHARES, "items: found 2 clusters of items that belong together, expected 3 at least, one for each part"),
    ],
)
def test_impossible_splits_are_refused(shares: dict[str, float], message: str) -> None:
    items = [item(number, f"v{number // 5}") for number in range(10)]
    with pytest.raises(InputError) as refused:
        split_items(items, shares)
    assert str(refused.value) == message


def test_three_clusters_of_unlike_size_fill_three_parts() -> None:
    items = [item(number, "large" if number < 98 else f"small {number}") for number in range(100)]
    assert sorted(set(split_items(items).values())) == ["test", "train", "validation"]


def test_an_item_without_a_part_is_refused() -> None:
    with pytest.raises(InputError, match="found no part for 'q1', expected a part for each item"):
        split_leaks([item(0, "v"), item(1, "v")], {"q0": "train"})


def project_of(folder: Path, tags: list[dict[str, str]], *, seed: int = 0, **split: object) -> Work:
    """The stage `split` of a project with a source for each of these tags, two sources to a patient."""
    sources = [
        {"id": f"v{number}", "video": f"v{number}.mp4", "group": f"p{number // 2}"} | ({"tags": own} if own else {})
        for number, own in enumerate(tags)
    ]
    for one in sources:
        (folder / str(one["video"])).write_bytes(b"")
    content = {"kind": "focus", "seed": seed, "sources": sources, "stages": {"split": split}}
    (folder / "project.yaml").write_text(yaml.safe_dump(content))
    project = Project(folder)
    return Work(project, "split", "all", project.settings.sources, {})


HALVES = {"train": 0.5, "test": 0.5}


def test_a_projects_split_keeps_sites_together_that_patients_connect(tmp_path: Path) -> None:
    """Patient p1 was at two sites, which are one cluster then; without `together` they are parted by some seed."""
    sites = ["A", "A", "A", "B", "B", "B", "C", "C", "D", "D", "D", "D"]
    items = [item(number, f"p{number // 2}", source=f"v{number}") for number in range(12)]
    parted = set()
    for seed in range(8):
        works = [
            project_of(tmp_path, [{"site": one} for one in sites], seed=seed, shares=HALVES, **more)
            for more in ({"together": ["site"]}, {})
        ]
        part, notes = dealt_parts(works[0], items)
        by_site = {site: {part[f"q{n}"] for n, one in enumerate(sites) if one in site} for site in ("AB", "C", "D")}
        assert all(len(parts) == 1 for parts in by_site.values()), by_site
        assert notes == ["test 6, train 6"]
        alone, _ = dealt_parts(works[1], items)
        assert all(alone[f"q{n}"] == alone[f"q{n + 1}"] for n in range(0, 12, 2))
        parted |= {site for site in "D" if len({alone[f"q{n}"] for n, one in enumerate(sites) if one == site}) > 1}
    assert parted == {"D"}


def test_a_source_without_the_tag_is_named(tmp_path: Path) -> None:
    work = project_of(tmp_path, [{"site": "A"}, {}], shares=HALVES, together=["site"])
    with pytest.raises(InputError, match="source 'v1': found no tag 'site', expected one, since the split keeps"):
        dealt_parts(work, [item(0, "p0")])


def test_tags_of_sources_change_no_other_stage(tmp_path: Path) -> None:
    """What models made stays, where a site is named later."""
    before, after = (project_of(tmp_path, [{}, own]) for own in ({}, {"site": "A"}))
    for stage, same in ((TranscriptStage(), True), (SplitStage(), False)):
        assert (made_from(stage, before, {}) == made_from(stage, after, {})) is same
