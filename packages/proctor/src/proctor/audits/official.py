"""Official audits: the figures of an audit under the keys of a benchmark's organisers."""

from __future__ import annotations

from collections.abc import Callable

from proctor.audits.agreement import Audit
from proctor.core import Parts

OfficialAudit = Callable[[Audit], dict[str, float | None]]
"""The figures of one metric by the organisers' keys; None for undefined correlations."""

OFFICIAL_AUDITS: Parts[OfficialAudit] = Parts("official audit", "proctor.official_audits")
