"""Options that say which model is asked and how, shared by `run` and `score`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from proctor.core import System
    from proctor.models import ModelClient, ModelSpec

__all__ = [
    "BaseUrl",
    "BaseUrls",
    "ModelOptions",
    "PromptOption",
    "Retries",
    "Settings",
    "Structured",
    "Timeout",
    "check_servers",
    "closing",
    "spread_settings",
]

BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url", help="An OpenAI-compatible server (vLLM, SGLang, Ollama).", show_default=False
    ),
]
BaseUrls = Annotated[
    list[str] | None,
    typer.Option(
        "--base-url",
        help="An OpenAI-compatible server (vLLM, SGLang, Ollama): one for all models, or one for each.",
        show_default=False,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--settings",
        metavar="KEY=VALUE …",
        help="Passed to the model: temperature=0 max_tokens=512.",
        show_default=False,
    ),
]
Timeout = Annotated[
    float, typer.Option("--timeout", min=0.1, help="Seconds until one call counts as hanging; it is retried.")
]
Retries = Annotated[
    int, typer.Option("--retries", min=0, help="Further attempts after a fault of the machinery.")
]
PromptOption = Annotated[
    str,
    typer.Option(
        "--prompt",
        metavar="NAME|FILE",
        help="Another prompt: paper, where there is one, or a file.",
        show_default=False,
    ),
]
Structured = Annotated[
    str,
    typer.Option("--structured", help="How a structured reply is asked for: auto, native, tool or prompted."),
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
        return self._client(self._spec(model, self.base_url, ()))

    def clients(self, models: Sequence[str], base_urls: Sequence[str]) -> list[ModelClient]:
        """Access to several models (see `specs`)."""
        return [self._client(one) for one in self.specs(models, base_urls)]

    def _client(self, spec: ModelSpec) -> ModelClient:
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

    def systems(
        self,
        names: Sequence[str],
        models: Sequence[str],
        *,
        name: str,
        benchmark: str,
        prompt: str,
        seed: int,
        video_as: Literal["frames", "file"] = "frames",
        options: Sequence[str] = (),
    ) -> list[System]:
        """The systems that a command names: built-in ones, models with their prompt, or one method with
        the models behind it."""
        from proctor.systems import METHODS, SYSTEMS

        if not names and not models:
            raise typer.BadParameter("name what answers with --system or --model")
        for given, option in ((names, "--system"), (models, "--model")):
            twice = next((one for one in given if given.count(one) > 1), None)
            if twice is not None:
                raise typer.BadParameter(f"{twice} is named twice: it is asked once", param_hint=option)
        methods = [one for one in names if one in METHODS.names()]
        if prompt and (methods or not models):
            raise typer.BadParameter("only a --model without a method takes one", param_hint="--prompt")
        if methods:
            if len(names) > 1:
                raise typer.BadParameter(
                    "a method takes all the models, so it runs alone", param_hint="--system"
                )
            return [self._method(methods[0], models, name=name, seed=seed, options=options)]
        if options:
            raise typer.BadParameter("only methods have options of their own", param_hint="--option")
        if name and len(names) + len(models) != 1:
            raise typer.BadParameter("one name can't stand for several systems", param_hint="--as")
        if name and names:
            raise typer.BadParameter("built-in systems keep their own names", param_hint="--as")
        built: list[System] = [SYSTEMS.get(one)(seed=seed) for one in names]
        return built + self._prompted(models, name, benchmark, prompt, video_as)

    def _prompted(
        self,
        models: Sequence[str],
        name: str,
        benchmark: str,
        prompt: str,
        video_as: Literal["frames", "file"],
    ) -> list[System]:
        from proctor.cli.options import briefing_of
        from proctor.systems.model_system import ModelSystem, Sampling, prompt_for_benchmark

        template = prompt_for_benchmark(benchmark, prompt)
        sampling, briefing = Sampling(video_as=video_as), briefing_of(benchmark)
        return [
            ModelSystem(self.client(model), template, name or None, sampling, briefing) for model in models
        ]

    def _method(
        self, method: str, models: Sequence[str], *, name: str, seed: int, options: Sequence[str]
    ) -> System:
        from proctor.models import parse_settings
        from proctor.systems import METHODS, Renamed

        clients = [self.client(model) for model in models]
        built = METHODS.get(method)(clients, seed=seed, options=parse_settings(options, what="--option"))
        return Renamed(built, name) if name else built


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


def spread_settings(arguments: Sequence[str]) -> list[str]:
    """The arguments with `--settings a=1 b=2` written out as `--settings a=1 --settings b=2`.

    >>> spread_settings(["run", "--settings", "a=1", "b=2", "--seed", "3"])
    ['run', '--settings', 'a=1', '--settings', 'b=2', '--seed', '3']
    """
    spread: list[str] = []
    inside = False
    for argument in arguments:
        if inside and "=" in argument and not argument.startswith("-") and spread[-1] != "--settings":
            spread.append("--settings")
        elif argument.startswith("-") or "=" not in argument:
            inside = argument == "--settings"
        spread.append(argument)
    return spread
