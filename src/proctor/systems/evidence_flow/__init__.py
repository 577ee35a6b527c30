"""`evidence-flow-m` and `evidence-flow-r`: key frames in order by evidence, led by the model or corrected by rules."""

from proctor.systems.evidence_flow.replies import Evidence, FrameEvidence, PairEvidence
from proctor.systems.evidence_flow.rules import Constraint, Correction, constraints, correct
from proctor.systems.evidence_flow.system import EvidenceFlow, Options, build_m, build_r

__all__ = [
    "Constraint",
    "Correction",
    "Evidence",
    "EvidenceFlow",
    "FrameEvidence",
    "Options",
    "PairEvidence",
    "build_m",
    "build_r",
    "constraints",
    "correct",
]
