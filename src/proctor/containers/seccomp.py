"""The filter of system calls that a container runs under. Podman's own lets every program make namespaces of users, in
which it has all rights over mounts and networks of its own; docker's does not. So podman's is narrowed."""

from __future__ import annotations

from typing import Any

_REFUSED = frozenset(
    {
        "add_key", "bpf", "fsconfig", "fsmount", "fsopen", "fspick", "io_uring_enter", "io_uring_register",
        "io_uring_setup", "keyctl", "mount", "mount_setattr", "move_mount", "name_to_handle_at", "open_by_handle_at",
        "open_tree", "perf_event_open", "pivot_root", "request_key", "setns", "umount", "umount2", "unshare",
        "userfaultfd",
    }
)  # fmt: skip
_BY_FLAGS = frozenset({"clone", "clone3"})
_NEW_NAMESPACES = 0x7E020000
_ENOSYS = 38


def narrowed(profile: object) -> dict[str, Any]:
    """A profile (an allowlist, as podman and docker keep them) without the calls that make or enter namespaces and
    mounts, or reach the kernel's keys, programs and counters. `clone` makes processes alone, and `clone3`, whose
    arguments can't be looked at, says that it is not there, so that libraries use `clone`. Raises `ValueError` for no
    allowlist.

    >>> allowed = {"defaultAction": "SCMP_ACT_ERRNO",
    ...            "syscalls": [{"names": ["read", "unshare", "clone"], "action": "SCMP_ACT_ALLOW"}]}
    >>> [one["names"] for one in narrowed(allowed)["syscalls"]]
    [['read'], ['clone'], ['clone3']]
    """
    allowlist = profile if isinstance(profile, dict) else {}
    rules = allowlist.get("syscalls")
    if allowlist.get("defaultAction") not in {"SCMP_ACT_ERRNO", "SCMP_ACT_KILL"} or not isinstance(rules, list):
        raise ValueError("found no allowlist of system calls")
    kept = [{**rule, "names": [name for name in rule["names"] if name not in _REFUSED | _BY_FLAGS]} for rule in rules]
    processes = {
        "names": ["clone"],
        "action": "SCMP_ACT_ALLOW",
        "args": [{"index": 0, "value": _NEW_NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}],
    }
    absent = {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": _ENOSYS}
    return {**allowlist, "syscalls": [*(rule for rule in kept if rule["names"]), processes, absent]}
