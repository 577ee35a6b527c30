"""What a report is made from is read once, of one moment; afterwards the store is read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.core import Answer, Score
from proctor.results import load_items, reading_once
from proctor.results.run_scores import load_run_scores
from proctor.runs import Store
from tests.support.report_store import a_benchmark


def test_scores_are_of_one_moment_until_the_reading_ends(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.db")
    store.add_benchmark(a_benchmark(items=7, groups=3))
    run, card = store.start_run("toy", "one", "video", {}), store.card("toy")

    def scored() -> list[float]:
        items = load_items(store, card)
        return [float(one.scores[one.outcomes.answered].sum()) for one in load_run_scores(store, run, items, card)]

    def answered(item: str) -> None:
        store.write(run, [(Answer(item_id=item, parsed="A"), [Score(item_id=item, metric="accuracy", value=1.0)])])

    answered("q000")
    with reading_once():
        assert scored() == [1.0]
        answered("q001")
        assert scored() == [1.0]
        kept = load_run_scores(store, run, load_items(store, card), card)[0]
        with pytest.raises(ValueError, match="read-only"):
            kept.outcomes.status[0] = 0
    assert scored() == [2.0]
