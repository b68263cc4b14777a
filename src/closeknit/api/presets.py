"""Presets: what a rule or policy asks for, as a documented recipe fragment under the rule's name.

A preset carries a number that can be cited, its source, and what it does not settle. Where a source gives no number there is no
preset: `LEFT_OUT` says why. Policies round class sizes: 1/11 = 0.0909 is written as 0.09. Presets therefore carry k.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from closeknit.api.harbor_preset import OPTIONS as HARBOR_OPTIONS
from closeknit.api.harbor_preset import fix_levels
from closeknit.core.errors import BadInput, suggest_name

Fragment = dict[str, Any]


@dataclass(frozen=True)
class Preset:
    """A named recipe fragment.

    Args:
        name: its name in a recipe.
        title: what it follows.
        sources: title and address of each source.
        recipe: what it adds to a recipe.
        says: what the numbers mean.
        open: what it does not settle.
        options: parameters that a recipe may give it, each with its meaning.
        shape: derives the schema of a recipe, from the written one and the options.
    """

    name: str
    title: str
    sources: Mapping[str, str]
    recipe: Fragment
    says: tuple[str, ...]
    open: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    shape: Callable[[Any, Mapping[str, Any]], Any] | None = None

    @property
    def models(self) -> list[Any]:
        """The guarantees, as `anonymize` takes them.

        >>> preset("ema_0070").models
        [{'k_anonymity': {'k': 11}}]
        """
        return [dict(model) for model in self.recipe.get("models", ())]

    @property
    def recipe_text(self) -> str:
        """What it adds to a recipe, as YAML."""
        return str(yaml.safe_dump(self.recipe, sort_keys=False, allow_unicode=True, default_flow_style=None)).rstrip()

    def expand(self, forms: Mapping[str, Any], options: Mapping[str, Any]) -> Fragment:
        """A recipe with what the preset adds: its guarantees come first, what the recipe says of other keys stays.

        Args:
            forms: the recipe as written, without the key `preset`.
            options: parameters of the preset.
        """
        for key in options:
            if key not in self.options:
                raise BadInput(f"preset '{self.name}' has no parameter '{key}'", right=suggest_name(key, self.options))
        written = forms.get("models") if isinstance(forms.get("models"), list) else []
        models = [*self.models, *(model for model in written or [] if model not in self.models)]
        schema = forms.get("schema") if self.shape is None else self.shape(forms.get("schema"), options)
        return {**self.recipe, **forms, "schema": schema, "models": models}

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.title}", "", "Adds to a recipe:"]
        lines += [f"  {line}" for line in self.recipe_text.splitlines()]
        parts = {
            "Parameters": [f"{key}: {what}" for key, what in self.options.items()],
            "Meaning": self.says,
            "Does not settle": self.open,
            "Sources": [f"{title}, {address}" for title, address in self.sources.items()],
        }
        for heading, texts in parts.items():
            lines += ["", f"{heading}:", *(f"  - {text}" for text in texts)] if texts else []
        return "\n".join(lines)


HHS = {
    "HHS, Guidance regarding methods for de-identification of protected health information": (
        "https://www.hhs.gov/hipaa/for-professionals/special-topics/de-identification/index.html"
    )
}
ROUNDED = "k = 11: a risk of at most 1/11, which the policy rounds to 0.09; whoever requests 0.09 itself needs classes of 12"
TRIALS = (
    "which columns are quasi-identifiers, and which adversaries and attacks are plausible",
    "the reference population: other trials of the same kind, or the people of a region, make the risk smaller",
    "sensitive values that a whole class shares: add a guarantee for each sensitive attribute",
    "text in reports, which closeknit does not read",
)

PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            name="ema_0070",
            title="EMA Policy 0070, publication of clinical data: threshold 0.09",
            sources={
                "EMA/90915/2016, External guidance on the implementation of Policy 0070, chapter 3": (
                    "https://www.ema.europa.eu/en/human-regulatory-overview/marketing-authorisation/clinical-data-publication"
                )
            },
            recipe={"models": [{"k_anonymity": {"k": 11}}]},
            says=(ROUNDED, "the largest risk of any person counts, as for a public release"),
            open=TRIALS,
        ),
        Preset(
            name="health_canada",
            title="Health Canada, public release of clinical information: threshold 0.09",
            sources={
                "Health Canada, Public release of clinical information: guidance document": (
                    "https://www.canada.ca/en/health-canada/services/drug-health-product-review-approval/"
                    "profile-public-release-clinical-information-guidance.html"
                )
            },
            recipe={"models": [{"k_anonymity": {"k": 11}}]},
            says=(ROUNDED,),
            open=TRIALS,
        ),
        Preset(
            name="ons",
            title="Office for National Statistics, Secure Research Service: threshold of 10",
            sources={
                "ONS, SRS output checking guidance, default rules of thumb": (
                    "https://www.ons.gov.uk/aboutus/whatwedo/statistics/requestingstatistics/secureresearchservice"
                )
            },
            recipe={"models": [{"k_anonymity": {"k": 10}}]},
            says=(
                "k = 10: no class of fewer than 10 rows",
                "the source asks this of the counts in output tables; to ask it of classes of microdata is closeknit's reading",
            ),
            open=(
                "whether microdata may be taken out of the service at all",
                "class disclosure and dominance, which the guidance treats separately: add l-diversity or t-closeness",
            ),
        ),
        Preset(
            name="hipaa_safe_harbor",
            title="HIPAA Safe Harbor, 45 CFR 164.514(b)(2)",
            sources={
                "45 CFR 164.514(b)(2)": (
                    "https://www.ecfr.gov/current/title-45/subtitle-A/subchapter-C/part-164/subpart-E/section-164.514"
                ),
                **HHS,
            },
            recipe={"method": "fixed_levels", "models": []},
            says=(
                "ages of 90 and above are written as 90+, dates as their year, ZIP codes as three digits or not at all",
                "years of birth of people who may be 90 or older on the reference date are one value",
                "no class size is guaranteed: the certificate states k = 1, and the audit counts unique rows",
            ),
            open=(
                "that no one who publishes knows that the rest could identify a person ((b)(2)(ii))",
                "identifiers of relatives, employers and household members",
                "free text, which needs a reader",
                "run 'closeknit audit --safe-harbor' on the table and on the release: it looks at every value",
            ),
            options=HARBOR_OPTIONS,
            shape=fix_levels,
        ),
    )
}

LEFT_OUT = {
    "hipaa_expert": "the guidance says that no number of its own meets 'very small' in general: an expert chooses it; "
    "'closeknit dossier --for hipaa' documents the result",
    "ehds": "Regulation (EU) 2025/327 on the European Health Data Space gives no number for anonymised data",
}


def preset(name: str) -> Preset:
    """A preset by its name.

    Args:
        name: such as "ema_0070".

    >>> preset("ema_0070").says[0]
    'k = 11: a risk of at most 1/11, which the policy rounds to 0.09; whoever requests 0.09 itself needs classes of 12'
    >>> preset("ema_70")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: preset 'ema_70' is unknown; did you mean 'ema_0070'?
    """
    if name in LEFT_OUT:
        raise BadInput(f"there is no preset '{name}': {LEFT_OUT[name]}", right="write the guarantees yourself")
    if name not in PRESETS:
        raise BadInput(f"preset '{name}' is unknown", right=suggest_name(name, PRESETS))
    return PRESETS[name]


def expand_preset(forms: Mapping[str, Any]) -> tuple[Fragment, Preset | None]:
    """A recipe without the key `preset`, expanded, and the preset.

    Args:
        forms: the recipe as written.

    >>> expand_preset({"preset": "ema_0070", "schema": {}, "models": []})[0]["models"]
    [{'k_anonymity': {'k': 11}}]
    """
    rest = {key: value for key, value in forms.items() if key != "preset"}
    named = forms.get("preset")
    if named is None:
        return rest, None
    if isinstance(named, Mapping) and len(named) == 1:
        ((name, options),) = named.items()
    else:
        name, options = named, {}
    if not isinstance(name, str) or not isinstance(options or {}, Mapping):
        raise BadInput(f"preset {named!r} cannot be read", right="write preset: NAME, or preset: {NAME: {parameter: value}}")
    found = preset(name)
    return found.expand(rest, options or {}), found
