"""The order in which a run asks: by media, or drawn from a seed that is recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from proctor.core import Benchmark
from proctor.media import MediaLibrary
from proctor.runs import PlanOptions, Store, chosen_items, plan
from proctor.systems import build_system
from proctor.tasks.simulated import READER
from tests.support.text_folder import write_text_folder


def questions(folder: Path) -> Benchmark:
    return READER.load(write_text_folder(folder, 50))


def test_a_seed_draws_the_order_whatever_that_of_the_file_is(tmp_path: Path) -> None:
    asked = questions(tmp_path)
    turned = replace(asked, items=tuple(reversed(asked.items)))
    by_media, first, again, other = (
        [item.id for item in chosen_items(one, PlanOptions(order_seed=seed))]
        for one, seed in ((asked, None), (asked, 1), (turned, 1), (asked, 2))
    )
    assert first == again
    assert sorted(first) == sorted(by_media) == sorted(other)
    assert len({tuple(by_media), tuple(first), tuple(other)}) == 3


def test_the_seed_is_a_setting_of_the_run(tmp_path: Path) -> None:
    asked, store = questions(tmp_path), Store(tmp_path / "runs.db")
    for seed, known in ((None, None), (7, 7)):
        system = build_system("random", seed=0)
        object.__setattr__(system, "name", f"random-{seed}")
        planned = plan(
            store, asked, [system], ["text-only"], MediaLibrary(None), scorers=(), options=PlanOptions(order_seed=seed)
        )
        assert planned.runs[0].settings.get("order_seed") == known
        assert [item.id for item in planned.jobs[0].items] == [
            item.id for item in chosen_items(asked, PlanOptions(order_seed=seed))
        ]
    store.close()
