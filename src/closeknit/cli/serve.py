"""The commands `closeknit ui` (pages on your own machine) and `closeknit serve` (pages and REST service for a team)."""

from __future__ import annotations

import importlib.util
import threading
import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

from closeknit.cli.command_errors import handle_errors, print_stderr
from closeknit.core.errors import BadInput

NEEDED = ("fastapi", "uvicorn", "python_multipart")
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any free one.")]


def ui(
    port: Port = 0, browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Whether to open a browser.")] = True
) -> None:
    """Open closeknit in the browser. Only this machine can reach it, and only with the printed single-use link.

    Tables are kept in a private folder and deleted when the server stops (Ctrl+C).

    \b
    closeknit ui
    closeknit ui --no-browser --port 8000
    """
    with handle_errors():
        refuse_without_extra()
        from closeknit.web.http_server import serve as run
        from closeknit.web.settings import Settings
        from closeknit.web.workspaces import open_temporary_workspace

        def announce(app: Any, settings: Settings) -> None:
            address = f"{settings.address}/enter?code={app.state.logins.code()}"
            typer.echo(address)
            print_stderr("open this single-use link in a browser. Ctrl+C stops the server and deletes its tables.")
            if browser:  # in a thread of its own: a browser in the terminal would block
                threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

        with open_temporary_workspace() as home:
            run(
                Settings(home=home, port=port, session=float("inf"), each=1000, databases=None, outputs=None), None, announce
            )  # one user


ReadDatabases = Annotated[
    list[str] | None, typer.Option(help="Database whose tables users may read, such as '${CLINIC_URL}'; may be repeated.")
]
OutputDatabases = Annotated[
    list[str] | None,
    typer.Option(help="PostgreSQL database into whose tables streams may publish, such as '${CLINIC_URL}'; may be repeated."),
]


def serve(
    token_file: Annotated[Path, typer.Option(help="File of lines 'name: token', one per user; readable by you alone.")],
    home: Annotated[Path, typer.Option(help="Private folder for tables and releases, kept between runs.")],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Port = 8000,
    name: Annotated[
        list[str] | None, typer.Option(help="Host name of this server in the browser, e.g. data.example.org; may be repeated.")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="TLS certificate, as PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its private key.")] = None,
    behind_proxy: Annotated[bool, typer.Option("--behind-proxy", help="A proxy in front of it terminates TLS.")] = False,
    max_upload: Annotated[int, typer.Option(min=1, help="Largest upload, in megabytes.")] = 1024,
    max_rows: Annotated[int, typer.Option(min=1, help="Most rows of a table.")] = 20_000_000,
    memory: Annotated[int, typer.Option(min=2048, help="Memory of one task, in megabytes.")] = 8192,
    at_once: Annotated[int, typer.Option(min=1, help="Tasks that run at the same time, at most one per user.")] = 2,
    task_minutes: Annotated[float, typer.Option(min=0.01, help="Minutes after which a task is stopped.")] = 240.0,
    spare: Annotated[bool, typer.Option("--spare/--no-spare", help="Whether an idle process waits for the next job.")] = True,
    keep_hours: Annotated[float, typer.Option(min=0.01, help="Hours after which an untouched job is deleted.")] = 24.0,
    max_streams: Annotated[int, typer.Option(min=0, help="Most streams of one user.")] = 10,
    queue_rows: Annotated[int, typer.Option(min=1, help="Rows of a stream that may wait before more are refused.")] = 100_000,
    database: ReadDatabases = None,
    output_database: OutputDatabases = None,
) -> None:
    """Serve pages and REST service to a team: each user has a token and sees only their own tables.

    A host other than this machine needs TLS: give a certificate, or use --behind-proxy.

    \b
    closeknit serve --token-file tokens --home jobs/
    closeknit serve --token-file tokens --home jobs/ --host 0.0.0.0 --name data.example.org --tls-cert c.pem --tls-key k.pem
    closeknit serve --token-file tokens --home jobs/ --name data.example.org --behind-proxy
    """
    with handle_errors():
        refuse_without_extra()
        from closeknit.web.http_server import serve as run
        from closeknit.web.settings import LOOPBACK, MEGABYTE, Settings
        from closeknit.web.tokens import read_tokens
        from closeknit.web.workspaces import open_workspace

        tls = tls_files(tls_cert, tls_key)
        if host not in LOOPBACK and tls is None and not behind_proxy:
            right = "give --tls-cert and --tls-key, or --behind-proxy if a proxy terminates TLS"
            raise BadInput(f"tokens and tables would be sent to {host} unencrypted", right=right)
        names = tuple(each.lower() for each in name or ())
        if not names and (behind_proxy or host not in LOOPBACK):
            raise BadInput("the host name of this server is unknown", right="give it with --name, e.g. data.example.org")
        tokens = read_tokens(token_file)
        with open_workspace(home.absolute()) as place:
            settings = Settings(
                home=place,
                host=host,
                port=port,
                names=names,
                secure=behind_proxy or tls is not None,
                body=max_upload * MEGABYTE,
                rows=max_rows,
                memory=memory * MEGABYTE,
                at_once=at_once,
                spare=spare,
                keep=keep_hours * 3600,
                longest=task_minutes * 60,
                streams=max_streams,
                queue=queue_rows,
                databases=tuple(map(check_database, database or ())),
                outputs=tuple(map(check_database, output_database or ())),
            )
            run(settings, tokens, lambda _, here: typer.echo(f"{here.address}  for {len(tokens)} users"), tls)


def check_database(address: str) -> str:
    """Return the address of a database that users see; one with a password in it is refused.

    >>> check_database("${CLINIC_URL}")
    '${CLINIC_URL}'
    """
    from closeknit.io.database import Database

    if not Database.serves(address) or Database(address).holds_password:
        right = "give one without a password, such as '${CLINIC_URL}', @file or keyring://service/user"
        raise BadInput("users would see this address of a database, or it is none", right=right)
    return Database(address).url


def refuse_without_extra() -> None:
    """Refuse with one sentence if the web framework is not installed."""
    if any(importlib.util.find_spec(name) is None for name in NEEDED):
        raise BadInput("the pages need more packages", right="install them with: pip install 'closeknit[web]'")


def tls_files(certificate: Path | None, key: Path | None) -> tuple[Path, Path] | None:
    """Return both files or None; both must exist."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise BadInput("a TLS certificate and its key belong together", right="give both --tls-cert and --tls-key")
    for file in (certificate, key):
        if not file.is_file():
            raise BadInput("there is no such file", file=file, right="name a PEM file")
    return certificate, key
