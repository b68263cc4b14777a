"""The commands `closeknit ui` and `closeknit serve`: the page on one's own machine, and the service for a team."""

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
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0 is any that is free.")]


def ui(
    port: Port = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Whether to open it in a browser.")] = True,
) -> None:
    """Open the page on this machine. Only this machine can reach it, and only with the address that is printed.

    Tables stay in a private folder and are deleted when the page ends (Ctrl+C).

    \b
    closeknit ui
    closeknit ui --no-browser --port 8000
    """
    with handle_errors():
        refuse_without_extra()
        from closeknit.web.http_server import serve as run
        from closeknit.web.settings import Settings
        from closeknit.web.workspaces import open_temporary_workspace

        def opened(app: Any, settings: Settings) -> None:
            address = f"{settings.address}/enter?code={app.state.logins.code()}"
            typer.echo(address)
            print_stderr("open this address in a browser: it is good once. Ctrl+C ends the page and deletes its tables.")
            if browser:
                threading.Thread(
                    target=webbrowser.open, args=(address,), daemon=True
                ).start()  # one in the terminal would block

        with open_temporary_workspace() as home:
            run(Settings(home=home, port=port, session=float("inf"), each=1000), None, opened)  # there is one user


def serve(
    token_file: Annotated[Path, typer.Option(help="Lines 'name: token', one a user; readable by you alone.")],
    home: Annotated[Path, typer.Option(help="Private folder for tables and releases, kept from run to run.")],
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Port = 8000,
    name: Annotated[
        list[str] | None, typer.Option(help="Name by which browsers call this server, e.g. data.example.org; may be repeated.")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="TLS certificate, as PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its private key.")] = None,
    behind_proxy: Annotated[bool, typer.Option("--behind-proxy", help="A proxy before this server speaks TLS.")] = False,
    max_upload: Annotated[int, typer.Option(min=1, help="Megabytes of an upload.")] = 1024,
    max_rows: Annotated[int, typer.Option(min=1, help="Rows of a table.")] = 20_000_000,
    memory: Annotated[int, typer.Option(min=2048, help="Megabytes for one task.")] = 8192,
    at_once: Annotated[int, typer.Option(min=1, help="Tasks that run at the same time, one of each user.")] = 2,
    task_minutes: Annotated[float, typer.Option(min=0.01, help="Minutes after which a task is ended.")] = 240.0,
    spare: Annotated[bool, typer.Option("--spare/--no-spare", help="Whether a process waits ready for the next job.")] = True,
    keep_hours: Annotated[float, typer.Option(min=0.01, help="Hours after which an untouched job is deleted.")] = 24.0,
) -> None:
    """Serve the page and the service to a team: each user has a token and sees only what is his.

    A host other than this machine needs TLS: give a certificate, or name the proxy that has one.

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
            right = "give --tls-cert and --tls-key, or --behind-proxy where a proxy speaks TLS"
            raise BadInput(f"tokens and tables would travel to {host} in the clear", right=right)
        names = tuple(each.lower() for each in name or ())
        if not names and (behind_proxy or host not in LOOPBACK):
            raise BadInput("it is not said what users write in the address", right="give it with --name, e.g. data.example.org")
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
            )
            run(settings, tokens, lambda _, here: typer.echo(f"{here.address}  for {len(tokens)} users"), tls)


def refuse_without_extra() -> None:
    """One sentence where the web framework is not installed."""
    if any(importlib.util.find_spec(name) is None for name in NEEDED):
        raise BadInput("the page needs more packages", right="install them with: pip install 'closeknit[web]'")


def tls_files(certificate: Path | None, key: Path | None) -> tuple[Path, Path] | None:
    """Both or none, and both must be there."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise BadInput("a TLS certificate and its key belong together", right="give both --tls-cert and --tls-key")
    for file in (certificate, key):
        if not file.is_file():
            raise BadInput("there is no such file", file=file, right="name a PEM file")
    return certificate, key
