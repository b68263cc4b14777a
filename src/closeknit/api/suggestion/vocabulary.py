"""Words in the names of columns that suggest kinds and roles: English, German, French, Spanish."""

from __future__ import annotations

from closeknit.core.folding import strip_accents

UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})


def words(text: str) -> frozenset[str]:
    """Return a vocabulary without accents; an umlaut is also spelled with e.

    >>> sorted(words("zip plz größe"))
    ['groesse', 'grosse', 'plz', 'zip']
    """
    return frozenset(strip_accents(form).casefold() for word in text.split() for form in (word, word.translate(UMLAUTS)))


SINGULAR = words("pays")  # the French country, not several times pay

# Kinds.
POSTAL = words("zip zipcode postal postcode postalcode plz postleitzahl codepostal codigopostal")
CODES = words(
    "code country nation nationality race ethnicity sex gender marital state region workclass job occupation religion icd "
    "staatsangehörigkeit nationalität geschlecht familienstand zivilstand bundesland beruf konfession "
    "nationalité pays sexe étatcivil profession métier nacionalidad país sexo estadocivil profesión"
)
COUNTS = words(
    "age num number count year years month months day days hour hours amount size level grade score stay los "
    "alter anzahl jahr jahre monat monate tage stunden größe année années mois jours nombre taille edad año años meses días"
)
ICD = words("icd icd10 diagnosis dx diagnose hauptdiagnose nebendiagnose diagnostic diagnóstico")

# Names, numbers and keys of people. In French `nombre` is a number.
NAME = words("name nom nombre")
NAMES = words(
    "firstname lastname surname forename fullname familyname givenname username nachname vorname login "
    "familienname geburtsname rufname zuname prénom nomfamille apellido"
)
ADDRESS = words("address street adresse anschrift wohnadresse straße hausnummer rue dirección domicilio calle")
NUMBERS = words(
    "ssn sin nhs mrn passport iban email mail phone telephone tel mobile fax licence license uuid guid url ip "
    "patientennummer versichertennummer krankenversichertennummer versicherungsnummer sozialversicherungsnummer fallnummer "
    "personalnummer kundennummer mitgliedsnummer matrikelnummer steuernummer kontonummer ausweisnummer passnummer aktenzeichen "
    "telefon telefonnummer handynummer mobilnummer téléphone courriel teléfono correo dni nif nir nss"
)
KEYS = words("id key nr no ident identifier nummer")
PEOPLE = words(
    "patient person customer subject user member client employee student participant respondent insured pid "
    "patienten patientin kunde kunden mitarbeiter versicherte versicherter versicherten mitglied nutzer proband probanden "
    "teilnehmer paciente cliente persona usuario empleado alumno"
)
OF_PEOPLE = PEOPLE | words("first last full given family middle maiden nick famille usage naissance familia completo")

# Words of sensitive columns, of columns that may be sensitive, and qualifiers that do not change that.
SECRET = words(
    "disease diagnosis diagnose illness icd dx symptom therapy treatment medication drug hiv "
    "salary income wage earnings pay charge bill debt loan balance "
    "religion vote party orientation offence offense crime conviction "
    "krankheit erkrankung hauptdiagnose nebendiagnose therapie behandlung medikament symptome "
    "gehalt einkommen nettoeinkommen bruttoeinkommen haushaltseinkommen lohn bruttolohn nettolohn verdienst schulden "
    "konfession maladie diagnostic traitement médicament symptôme salaire dette "
    "enfermedad diagnóstico tratamiento medicamento síntoma salario sueldo ingreso deuda religión"
)
LENGTH_OF_STAY = words("stay los lengthofstay verweildauer liegedauer")
PERHAPS_SECRET = words(
    "condition procedure result outcome survival target cost price revenue credit score rating grade capital gain loss "
    "monetary status class label trestbps chol pressure cholesterol glucose bmi occupation ethnicity befund ergebnis kosten "
    "revenu résultat resultado"
)
SECRET_QUALIFIERS = words(
    "code name main primary principal first annual yearly monthly hourly total gross net amount usd eur of in "
    "brutto netto brut bruto neto annuel mensuel anual mensual de"
)

# What others may know about a person.
KNOWN = words(
    "age birth born birthday birthdate dob sex gender race zip zipcode postal postcode plz city town county district state "
    "region province country nationality citizenship marital education school degree job profession work workclass employer "
    "industry household children family height weight admission discharge admitted discharged "
    "alter geburtsdatum geburtstag geburtsjahr geburtsort geschlecht postleitzahl ort wohnort stadt gemeinde landkreis "
    "bundesland kanton staatsangehörigkeit nationalität staatsbürgerschaft familienstand zivilstand schulabschluss bildung "
    "beruf arbeitgeber branche haushaltsgröße kinder körpergröße gewicht aufnahmedatum entlassungsdatum "
    "âge naissance sexe codepostal ville commune département nationalité étatcivil métier emploi employeur enfants poids "
    "edad nacimiento sexo codigopostal ciudad municipio provincia pays país nacionalidad estadocivil profesión trabajo hijos "
    "peso"
)
