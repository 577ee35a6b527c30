"""Systems: whatever answers items, one module per method. Built-in ones are found by entry point."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.systems.baselines import RandomGuess
    from proctor.systems.demonstrations import Demonstration, Demonstrations, Picked
    from proctor.systems.model_system import MESSAGES, ModelSystem, Sampling, frames_as_sent, prompt_as_sent
    from proctor.systems.option_auditors import ask_option_auditors
    from proctor.systems.question_prompt import ReplyRequest, Sent, prompt_for_benchmark, prompt_text
    from proctor.systems.registry import (
        NO_OPTIONS,
        SYSTEMS,
        AskModel,
        FunctionSystem,
        Renamed,
        SystemOptions,
        asks_a_model,
        asks_models,
        build_system,
        is_system,
        only_model,
        read_options,
        system,
        system_in_file,
    )
    from proctor.systems.replies import format_value, reply
    from proctor.systems.seriation import look, shortest_path
else:
    export_lazily(__name__)

__all__ = [
    "MESSAGES", "NO_OPTIONS", "SYSTEMS", "AskModel", "Demonstration", "Demonstrations", "FunctionSystem",
    "ModelSystem", "Picked", "RandomGuess", "Renamed", "ReplyRequest", "Sampling", "Sent", "SystemOptions",
    "ask_option_auditors", "asks_a_model", "asks_models", "build_system", "format_value", "frames_as_sent",
    "is_system", "look", "only_model", "prompt_as_sent", "prompt_for_benchmark", "prompt_text", "read_options",
    "reply", "shortest_path", "system", "system_in_file",
]  # fmt: skip
