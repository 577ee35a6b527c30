"""Checks for people who extend Proctor from a package of their own, and doubles for their tests."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.testing.benchmark_checks import benchmark_checks, check_benchmark
    from proctor.testing.checks import Check, CheckFailedError, CheckReport, Faults, run_checks
    from proctor.testing.condition_checks import check_condition, condition_checks
    from proctor.testing.fakes import (
        MemoryJudgements,
        PictureView,
        ScriptedCall,
        ScriptedModel,
        ScriptedRequest,
        example_items,
        picture,
        right_answer,
        tiny_clip,
        view_of,
    )
    from proctor.testing.judge_checks import check_judge, judge_checks
    from proctor.testing.metric_checks import check_metric, metric_checks
    from proctor.testing.package_checks import KindChecks, check_package, package_checks, validator_checks
    from proctor.testing.package_template import new_package
    from proctor.testing.system_checks import check_system, system_checks
else:
    export_lazily(__name__)

__all__ = [
    "Check", "CheckFailedError", "CheckReport", "Faults", "KindChecks", "MemoryJudgements", "PictureView",
    "ScriptedCall", "ScriptedModel", "ScriptedRequest", "benchmark_checks", "check_benchmark", "check_condition",
    "check_judge", "check_metric", "check_package", "check_system", "condition_checks", "example_items",
    "judge_checks", "metric_checks", "new_package", "package_checks", "picture", "right_answer", "run_checks",
    "system_checks", "tiny_clip", "validator_checks", "view_of",
]  # fmt: skip
