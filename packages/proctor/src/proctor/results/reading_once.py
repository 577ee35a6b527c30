"""Arrays of runs that are read once for several tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from proctor.results.arrays import ItemTable
    from proctor.runs import Run, Store

    Load = Callable[[Store, Run, ItemTable], Any]

_KNOWN: ContextVar[dict[Any, Any] | None] = ContextVar("known", default=None)

_Loads = TypeVar("_Loads", bound="Load")


@contextmanager
def reading_once() -> Iterator[None]:
    """Caches the outcomes and scores of runs in this thread, so that all tables of a report show the same moment. What
    the thread writes meanwhile does not appear in them."""
    token = _KNOWN.set({})
    try:
        yield
    finally:
        _KNOWN.reset(token)


def read_once(load: _Loads) -> _Loads:
    """Decorates a function that reads arrays of a run: under `reading_once` it reads once, and the arrays are
    read-only."""

    @wraps(load)
    def found(store: Store, run: Run, items: ItemTable) -> Any:
        known = _KNOWN.get()
        if known is None:
            return load(store, run, items)
        key = load.__name__, store, run.id, items.number.tobytes()
        if key not in known:
            known[key] = load(store, run, items)
            for one in known[key] if isinstance(known[key], list) else [known[key]]:
                for array in vars(one).values():
                    if isinstance(array, np.ndarray):
                        array.flags.writeable = False
        return known[key]

    return found  # type: ignore[return-value]
