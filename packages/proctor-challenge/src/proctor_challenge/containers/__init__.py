"""Containers: runs a system that comes as an image, behind limits, and asks it over one socket. It knows no task."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor_challenge.containers.doctor import MachineCheck, examine
    from proctor_challenge.containers.executor_choice import executor_of
    from proctor_challenge.containers.executors import EXECUTORS, BoxError, BoxLimits, Executor
    from proctor_challenge.containers.images import CHEAT_ORACLE, image_digest, program_image
    from proctor_challenge.containers.podman import PodmanExecutor
    from proctor_challenge.containers.process import ProcessExecutor
    from proctor_challenge.containers.system import BoxedSystem, BoxReport, question_fields
else:
    export_lazily(__name__)

__all__ = [
    "CHEAT_ORACLE", "EXECUTORS", "BoxError", "BoxLimits", "BoxReport", "BoxedSystem", "Executor", "MachineCheck",
    "PodmanExecutor", "ProcessExecutor", "examine", "executor_of", "image_digest", "program_image",
    "question_fields",
]  # fmt: skip
