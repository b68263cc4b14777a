"""Words in the names of columns that suggest kinds and roles."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """Return a vocabulary.

    >>> sorted(words("zip plz"))
    ['plz', 'zip']
    """
    return frozenset(text.split())


# Kinds.
POSTAL = words("zip zipcode postal postcode postalcode plz")
CODES = words(
    "code country nation nationality race ethnicity sex gender marital state region workclass job occupation religion icd"
)
COUNTS = words("age num number count year years month months day days hour hours amount size level grade score stay los")
ICD = words("icd icd10 diagnosis dx")

# Names, numbers and keys of people.
NAMES = words("firstname lastname surname forename fullname familyname givenname username nachname vorname login")
NUMBERS = words(
    "ssn sin nhs mrn passport iban email mail phone telephone tel mobile fax licence license uuid guid address street adresse "
    "url ip"
)
KEYS = words("id key nr no ident identifier")
PEOPLE = words("patient person customer subject user member client employee student participant respondent insured pid")
OF_PEOPLE = PEOPLE | words("first last full given family middle maiden nick")

# Words of sensitive columns, of columns that may be sensitive, and qualifiers that do not change that.
SECRET = words(
    "disease diagnosis diagnose illness icd dx symptom therapy treatment medication drug hiv "
    "salary income wage earnings pay charge bill debt loan balance "
    "religion vote party orientation offence offense crime conviction"
)
LENGTH_OF_STAY = words("stay los lengthofstay")
PERHAPS_SECRET = words(
    "condition procedure result outcome survival target cost price revenue credit score rating grade capital gain loss "
    "monetary status class label trestbps chol pressure cholesterol glucose bmi occupation ethnicity"
)
SECRET_QUALIFIERS = words(
    "code name main primary principal first annual yearly monthly hourly total gross net amount usd eur of in"
)

# What others may know about a person.
KNOWN = words(
    "age birth born birthday birthdate dob sex gender race zip zipcode postal postcode plz city town county district state "
    "region province country nationality citizenship marital education school degree job profession work workclass employer "
    "industry household children family height weight admission discharge admitted discharged"
)
