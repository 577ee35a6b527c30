"""The source, owner and licence of a benchmark's data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints, ValidationError

from proctor.core.errors import InputError
from proctor.core.field_problems import first_problem
from proctor.core.validation import FrozenModel
from proctor.core.yaml_files import read_yaml

Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/]+\S*$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{64})?$")]


class Download(FrozenModel):
    """A downloadable archive or file. `hosts` are the hosts to which its URL may redirect. `folders` maps the folders
    or files to extract from an archive to their destinations ({}: extract all). `sha256` is the hash of the download,
    `content` that of the extracted files (see `proctor.interchange.content_sha256`); "" is unknown.

    >>> Download(url="https://example.org/a.zip", most_mb=5).folders
    {}
    """

    url: Url
    hosts: tuple[str, ...] = ()
    most_mb: int = Field(gt=0)
    folders: dict[str, str] = Field(default_factory=dict)
    sha256: Sha256 = ""
    content: Sha256 = ""


class DataSource(FrozenModel):
    """The `owner` and `licence` of the data, the `page` that states them, what the data folder `holds`, and
    instructions (`ask`) if there is no `download`. `confirmed` names the sources of the URLs; `media` is where the
    videos or images are.

    >>> DataSource(owner="A hospital", licence="CC BY 4.0", page="https://example.org", holds="a.csv", ask="Ask them.").media
    ''
    """

    owner: str = Field(min_length=1)
    licence: str = Field(min_length=1)
    page: str = Field(min_length=1)
    holds: str = Field(min_length=1)
    ask: str = ""
    media: str = ""
    confirmed: tuple[str, ...] = ()
    download: Download | None = None


def read_source(file: Path, name: str) -> DataSource | None:
    """The source of a benchmark from a YAML file with one entry per benchmark; None without an entry. Raises
    `InputError` for an invalid file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "sources.yaml"
    ...     _ = file.write_text("mine: {owner: A hospital, licence: CC0, page: 'https://example.org', holds: a.csv}")
    ...     source = read_source(file, "mine")
    >>> source.licence
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
