"""A dossier as one self-contained HTML page with a print style sheet, and as PDF through WeasyPrint (`closeknit[pdf]`)."""

from __future__ import annotations

from closeknit.core.errors import BadInput
from closeknit.report.dossier_record import BASES, Dossier
from closeknit.report.page import templates

WORDS = {"recomputable": "recomputable", "attested": "attested", "private": "original", "stated": "stated"}
LINES = 3  # of an empty box


def dossier_page(record: Dossier) -> str:
    """Render a dossier; every text of the record is escaped.

    Args:
        record: the dossier.
    """
    shown = [answer for question in record.questions for answer in question.answers]
    utility = [answer for answer in record.utility if answer not in shown]  # some frameworks ask for it themselves
    used = {answer.basis for answer in (*shown, *utility)}
    legend = {WORDS[basis]: means for basis, means in BASES.items() if basis in used}
    page = templates().get_template("dossier.html")
    return page.render(dossier=record, utility=utility, words=WORDS, legend=legend, lines=LINES)


def dossier_pdf(page: str) -> bytes:
    """Print a dossier; nothing is read from other places.

    Args:
        page: the page as HTML.
    """
    try:
        from weasyprint import HTML
    except (ImportError, OSError):  # its own libraries may be missing
        right = "install it with: pip install 'closeknit[pdf]', and Pango with your system's packages; or print the HTML page"
        raise BadInput("a PDF needs the package weasyprint", right=right) from None
    pdf: bytes = HTML(string=page, url_fetcher=_refuse_address).write_pdf()
    return pdf


def _refuse_address(address: str, *_: object, **__: object) -> dict[str, object]:
    raise BadInput(f"the page refers to {address}", right="a dossier has everything in itself")
