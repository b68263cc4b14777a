"""On the page: the sheet and header row of a workbook, and the column that a model learns from the release."""

from __future__ import annotations

import io
import re
import time
from pathlib import Path
from typing import Any

import xlsxwriter

from closeknit.web.case_tasks import draft_of
from web_runs import HERE, client_of, team

ROWS = [(20 + i % 30, ("f", "m")[i % 2], ("flu", "gout", "burn")[i % 3]) for i in range(60)]


def workbook() -> bytes:
    file = io.BytesIO()
    with xlsxwriter.Workbook(file) as book:
        book.add_worksheet("Notes").write_row(0, 0, ["remark"])
        book.worksheets()[0].write_row(1, 0, ["nothing"])
        sheet = book.add_worksheet("People")
        sheet.write(0, 0, "exported in May")
        for row, cells in enumerate([("age", "sex", "disease"), *ROWS]):
            sheet.write_row(row + 1, 0, cells)
    return file.getvalue()


def finish(app: Any, case: Any) -> None:
    while any(not task.over for task in app.state.tasks.history(case)):
        time.sleep(0.02)


def test_a_sheet_a_header_row_and_a_target_are_chosen_on_the_page(tmp_path: Path) -> None:
    app = team(tmp_path, idle=2)
    with client_of(app) as client:
        client.headers["origin"] = HERE
        at = client.post("/tables", files={"table": ("people.xlsx", workbook())}).headers["location"]
        case = app.state.cases.of("ann", at.rpartition("/")[2])
        finish(app, case)
        shown = client.get(at).text
        assert "remark" in shown and "<option>People</option>" in shown
        wrong = client.post(f"{at}/sheet", data={"sheet": "People", "header": "0"})
        assert wrong.status_code == 422 and "is not a row; give its number, from 1" in wrong.text
        client.post(f"{at}/sheet", data={"sheet": "Persons"})
        finish(app, case)
        assert "there is no sheet" in client.get(at).text and "people.xlsx" in client.get(at).text
        client.post(f"{at}/sheet", data={"sheet": "People", "header": "2"})
        finish(app, case)
        shown = client.get(at).text
        assert "60 rows, 3 columns" in shown and "<option selected>People</option>" in shown
        assert draft_of(case)["data"] == {"path": "table.xlsx", "sheet": "People", "header": 2}
        client.post(f"{at}/roles/2", data={"role": "sensitive"})
        draft = draft_of(case)
        assert set(draft["schema"]["quasi"]) | set(draft["schema"]["sensitive"]) == {"age", "sex", "disease"}
        client.post(f"{at}/guarantees/look")
        finish(app, case)
        client.post(f"{at}/guarantees", data={"model": "k_anonymity", "k": "3", "place": "0"})
        answer = client.post(f"{at}/release", data={"method": "mondrian"})
        assert answer.status_code == 303, re.findall('role="alert">(.*?)<', answer.text)
        finish(app, case)
        shown = client.get(f"{at}/release").text
        assert "Every" in shown and "A model trained on the release" in shown
        assert re.findall('<select id="target".*?</select>', shown)[0].count("<option") == 2  # sex and disease, not age
        client.post(f"{at}/learn", data={"target": "age of nobody"})
        client.post(f"{at}/learn", data={"target": "disease"})
        finish(app, case)
        shown = client.get(f"{at}/release").text
        assert "Trained on the release, a classifier guesses &#39;disease&#39;" in shown and "<option selected>disease" in shown
        assert "the most frequent value" in shown
        client.post(f"{at}/release", data={"method": "mondrian"})
        finish(app, case)
        assert "Trained on the release, a classifier" not in client.get(f"{at}/release").text
