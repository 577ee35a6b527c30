"""The special functions of SciPy that the statistics use, imported at their first call: SciPy takes longer to
import than all of Proctor, and most commands compute nothing."""

from __future__ import annotations

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
