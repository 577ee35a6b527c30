"""`proctor score BENCHMARK PREDICTIONS`: a file of predictions marked against a file of references."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from proctor.cli.options import OutputFormat
from proctor.cli.plugins import show_plugin_report
from proctor.core import InputError

if TYPE_CHECKING:
    from proctor.metrics.text import BertScoreSettings


@dataclass(frozen=True)
class SimilarityOptions:
    """By which BERTScore texts are compared with texts; an empty name is the embedded encoder."""

    encoder: str = ""
    layer: int | None = None
    rescale: str = ""

    def settings(self) -> BertScoreSettings:
        """The same in the library's words."""
        from proctor.metrics.text import EMBEDDED_ENCODER, BertScoreSettings, EncoderSettings

        encoder = EncoderSettings(self.encoder or EMBEDDED_ENCODER, self.layer)
        return BertScoreSettings(encoder, rescale=self.rescale)


@dataclass(frozen=True)
class Marking:
    """The options of marking a file; a weight that is None has the benchmark's default."""

    references: Path | None
    weights: dict[str, float | None] = field(default_factory=dict)
    draws: int = 2000
    seed: int = 0
    strict: bool = False
    output: OutputFormat = OutputFormat.TABLE
    similarity: SimilarityOptions = SimilarityOptions()
    invalid: Literal["wrong", "partial"] = "wrong"


def mark_file(benchmark: str, predictions: Path, marking: Marking) -> None:
    """Marks and prints. Raises `InputError` for a benchmark whose predictions come as runs alone."""
    from proctor.core import BENCHMARKS

    reader = BENCHMARKS.get(benchmark)
    if not reader.prediction_weights:
        raise InputError(
            predictions,
            f"benchmark {benchmark!r}",
            found="a file of predictions",
            expected="no file: import it (proctor import) and score the store",
        )
    if marking.references is None:
        raise typer.BadParameter("a file of predictions needs its references", param_hint="--references")
    if marking.output is OutputFormat.CSV:
        raise typer.BadParameter("marks of a file are printed as table or json", param_hint="--format")
    found = reader.mark_predictions(
        predictions,
        marking.references,
        weights={name: value for name, value in marking.weights.items() if value is not None},
        draws=marking.draws,
        seed=marking.seed,
        strict=marking.strict,
        similarity=marking.similarity.settings(),
        invalid=marking.invalid,
    )
    show_plugin_report(found, marking.output)
