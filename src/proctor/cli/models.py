"""Options that say which model is asked and how, shared by `run` and `score`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.core import MissingOptionError

if TYPE_CHECKING:
    from proctor.models import ModelClient, ModelSpec

BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        help="An OpenAI-compatible server (vLLM, SGLang, Ollama).",
        show_default=False,
        rich_help_panel="Model",
    ),
]
BaseUrls = Annotated[
    list[str] | None,
    typer.Option(
        "--base-url",
        help="An OpenAI-compatible server (vLLM, SGLang, Ollama): one for all models, or one for each.",
        show_default=False,
        rich_help_panel="Model",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--settings",
        metavar="KEY=VALUE …",
        help="Passed to the model: temperature=0 max_tokens=512.",
        show_default=False,
        rich_help_panel="Model",
    ),
]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout", min=0.1, help="Seconds until one call counts as hanging; it is retried.", rich_help_panel="Model"
    ),
]
Retries = Annotated[
    int, typer.Option("--retries", min=0, help="Retries after an infrastructure error.", rich_help_panel="Model")
]
PromptOption = Annotated[
    str,
    typer.Option(
        "--prompt",
        metavar="NAME|FILE",
        help="Another prompt: paper, where there is one, or a file.",
        show_default=False,
        rich_help_panel="Model",
    ),
]
Structured = Annotated[
    str,
    typer.Option(
        "--structured",
        help="How a structured reply is asked for: auto, native, tool or prompted.",
        rich_help_panel="Model",
    ),
]


@dataclass(frozen=True)
class ModelOptions:
    """How models are asked, whichever they are."""

    base_url: str | None
    settings: tuple[str, ...]
    timeout_s: float
    retries: int
    structured: str
    opened: list[ModelClient] = field(default_factory=list, repr=False, compare=False)
    """Every client made here, to be closed by who asks (see `closing`)."""

    def client(self, model: str) -> ModelClient:
        """Access to one model."""
        return self.opened_client(self._spec(model, self.base_url, ()))

    def clients(self, models: Sequence[str], base_urls: Sequence[str]) -> list[ModelClient]:
        """Access to several models (see `specs`)."""
        return [self.opened_client(one) for one in self.specs(models, base_urls)]

    def opened_client(self, spec: ModelSpec) -> ModelClient:
        """Access to the model of a specification."""
        from proctor.models import ModelClient

        self.opened.append(ModelClient(spec))
        return self.opened[-1]

    def specs(self, models: Sequence[str], base_urls: Sequence[str]) -> list[ModelSpec]:
        """Several models, each named as NAME or, with settings of its own on top of the shared ones, as
        "NAME KEY=VALUE …"; at one server, or each at its own."""
        if len(base_urls) not in {0, 1, len(models)}:
            raise typer.BadParameter(
                f"expected one for all models, or one for each ({len(models)})", param_hint="--base-url"
            )
        places = list(base_urls) * len(models) if len(base_urls) == 1 else list(base_urls)
        built = []
        for number, model in enumerate(models):
            name, *own = model.split() or [""]
            built.append(self._spec(name, places[number] if places else self.base_url, own))
        return built

    def _spec(self, model: str, base_url: str | None, own: Sequence[str]) -> ModelSpec:
        from proctor.models import ModelSpec, parse_settings

        if self.structured not in {"auto", "native", "tool", "prompted"}:
            raise typer.BadParameter("expected auto, native, tool or prompted", param_hint="--structured")
        if not model:
            raise typer.BadParameter("expected a model, provider:name", param_hint="--model")
        return ModelSpec(
            name=model,
            base_url=base_url,
            settings=parse_settings(self.settings) | parse_settings(own),
            timeout_s=self.timeout_s,
            retries=self.retries,
            structured=self.structured,  # type: ignore[arg-type]
        )


def check_servers(clients: Sequence[ModelClient]) -> None:
    """Raises `ConfigurationError` where a client's server is not there: before anything is paid or written."""
    import asyncio

    from proctor.models import reachable

    asyncio.run(reachable(client.spec.base_url for client in clients))


@asynccontextmanager
async def closing(clients: Sequence[ModelClient]) -> AsyncIterator[None]:
    """Closes the clients' connections at the end, in the event loop that used them."""
    try:
        yield
    finally:
        for client in clients:
            await client.aclose()


def _is_word(argument: str) -> bool:
    return bool(argument) and "=" not in argument and not argument.startswith("-")


def spread_settings(arguments: Sequence[str]) -> list[str]:
    """The arguments with `--settings a=1 b=2` written out as `--settings a=1 --settings b=2`.

    Raises `MissingOptionError` where a setting has no value.

    >>> spread_settings(["run", "--settings", "a=1", "b=2", "--seed", "3"])
    ['run', '--settings', 'a=1', '--settings', 'b=2', '--seed', '3']
    """
    spread: list[str] = []
    inside = False
    for argument, value in zip_longest(arguments, arguments[1:], fillvalue=""):
        if spread and spread[-1] == "--settings" and _is_word(argument):
            example = f"{argument}={value}" if _is_word(value) else f"{argument}=VALUE"
            raise MissingOptionError("--settings", f"KEY=VALUE, such as {example}", found=repr(argument))
        if inside and "=" in argument and not argument.startswith("-") and spread[-1] != "--settings":
            spread.append("--settings")
        elif argument.startswith("-") or "=" not in argument:
            inside = argument == "--settings"
        spread.append(argument)
    return spread
