"""Builds a pydantic-ai model from a specification, with one HTTP client and without the library's own retries."""

from __future__ import annotations

import asyncio
import inspect
import ipaddress
import os
import re
import sys
import warnings
from collections.abc import Iterable, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from ssl import SSLContext
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, get_type_hints
from urllib.parse import urlsplit

from pydantic import JsonValue, TypeAdapter, ValidationError
from typing_extensions import is_typeddict

from proctor.core import ConfigurationError, first_problem, one_of
from proctor.models.connections import ENCODINGS, Connections, limit_body
from proctor.models.faults import one_line
from proctor.models.spec import RESERVED, ModelSpec

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.models import Model
    from pydantic_ai.providers import Provider


NO_LIKES: Mapping[str, JsonValue] = MappingProxyType({})

_CONNECT_S = 10.0
_OPENAI = "https://api.openai.com/v1"
_PROVIDERS = ("openai", "anthropic", "google", "groq", "mistral", "cohere", "azure", "bedrock", "transformers")
_OWN_SERVERS = {
    "openai": ("OPENAI_BASE_URL", _OPENAI),
    "anthropic": ("ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    "google": ("GOOGLE_GEMINI_BASE_URL", "https://generativelanguage.googleapis.com"),
}
"""By provider, the environment variable by which its library would call another server, and the provider's own one."""

_MAKERS = {"gpt": "openai", "o3": "openai", "o4": "openai", "claude": "anthropic", "gemini": "google"}


def http_client(timeout_s: float) -> httpx2.AsyncClient:
    """A client with a pool for every request that an engine has in flight, and a limit for the size of replies."""
    import httpx2
    from pydantic_ai.models import create_async_httpx2_client

    limits = httpx2.Limits(max_connections=1024, max_keepalive_connections=1024)
    timeout = httpx2.Timeout(timeout_s, connect=min(_CONNECT_S, timeout_s))
    usual = create_async_httpx2_client(timeout=timeout, transport=httpx2.AsyncBaseTransport())
    return httpx2.AsyncClient(
        verify=_tls(),
        timeout=timeout,
        limits=limits,
        headers=usual.headers | {"Accept-Encoding": ENCODINGS},
        event_hooks=usual.event_hooks | {"response": [*usual.event_hooks["response"], limit_body]},
    )


def _tls() -> SSLContext:
    return _trusted(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _trusted(*named: str | None) -> SSLContext:
    """The certificates that this machine trusts, or those of the named variables; read once."""
    import httpx2

    del named
    return httpx2.create_ssl_context()


def build_model(spec: ModelSpec, http: httpx2.AsyncClient, likes: Mapping[str, JsonValue] = NO_LIKES) -> Model:
    """The model, ready to be asked. Raises `ConfigurationError`: no key, unknown provider, a bad setting, or one that
    would be ignored, unless it is among the `likes`."""
    from pydantic_ai import UsageExtractionFailedWarning
    from pydantic_ai.exceptions import UserError

    # A server that miscounts tokens is recorded as one without counts; a warning for each reply helps nobody.
    warnings.filterwarnings("ignore", category=UsageExtractionFailedWarning)
    warnings.filterwarnings("ignore", message=".* is not a valid FinishReason")  # `endings` says so of each reply
    try:
        model = _made(spec, http)
    except _NoKeyError as error:
        reason = str(error)
    except (UserError, ImportError) as error:
        reason = _in_our_words(str(error))
    else:
        _check_settings(model, spec)
        _refuse_ignored(spec, {name for name in spec.settings if name not in likes})
        _no_retries(model)
        return model
    with suppress(UserError, ImportError):  # report a wrong setting before the missing key
        _check_settings(_made(spec, http, "none"), spec)
    raise ConfigurationError(f"{spec.name}: {reason}")


class _NoKeyError(Exception):
    """No API key for a remote server."""


def _made(spec: ModelSpec, http: httpx2.AsyncClient, key: str | None = None) -> Model:
    """The model with this key (None: that of the environment)."""
    if spec.replicas and not is_compatible(spec):
        raise ConfigurationError(f"{spec.name}: found several servers, expected one: only OpenAI's protocol is spread")
    if spec.is_local:
        return _local(spec)
    if spec.hears:
        return _transcription(spec, http, key)
    return _compatible(spec, http, key) if is_compatible(spec) else _of_provider(spec, http, key)


def _local(spec: ModelSpec) -> Model:
    if spec.base_url is not None:
        raise ConfigurationError(f"{spec.name}: local weights take no base URL")
    if spec.hears:
        from proctor.models.speech import FasterWhisperModel

        return FasterWhisperModel(spec.name, {**spec.settings}, spec.seed)  # type: ignore[typeddict-item]
    from proctor.models.local import LocalModel

    return LocalModel(spec.name, {**spec.settings}, spec.seed)  # type: ignore[typeddict-item]


def _transcription(spec: ModelSpec, http: httpx2.AsyncClient, key: str | None) -> Model:
    from proctor.models.speech import TranscriptionModel

    url = spec.base_url or _OPENAI
    return TranscriptionModel(spec.name, url, key or _key(url), http)


def _key(url: str) -> str | None:
    """The key for an OpenAI-compatible server; a server in the local network needs none."""
    key = os.environ.get("OPENAI_API_KEY")
    if not key and not _is_local(url):
        raise _NoKeyError(f"no API key for {url}: set OPENAI_API_KEY (to any text where the server needs none)")
    return key


def is_compatible(spec: ModelSpec) -> bool:
    """Whether the name and the base URL mean an OpenAI-compatible server."""
    provider = spec.name.partition(":")[0]
    if spec.base_url is None or spec.is_local or spec.hears:
        return False
    return not _known(provider) or provider in {"openai", "openai-chat"}


def _compatible(spec: ModelSpec, http: httpx2.AsyncClient, key: str | None) -> Model:
    from proctor.models.compatible import CompatibleModel

    provider, _, model = spec.name.partition(":")
    for url in spec.servers:
        key = key or _key(url)
    connections = Connections(_tls(), min(_CONNECT_S, spec.timeout_s))
    return CompatibleModel(model if _known(provider) else spec.name, spec.servers, key, http, connections)


def _of_provider(spec: ModelSpec, http: httpx2.AsyncClient, key: str | None) -> Model:
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model
    from pydantic_ai.providers import infer_provider_class

    provider, _, model = spec.name.partition(":")
    if not model or not _known(provider):
        raise ConfigurationError(_unknown(spec.name))
    variable, own = _OWN_SERVERS.get(provider.partition("-")[0], ("", ""))
    if spec.base_url is None and os.environ.get(variable, own).rstrip("/") != own:
        raise ConfigurationError(
            f"{spec.name}: {variable} names another server, which would not be recorded: name it with --base-url, or "
            "unset the variable"
        )

    def create(name: str) -> Provider[Any]:
        kind = infer_provider_class(name)
        known = inspect.signature(kind.__init__).parameters
        if spec.base_url is not None and "base_url" not in known:
            raise ConfigurationError(f"{spec.name}: this provider takes no base URL")
        if provider.startswith("openai") and not (key or spec.base_url or os.environ.get("OPENAI_API_KEY")):
            raise UserError("Set OPENAI_API_KEY")  # set, but empty: the library would let it pass
        given = {"http_client": http, "base_url": spec.base_url, "api_key": key}
        return kind(**{key: value for key, value in given.items() if value is not None and key in known})

    return infer_model(spec.name, provider_factory=create)


def _in_our_words(said: str) -> str:
    """The library's error for a model that it can't build, without its advice to programmers."""
    key = re.search(r"\b[A-Z][A-Z0-9_]*(?:KEY|TOKEN)\b", said)
    if key is not None:
        return f"no API key: set the environment variable {key[0]} (a server of your own: name it with --base-url)"
    return one_line(said.split(". ", maxsplit=1)[0])


def _unknown(name: str) -> str:
    """The error for an unknown model name, with a suggestion."""
    provider, colon, model = name.partition(":")
    expected = "expected provider:model, like openai:…, anthropic:… or google:…"
    own = "for a server of your own add --base-url http://HOST:PORT/v1"
    if colon and not model:
        return f"no model named in {name!r}: {expected}; {own}"
    if colon:
        near = get_close_matches(provider, _PROVIDERS, n=1)
        meant = f" (did you mean {near[0]}:{model}?)" if near else ""
        return f"unknown provider {provider!r} in {name!r}{meant}: {expected}; {own}"
    meant = next((f" (did you mean {whose}:{name}?)" for start, whose in _MAKERS.items() if name.startswith(start)), "")
    return f"unknown model {name!r}{meant}: {expected}; {own}"


def _known(provider: str) -> bool:
    from pydantic_ai.providers import infer_provider_class

    try:
        infer_provider_class(provider)
    except ValueError:
        return False
    except ImportError:  # a known provider whose package is missing: reported when the model is built
        return True
    return True


def _is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".localhost"))
    return address.is_private or address.is_loopback or address.is_link_local


def _check_settings(model: Model, spec: ModelSpec) -> None:
    """Raises `ConfigurationError` for an unknown setting, which the library would ignore, and for a wrong value."""
    known = _known_settings(model)
    usable = sorted(set(known) - set(model.unsupported_settings) - set(RESERVED))
    for key, value in spec.settings.items():
        if key not in usable:
            near = get_close_matches(key, usable, n=1, cutoff=0.85)  # top_k is not top_p
            choices = f"did you mean {near[0]!r}?" if near else f"expected {one_of(usable)}"
            raise ConfigurationError(
                f"{spec.name}: unknown model setting {key!r}: {choices} (a server's own settings go into extra_body)"
            )
        try:
            TypeAdapter(known[key]).validate_python(value)
        except ValidationError as error:
            reason = first_problem(error).expected
        else:
            continue
        raise ConfigurationError(f"{spec.name}: model setting {key!r}: found {value!r}, expected {reason}")


def _known_settings(model: Model) -> dict[str, Any]:
    """The types of a model's settings by name: from its `settings_type`, or from its module in the library."""
    if own := getattr(model, "settings_type", None):
        return get_type_hints(own)
    known: dict[str, Any] = {}
    for module in {kind.__module__ for kind in type(model).__mro__}:
        for name, kind in vars(sys.modules[module]).items():
            if name.endswith("ModelSettings") and is_typeddict(kind):
                known |= get_type_hints(kind)
    return known


_OVERHEARD = {"openai", "openai-chat", "openai-responses", "anthropic", "google"}
"""Providers whose requests can be made without sending them."""


_SEEDED = {"CohereModel", "GoogleModel", "GroqModel", "HuggingFaceModel", "MistralModel", "OpenAIChatModel", "XaiModel"}
"""The library's models whose protocol has a seed (see its `ModelSettings.seed`)."""


def takes_seed(spec: ModelSpec, model: Model) -> bool:
    """Whether a model's protocol has a seed. Where the library says that it leaves a setting out, it is asked; of others
    the class of the model decides."""
    if spec.is_local or spec.hears:
        return spec.is_local and not spec.hears
    seeded = ModelSpec.model_validate(spec.model_dump() | {"settings": {**spec.settings, "seed": 1}})
    try:
        _refuse_ignored(seeded, {"seed"})
    except ConfigurationError:
        return False
    return is_compatible(spec) or any(kind.__name__ in _SEEDED for kind in type(model).__mro__)


def _refuse_ignored(spec: ModelSpec, names: Set[str]) -> None:
    """Raises `ConfigurationError` for a setting that this model does not take: the library would leave it out, and the
    record would hold it. Found by a request that goes nowhere."""
    known = is_compatible(spec) or spec.name.partition(":")[0] in _OVERHEARD
    if not names or not known or spec.is_local or spec.hears:
        return
    with ThreadPoolExecutor(1) as thread:  # a loop may be running here
        said = thread.submit(asyncio.run, _overheard(spec, names)).result()
    if said:
        raise ConfigurationError(f"{spec.name}: {said}: leave it out of the settings")


def _not_sent(_: httpx2.Request) -> httpx2.Response:
    raise OSError("not sent")


class _Nowhere:
    async def post(self, *_: object) -> NoReturn:
        raise OSError("not sent")


async def _overheard(spec: ModelSpec, names: Set[str]) -> str:
    """What the library says of settings that it leaves out; "" if it sends all of them."""
    import httpx2
    from pydantic_ai.direct import model_request
    from pydantic_ai.exceptions import AgentRunError
    from pydantic_ai.messages import ModelRequest
    from pydantic_ai.models import ModelRequestParameters

    settings: Any = {name: spec.settings[name] for name in names}
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(_not_sent), timeout=spec.timeout_s) as http:
        model: Any = _made(spec, http, "none")
        _no_retries(model)
        if is_compatible(spec):
            model.post_by(_Nowhere())
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            _, form = model.prepare_request(settings, ModelRequestParameters())
            with suppress(AgentRunError, OSError):
                await model_request(model, [ModelRequest.user_text_prompt("?")], model_settings=settings)
    ignored = (str(one.message) for one in told if "will be ignored" in str(one.message))
    lost = "this model does not think: 'thinking' would be ignored"
    default = lost if settings.get("thinking") and form.thinking is None else ""
    return one_line(re.split(r"[.;] th", next(ignored, default), maxsplit=1, flags=re.IGNORECASE)[0])


def _no_retries(model: Model) -> None:
    """Disables the library's own retries, which would hide faults, and their time, from the client."""
    client: Any = getattr(model, "client", None)
    if hasattr(client, "max_retries"):
        client.max_retries = 0


_PATIENCE_S = 15.0
_REFUSED = {401, 403}
_NOT_FOUND = 404


async def reachable(base_urls: Iterable[str]) -> None:
    """Requests the list of models from each OpenAI-compatible server, which costs nothing.

    Raises `ConfigurationError`, with the address, where no server listens, where the key is refused, and where the list
    is below `/v1` of the address instead. Any other reply passes: not every server has such a list.
    """
    urls = list(dict.fromkeys(base_urls))
    await asyncio.gather(*(_check(url) for url in urls))


async def _check(url: str) -> None:
    status, said = await _listed(url)
    if status in _REFUSED:
        key = "another OPENAI_API_KEY" if os.environ.get("OPENAI_API_KEY") else "OPENAI_API_KEY to be set"
        raise ConfigurationError(f"{url} refuses access (HTTP {status}{said}): expected {key}")
    if status == _NOT_FOUND and not url.endswith("/v1"):
        below, _ = await _listed(f"{url}/v1")
        if below == 200 or below in _REFUSED:
            raise ConfigurationError(f"nothing at {url} (HTTP 404): did you mean --base-url {url}/v1?")


async def _listed(url: str) -> tuple[int, str]:
    """The status of a server's list of models (0 without a reply), and its message in case of refused access."""
    import httpx2

    key = os.environ.get("OPENAI_API_KEY")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with http_client(_PATIENCE_S) as http:
        try:
            reply = await http.get(f"{url}/models", headers=headers)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise ConfigurationError(
                f"nobody answers at {url} ({str(error) or type(error).__name__}): is the server running, and is --base-url right?"
            ) from error
        except httpx2.HTTPError:
            return 0, ""  # somebody is there
    said = one_line(reply.text)[:200] if reply.status_code in _REFUSED else ""
    return reply.status_code, f": {said}" if said else ""
