"""Specifications, settings and redaction."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from proctor.core import ConfigurationError, InputError
from proctor.models import ModelClient, ModelSpec, parse_settings
from proctor.models.faults import one_line

KEYS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY")


@pytest.fixture(autouse=True)
def without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)


def reason(**fields: object) -> str:
    with pytest.raises(ConfigurationError) as caught:
        ModelClient(ModelSpec.model_validate(fields))
    return str(caught.value)


def test_a_specification_is_plain_json() -> None:
    spec = ModelSpec(name="openai:m", base_url="http://localhost:8000/v1/", settings={"temperature": 0.5})
    assert ModelSpec.model_validate_json(spec.model_dump_json()) == spec
    assert spec.base_url == "http://localhost:8000/v1"


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("openai:gpt-5", "OPENAI_API_KEY"),
        ("openai-chat:gpt-4o", "OPENAI_API_KEY"),
        ("anthropic:claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("google:gemini-3-pro", "GOOGLE_API_KEY"),
    ],
)
def test_without_a_key_nothing_starts(name: str, variable: str) -> None:
    assert reason(name=name) == (
        f"{name}: no API key: set the environment variable {variable} (a server of your own: name it with --base-url)"
    )


def test_a_server_elsewhere_needs_a_key_and_a_local_one_does_not() -> None:
    assert reason(name="openai:m", base_url="https://models.example.org/v1") == (
        "openai:m: no API key for https://models.example.org/v1: set OPENAI_API_KEY "
        "(to any text where the server needs none)"
    )
    for host in ("localhost", "127.0.0.1", "[::1]", "10.1.2.3", "gpu-box", "gpu.local"):
        client = ModelClient(ModelSpec(name="openai:m", base_url=f"http://{host}:8000/v1"))
        asyncio.run(client.aclose())


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("gpt-5.2", "unknown model 'gpt-5.2' (did you mean openai:gpt-5.2?)"),
        ("test", "unknown model 'test'"),
        ("nobody:m", "unknown provider 'nobody' in 'nobody:m'"),
        ("opnai:gpt-5", "unknown provider 'opnai' in 'opnai:gpt-5' (did you mean openai:gpt-5?)"),
        ("openai:", "no model named in 'openai:'"),
        (":m", "unknown provider '' in ':m'"),
    ],
)
def test_an_unknown_model_names_the_form_and_what_was_meant(name: str, found: str) -> None:
    assert reason(name=name) == (
        f"{found}: expected provider:model, like openai:…, anthropic:… or google:…; "
        "for a server of your own add --base-url http://HOST:PORT/v1"
    )


@pytest.mark.parametrize(
    ("name", "asked"), [("openai:llava", "llava"), ("Qwen/Qwen3-VL", "Qwen/Qwen3-VL"), ("qwen2.5vl:7b", "qwen2.5vl:7b")]
)
def test_a_server_of_ones_own_takes_bare_names(name: str, asked: str) -> None:
    client = ModelClient(ModelSpec(name=name, base_url="http://localhost:9/v1"))
    assert client._model.model_name == asked
    asyncio.run(client.aclose())


@pytest.mark.parametrize("name", ["openai:gpt-5", "openai-chat:gpt-4o", "anthropic:claude-sonnet-4-5"])
def test_the_providers_own_retries_are_off(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for key in KEYS:
        monkeypatch.setenv(key, "a-key-for-nothing") if key != "OPENAI_BASE_URL" else None
    client = ModelClient(ModelSpec(name=name))
    assert vars(client._model)["_provider"].client.max_retries == 0
    asyncio.run(client.aclose())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temprature": 0}, "unknown model setting 'temprature': did you mean 'temperature'? "),
        ({"top_k": 4}, "unknown model setting 'top_k': expected one of cache, "),
        ({"temperature": "hot"}, "model setting 'temperature': found 'hot', expected a number"),
        ({"max_tokens": 1.5}, "model setting 'max_tokens': found 1.5, expected a whole number"),
    ],
)
def test_a_setting_that_would_be_ignored_is_an_error(settings: dict[str, object], message: str) -> None:
    said = reason(name="openai:m", base_url="http://localhost:9/v1", settings=settings)
    assert said.startswith(f"openai:m: {message}")


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("openai:gpt-5", None),
        ("anthropic:claude-sonnet-4-5", None),
        ("google:gemini-3-pro", None),
        ("m", "https://models.example.org/v1"),
    ],
)
def test_a_wrong_setting_is_told_before_a_missing_key(name: str, url: str | None) -> None:
    assert reason(name=name, base_url=url, settings={"temprature": 0}) == (
        f"{name}: unknown model setting 'temprature': did you mean 'temperature'? "
        "(a server's own settings go into extra_body)"
    )
    assert "no API key" in reason(name=name, base_url=url, settings={"temperature": 0})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"base_url": "http://me:pw@h/v1"}, "a base URL holds no credentials and no query"),
        ({"base_url": "http://h/v1?key=abc"}, "a base URL holds no credentials and no query"),
        ({"base_url": "h/v1"}, "a base URL is expected to start with http:// or https:// and a host"),
        ({"settings": {"extra_headers": {"X": "y"}}}, "the model setting 'extra_headers' is not passed"),
        ({"settings": {"timeout": 3}}, "the model setting 'timeout' is not passed through"),
        ({"settings": {"max_retries": 3}}, "the model setting 'max_retries' is not passed through"),
        ({"settings": {"extra_body": [{"api_key": "abc"}]}}, "the model setting 'api_key' looks like a secret"),
    ],
)
def test_secrets_and_what_is_ours_stay_out_of_specifications(fields: dict[str, object], message: str) -> None:
    said = reason(name="openai:m", **fields)
    assert said.startswith(message)
    assert "pw" not in said
    assert "abc" not in said


@pytest.mark.parametrize("fields", [{"timeout_s": 0}, {"retries": -1}, {"backoff_s": float("nan")}, {"nmae": 1}])
def test_a_wrong_field_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ModelSpec.model_validate({"name": "openai:m"} | fields)


def test_settings_are_read_as_json_else_as_text() -> None:
    assert parse_settings(["a=1", "b=0.5", "c=true", 'd={"e": [1]}', "f=low", "g=", "h=x=y"]) == {
        "a": 1,
        "b": 0.5,
        "c": True,
        "d": {"e": [1]},
        "f": "low",
        "g": "",
        "h": "x=y",
    }


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (["temperature"], "model settings: found 'temperature', expected key=value"),
        (["=3"], "model settings: found '=3', expected key=value"),
        (["a=1", "a=2"], "model settings: found 'a' twice, expected each key once"),
    ],
)
def test_settings_that_are_none(pairs: list[str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_settings(pairs)
    assert str(caught.value) == message


@given(before=st.text(), after=st.text())
def test_no_text_around_a_key_keeps_it(before: str, after: str) -> None:
    key = "sk-ant-abc0123456789def"
    assert "abc0123456789def" not in one_line(f"{before} {key} {after}")


@given(st.text())
def test_a_redacted_text_is_one_short_line(text: str) -> None:
    said = one_line(text)
    assert len(said) <= 240
    assert len(said.splitlines()) <= 1


def test_headers_urls_and_pictures_are_redacted() -> None:
    assert one_line("Authorization: Bearer abc.def") == "Authorization: ***"
    assert one_line("at https://me:pw@host/v1") == "at https://***host/v1"
    assert one_line("in data:image/jpeg;base64,/9j/4AAQ== here") == "in (a picture) here"
