"""What anjana makes of a CSV file: run by the interpreter of the rivals' environment, question and answer as JSON."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from importlib.metadata import version

import pandas as pd
from anjana import anonymity


def main() -> None:
    question = json.load(sys.stdin)
    frame = pd.read_csv(question["path"], dtype=str, keep_default_na=False)
    hierarchies = {
        name: {level: pd.Series(labels) for level, labels in enumerate(levels)} for name, levels in question["levels"].items()
    }
    quasi, k, t = list(question["levels"]), question["k"], question.get("t")
    start = time.perf_counter()
    with contextlib.redirect_stdout(sys.stderr):  # it prints what it cannot do
        if t is None:
            made = anonymity.k_anonymity(frame, [], quasi, k, question["suppress"], hierarchies)
        else:
            made = anonymity.t_closeness(frame, [], quasi, question["secret"], k, t, question["suppress"], hierarchies)
    took = time.perf_counter() - start
    wanted = [name for name in [*quasi, question["secret"]] if name in made.columns]
    made[wanted].to_csv(question["out"], index=False)
    print(json.dumps({"rows": len(made), "of": len(frame), "seconds": took, "version": version("anjana")}))


if __name__ == "__main__":
    main()
