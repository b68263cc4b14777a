"""A suggestion as an editable recipe: every line with its reason, and "not sure" where the user should check."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import yaml

from closeknit.core.errors import keep_printable
from closeknit.core.kind_forms import kind_form
from closeknit.core.kinds import Kind

if TYPE_CHECKING:
    from closeknit.api.suggestion import Suggestion

WIDEST_LINE = 100
K, T = 6, 0.2

HEAD = """\
# A recipe for closeknit, suggested from {rows:,} rows. It is private: do not share it.
# Read every line, correct what is wrong (first of all where it says "not sure"), then run
#     closeknit anonymize {name} -o out/
# Kinds: numeric, date, prefix, flat, tree: {{node: [leaf, ...]}}, csv: FILE (leaf;parent;...;root).
"""
NOTES = {
    "identifier": "never published",
    "person": "never published: rows of one person are counted once",
    "quasi": "generalized: an adversary may know it from other sources",
    "sensitive": "published as it is, protected by the guarantees below",
    "missing": "missing-value codes",
}
NOT_SURE = "not sure: "
STEP = 5  # of the example
COARSEN = "Stronger, against an adversary who knows the method: give a column such a kind, so that no cut sees exact numbers:"
SNAP = "Ranges of whole numbers end at true values; uncomment the next line to end them at round steps."


def recipe_text(suggestion: Suggestion, path: str, csv: Mapping[str, Any], name: str) -> str:
    """Return YAML that `Recipe.read` accepts."""
    key = "url" if "://" in path or path.startswith(("${", "@")) else "path"
    blocks = [
        HEAD.format(rows=suggestion.rows, name=keep_printable(name, "?")),
        f"data: {_flow({key: path, **csv} if csv else path)}\n",
        "schema:",
    ]
    blocks += [textwrap.indent(block, "  ") for block in _roles(suggestion)]
    blocks += ["", "models:", *(f"  - {line}" for line in _models(suggestion))]
    if not suggestion.schema.sensitive:
        blocks += [f"  # and for each sensitive column:  - t_closeness: {{column: COLUMN, t: {T}}}"]
    blocks += ["method: knit", *_snapping(suggestion), ""]
    return "\n".join(blocks)


def _roles(suggestion: Suggestion) -> Iterable[str]:
    schema = suggestion.schema
    if schema.identifier:
        lines = [f"  - {_line(_flow(name), suggestion, name)}" for name in schema.identifier]
        yield "\n".join([f"identifier:  # {NOTES['identifier']}", *lines])
    if schema.person is not None:
        yield f"{_line(f'person: {_flow(schema.person)}', suggestion, schema.person)}  ({NOTES['person']})"
    for role, kinds in (("quasi", schema.quasi), ("sensitive", schema.sensitive)):
        if kinds:
            lines = [textwrap.indent(_column(suggestion, name, kind), "  ") for name, kind in kinds.items()]
            yield "\n".join([f"{role}:  # {NOTES[role]}", *lines])
        else:
            yield f"{role}: {{}}  # {NOT_SURE}no column looks {role}; move one here, e.g.  {role}: {{COLUMN: flat}}"
    if schema.missing:
        doubtful = ", ".join(repr(marker) for marker in suggestion.doubtful_markers)
        doubt = f"; {NOT_SURE}{doubtful} may be a value of its own" if doubtful else ""
        yield f"missing: [{', '.join(map(_flow, schema.missing))}]  # {NOTES['missing']}{doubt}"


def _column(suggestion: Suggestion, name: str, kind: Kind) -> str:
    form = kind_form(kind)
    short = f"{_flow(name)}: {_flow(form)}"
    if len(short) <= WIDEST_LINE:
        return _line(short, suggestion, name)
    below = yaml.safe_dump(form, sort_keys=False, allow_unicode=True, default_flow_style=None, width=WIDEST_LINE)
    return _line(f"{_flow(name)}:", suggestion, name) + "\n" + textwrap.indent(below.rstrip("\n"), "  ")


def _models(suggestion: Suggestion) -> Iterable[str]:
    yield f"k_anonymity: {{k: {K}}}  # every row looks like at least {K - 1} others"
    for name, kind in suggestion.schema.sensitive.items():
        distance, note = "", "the class discloses little about the value"
        if name in suggestion.with_missing and kind.default_distance == "ordered":
            distance, note = ", distance: equal", "equal, because a missing value has no order"
        yield f"t_closeness: {{column: {_flow(name)}, t: {T}{distance}}}  # {note}"


def _snapping(suggestion: Suggestion) -> Iterable[str]:
    """Yield lines that let ranges of whole numbers end at steps, with the added loss."""
    if suggestion.snap_costs:
        costs = ", ".join(f"{_flow(name)} about {cost:.2g}" for name, cost in suggestion.snap_costs.items())
        yield f"# {SNAP} Added loss: {costs}."
        yield "# form: {generalized: {snap: true}}"
        name = next(iter(suggestion.snap_costs))
        coarse = _flow({name: {"numeric": {"step": STEP, "coarsen": True}}}).removeprefix("{").removesuffix("}")
        yield f"# {COARSEN} {coarse}"


def _line(text: str, suggestion: Suggestion, name: str) -> str:
    """Return the line with its reason; control characters of a value must not break the comment."""
    guess = suggestion.reasons[name]
    reason = keep_printable(guess.reason, "?")
    return f"{text}  # {'' if guess.sure else NOT_SURE}{reason}"


def _flow(form: object) -> str:
    """Return one line of YAML that is valid anywhere, also inside braces."""
    unprintable = isinstance(form, str) and not form.isprintable()
    style = {"default_style": '"'} if unprintable else {"allow_unicode": True}
    text = yaml.safe_dump([form], default_flow_style=True, sort_keys=False, width=10**9, **style)  # type: ignore[call-overload]
    return str(text).strip()[1:-1]
