"""The shipped conformance suite: one list of checks for everything registered, derived from what each component declares.

Your own method is checked like the registered ones:

>>> from closeknit.checks import check_method
>>> from closeknit.checks.tables import edge_tables
>>> import closeknit as ck
>>> check_method(ck.StackAndDeal(dealing="literal"), [table for table in edge_tables() if table.name == "unicode"]) > 10
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from closeknit.checks import engines, forms, hierarchies, methods, models, parameter_sets, stream_logs, streams
from closeknit.checks.failures import CheckFailed, require
from closeknit.checks.known_failures import KNOWN
from closeknit.checks.oracle import DEFINITIONS
from closeknit.checks.stream_cases import StreamCase, edge_streams, random_streams
from closeknit.checks.tables import Case, edge_tables, fit_to_method, random_tables, tables_of_both_roles
from closeknit.core.kind_forms import KINDS
from closeknit.core.params import spec
from closeknit.forms import REGISTRY as FORMS
from closeknit.methods import REGISTRY as METHODS
from closeknit.models import REGISTRY as MODELS
from closeknit.streams import REGISTRY as STREAMS


@dataclass(frozen=True)
class Check:
    """One check of one component, ready to run.

    Args:
        thing: Component under check, with its parameters.
        check: Name of the check.
        on: Table, stream or sample that it runs on.
        run: Runs the check; it raises `CheckFailed` where it fails.
    """

    thing: str
    check: str
    on: str
    run: Callable[[], None]

    @property
    def name(self) -> str:
        """Readable and unique name."""
        return " | ".join(part for part in (self.thing, self.check, self.on) if part)

    @property
    def known_failure(self) -> str | None:
        """Reason why it is known to fail, or None."""
        return KNOWN.get(self.thing, {}).get(self.check)


def method_checks(method: Any, tables: Iterable[Case], thing: str | None = None) -> Iterator[Check]:
    """Yield every check of a method on every table that suits it.

    Args:
        method: The method.
        tables: Tables to run it on; those that do not suit the method are left out.
        thing: Name in the checks; None takes the method's representation.
    """
    for table in filter(None, (fit_to_method(method, table) for table in tables)):
        for check in methods.CHECKS:
            yield Check(thing or repr(method), check.__name__, table.name, partial(check, method, table))


def engine_checks(engine: str, random: int = 1, seed: int = 0, turns: int = 24) -> Iterator[Check]:
    """Yield a comparison of every method on an engine with one machine; each example takes one in `turns` of the tables."""
    tables, turn = [*edge_tables(), *tables_of_both_roles(), *random_tables(random, seed)], 0
    for name, thing in METHODS.items():
        for params in _examples(parameter_sets.METHODS, name):
            method, turn = thing(**params), turn + 1
            for table in filter(None, (fit_to_method(method, table) for table in tables[turn % turns :: turns])):
                check, title = engines.same_as_on_one_machine, _format_title(f"{engine} method", name, params)
                yield Check(title, check.__name__, table.name, partial(check, engine, method, table))


def form_checks(form: Any, tables: Iterable[Case], thing: str | None = None) -> Iterator[Check]:
    """Yield every check of a form on every table that it can write.

    Args:
        form: The form.
        tables: Tables to write; those that do not suit the form are left out.
        thing: Name in the checks; None takes the form's representation.
    """
    for shape, table in filter(None, (forms.fit_form(form, table) for table in tables)):
        for check in forms.CHECKS:
            yield Check(thing or repr(form), check.__name__, table.name, partial(check, shape, table))


def model_checks(model: Any, kind: Any, rounds: int, thing: str | None = None) -> Iterator[Check]:
    """Yield every check of a guarantee on generated classes.

    Args:
        model: The guarantee.
        kind: Kind of its sensitive attribute; None for a guarantee about rows alone.
        rounds: Number of generated samples.
        thing: Name in the checks; None takes the model's representation.
    """
    chosen = [check for check in models.CHECKS if model.name in DEFINITIONS or check not in models.DEFINED]
    for seed in range(rounds):
        for check in chosen:
            yield Check(thing or repr(model), check.__name__, f"classes {seed}", partial(check, model, kind, seed))


def stream_checks(make: stream_logs.Make, cases: Iterable[StreamCase], thing: str) -> Iterator[Check]:
    """Yield every check of a stream on arriving rows.

    Args:
        make: Returns a new stream for a schema, each time with the same seed.
        cases: Arriving rows.
        thing: Name in the checks.
    """
    for case in cases:
        for check in streams.CHECKS:
            yield Check(thing, check.__name__, case.name, partial(check, make, case))


def kind_checks(kind: Any, values: list[Any], thing: str | None = None) -> Iterator[Check]:
    """Yield every check of a kind of column.

    Args:
        kind: The kind of column.
        values: Raw values of such a column.
        thing: Name in the checks; None takes the kind's representation.
    """
    for check in hierarchies.CHECKS:
        if values or check in (hierarchies.losses_are_shares, hierarchies.recipe_reads_back):
            yield Check(thing or repr(kind), check.__name__, "", partial(check, kind, values))


def every_check(random: int = 4, rounds: int = 6, seed: int = 0, turns: int = 1) -> Iterator[Check]:
    """Yield every check of everything registered, with all its parameter sets, on all tables.

    Args:
        random: Number of generated tables and streams.
        rounds: Number of generated samples per guarantee.
        seed: Seed of the generated tables, streams and samples.
        turns: The examples of a component after its first share the tables: each takes one in this many of them.
    """
    tables = [*edge_tables(), *tables_of_both_roles(), *random_tables(random, seed)]
    for name, thing in METHODS.items():
        for i, params in enumerate(_examples(parameter_sets.METHODS, name)):
            share = tables[i % turns :: turns] if i else tables
            yield from method_checks(thing(**params), share, _format_title("method", name, params))
    for name, form in FORMS.items():
        for params in _examples(parameter_sets.FORMS, name):
            yield from form_checks(form(**params), tables, _format_title("form", name, params))
    for name, model in MODELS.items():
        for params, kind in _examples(parameter_sets.MODELS, name):
            on = f"{_format_title('model', name, params)} of {kind.name if kind else 'rows'}"
            yield from model_checks(model(**params), kind, rounds, on)
    yield from _every_stream(random, seed, turns)
    for name in KINDS:
        for number, (kind, values) in enumerate(_examples(parameter_sets.KINDS, name)):
            yield from kind_checks(kind, values, f"kind {name} {number}")
    yield from _refusals()


def _every_stream(random: int, seed: int, turns: int) -> Iterator[Check]:
    cases = [*edge_streams(), *random_streams(random, seed)]
    for name, stream in STREAMS.items():
        for i, params in enumerate(_examples(parameter_sets.STREAMS, name)):
            make = partial(_build_stream, stream, params)
            share = cases[i % turns :: turns] if i else cases
            if any(spec(model).get("reference") for model in params.get("models", ())):
                share = [case.keep_values(parameter_sets.DECLARED) for case in share]
            yield from stream_checks(make, share, _format_title("stream", name, params))
        for params in _examples(parameter_sets.STREAMS_REFUSED, name, may_be_empty=True):
            check = partial(methods.bad_parameters_are_named, stream, params, {"schema": cases[0].schema})
            yield Check(f"stream {name}", "bad_parameters_are_named", str(params), check)


def _build_stream(stream: Any, params: dict[str, Any], schema: Any) -> Any:
    return stream(schema=schema, seed=stream_logs.SEED, **params)


def _refusals() -> Iterator[Check]:
    check = methods.bad_parameters_are_named
    for name, thing in {**METHODS, **FORMS, **MODELS}.items():
        for params in _examples(parameter_sets.REFUSED, name, may_be_empty=True):
            yield Check(name, check.__name__, str(params), partial(check, thing, params))


def _examples(listed: dict[str, list[Any]], name: str, may_be_empty: bool = False) -> list[Any]:
    known = name in listed and (listed[name] or may_be_empty)
    require(known, f"'{name}' is registered but has no parameter sets in checks/parameter_sets.py")
    return listed[name]


def _format_title(role: str, name: str, params: dict[str, Any]) -> str:
    shown = ", ".join(f"{key}={value}" for key, value in params.items() if key != "column")
    return f"{role} {name}({shown})" if shown else f"{role} {name}"


def check_method(method: Any, tables: Iterable[Case] | None = None) -> int:
    """Run every check of a method; `CheckFailed` lists those that failed.

    Args:
        method: The method, registered or not.
        tables: Tables to run it on; None takes the usual ones.

    Returns:
        The number of checks.
    """
    usual = [*edge_tables(), *tables_of_both_roles(), *random_tables(4)]
    return _run(method_checks(method, usual if tables is None else tables))


def check_model(model: Any, kind: Any = None, rounds: int = 6) -> int:
    """Run every check of a guarantee; `CheckFailed` lists those that failed.

    A guarantee of your own has no independent definition to compare with, so the checks that need one do not run.

    Args:
        model: The guarantee, registered or not; its column is `secret`.
        kind: Kind of its sensitive attribute; None for a guarantee about rows alone.
        rounds: Number of generated samples.

    Returns:
        The number of checks.

    >>> import closeknit as ck
    >>> check_model(ck.TCloseness("secret", 0.1), ck.flat(), rounds=1)
    7
    """
    return _run(model_checks(model, kind, rounds))


def _run(checks: Iterable[Check]) -> int:
    failed, count = [], 0
    for check in checks:
        count += 1
        try:
            check.run()
        except Exception as error:
            failed.append(f"{check.name}: {type(error).__name__}: {error}")
    require(not failed, f"{len(failed)} of {count} checks failed:\n" + "\n".join(failed))
    return count


__all__ = [
    "Case",
    "Check",
    "CheckFailed",
    "check_method",
    "check_model",
    "every_check",
    "form_checks",
    "kind_checks",
    "method_checks",
    "model_checks",
    "stream_checks",
]
