"""Agents: a model that calls tools, step by step, until it gives a value of a form (ReAct, Yao et al. 2023).

The model library's own agent takes the first of two values that differ, keeps the last of a key that is given twice, and
has retries and limits beside ours. A call is taken from the protocol alone, never from text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel, Field, JsonValue

from proctor.core import ConfigurationError, Frame, FrozenModel, ProctorError, SystemFaultError, Usage
from proctor.models.client import ModelClient, Part, content_of
from proctor.models.endings import CUT_OFF, Ending, end_of
from proctor.models.reply import Reply, UnreadableReplyError, arguments_text, read_arguments, text_with_calls

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelRequest, ModelRequestPart, ModelResponse, ToolCallPart
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

A = TypeVar("A", bound=BaseModel)

_SAID, _ARGUMENTS = 2000, 1000  # characters that are kept of what a model says beside its calls, and of odd arguments


@dataclass(frozen=True)
class ToolResult:
    """A tool's result: `told` (text or JSON), and pictures; `failed` if it could not do what was requested. `judgements` are
    the keys of judgements behind it, and `usage` is theirs: it counts towards the agent's limits, and is recorded with
    them."""

    told: JsonValue
    pictures: tuple[Frame, ...] = ()
    failed: bool = False
    judgements: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class AgentTool(Generic[A]):
    """A tool: `about` describes it to the model, `form` is the type of its arguments. Invalid arguments are a failed
    result; an error raised by `use` ends the agent."""

    name: str
    about: str
    form: type[A]
    use: Callable[[A], Awaitable[ToolResult]]


class AgentLimits(FrozenModel):
    """An agent's limits: replies of the model (`steps`), tool calls, tokens in and out of all steps, and dollars, as far
    as prices are known. In the last step, and after the last call, the model can only give the value; once tokens or
    dollars are spent there is no further step."""

    steps: int = Field(default=8, ge=2, le=40)
    calls: int = Field(default=12, ge=1, le=100)
    tokens: int = Field(default=100_000, ge=1000)
    cost: float | None = Field(default=None, gt=0)


class AgentReply(FrozenModel):
    """The arguments of the final call as JSON, and the transcript of steps, with pictures by their hashes."""

    value: dict[str, JsonValue]
    transcript: list[dict[str, JsonValue]]


class Agent:
    """Calls the model until it calls the tool `final` with a value of `form`. Text never counts as a call or a value.
    Invalid values, and several values that differ, are returned to the model as errors.

    Raises `ConfigurationError` for a model that takes no tools.
    """

    def __init__(
        self,
        client: ModelClient,
        tools: Sequence[AgentTool[Any]],
        final: str,
        form: type[BaseModel],
        limits: AgentLimits,
    ) -> None:
        self.refuse(client)
        self._client, self._limits = client, limits
        self._tools: Mapping[str, AgentTool[Any]] = {tool.name: tool for tool in tools}
        self._final, self._form = final, form

    @staticmethod
    def refuse(client: ModelClient) -> None:
        """Raises `ConfigurationError` for a model that takes no tools, before anything is paid."""
        if not client.takes_tools or client.spec.structured not in {"auto", "tool"}:
            raise ConfigurationError(f"{client.name}: found a model that calls no tools, expected one that does")

    async def run(self, parts: Sequence[Part], system: str) -> Reply[AgentReply]:
        """The value. Raises `SystemFaultError` without one within the limits, else as `ModelClient.ask`."""
        from pydantic_ai.messages import ModelRequest

        messages: list[ModelMessage] = [_opening(parts, system)]
        steps: list[dict[str, JsonValue]] = []
        own, beside, calls = Usage(), Usage(), 0
        for step in range(1, self._limits.steps + 1):
            left = 0 if step == self._limits.steps else self._limits.calls - calls
            try:
                self._refuse_spent(own + beside)
                response, usage = await self._client.converse(messages, self._offered(left))
            except ProctorError as error:
                error.after(own)
                raise
            own += usage
            if end_of(response).ending is Ending.CUT_OFF:  # no call of half a reply is taken
                raise SystemFaultError(f"{self._client.name}: {CUT_OFF}").after(own)
            said = (response.text or "").strip()
            try:
                turn = await self._turn(response, left)
            except ProctorError as error:
                error.usage = own  # a tool's calls are counted where they are kept
                raise
            steps.append({**({"said": said[:_SAID]} if said else {}), "calls": turn.told})
            if turn.value is not None:
                reply = AgentReply(value=turn.value.model_dump(mode="json"), transcript=steps)
                return Reply(said, reply, own, end_of(response).word or None, response.model_name or "")
            calls, beside = calls + turn.used, beside + turn.usage
            messages += [response, ModelRequest(parts=turn.answers)]
        raise SystemFaultError(f"{self._client.name}: no call of {self._final!r} in {self._limits.steps} steps").after(
            own
        )

    async def first(self, parts: Sequence[Part], system: str) -> Reply[None]:
        """The reply to the first step alone, as `run` asks it: its text, followed by the arguments of its calls. No tool is
        used. Raises as `ModelClient.ask`."""
        response, usage = await self._client.converse([_opening(parts, system)], self._offered(self._limits.calls))
        word, model = end_of(response).word or None, response.model_name or ""
        return Reply(text_with_calls(response), None, usage, word, model)

    def _refuse_spent(self, usage: Usage) -> None:
        tokens, most = usage.input_tokens + usage.output_tokens, self._limits
        if tokens >= most.tokens:
            raise SystemFaultError(
                f"{self._client.name}: {tokens} tokens without {self._final!r}, {most.tokens} allowed"
            )
        if most.cost is not None and usage.cost_usd is not None and usage.cost_usd >= most.cost:
            spent = f"${usage.cost_usd:.4f} without {self._final!r}, ${most.cost:g} allowed"
            raise SystemFaultError(f"{self._client.name}: {spent}")

    def _offered(self, left: int) -> ModelRequestParameters:
        from pydantic_ai.models import ModelRequestParameters

        tools = [_definition(tool.name, tool.about, tool.form) for tool in self._tools.values()] if left > 0 else []
        last = _definition(self._final, _summary(self._form), self._form, kind="output")
        return ModelRequestParameters(
            function_tools=tools, output_mode="tool", output_tools=[last], allow_text_output=False
        )

    async def _turn(self, response: ModelResponse, left: int) -> _Turn:
        """The result of a response: the value, or the answers to its calls."""
        from pydantic_ai.messages import ToolCallPart, UserPromptPart

        turn = _Turn()
        calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
        finals = [call for call in calls if call.tool_name == self._final]
        if not calls:
            turn.answers.append(UserPromptPart("Words alone are not taken: call one of the tools."))
        given = [self._read(call, self._form) for call in finals]
        values = [one for one in given if isinstance(one, BaseModel)]
        if finals and len(values) == len(finals) and all(value == values[0] for value in values):
            turn.value = values[0]
            turn.note(finals[0], ToolResult("taken"))
            return turn
        for call in calls:
            if call.tool_name != self._final:
                turn.answer(call, await self._used(call, left - turn.used))
                turn.used += 1
                continue
            read = given[finals.index(call)]
            problem = f"{self._final} was called {len(finals)} times with values that differ: call it once"
            turn.answer(call, ToolResult(read if isinstance(read, str) else problem, failed=True))
        return turn

    def _read(self, call: ToolCallPart, form: type[A]) -> A | str:
        """The value of a call's arguments, or their error."""
        try:
            return read_arguments(call, form)
        except UnreadableReplyError as error:
            return f"not taken: {error}"

    async def _used(self, call: ToolCallPart, left: int) -> ToolResult:
        tool = self._tools.get(call.tool_name)
        if tool is None:
            return ToolResult(f"there is no such tool; there are {', '.join([*self._tools, self._final])}", failed=True)
        if left <= 0:
            return ToolResult(f"no calls are left: call {self._final} now", failed=True)
        asked = self._read(call, tool.form)
        return ToolResult(asked, failed=True) if isinstance(asked, str) else await tool.use(asked)


@dataclass
class _Turn:
    """The result of a response: the value if there is one, the answers to its calls, and their record."""

    value: BaseModel | None = None
    answers: list[ModelRequestPart] = field(default_factory=list)
    told: list[JsonValue] = field(default_factory=list)
    used: int = 0
    usage: Usage = field(default_factory=Usage)

    def answer(self, call: ToolCallPart, result: ToolResult) -> None:
        from pydantic_ai.messages import ToolReturnPart, UserPromptPart

        self.note(call, result)
        self.usage += result.usage
        text = result.told if isinstance(result.told, str) else json.dumps(result.told, ensure_ascii=False)
        position = next((k for k, one in enumerate(self.answers) if isinstance(one, UserPromptPart)), len(self.answers))
        # A protocol may want all returns before any other words.
        self.answers.insert(position, ToolReturnPart(call.tool_name, text, tool_call_id=call.tool_call_id))
        if result.pictures:
            self.answers.append(UserPromptPart(content_of(result.pictures)))

    def note(self, call: ToolCallPart, result: ToolResult) -> None:
        arguments = _kept(arguments_text(call))
        entry: dict[str, JsonValue] = {"tool": call.tool_name, "arguments": arguments, "result": result.told}
        if result.pictures:
            entry["pictures"] = [hashlib.sha256(picture.jpeg).hexdigest() for picture in result.pictures]
        if result.judgements:
            entry["judgements"] = [*result.judgements]
        self.told.append(entry | ({"failed": True} if result.failed else {}))


def _opening(parts: Sequence[Part], system: str) -> ModelRequest:
    from pydantic_ai.messages import ModelRequest, SystemPromptPart, UserPromptPart

    return ModelRequest(parts=[SystemPromptPart(system), UserPromptPart(content_of(parts))])


def _kept(raw: str) -> JsonValue:
    """Arguments for the record: as JSON, or the beginning of an invalid text."""
    try:
        found: JsonValue = json.loads(raw)
        json.dumps(found, allow_nan=False)
    except (ValueError, RecursionError):
        return raw[:_ARGUMENTS]
    return found if len(raw) <= _ARGUMENTS * 4 else raw[:_ARGUMENTS]


def _definition(name: str, about: str, form: type[BaseModel], *, kind: str = "function") -> ToolDefinition:
    from pydantic_ai.tools import ToolDefinition

    schema = form.model_json_schema()
    return ToolDefinition(name=name, description=about, parameters_json_schema=schema, kind=kind)  # type: ignore[arg-type]


def _summary(form: type[BaseModel]) -> str:
    return " ".join((form.__doc__ or "").split("\n\n")[0].split())
