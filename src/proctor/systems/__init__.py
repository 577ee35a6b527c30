"""Systems: whatever answers items, one module per method. Built-in ones are found by entry point."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.systems.baselines import RandomGuess
    from proctor.systems.demonstrations import Demonstration, Demonstrations, Picked
    from proctor.systems.function import FunctionSystem, Renamed, is_file_address, is_system, system, system_in_file
    from proctor.systems.model_system import ModelSystem, Sampling, prompt_for_benchmark, prompt_text
    from proctor.systems.registry import METHODS, SYSTEMS, BuildMethod, build_system, method_options, only_client
    from proctor.systems.replies import reply, say
    from proctor.systems.seriation import look, shortest_path
else:
    export_lazily(__name__)

__all__ = [
    "METHODS", "SYSTEMS", "BuildMethod", "Demonstration", "Demonstrations", "FunctionSystem", "ModelSystem", "Picked",
    "RandomGuess", "Renamed", "Sampling", "build_system", "is_file_address", "is_system", "look", "method_options",
    "only_client", "prompt_for_benchmark", "prompt_text", "reply", "say", "shortest_path", "system", "system_in_file",
]  # fmt: skip
