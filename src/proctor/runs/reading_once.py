"""What several tables of one report are made from is read from the store once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from proctor.runs.store import Run, Store
    from proctor.runs.table import ItemTable

    Load = Callable[[Store, Run, ItemTable], Any]

_KNOWN: ContextVar[dict[Any, Any] | None] = ContextVar("known", default=None)
_Loads = TypeVar("_Loads", bound="Load")


@contextmanager
def reading_once() -> Iterator[None]:
    """While it lasts, this thread reads how a run's questions ended, and its scores, once: all that is made of them
    speaks of the same moment. What the thread writes meanwhile is not seen in them."""
    token = _KNOWN.set({})
    try:
        yield
    finally:
        _KNOWN.reset(token)


def read_once(load: _Loads) -> _Loads:
    """A function that reads arrays of a run, once under `reading_once`; then they can't be written to."""

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
