"""Access to models through one library, and prompts as template files."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.models.adapters import (
        ORIGIN,
        SEEN,
        SeenMedia,
        base_and_adapter,
        check_adapter,
        read_record,
        seen_media,
        weights_hash,
    )
    from proctor.models.agent import Agent, AgentLimits, AgentReply, AgentTool, ToolResult
    from proctor.models.client import Footage, ModelClient, Part, caption_of
    from proctor.models.connections import BatchFolder
    from proctor.models.endings import CUT_OFF, FINISH_REASON, End, Ending, end_of_body, read_ending
    from proctor.models.faults import rejection
    from proctor.models.prefix_cache import NOT_REUSED
    from proctor.models.prompts import Prompt, chosen_prompt, load_prompt, prompt_file
    from proctor.models.provider import is_compatible, reachable
    from proctor.models.queries import Choices, FixedForm, Query
    from proctor.models.rejection_watch import RejectionWatch
    from proctor.models.reply import Reply
    from proctor.models.servers import near
    from proctor.models.spec import ModelSpec, parse_price, parse_settings
    from proctor.models.vision import Letterbox, MultimodalEncoder, NetworkProcess
    from proctor.models.weights import Weights
    from proctor.models.weights_server import WeightsServer
else:
    export_lazily(__name__)

__all__ = [
    "CUT_OFF", "FINISH_REASON", "NOT_REUSED", "ORIGIN", "SEEN", "Agent", "AgentLimits", "AgentReply", "AgentTool",
    "BatchFolder", "Choices", "End", "Ending", "FixedForm", "Footage", "Letterbox", "ModelClient", "ModelSpec",
    "MultimodalEncoder", "NetworkProcess", "Part", "Prompt", "Query", "RejectionWatch", "Reply", "SeenMedia",
    "ToolResult", "Weights", "WeightsServer", "base_and_adapter", "caption_of", "check_adapter", "chosen_prompt",
    "end_of_body", "is_compatible", "load_prompt", "near", "parse_price", "parse_settings", "prompt_file",
    "reachable", "read_ending", "read_record", "rejection", "seen_media", "weights_hash",
]  # fmt: skip
