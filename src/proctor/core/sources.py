"""Where a benchmark's data can be had, whose they are, and under which licence."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from proctor.core.errors import InputError
from proctor.core.files import first_problem
from proctor.core.yaml_files import read_yaml

Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/]+\S*$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{64})?$")]


class Download(BaseModel):
    """One archive or file. `hosts` are those that its address may lead on to; of an archive `folders` says what is
    taken (a folder or a file in it), and where that lies then ({}: all of it). `sha256` is that of what is sent,
    `content` that of what is taken (see `proctor.interchange.content_sha256`); "" is not known.

    >>> Download(url="https://example.org/a.zip", most_mb=5).folders
    {}
    """

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")

    url: Url
    hosts: tuple[str, ...] = ()
    most_mb: int = Field(gt=0)
    folders: dict[str, str] = {}
    sha256: Sha256 = ""
    content: Sha256 = ""


class DataSource(BaseModel):
    """Whose data a benchmark's are (`owner`), their `licence`, the `page` that says so, what the folder `holds`, and
    `ask`: what a person does where there is no `download`. `confirmed` names what the addresses were taken from,
    `media` says where the videos or images are.

    >>> DataSource(owner="A hospital", licence="CC BY 4.0", page="https://example.org", holds="a.csv", ask="Ask them.").media
    ''
    """

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")

    owner: str = Field(min_length=1)
    licence: str = Field(min_length=1)
    page: str = Field(min_length=1)
    holds: str = Field(min_length=1)
    ask: str = ""
    media: str = ""
    confirmed: tuple[str, ...] = ()
    download: Download | None = None


def read_source(file: Path, name: str) -> DataSource | None:
    """The source of one benchmark in a YAML file with one entry for each; None where it has no entry. Raises
    `InputError` for a file that is no such thing.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "sources.yaml"
    ...     _ = file.write_text("mine: {owner: A hospital, licence: CC0, page: 'https://example.org', holds: a.csv}")
    ...     found = read_source(file, "mine")
    >>> found.licence
    'CC0'
    """
    content = read_yaml(file, "sources by name")
    if name not in content:
        return None
    try:
        return DataSource.model_validate(content[name])
    except ValidationError as error:
        problem = first_problem(error)
        raise InputError(file, f"{name}.{problem.field}", found=problem.found, expected=problem.expected) from error
