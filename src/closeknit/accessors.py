"""`frame.closeknit` on the frames of pandas and polars, and `frame.ck` on those of polars.

A library that is loaded before closeknit gets the accessor at once, one that is loaded later when its import ends: `import
closeknit` loads neither. For the latter, a finder waits in `sys.meta_path` until both are loaded.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from closeknit.api.suggestion import Suggestion
    from closeknit.core.audit import Audit
    from closeknit.release import Release

NAMES = {"pandas": ("closeknit",), "polars": ("closeknit", "ck")}  # the accessors of each library


class FrameAccessor:
    """The functions of closeknit that begin with a table, as methods of a frame.

    Args:
        frame: the frame.

    >>> import pandas as pd
    >>> import closeknit as ck
    >>> people = pd.DataFrame({"age": [30, 31, 40, 42], "ill": ["flu", "gout", "flu", "gout"]})
    >>> schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
    >>> release = people.closeknit.anonymize(schema, [ck.KAnonymity(2)])
    >>> release.frame["age"].tolist()
    ['[30, 31]', '[30, 31]', '[40, 42]', '[40, 42]']
    """

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def anonymize(self, schema: Any, models: Any, method: Any = None, **options: Any) -> Release:
        """Return a certified release of this frame; its `frame` is of the same library. See `closeknit.anonymize`.

        Args:
            schema: role, kind and hierarchy of each column.
            models: the guarantees to meet.
            method: the algorithm that assigns rows to equivalence classes.
            options: the other parameters of `closeknit.anonymize`.
        """
        from closeknit.api import anonymize

        return anonymize(self._frame, schema, models, method, **options)

    def audit(self, schema: Any = None, models: Any = None, **options: Any) -> Audit:
        """Recompute every guarantee of the release in this frame. See `closeknit.audit`.

        Args:
            schema: the published columns, where there is no certificate.
            models: the guarantees to check, where there is no certificate.
            options: the other parameters of `closeknit.audit`, such as `certificate`.
        """
        from closeknit.api import audit

        return audit(self._frame, schema, models, **options)

    def suggest(self) -> Suggestion:
        """Suggest role, kind and hierarchy of each column, with the reason. See `closeknit.suggest`."""
        from closeknit.api import suggest

        return suggest(self._frame)

    def intervals(self) -> Any:
        """Return this release with intervals in place of bounds (`age_lo`, `age_hi`).

        They are intervals of pandas, closed on both sides, or structs of polars; both are missing where the cell is `*`.

        >>> import pandas as pd
        >>> import closeknit as ck
        >>> pd.DataFrame({"age_lo": [30, 40], "age_hi": [31, 42]}).closeknit.intervals()["age"].dtype
        interval[int64, both]
        """
        from closeknit.io.frames import join_bounds

        return join_bounds(self._frame)


def register(library: ModuleType) -> None:
    """Register the accessors of a library that is loaded; a name that its frames have already is left as it is.

    Args:
        library: pandas or polars.

    >>> import pandas as pd
    >>> register(pd)
    >>> pd.DataFrame({"age": [30]}).closeknit.suggest().rows
    1
    """
    for name in NAMES[library.__name__]:
        if library.__name__ == "pandas":
            if name not in vars(library.DataFrame):
                library.api.extensions.register_dataframe_accessor(name)(FrameAccessor)
            continue
        if name not in vars(library.DataFrame):
            library.api.register_dataframe_namespace(name)(FrameAccessor)
        if name not in vars(library.LazyFrame):
            library.api.register_lazyframe_namespace(name)(FrameAccessor)


class ImportWatcher:
    """A finder that finds nothing itself: it registers the accessors at the end of the import of each library."""

    def __init__(self, libraries: Sequence[str]) -> None:
        self.libraries = set(libraries)
        self.looking = False  # among all finders, this one included

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec that the other finders give, with a loader that registers the accessors when it is done.

        Args:
            name: the module to be imported.
            path: where to look.
            target: the module to be reloaded.
        """
        if name not in self.libraries or self.looking:
            return None
        self.looking = True
        try:
            specs = (finder.find_spec(name, path, target) for finder in sys.meta_path)
            spec = next(filter(None, specs), None)
        finally:
            self.looking = False
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                load(module)
                self.libraries.discard(name)
                if not self.libraries and self in sys.meta_path:
                    sys.meta_path.remove(self)
                register(module)

            spec.loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec


def register_all() -> None:
    """Register the accessors with what is loaded, and watch for what is not.

    >>> register_all()
    """
    if any(isinstance(finder, ImportWatcher) for finder in sys.meta_path):
        return
    for name in NAMES:
        if name in sys.modules:
            register(importlib.import_module(name))  # waits if another thread is still importing it
    if later := [name for name in NAMES if name not in sys.modules]:
        sys.meta_path.insert(0, ImportWatcher(later))
