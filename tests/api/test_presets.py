"""Presets: numbers with their sources, what a recipe becomes, the goldens of Safe Harbor from file to release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import closeknit as ck
from closeknit.api.presets import LEFT_OUT, PRESETS
from closeknit.api.recipe import Recipe
from closeknit.cli.commands import app
from closeknit.core.certificate import Certificate
from closeknit.core.columns import Columns

QUASI = {"quasi": {"age": "numeric", "sex": "flat"}}
HARBOR: dict[str, Any] = {
    "preset": {"hipaa_safe_harbor": {"reference": "2024-12-31", "zip3": "pops.csv"}},
    "data": "t.csv",
    "schema": {
        "identifier": ["name"],
        "quasi": {"age": "numeric", "zip": "prefix", "admission": "date", "birth_date": "date"},
        "sensitive": {"disease": "flat"},
    },
}
TABLE = """name,age,zip,admission,birth_date,disease
Ann,89,02139,2024-03-17,1935-06-01,flu
Bob,90,03601,2024-03-18,1934-02-01,gout
Cid,91,02142,2023-01-01,1930-07-09,flu
Dan,94,02142,2023-05-01,1930-01-01,gout
"""


def run(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def write(folder: Path, recipe: dict[str, Any], table: str = TABLE) -> Path:
    (folder / "t.csv").write_text(table, encoding="utf-8")
    (folder / "pops.csv").write_text("zip3,population\n021,1000000\n036,20000\n", encoding="utf-8")
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe, sort_keys=False), encoding="utf-8")
    return folder / "recipe.yaml"


def test_each_preset_has_a_source_a_meaning_and_limits() -> None:
    assert set(PRESETS) == {"ema_0070", "health_canada", "ons", "hipaa_safe_harbor"}
    for name, preset in PRESETS.items():
        assert preset.sources and all(address.startswith("https://") for address in preset.sources.values()), name
        assert preset.says and preset.open
        shown = run("presets", name).stdout
        assert all(part in shown for part in (*preset.says, *preset.open, *preset.sources))
    assert "1/11, which the policy rounds to 0.09" in run("presets", "ema_0070").stdout
    assert all(name in run("presets").stdout for name in (*PRESETS, *LEFT_OUT))


def test_guarantees_of_a_preset_are_added_to_those_of_the_recipe() -> None:
    mine = {"l_diversity": {"column": "disease", "l": 2}}
    schema = {**QUASI, "sensitive": {"disease": "flat"}}
    recipe = Recipe.of({"preset": "ema_0070", "schema": schema, "models": [mine, {"k_anonymity": {"k": 11}}]})
    assert recipe.models == [ck.KAnonymity(11), ck.LDiversity("disease", 2)]
    assert recipe.method.name == "knit" and recipe.preset is PRESETS["ema_0070"]
    assert Recipe.of({"preset": "health_canada", "schema": QUASI}).models == [ck.KAnonymity(11)]
    ages = Columns.of({"age": list(range(30))})
    release = ck.anonymize(ages, ck.Schema(quasi={"age": "numeric"}), ck.preset("ons").models, "mondrian")
    assert release.certificate.classes.smallest >= 10


@pytest.mark.parametrize(
    ("preset", "says"),
    [
        ("ema70", "did you mean 'ema_0070'?"),
        ("hipaa_expert", "there is no preset 'hipaa_expert': the guidance says"),
        ("ehds", "gives no number"),
        ({"ema_0070": {"k": 5}}, "has no parameter 'k'"),
        ({"hipaa_safe_harbor": {"zip": "x"}}, "did you mean 'zip3'?"),
        ([1], "cannot be read"),
        ({"ema_0070": 3}, "cannot be read"),
    ],
)
def test_wrong_presets_are_refused(tmp_path: Path, preset: Any, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = run("anonymize", write(tmp_path, {**HARBOR, "preset": preset}), "-o", "out")
    assert found.exit_code == 2 and says in found.stderr and len(found.stderr.splitlines()) == 1, found.output
    assert not Path("out").exists()
    if isinstance(preset, str):
        assert says in run("presets", preset).stderr


def test_goldens_of_safe_harbor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = run("anonymize", write(tmp_path, HARBOR), "-o", "out", "--no-report")
    assert made.exit_code == 0, made.output
    assert "preset hipaa_safe_harbor: ages of 90 and above are written as 90+" in made.stderr
    rows = sorted((tmp_path / "out" / "release.csv").read_text(encoding="utf-8").splitlines())
    assert rows == sorted(
        [
            "age,zip,admission,birth_date,disease",
            "89,021**,2024,1935,flu",
            "90+,000**,2024,<=1934,gout",
            "90+,021**,2023,<=1934,flu",
            "90+,021**,2023,<=1934,gout",
        ]
    )
    certificate = Certificate.from_json((tmp_path / "out" / "certificate.json").read_text(encoding="utf-8"))
    assert [guarantee.text for guarantee in certificate.guarantees] == ["k-anonymity, k = 1"]
    assert any("20,000 people or fewer are written as 000" in note for note in certificate.notes)
    assert run("audit", "out").exit_code == 0
    found = run("audit", "out", "--safe-harbor", "--reference", "2024-12-31", "--zip3", "pops.csv")
    assert found.exit_code == 0 and "unique   2 of 4 rows" in found.stdout, found.output
    assert run("audit", "t.csv", "--safe-harbor").exit_code == 1
    again = run("anonymize", "out.private/recipe.yaml", "-o", "again", "--no-report")
    assert again.exit_code == 0 and Path("again/release.csv").read_bytes() == Path("out/release.csv").read_bytes()


def test_guarantees_hold_on_top_of_the_levels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for method in ("fixed_levels", "mondrian"):
        recipe = {**HARBOR, "models": [{"k_anonymity": {"k": 2}}], "method": method}
        release = ck.run(write(tmp_path, recipe))
        assert release.certificate.ok and release.certificate.classes.smallest >= 2
        assert ck.audit(release.frame, certificate=release.certificate).ok


def test_without_populations_zip_codes_are_dropped_and_birth_needs_a_reference(tmp_path: Path) -> None:
    quasi = {"age": "numeric", "zip": "prefix"}
    recipe = Recipe.of({**HARBOR, "preset": "hipaa_safe_harbor", "schema": {"quasi": quasi}})
    assert recipe.schema.drop == ("zip",) and list(recipe.schema.quasi) == ["age"]
    with pytest.raises(ck.BadInput, match="column 'birth_date': is a date of birth, and ages need a reference date"):
        Recipe.of({**HARBOR, "preset": "hipaa_safe_harbor"})
    years = Recipe.of({**HARBOR, "schema": {"quasi": {"birth_year": "numeric"}}}, tmp_path)
    assert years.schema.quasi["birth_year"] == ck.numeric(bottom=1934)
    old = Recipe.of({**HARBOR, "preset": {"hipaa_safe_harbor": {"zip3": "census2000"}}, "schema": {"quasi": {"zip": "prefix"}}})
    assert "asks for current data" in old.schema.quasi["zip"].notes("zip")[1]


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"quasi": {"age": "numeric", "phone": "flat"}}, r"column 'phone': is listed as quasi, and .* removes it: \(D\)"),
        ({"quasi": {"age": "numeric"}, "plain": ["city"]}, r"\(B\) geography"),
        ({"quasi": {"age": "numeric"}, "sensitive": {"admission": "date"}}, "list it as quasi"),
        ({"quasi": {"admission": {"date": {"level": "month"}}}}, "has the level month, and Safe Harbor asks for year"),
        ({"quasi": {"admission": {"date": {"levels": ["day", "year"]}}}}, "has the level day"),
        ({"quasi": {"age": {"numeric": {"top": 95}}}}, "has top=95"),
        ({"quasi": ["age"]}, "maps the name of each column"),
    ],
)
def test_what_contradicts_safe_harbor_is_refused(schema: dict[str, Any], says: str) -> None:
    with pytest.raises(ck.BadInput, match=says):
        Recipe.of({**HARBOR, "preset": "hipaa_safe_harbor", "schema": schema})


def test_a_recipe_is_shown_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = yaml.safe_load(run("presets", "--recipe", write(tmp_path, HARBOR)).stdout)
    assert shown["method"] == "fixed_levels" and shown["models"] == [] and "preset" not in shown
    assert shown["schema"]["quasi"]["zip"] == {"prefix": {"keep": 3, "zip3": "pops.csv"}}
    assert shown["schema"]["quasi"]["age"] == {"numeric": {"top": 90}}


def test_kinds_of_safe_harbor_refuse_mistakes(tmp_path: Path) -> None:
    for build, says in (
        (lambda: ck.prefix(keep=4, zip3="census2000"), "zip3 and keep=4"),
        (lambda: ck.prefix(zip3=["36"]), "zip3 has the area '36'"),
        (lambda: ck.prefix(zip3=3), "neither a file nor a list"),
        (lambda: ck.prefix(zip3=tmp_path / "no.csv"), "cannot be read"),
        (lambda: ck.date(level="month", reference="2024-12-31"), "reference and the level month"),
        (lambda: ck.date(level="year", reference="soon"), "reference=soon, which is not a day"),
    ):
        with pytest.raises(ck.BadInput, match=says):
            build()
    codes = Columns.of({"zip": ["02139", "03601", "AB123"]})["zip"].values
    assert ck.prefix(zip3="census2000").bind(codes)[0].texts == ("000**", "021**"), "what is no area is hidden"
    columns = {"quasi": {"zip": {"prefix": {"zip3": "/etc/hostname"}}}}
    ages = Columns.of({"age": [1, 2]})
    release = ck.anonymize(ages, ck.Schema(quasi={"age": "numeric"}), [], "fixed_levels")
    forged = release.certificate.model_copy(update={"columns": columns}).to_json()
    with pytest.raises(ck.BadInput, match="its ZIP areas are a file of their own"):
        Certificate.from_json(forged)


@pytest.mark.parametrize("cells", ["bounds", "sample"])
def test_no_form_writes_a_year_of_birth_of_old_people(cells: str) -> None:
    born = Columns.of({"birth": ["1930-01-01", "1931-05-05", "1936-01-01", "1939-01-01"], "x": ["a", "b", "a", "b"]})
    schema = ck.Schema(quasi={"birth": ck.date(level="year", reference="2024-12-31")}, sensitive={"x": ck.flat()})
    release = ck.anonymize(born, schema, [ck.KAnonymity(2)], "mondrian", form=ck.generalized(cells=cells))
    written = {str(cell) for cell in release.columns["birth"].cells()}
    assert "<=1934" in written and not written & {str(year) for year in range(1920, 1935)}
    assert ck.audit(release.frame, certificate=release.certificate).ok
