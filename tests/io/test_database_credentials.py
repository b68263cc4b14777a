"""Credentials: where they come from, and that nothing written, printed or raised repeats them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

import closeknit as ck
from closeknit.cli.commands import app
from closeknit.cli.database_options import hide_passwords
from closeknit.datasets import hospital, hospital_schema
from closeknit.io.database import Database
from closeknit.io.databases.address import UNSHOWN, Address, Link
from database_servers import ESCAPED, PASSWORD, Server, execute, free_port
from tcp_proxy import Proxy

SEEN = (PASSWORD, ESCAPED, "S3cret", "w@rd", "Wr0ng")


def refuse_seen(text: str) -> None:
    assert not [secret for secret in SEEN if secret in text], text


def chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def refuse_seen_in(error: BaseException, frames: bool = True) -> None:
    """Neither the error, nor what it is chained to, nor a variable of closeknit's frames in its traceback has a credential."""
    for each in chain(error):
        refuse_seen(f"{each!r} {each} {each.args}")
        trace = each.__traceback__
        while trace is not None and frames:
            if "closeknit/io" in trace.tb_frame.f_code.co_filename:
                refuse_seen(repr({name: value for name, value in trace.tb_frame.f_locals.items() if name != "given"}))
            trace = trace.tb_next


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_no_failure_shows_a_password(kind: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(kind)
    execute(server.url(), "DROP TABLE IF EXISTS seen", "CREATE TABLE seen (a INTEGER)", "INSERT INTO seen VALUES (1)")
    right, wrong = server.url(), server.url(password="Wr0ng%2Fpass")
    host = right.replace("127.0.0.1", "127.0.0.2")  # no server listens there
    failures = [
        Database(wrong, "seen"),
        Database(host, "seen"),
        Database(server.url(port=free_port()), "seen"),
        Database(server.url("no_such_database"), "seen"),
        Database(f"{server.url()}?PassWd={ESCAPED}&sslpassword={ESCAPED}&sslmode=whatever", "seen"),
        Database(right, "unseen"),
        Database(right, query="SELECT 1 FROM nowhere"),
        Database(right, query="SELECT broken '"),
    ]
    with Proxy(server.port, cut=700) as proxy:
        failures.append(Database(server.url(port=proxy.port), query="SELECT a FROM seen, seen AS b"))
        for source in failures:
            refuse_seen(f"{source} {source.place} {source.form()}")
            with pytest.raises(ck.BadInput) as caught:
                source.read()
            refuse_seen_in(caught.value)
            with pytest.raises(ck.BadInput) as caught:
                Database(source.url if source.url != right else wrong, "x").read_certificate()
            refuse_seen_in(caught.value)


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_nothing_that_is_recorded_has_the_password(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    url = request.getfixturevalue(kind).url()
    Database(url, "patients").write(hospital(60), '{"content_sha256": ""}', {}, replace=True)
    release = ck.anonymize(ck.sql(url, table="patients"), hospital_schema(), [ck.KAnonymity(5)], seed=2**70)
    release.to_sql(url, table="without_password", replace=True)
    release.save(tmp_path / "out", report=False)
    refuse_seen(release.public_record().to_json() + release.private_record().to_json())  # what the reports are rendered from
    for file in [*tmp_path.rglob("*.*")]:
        if file.is_file():
            refuse_seen(file.read_bytes().decode(errors="replace"))
    recipe = yaml.safe_load((tmp_path / "out.private" / "recipe.yaml").read_text(encoding="utf-8"))
    assert recipe["data"] == {"url": url.replace(f":{ESCAPED}", ""), "table": "patients"}
    schema = "public_private" if kind == "postgresql" else "closeknit_private"
    refuse_seen(repr(execute(url, f"SELECT * FROM {schema}.without_password_recipe")))
    refuse_seen(repr(execute(url, "SELECT * FROM without_password_certificate")))


def test_commands_print_no_password(postgresql: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Database(postgresql.url(), "listed").write(hospital(60), '{"content_sha256": ""}', {}, replace=True)
    for name, mode in (("url", 0o600), ("loose", 0o644)):
        (tmp_path / name).write_text(postgresql.url(), encoding="utf-8")
        (tmp_path / name).chmod(mode)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLINIC_PASSWORD", PASSWORD)
    parts = postgresql.url().replace(ESCAPED, "${CLINIC_PASSWORD}")

    def run(*words: str, status: int = 0) -> str:
        done = CliRunner().invoke(app, words)
        refuse_seen(done.output)
        assert done.exit_code == status, done.output
        return done.output

    run("inspect", parts, "--table", "listed", "-o", "recipe.yaml")
    assert "${CLINIC_PASSWORD}" in (tmp_path / "recipe.yaml").read_text(encoding="utf-8")
    run("anonymize", "recipe.yaml", "--to", "@url", "--table", "listed_release", "--replace")
    assert "exists already" in run("anonymize", "recipe.yaml", "--to", "@url", "--table", "listed_release", status=2)
    assert run("audit", postgresql.url(), "--table", "listed_release").endswith("ok\n")
    assert '"rows": 60' in run("report", "@url", "--table", "listed_release", "--json")
    assert "60 rows, worst first" in run("attack", "@url", "--table", "listed_release")
    assert "others may read it (mode 0644)" in run("audit", "@loose", "--table", "x", status=2)
    assert "name a folder with -o, or a database with --to" in run("anonymize", "recipe.yaml", status=2)
    assert "belong to --to" in run("anonymize", "recipe.yaml", "-o", "out", "--replace", status=2)


def test_a_password_in_an_argument_is_overwritten_in_the_list_of_processes(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("other systems keep the arguments of a process elsewhere")
    code = (
        "import sys; from closeknit.cli.database_options import hide_passwords; "
        "hide_passwords(sys.argv); print(open('/proc/self/cmdline').read())"
    )
    addresses = (f"postgresql://ann:{ESCAPED}@host/x", f"mysql://host/x?user=ann&password={ESCAPED}")
    done = subprocess.run([sys.executable, "-c", code, *addresses], capture_output=True, text=True, check=True)
    refuse_seen(done.stdout)
    assert done.stdout.count("*****") >= 2 and done.stderr.count("warning: a password") == 2


def test_addresses_without_a_password_are_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["audit", "out/", "postgresql://ann:${P}@host/x?password=${P}", "sqlite:///a:b.db", "@url", "a@b:c"]
    hide_passwords(words)
    assert capsys.readouterr().err == ""


def test_credentials_come_from_environment_file_and_keyring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modes_bind: None
) -> None:
    whole = f"postgresql://ann:{ESCAPED}@host:5433/clinic?sslmode=require"
    monkeypatch.setenv("CLINIC", whole)
    monkeypatch.setenv("CLINIC_PASSWORD", PASSWORD)
    (tmp_path / "url").write_text(whole + "\n", encoding="utf-8")
    (tmp_path / "url").chmod(0o600)
    import keyring

    class Ring:
        errors = keyring.errors

        @staticmethod
        def get_password(service: str, user: str) -> str | None:
            return whole if (service, user) == ("clinic", "ann") else None

    monkeypatch.setitem(sys.modules, "keyring", Ring)  # type: ignore[arg-type]
    part = "postgresql://ann:${CLINIC_PASSWORD}@host:5433/clinic?sslmode=require"
    for given in (whole, "${CLINIC}", part, f"@{tmp_path}/url", "keyring://clinic/ann"):
        address = Address.of(given)
        assert address.open() == Link.of(whole) and address.open().password == PASSWORD, given
        refuse_seen(f"{address} {address.given} {address.conceal(PASSWORD + ESCAPED)}")
        assert (address.given == given) == (given != whole)
    for given, message in (
        ("${NO_SUCH_VARIABLE}", "the environment variable NO_SUCH_VARIABLE is not set"),
        ("keyring://clinic/bob", "the keyring has nothing under this name; store the URL .* keyring set clinic bob"),
        (f"@{tmp_path}/none", "cannot be read"),
    ):
        with pytest.raises(ck.BadInput, match=message):
            Database(given, "x").read()
    for mode in (0o640, 0o604, 0o660):
        (tmp_path / "url").chmod(mode)
        with pytest.raises(ck.BadInput, match=r"others may read it .*; run 'chmod 600 url'"):
            Address.of(f"@{tmp_path}/url").open()
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ck.BadInput, match=r"install it with: pip install 'closeknit\[keyring\]'"):
        Address.of("keyring://clinic/ann").open()


@pytest.mark.parametrize("text", ["S3cret/w@rd", "S3cret?w@rd", "S3cret#w@rd", "S3cret:w@rd/x@y", "S3cret"])
def test_an_address_that_cannot_be_read_is_not_repeated(text: str) -> None:
    for url in (f"postgresql://ann:{text}@host/clinic", f"postgresql://ann:{text}", f"postgresql://{text}@host:port/x"):
        try:
            source = Database(url, "x")
        except ck.BadInput as error:
            refuse_seen_in(error, frames=False)  # what the caller gave is in its own frames
        else:
            refuse_seen(repr(source).replace("S3cret@", "@") if url.endswith("port/x") else repr(source))


@pytest.mark.parametrize(
    ("password", "text", "shown"),
    [
        ("a", "relation 'cats' is absent", True),
        ("pw", "password authentication failed for user ann", True),
        ("pw", "cannot read pw@host", False),
        ("a", "FATAL: a role is absent", False),
        ("%3A", "user ann: denied", False),
        ("é1", "no such user: é1", False),
        ("a b", "options: a%20b, a+b2", True),
        ("a b", "option a b", False),
        ("*", "relation *** is absent", False),
    ],
)
def test_a_very_short_password_neither_blanks_letters_nor_is_shown(password: str, text: str, shown: bool) -> None:
    said = Address.of(f"postgresql://ann:{password.replace(' ', '%20')}@host/clinic").conceal(text)
    assert said == (text.replace("a%20b", "***") if shown else UNSHOWN)


def test_text_that_is_no_address_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("host=db user=ann password=S3cret", "S3cret", "password=S3cret url=postgresql://host/x"):
        monkeypatch.setenv("DBU", text)
        done = CliRunner().invoke(app, ["inspect", "${DBU}", "--table", "x"])
        assert done.exit_code == 2 and "the address ***://*** cannot be read" in " ".join(done.output.split()), done.output
        refuse_seen(done.output)

        class Ring:
            errors = None
            get_password = staticmethod(lambda service, user, text=text: text)

        monkeypatch.setitem(sys.modules, "keyring", Ring)  # type: ignore[arg-type]
        for given in ("keyring://clinic/ann", text):
            with pytest.raises(ck.BadInput, match="cannot be read") as caught:
                Database(given, "x").read()
            refuse_seen(str(caught.value))


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgrsql://ann:S3cret@host/clinic", "postgrsql://*** is unknown; did you mean 'postgresql'?"),
        ("jdbc:mariadb://ann:S3cret@host/clinic", "jdbc:mariadb://*** is unknown; did you mean 'mariadb'?"),
        ("mysq://host/clinic?user=ann&password=S3cret", "mysq://*** is unknown; did you mean 'mysql'?"),
        ("a b://ann:S3cret@host/clinic", "address ***://*** is unknown"),
    ],
)
def test_an_address_with_a_wrong_scheme_is_not_repeated(url: str, words: str, tmp_path: Path) -> None:
    recipe = {
        "data": {"url": url, "table": "x"},
        "schema": {"quasi": {"age": "numeric"}},
        "models": [{"k_anonymity": {"k": 2}}],
    }
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    other = tmp_path / "hospital.yaml"
    other.write_text(yaml.safe_dump(recipe | {"data": "people.csv"}), encoding="utf-8")
    for line in (
        ("inspect", url, "--table", "x"),
        ("inspect", url),
        ("audit", url, "--table", "x"),
        ("anonymize", str(tmp_path / "recipe.yaml"), "-o", str(tmp_path / "out")),
        ("anonymize", str(other), "--to", url, "--table", "x"),
    ):
        done = CliRunner().invoke(app, line)
        refuse_seen(done.output)
        assert done.exit_code == 2 and words in " ".join(done.output.split()), done.output
    with pytest.raises(ck.BadInput, match="is unknown") as caught:
        ck.suggest(url)
    refuse_seen(str(caught.value))


@pytest.mark.parametrize(
    "url",
    [
        "mssql+pyodbc:///?odbc_connect=DRIVER%3DX%3BUID%3Dann%3BPWD%3D{S3cret}",
        "snowflake://ann@host/clinic?private_key=S3cret",
        "clickhouse://host/clinic?key=S3cret&auth=S3cret2",
        "trino://host/clinic?JWT=S3cret",
        "trino://host/clinic?j%77t=S3cret",
        "sqlite:///clinic.db?password=S3cret",
    ],
)
def test_credentials_in_options_are_not_recorded(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    source = Database(url, "x")
    refuse_seen(f"{source} {source.place} {source.form()}")
    hide_passwords([url])
    assert "warning: a password" in capsys.readouterr().err
    if not url.startswith("sqlite"):
        assert source.holds_password
        refuse_seen(source._address.conceal("no such user: ann, S3cret"))


def test_options_of_mariadb_are_those_that_are_known() -> None:
    for option in ("read_default_file=/etc/my.cnf", "init_command=x", "local_infile=1", "charset=gbk", "SSL_CA=x"):
        with pytest.raises(ck.BadInput, match=f"the option '{option.partition('=')[0]}' of the URL is not") as caught:
            Database(f"mariadb://ann@127.0.0.1:1/clinic?password=S3cret&{option}", "x").read()
        refuse_seen_in(caught.value)
    with pytest.raises(ck.BadInput, match="the database refuses"):  # no server listens there
        Database("mariadb://ann@127.0.0.1:1/clinic?connect_timeout=1&charset=utf8mb4", "x").read()


def test_a_recipe_with_a_password_is_read_with_a_warning() -> None:
    from closeknit.api.recipe import Recipe

    data = {"url": f"postgresql://ann:{ESCAPED}@host/clinic", "table": "patients"}
    with pytest.warns(UserWarning, match="the recipe contains a password") as caught:
        recipe = Recipe.of({"data": data, "schema": {"quasi": {"age": "numeric"}}, "models": [{"k_anonymity": {"k": 2}}]})
    refuse_seen(f"{[str(each.message) for each in caught]} {recipe.data}")


def test_a_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for driver, url in (
        ("adbc_driver_postgresql", "postgresql://host/x"),
        ("pymysql", "mysql://host/x"),
        ("duckdb", "duckdb:///x"),
    ):
        monkeypatch.setitem(sys.modules, driver, None)
        for module in ("postgresql", "mariadb", "duckdb"):
            monkeypatch.delitem(sys.modules, f"closeknit.io.databases.{module}", raising=False)
        with pytest.raises(ck.BadInput, match=r"install it with: pip install 'closeknit\[sql\]'"):
            Database(url, "x").read()


def test_the_environment_of_the_drivers_is_used(postgresql: Server, mariadb: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    monkeypatch.setenv("MYSQL_PWD", PASSWORD)
    for server in (postgresql, mariadb):
        assert Database(server.url().replace(f":{ESCAPED}", ""), query="SELECT 1 AS a").read().rows == 1


def test_no_error_of_a_driver_is_chained_to_a_sentence() -> None:
    with pytest.raises(ck.BadInput, match="there is no driver for mssql://") as caught:
        Database("mssql://ann:S3cret@host/clinic", "x").read()
    assert list(chain(caught.value)) == [caught.value]
