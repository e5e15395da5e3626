"""Layout: how the bytes of a source become features. It travels in the model file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from thresher.data.errors import DataError


@dataclass(frozen=True)
class Layout:
    """What must be known to read new data as the training data were read. All of it is JSON."""

    format: str = "svmlight"
    """one of `formats.FORMATS`"""
    seed: int = 0
    """of the hashes that names become keys by"""

    def as_dict(self) -> dict[str, Any]:
        """What differs from the defaults, and the format."""
        given = asdict(self)
        return {
            f.name: given[f.name] for f in fields(self) if f.name == "format" or given[f.name] != f.default
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Layout:
        """The inverse of `as_dict`; `DataError` for what this version does not know."""
        unknown = sorted(given.keys() - {field.name for field in fields(cls)})
        if unknown:
            raise DataError(f"the data were read with {', '.join(unknown)}, which this version does not know")
        listed: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in given.items()}
        return cls(**listed)
