"""The special functions of SciPy that the statistics use, imported at their first call: SciPy takes longer to
import than all of Proctor, and most commands compute nothing."""

from __future__ import annotations

from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING

__all__ = ["expit", "gammaln", "logit", "ndtr", "ndtri", "stdtr", "stdtrit"]

if TYPE_CHECKING:
    from scipy.special import expit, gammaln, logit, ndtr, ndtri, stdtr, stdtrit
else:

    def _deferred(name):
        def call(*arguments, **options):
            import scipy.special

            return getattr(scipy.special, name)(*arguments, **options)

        call.__name__ = call.__qualname__ = name
        return call

    expit, gammaln, logit, ndtr, ndtri, stdtr, stdtrit = map(_deferred, __all__)


def prepare_intervals() -> None:
    """Begins to import what intervals need in a thread, for a caller that reads a store first: a database works beside
    Python. Whatever needs it sooner waits for it.

    >>> prepare_intervals()
    """
    Thread(target=import_module, args=("scipy.special",), name="import scipy.special").start()
