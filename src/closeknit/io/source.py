"""`Source`: a table outside this process that needs more than a path: a sheet, a table of a database, a lake."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.io.labels import Labels
from closeknit.io.names import Wanted

NAME_IT = "name it with --certificate, or what to check with --recipe (in Python: certificate=, or schema and models)"


class Source(ABC):
    """Base class of all sources: a subclass is a frozen dataclass, registered in `closeknit.io.sources`.

    Its fields are the keys of `data` in a recipe. The first one says where the table is: `path`, or `url` for an address.
    """

    name: ClassVar[str]  # in the tables of the documentation
    suffixes: ClassVar[tuple[str, ...]] = ()  # of files, in lower case
    schemes: ClassVar[tuple[str, ...]] = ()  # of addresses, such as "postgresql"
    files: ClassVar[tuple[str, ...]] = ()  # fields that are paths of other files, relative to a recipe
    ordered: ClassVar[bool] = True  # whether rows come back in the order in which they were written

    @classmethod
    def serves(cls, place: str) -> bool:
        """Whether this source reads the table at a path or address: by scheme or suffix, unless a subclass looks closer.

        Args:
            place: the path or address.
        """
        scheme, mark, _ = place.partition("://")
        return scheme.partition("+")[0].lower() in cls.schemes if mark else Path(place).suffix.lower() in cls.suffixes

    @classmethod
    def where(cls) -> str:
        """The name of the first field, which says where the table is."""
        return fields(cls)[0].name  # type: ignore[arg-type]

    @classmethod
    def locate(cls, place: str, base: Path | None) -> str:
        """The path or address in a recipe; a path is relative to the recipe.

        Args:
            place: the path or address.
            base: the folder of the recipe.
        """
        return place if "://" in place else str((base or Path()) / place)

    @property
    def place(self) -> str:
        """The path or address, as messages show it; a subclass with credentials leaves them out."""
        return str(getattr(self, self.where()))

    @abstractmethod
    def read(self, columns: Wanted = None) -> Columns:
        """The table.

        Args:
            columns: the columns to read, in this order; all if left out.
        """

    def form(self) -> dict[str, Any]:
        """The keys of `data` in a recipe: what differs from the defaults, a path absolute, never a credential."""
        _, *options = fields(self)  # type: ignore[arg-type]
        place = self.place if "://" in self.place else str(Path(self.place).resolve())
        given = {field.name: getattr(self, field.name) for field in options if getattr(self, field.name) != field.default}
        given |= {name: str(Path(given[name]).resolve()) for name in self.files if name in given}
        return {self.where(): place, **given}

    def read_labels(self) -> Labels | None:
        """Labels of variables and values, for releases in formats that have them."""
        return None

    def measure_size(self) -> tuple[int, int] | None:
        """Rows and bytes of the table as its head states them, to refuse what is too large unread; None if it does not."""
        return None

    def find_faults(self) -> list[str]:
        """What is with a release in its place and not part of it, one sentence each."""
        return []

    def read_certificate(self) -> str:
        """The certificate that was written with a release, as JSON."""
        raise BadInput("there is no certificate with this table", file=self.place, right=NAME_IT)

    def check_target(self, replace: bool) -> None:
        """Refuse a place that cannot be written in the end, before the work starts.

        Args:
            replace: whether an earlier release there is replaced.
        """
        return

    def describe_written(self) -> list[str]:
        """What was written where, one line each, and what to do next."""
        return [f"{self.place}: public, may be shared"]

    def write(self, columns: Columns, certificate: str, private: Mapping[str, Any], replace: bool) -> None:
        """Write a release with its certificate, both or neither.

        Args:
            columns: the written cells.
            certificate: the certificate as JSON.
            private: the private files by name: texts, and `Columns` for a table; a source without a private place refuses
                nothing and drops them.
            replace: whether an earlier release there is replaced.
        """
        raise BadInput("a release cannot be written here", file=self.place, right="save it in a folder")
