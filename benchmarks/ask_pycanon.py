"""What pycanon measures on CSV files: run by the interpreter of the rivals' environment, questions and answers as JSON lists.

All cells come as text, the empty one too, because pycanon drops rows whose only quasi cell is missing; `number` makes the
secret a number, because pycanon takes the distance of t-closeness from the type of its column.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version

import numpy as np
import pandas as pd
from pycanon import anonymity

MEASURES = {
    "k": lambda frame, quasi, secret: anonymity.k_anonymity(frame, quasi),
    "t": lambda frame, quasi, secret: anonymity.t_closeness(frame, quasi, [secret]),
    "beta": lambda frame, quasi, secret: anonymity.basic_beta_likeness(frame, quasi, [secret]),
    "delta": lambda frame, quasi, secret: anonymity.delta_disclosure(frame, quasi, [secret]),
}


def table(question: dict) -> pd.DataFrame:
    """The file as pycanon can take it; `order` shuffles rows with their index, `keep_missing` leaves empty cells empty."""
    frame = pd.read_csv(question["path"], dtype=str, keep_default_na=False)
    if question.get("keep_missing"):
        frame = frame.replace("", np.nan)
    if question.get("number"):
        frame[question["secret"]] = pd.to_numeric(frame[question["secret"]])
    return frame.iloc[question["order"]] if "order" in question else frame


def answered(question: dict) -> dict:
    """Every measure that is requested: its value, or the name of the error it ends in, and its time."""
    frame = table(question)
    answer, seconds = {}, {}
    for name in question["measures"]:
        start = time.perf_counter()
        try:
            answer[name] = float(MEASURES[name](frame, question["quasi"], question["secret"]))
        except Exception as error:
            answer[name] = type(error).__name__
        seconds[name] = time.perf_counter() - start
    return {"answer": answer, "seconds": seconds, "version": version("pycanon")}


if __name__ == "__main__":
    print(json.dumps([answered(question) for question in json.load(sys.stdin)]))
