"""The failed answers of a stored run."""

from __future__ import annotations

from proctor.core import Status
from proctor.runs import Run, Store


def failed_items(store: Store, run: Run) -> set[str]:
    return {name for name, answer in store.answers(run).items() if answer.status is Status.FAILED}
