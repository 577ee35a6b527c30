"""OpenAI-compatible servers (vLLM, SGLang, DashScope, Ark): the model library's own client, and video files with it."""

from __future__ import annotations

from typing import Literal, TypedDict, cast

from openai.types.chat import ChatCompletionContentPartParam
from pydantic_ai.messages import BinaryContent
from pydantic_ai.models.openai import OpenAIChatModel


class _VideoUrl(TypedDict):
    url: str


class _VideoPart(TypedDict):
    type: Literal["video_url"]
    video_url: _VideoUrl


class CompatibleModel(OpenAIChatModel):
    """Sends a video file as a `video_url` part with the bytes in it, which these servers know and OpenAI's own
    protocol does not."""

    _unsupported_file_inputs = frozenset()

    async def _map_binary_content_item(self, item: BinaryContent) -> ChatCompletionContentPartParam:
        if not item.is_video:
            return await super()._map_binary_content_item(item)
        part: _VideoPart = {"type": "video_url", "video_url": {"url": item.data_uri}}
        return cast("ChatCompletionContentPartParam", part)
