"""The commands `closeknit keys new` and `closeknit sign`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from closeknit.cli.command_errors import handle_errors
from closeknit.cli.options import Force, shorten_path
from closeknit.core.errors import BadInput

PASSPHRASE = "CLOSEKNIT_PASSPHRASE"

keys = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Create keys for signatures.")


@keys.callback()
def _keys() -> None:
    """Create keys for signatures. They stay on this machine: nothing is sent anywhere."""


@keys.command(short_help="Create a private and a public key.")
def new(
    output: Annotated[Path, typer.Option("-o", "--output", help="The private key; its public key is FILE.pub.")] = Path("key"),
    no_passphrase: Annotated[
        bool, typer.Option("--no-passphrase", help="Do not encrypt the private key: whoever has the file can sign.")
    ] = False,
) -> None:
    """Create an Ed25519 key: FILE is private (mode 0600, PKCS 8), FILE.pub is public. Existing files are never replaced.

    The passphrase is asked for, or taken from the environment variable CLOSEKNIT_PASSPHRASE.

    \b
    closeknit keys new -o release.key
    """
    with handle_errors():
        from closeknit.api import new_keys

        for place in (output, Path(f"{output}.pub")):
            if os.path.lexists(place):
                raise BadInput("it exists already, and keys are never replaced", file=place, right="choose another name")
        passphrase = None if no_passphrase else _ask_passphrase(confirm=True)
        identity = new_keys(output, passphrase)
        typer.echo(f"{shorten_path(output)}      private, do not share; keep a copy in a safe place")
        typer.echo(f"{shorten_path(output)}.pub  public: give it to recipients by another way than the release")
        typer.echo(f"key id     {identity}")


def sign(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The public folder of a release.")],
    key: Annotated[Path, typer.Option(metavar="FILE", help="The private key, from 'closeknit keys new'.")],
    signer: Annotated[str | None, typer.Option("--as", metavar="NAME", help="Who signs, as recipients shall read it.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE.sig", help="The signature; default: certificate.sig.")
    ] = None,
    force: Force = False,
) -> None:
    """Sign a release: a detached file next to its certificate, which covers the certificate and every release file.

    The release is audited first. The signature is an in-toto statement in a DSSE envelope, signed with Ed25519. Recipients
    verify it with 'closeknit audit FOLDER --key FILE.pub'. The passphrase is asked for, or taken from CLOSEKNIT_PASSPHRASE.

    \b
    closeknit sign out/ --key release.key --as 'Data Office'
    """
    with handle_errors():
        from closeknit.api import sign as sign_release
        from closeknit.io.signing_keys import is_encrypted

        passphrase = _ask_passphrase() if is_encrypted(key) else None
        place = sign_release(folder, key, passphrase=passphrase, signer=signer, output=output, force=force)
        typer.echo(f"{shorten_path(place)}  written: share it with the release")


def _ask_passphrase(confirm: bool = False) -> str:
    """Return the passphrase from the environment, or ask for it where there is someone to ask."""
    if given := os.environ.get(PASSPHRASE):
        return given
    if not sys.stdin.isatty():
        raise BadInput("there is no passphrase", right=f"set {PASSPHRASE}" + (", or choose --no-passphrase" if confirm else ""))
    return str(typer.prompt("Passphrase", hide_input=True, confirmation_prompt=confirm, err=True))
