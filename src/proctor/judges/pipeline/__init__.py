"""`local-pipeline`: encoders that run here tell how an answer goes with pictures, question and references."""

from proctor.judges.dimensions.fitted import PerFold
from proctor.judges.pipeline.judge import CombinedJudge, LinearRating, PipelineFit, build, read_pipeline
from proctor.judges.pipeline.signals import SIGNALS, SignalReader, Signals

__all__ = [
    "SIGNALS", "CombinedJudge", "LinearRating", "PerFold", "PipelineFit", "SignalReader", "Signals", "build",
    "read_pipeline",
]  # fmt: skip
