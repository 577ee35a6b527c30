"""A file that says what answers are rated on, for any task and language."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from proctor.core import InputError, RatingScheme, read_bytes


def read_scheme(file: Path) -> RatingScheme:
    """The scheme in a YAML file with the fields of `RatingScheme`. Raises `InputError`, with the place, for anything else."""
    import yaml

    try:
        given = yaml.safe_load(read_bytes(file).decode("utf-8"))
        return RatingScheme.model_validate(given)
    except OSError as error:
        reason = InputError(file, found=error.strerror or "an unreadable file", expected="a file of dimensions")
    except UnicodeDecodeError as error:
        reason = InputError(file, f"byte {error.start}", found="text that is not UTF-8", expected="UTF-8")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}" if mark else ""
        reason = InputError(file, place, found=str(error.problem), expected="YAML")
    except (yaml.YAMLError, RecursionError):
        reason = InputError(file, found="what can't be read", expected="YAML")
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        found = "nothing" if first["type"] == "missing" else repr(first["input"])[:80]
        reason = InputError(file, f"field {place!r}" if place else "", found=found, expected=first["msg"])
    raise reason
