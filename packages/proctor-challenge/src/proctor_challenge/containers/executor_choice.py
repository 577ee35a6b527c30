"""The executor by its name: podman, docker or process."""

from __future__ import annotations

import platform

from proctor.core import ConfigurationError, UsageError
from proctor_challenge.containers.executors import EXECUTORS, Executor
from proctor_challenge.containers.podman import PodmanExecutor
from proctor_challenge.containers.process import ProcessExecutor


def executor_of(name: str) -> Executor:
    """The executor with this name. Raises `UsageError` for an unknown name, and `ConfigurationError` on other systems
    than Linux."""
    if platform.system() != "Linux":
        raise ConfigurationError(f"found {platform.system()}, expected Linux to run images on")
    match name:
        case "podman" | "docker":
            return PodmanExecutor(name)
        case "process":
            return ProcessExecutor()
    raise UsageError(f"--executor {name!r} is unknown: choose one of {', '.join(EXECUTORS)}.")
