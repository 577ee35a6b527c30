"""The settings of a run, or of a scorer, compared with those that it is to go on with."""

from __future__ import annotations

from typing import Any

_ADDRESS = "base_url"
_SERVERS = "servers"
_FILE = "recorded"


def same_run(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether two settings differ at most in the address of a server, which may move, and in the name of the file that
    answers were recorded in.

    >>> same_run({"system": {"model": "m", "base_url": "http://a/v1"}}, {"system": {"model": "m", "base_url": "http://b/v1"}})
    True
    >>> same_run({"system": {"model": "m"}}, {"system": {"model": "n"}})
    False
    """
    return _told(old) == _told(new)


def with_servers(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The new settings with every address that a run was asked at, in their order, where there were several.

    >>> with_servers({"system": {"base_url": "http://a/v1"}}, {"system": {"base_url": "http://b/v1"}})
    {'system': {'base_url': 'http://b/v1'}, 'servers': ['http://a/v1', 'http://b/v1']}
    """
    known = list(dict.fromkeys([*old.get(_SERVERS, []), *_addresses(old), *_addresses(new)]))
    plain = {name: value for name, value in new.items() if name != _SERVERS}
    return plain | ({_SERVERS: known} if len(known) > len(set(_addresses(new))) else {})


def changed_settings(old: dict[str, Any], new: dict[str, Any]) -> str:
    """The settings that differ, by their dotted names, without addresses and the name of a file of recorded answers.

    >>> changed_settings({"system": {"seed": 0, "model": "m"}}, {"system": {"seed": 1, "model": "m"}})
    'system.seed 0 then, 1 now'
    """
    before, now = _flat(_told(old)), _flat(_told(new))
    names = [name for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)]
    return "; ".join(f"{name} {before.get(name)!r} then, {now.get(name)!r} now" for name in names[:3])


def _told(settings: dict[str, Any]) -> dict[str, Any]:
    """What makes a run another one."""
    plain: dict[str, Any] = without_addresses(settings)
    return {name: value for name, value in plain.items() if name != _FILE}


def without_addresses(value: Any) -> Any:
    """Settings without the addresses of servers, at any depth."""
    if isinstance(value, dict):
        kept = {name: one for name, one in value.items() if name not in {_ADDRESS, _SERVERS}}
        return {name: without_addresses(one) for name, one in kept.items()}
    return [without_addresses(one) for one in value] if isinstance(value, list) else value


def _addresses(value: Any) -> list[str]:
    if isinstance(value, list):
        return [found for one in value for found in _addresses(one)]
    if not isinstance(value, dict):
        return []
    own = [value.get(_ADDRESS), *(value.get(_SERVERS) or ())]
    below = [found for one in value.values() for found in _addresses(one)]
    return [*dict.fromkeys(one for one in own if isinstance(one, str)), *below]


def _flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat
