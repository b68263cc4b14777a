"""Frameworks: what each asks about a release, which numbers answer it, and what only a person can answer.

The texts are summaries in our own words. The sources decide: read them, and let whoever signs check the wording.
"""

from __future__ import annotations

from dataclasses import dataclass

from closeknit.core.errors import BadInput, suggest_name


@dataclass(frozen=True)
class Asked:
    """A question of a framework.

    Args:
        section: where the framework asks it.
        text: the question in our own words.
        numbers: names of the numbers that answer it (`numbers.NUMBERS`).
        boxes: what only a person can answer: key and label.
    """

    section: str
    text: str
    numbers: tuple[str, ...] = ()
    boxes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Framework:
    """A framework.

    Args:
        name: on the command line.
        title: its full name.
        sources: title and address of each source.
        questions: what it asks.
    """

    name: str
    title: str
    sources: tuple[tuple[str, str], ...]
    questions: tuple[Asked, ...]


ATTEMPT = ("attempt", "Probability that a re-identification is attempted, from 0 to 1; 1 for a public release")
REVIEW = ("review_date", "When will this assessment be repeated?")

WP216 = Framework(
    "wp216",
    "GDPR: Article 29 Working Party, Opinion 05/2014 on anonymisation techniques (WP216)",
    (
        (
            "Opinion 05/2014 on anonymisation techniques, WP216",
            "https://ec.europa.eu/justice/article-29/documentation/opinion-recommendation/files/2014/wp216_en.pdf",
        ),
        ("Regulation (EU) 2016/679, recital 26", "https://eur-lex.europa.eu/eli/reg/2016/679/oj"),
    ),
    (
        Asked(
            "Singling out",
            "Can records that belong to one person be isolated?",
            ("sizes", "uniques", "prosecutor", "suda", "range_ends", "singling_out", "candidate_rows"),
        ),
        Asked(
            "Linkability",
            "Can records of one person be linked, here or with another data set?",
            ("population", "journalist", "marketer", "population_linkage", "intersection"),
        ),
        Asked(
            "Inference",
            "Can the value of an attribute be deduced for a person with significant probability?",
            ("sensitive_guarantees", "homogeneity", "skewness", "joint_secrets"),
        ),
        Asked(
            "Recital 26",
            "Which means are reasonably likely to be used to identify a person?",
            (),
            (
                ("means", "Cost, time and technology that a motivated party would have, and other data it could obtain"),
                ("purpose", "Purpose of the release, and the controls on its recipients"),
            ),
        ),
    ),
)

ICO = Framework(
    "ico",
    "ICO anonymisation guidance: the motivated intruder test",
    (
        (
            "ICO, Anonymisation guidance",
            "https://ico.org.uk/for-organisations/uk-gdpr-guidance-and-resources/data-sharing/anonymisation/",
        ),
    ),
    (
        Asked(
            "Identifiability",
            "Can a person be singled out, linked or inferred from the release?",
            ("sizes", "uniques", "prosecutor", "range_ends", "singling_out", "sensitive_guarantees", "homogeneity"),
        ),
        Asked(
            "Motivated intruder",
            "What can be tried by a person without prior knowledge, with public sources?",
            ("population", "population_linkage", "journalist", "attacks"),
            (("intruder_test", "Was it tried for real: by whom, with which sources, and with which result?"),),
        ),
        Asked(
            "Release model",
            "Is the release for the world or for some, and when is it reviewed?",
            (),
            (("release_model", "To whom is it released, and on which terms?"), REVIEW),
        ),
    ),
)

EMA = Framework(
    "ema",
    "EMA Policy 0070 and Health Canada PRCI: anonymisation report",
    (
        (
            "EMA/90915/2016, External guidance on the implementation of Policy 0070",
            "https://www.ema.europa.eu/en/human-regulatory-overview/marketing-authorisation/clinical-data-publication",
        ),
        (
            "Health Canada, Public release of clinical information: guidance document",
            "https://www.canada.ca/en/health-canada/services/drug-health-product-review-approval/"
            "profile-public-release-clinical-information-guidance.html",
        ),
    ),
    (
        Asked(
            "Identifiers",
            "Which direct and quasi-identifiers are there, and which technique is applied to each?",
            ("removed", "roles"),
            (("quasi_choice", "Why these quasi-identifiers, and no others?"),),
        ),
        Asked(
            "Adversaries",
            "Which adversaries and attacks are plausible?",
            ("attacks",),
            (("adversaries", "Who might try to identify participants, and why?"),),
        ),
        Asked(
            "Threshold",
            "Which risk threshold applies, what was the risk before, and what is the residual risk?",
            ("threshold", "before", "prosecutor", "journalist", "attempt"),
            (ATTEMPT,),
        ),
        Asked(
            "Population",
            "What is the reference population?",
            ("population", "population_uniqueness"),
            (("population_choice", "Why this reference population?"),),
        ),
        Asked(
            "Utility",
            "Which scientific utility is kept?",
            ("loss", "queries"),
            (("utility_judgement", "Which analyses remain possible, and which do not?"),),
        ),
    ),
)

HIPAA = Framework(
    "hipaa",
    "HIPAA expert determination, 45 CFR 164.514(b)(1)",
    (
        (
            "45 CFR 164.514(b)(1)",
            "https://www.ecfr.gov/current/title-45/subtitle-A/subchapter-C/part-164/subpart-E/section-164.514",
        ),
        (
            "HHS, Guidance regarding methods for de-identification of protected health information",
            "https://www.hhs.gov/hipaa/for-professionals/special-topics/de-identification/index.html",
        ),
    ),
    (
        Asked(
            "(b)(1)(i) Risk",
            "Is the risk very small that an anticipated recipient identifies a person, alone or with other information?",
            ("prosecutor", "population", "journalist", "marketer", "population_uniqueness", "attempt"),
            (
                ("recipient", "The anticipated recipient, and other information reasonably available to them"),
                ATTEMPT,
                ("very_small", "Judgement: is the risk very small, and why?"),
            ),
        ),
        Asked(
            "(b)(1) Expert",
            "Who makes the determination, and with which knowledge and experience?",
            (),
            (("expert", "Name and qualification of the expert"),),
        ),
        Asked(
            "(b)(1)(ii) Documentation", "Which methods were used, and with which results?", ("guarantees", "attacks", "loss")
        ),
        Asked(
            "Guidance: distinguishability",
            "How far do the values of each column distinguish people?",
            ("distinguishability", "suda"),
        ),
        Asked(
            "Guidance: replicability and availability",
            "Which columns recur for a person, and which are in sources that a recipient can obtain?",
            (),
            (("replicability", "Columns that stay the same over time"), ("availability", "Columns that are in other sources")),
        ),
    ),
)

NIST = Framework(
    "nist",
    "NIST SP 800-188, De-identifying government datasets",
    (("NIST SP 800-188 (2023)", "https://doi.org/10.6028/NIST.SP.800-188"),),
    (
        Asked(
            "Goals and sharing model",
            "What is the release for, how is it shared, and who reviews it?",
            (),
            (
                ("goals", "Goals of the release, and harms to be avoided"),
                ("sharing_model", "Sharing model: published, data use agreement, enclave or query interface"),
                ("review_board", "Disclosure review board, and its decision"),
            ),
        ),
        Asked("Standard", "Which standard with measurable levels was applied?", ("guarantees", "sizes")),
        Asked(
            "Re-identification study",
            "What does a study of re-identification find?",
            ("attacks", "prosecutor", "uniques", "population_linkage"),
            (("study", "Study by an independent party, if there was one"),),
        ),
        Asked("Utility", "Is the data set still fit for its purpose?", ("loss", "queries")),
    ),
)

ISO27559 = Framework(
    "iso27559",
    "ISO/IEC 27559:2022, Privacy enhancing data de-identification framework",
    (("ISO/IEC 27559:2022", "https://www.iso.org/standard/71677.html"),),
    (
        Asked(
            "6 Context, threats and harms",
            "In which context are the data used (6), which threats are there (6.2), and which harms (6.3)?",
            (),
            (
                ("context", "6: recipients, controls and purpose"),
                ("threats", "6.2: deliberate, inadvertent and environmental threats"),
                ("harms", "6.3: effects on the people in the data"),
            ),
        ),
        Asked(
            "7.3.2 Maximum or average",
            "Which risk counts: that of the most exposed person or the average?",
            ("prosecutor", "journalist", "marketer"),
            (("maximum_or_average", "Which of these numbers is decisive here, and why?"),),
        ),
        Asked(
            "7.3.3 Population or sample",
            "Is the risk measured in the population or in the sample?",
            ("population", "uniques", "population_uniqueness"),
        ),
        Asked("8.2.2 Quantify", "How large is the identifiability?", ("guarantees", "prosecutor", "attempt"), (ATTEMPT,)),
        Asked("8.2.3 Adversarial testing", "What does adversarial testing find?", ("attacks",)),
        Asked("8.3.4 Re-evaluate", "When is the assessment repeated?", ("identity",), (REVIEW,)),
        Asked(
            "9 Governance",
            "Who is responsible before, during and after the release?",
            (),
            (("governance", "9: roles, records, training and response to incidents"),),
        ),
    ),
)

FRAMEWORKS = {framework.name: framework for framework in (WP216, ICO, EMA, HIPAA, NIST, ISO27559)}


def framework_of(name: str) -> Framework:
    """A framework by its name.

    Args:
        name: such as "ema".

    >>> framework_of("gdpr")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: framework 'gdpr' is unknown; choose one of: wp216, ico, ema, hipaa, nist, iso27559
    """
    if name not in FRAMEWORKS:
        raise BadInput(f"framework '{name}' is unknown", right=suggest_name(name, FRAMEWORKS))
    return FRAMEWORKS[name]
