"""Who owns the parts of a challenge's folder, and who may read and write them.

Two accounts share a folder: the server's owns it, and the scorer's owns the sealed part. They meet in a group.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from proctor.core import shell_word
from proctor_challenge.challenge import UPLOADS, challenge_store, owner_of
from proctor_challenge.receipts import KEY_FILE
from proctor_challenge.settings import CHALLENGE_FILE, SEALED, ChallengeSettings

_R, _W, _X = stat.S_IRGRP, stat.S_IWGRP, stat.S_IXGRP
_LETTERS = {_R: "r", _W: "w", _X: "x", stat.S_ISGID: "s"}
_FOLDER, _SHARED = _R | _X, _R | _X | stat.S_ISGID


@dataclass(frozen=True)
class FolderRights:
    """A line for each part (owner, group, mode), and the problems, each with the commands that correct it."""

    facts: tuple[str, ...]
    problems: tuple[str, ...]


def folder_rights(folder: Path, settings: ChallengeSettings) -> FolderRights:
    """The rights of a challenge's folder. Without a second account there are no facts: all belongs to one."""
    sealed = folder / SEALED
    if not sealed.exists():
        return FolderRights((), ())
    mode = stat.S_IMODE(sealed.stat().st_mode)
    problems = []
    if mode & 0o077:
        problems.append(f"{SEALED}/: found mode {mode:04o}, expected 0700: the scorer's user alone may open it")
    if sealed.stat().st_uid == folder.stat().st_uid:
        return FolderRights((), tuple(problems))
    parts = list(_parts(folder, settings))
    facts = [_described(folder, part) for part in (folder, sealed, *(part for part, _ in parts if part != folder))]
    groups = _groups_of(sealed.stat().st_uid)
    problems += [line for part, needed in parts for line in _problems(folder, part, needed, groups)]
    return FolderRights(tuple(facts), tuple(problems))


def _parts(folder: Path, settings: ChallengeSettings) -> Iterator[tuple[Path, int]]:
    """The parts that both accounts use, each with what the scorer's needs there."""
    location = challenge_store(folder, settings)
    in_folder = "://" not in location.text
    yield folder, _SHARED | _W if in_folder and Path(location.text).parent.resolve() == folder.resolve() else _FOLDER
    yield folder / CHALLENGE_FILE, _R
    yield folder / "public", _FOLDER if (folder / KEY_FILE).is_file() else _SHARED | _W  # the scorer's writes the key
    yield folder / UPLOADS, _SHARED
    if in_folder and Path(location.text).exists():
        yield Path(location.text), _R | _W


def _problems(folder: Path, part: Path, needed: int, groups: frozenset[int]) -> Iterator[str]:
    """What the scorer's account lacks at a part."""
    if not part.exists():
        return
    known = part.stat()
    open_to_all = needed in {_R, _FOLDER} and known.st_mode & (needed >> 3) == needed >> 3
    meets = not groups or known.st_gid in groups
    if open_to_all or (meets and known.st_mode & needed == needed):
        return
    name, group = _name(folder, part), _group_name(_shared_group(folder, groups))
    letters = "".join(letter for bit, letter in _LETTERS.items() if needed & bit)
    word = shell_word(part)
    found = f"group {_group_name(known.st_gid)}, mode {stat.S_IMODE(known.st_mode):04o}"
    yield f"{name}: found {found}, expected the group of both accounts: chgrp {group} {word}; chmod g+{letters} {word}"


def _shared_group(folder: Path, groups: frozenset[int]) -> int:
    """The group to name: that of a part which the scorer's account has, one that both have, or one of the scorer's."""
    of_parts = {part.stat().st_gid for part in (folder, folder / UPLOADS) if part.exists()}
    return min(groups & of_parts or groups & _groups_of(folder.stat().st_uid) or groups or of_parts)


def _groups_of(user: int) -> frozenset[int]:
    if user == os.geteuid():
        return frozenset({os.getegid(), *os.getgroups()})
    try:
        known = pwd.getpwuid(user)
    except KeyError:  # a number without a name: only its processes know its groups
        return frozenset()
    return frozenset(os.getgrouplist(known.pw_name, known.pw_gid))


def _group_name(group: int) -> str:
    try:
        return grp.getgrgid(group).gr_name
    except KeyError:
        return str(group)


def _name(folder: Path, part: Path) -> str:
    if part == folder:
        return "the folder"
    shown = part.relative_to(folder) if part.is_relative_to(folder) else part
    return f"{shown}/" if part.is_dir() else str(shown)


def _described(folder: Path, part: Path) -> str:
    if not part.exists():
        return f"{_name(folder, part)}: not there"
    known = part.stat()
    owners = f"{owner_of(part)}:{_group_name(known.st_gid)}"
    return f"{_name(folder, part)}: {owners}, mode {stat.S_IMODE(known.st_mode):04o}"
