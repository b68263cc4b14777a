"""Content hashes of a fixed set of releases: a move or a rename keeps every one of them.

`python tests/content_hashes.py` compares with `golden/content_hashes.json`; `--write` records what it finds. The commit that
changes a hash says why. `methods/test_content_hashes.py` compares a few of them in every run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import closeknit as ck

GOLDEN = Path(__file__).parent / "golden" / "content_hashes.json"
ADULT = Path(__file__).parents[2] / "shared" / "data" / "adult" / "adult.csv.gz"
SEED = 2**100 + 7
K = ck.KAnonymity(5)
MODELS = {
    "k": [K],
    "t": [K, ck.TCloseness("disease", 0.3)],
    "two": [K, ck.TCloseness("stay", 0.3), ck.LDiversity("disease", 3)],
    "beta": [K, ck.BetaLikeness("disease", 2)],
    "delta": [K, ck.DeltaDisclosure("disease", 2)],
    "entropy": [K, ck.LDiversity("disease", 2, "entropy")],
}
METHODS = {
    "knit": ck.Knit(proposals=20_000),
    "stack_and_deal": ck.StackAndDeal(),
    "literal": ck.StackAndDeal(dealing="literal"),
    "sabre": ck.Sabre(),
    "sabre_knn": ck.Sabre(fill="knn"),
    "sabre_sweep": ck.Sabre(fill="sweep", slack=False, polish=False),
    "burel": ck.Burel(),
    "mondrian": ck.Mondrian(),
    "strict": ck.Mondrian(split="strict", dims="widest"),
    "incognito": ck.Incognito(),
    "fixed_levels": ck.FixedLevels(),
    "microaggregation": ck.Microaggregation(),
    "fcm_draw": ck.FcmDraw(),
    "pca_draw": ck.PcaDraw(),
    "fragmentation": ck.Fragmentation(),
    "slicing": ck.Slicing(l=1.5),
    "anatomy": ck.Anatomy(l=1.5),
}
FORMS = {
    "snapped": ck.generalized(snap=True),
    "stars": ck.generalized(cells="stars"),
    "bucketized": ck.bucketized(),
    "multiset": ck.multiset(),
    "perturbed": ck.perturbed(retain=0.6),
}
ADULT_SCHEMA = {
    "quasi": {"age": ck.numeric(), "workclass": ck.flat(), "education": ck.flat(), "sex": ck.flat(), "race": ck.flat()},
    "sensitive": {"occupation": ck.flat(), "hours-per-week": ck.numeric()},
}


def refused_or(make: Callable[[], Any]) -> str:
    """The content hash, or the kind of error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make().certificate.content_sha256
    except ck.CloseknitError as error:
        print(error, file=sys.stderr)
        return type(error).__name__


def local_releases() -> Iterator[tuple[str, Callable[[], str]]]:
    """Every method under several guarantees, and every form, on generated tables."""
    table, schema = ck.datasets.hospital(400), ck.datasets.hospital_schema()
    common: dict[str, Any] = {"seed": SEED, "allow_vacuous": True}
    for name, method in METHODS.items():
        for requested, models in MODELS.items():
            yield (
                f"{name}, {requested}",
                lambda m=method, g=models: refused_or(lambda: ck.anonymize(table, schema, g, m, **common)),
            )
    roles = {"identifier": schema.identifier, "quasi": schema.quasi, "drop": ["stay", "charge"]}
    schema_of_one = ck.Schema(**roles, sensitive={"disease": schema.sensitive["disease"]})
    diverse = [ck.LDiversity("disease", 2)]
    for name, form in FORMS.items():
        models = MODELS["k"] if name in ("snapped", "stars", "perturbed") else diverse
        yield (
            f"form {name}",
            lambda f=form, g=models: refused_or(lambda: ck.anonymize(table, schema_of_one, g, ck.Mondrian(), form=f, **common)),
        )
    for name in ("slicing", "anatomy"):
        yield name, lambda m=METHODS[name]: refused_or(lambda: ck.anonymize(table, schema_of_one, [], m, **common))
    yield (
        "suppressed",
        lambda: refused_or(lambda: ck.anonymize(table, schema, MODELS["t"], ck.Mondrian(), suppress=0.05, **common)),
    )


def adult_releases() -> Iterator[tuple[str, Callable[[], str]]]:
    """Adult, where the public tables are at hand."""
    if not ADULT.exists():
        return
    import polars as pl

    names = [*ADULT_SCHEMA["quasi"], *ADULT_SCHEMA["sensitive"]]
    table, schema = pl.read_csv(ADULT).select(names).head(5000), ck.Schema(**ADULT_SCHEMA, missing=["?"])
    for name in ("knit", "sabre", "burel", "mondrian", "incognito", "microaggregation", "stack_and_deal"):
        models = [ck.KAnonymity(6), ck.TCloseness("occupation", 0.3)]
        yield (
            f"adult, {name}",
            lambda m=METHODS[name], g=models: refused_or(
                lambda: ck.anonymize(table, schema, g, m, seed=SEED, allow_vacuous=True)
            ),
        )


def streams() -> Iterator[tuple[str, Callable[[], str]]]:
    """What each stream publishes, batch by batch."""
    table = ck.datasets.hospital(600)
    cells = {name: table[name].cells() for name in ("age", "sex", "disease")}
    rows = [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]
    schema = ck.Schema(quasi={"age": ck.numeric(lo=0, hi=120), "sex": ck.flat()}, sensitive={"disease": ck.flat()})
    t, beta = ck.TCloseness("disease", 0.5), ck.BetaLikeness("disease", 4)
    window = {"omega": 200, "advance": 50, "seed": SEED}
    makes: dict[str, Callable[[], Any]] = {
        "knit_stream": lambda: ck.KnitStream(schema, k=5, delta=100, seed=SEED),
        "knit_stream, l": lambda: ck.KnitStream(schema, k=5, delta=100, l=3, seed=SEED),
        "castle": lambda: ck.Castle(schema, k=5, delta=60, seed=SEED),
        "castle, l": lambda: ck.Castle(schema, k=5, delta=60, l=3, seed=SEED),
        "castle, reuse": lambda: ck.Castle(schema, k=5, delta=60, reuse=True, seed=SEED),
        "knn_stream": lambda: ck.KnnStream(schema, k=5, delta=60, seed=SEED),
        "sabre_window": lambda: ck.SabreWindow(schema, models=[K, t], **window),
        "burel_window": lambda: ck.BurelWindow(schema, models=[K, beta], **window),
        "windowed": lambda: ck.Windowed(ck.Mondrian(), schema, models=[K, t], **window),
    }

    def published(make: Callable[[], Any]) -> str:
        stream = make()
        batches = [stream.push(row) for row in rows]
        text = json.dumps([*batches, stream.flush()], default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    for name, make in makes.items():
        yield f"stream {name}", lambda m=make: published(m)


def spark_releases() -> Iterator[tuple[str, Callable[[], str]]]:
    """Methods on Spark, where it is installed."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        return
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    table, schema = ck.datasets.hospital(700), ck.datasets.hospital_schema()
    quasi = {name: schema.quasi[name] for name in ("age", "zip", "job")}
    names = [*quasi, "disease", "stay"]
    frame = session.createDataFrame(list(zip(*(table[name].cells() for name in names), strict=True)), names)
    plain = ck.Schema(quasi=quasi, sensitive={name: schema.sensitive[name] for name in ("disease", "stay")})
    for name in ("mondrian", "sabre_sweep", "literal", "knit"):
        yield (
            f"spark, {name}",
            lambda m=METHODS[name]: refused_or(
                lambda: ck.anonymize(frame, plain, MODELS["t"], m, seed=SEED, allow_vacuous=True)
            ),
        )


def main() -> int:
    """Compare with what was recorded, or record it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="record the hashes")
    parser.add_argument("--only", default="", help="cases whose name contains this text")
    options = parser.parse_args()
    golden = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    parts = [local_releases, adult_releases, streams, spark_releases]
    found = {}
    for part in parts:
        if options.only and part is spark_releases and not options.only.startswith("spark"):
            continue
        for name, make in part():
            if options.only in name:
                found[name] = make()
                print(name, found[name][:16], "" if golden.get(name) == found[name] else "CHANGED", flush=True)
    if options.write:
        GOLDEN.write_text(json.dumps({**golden, **found}, indent=1, sort_keys=True) + "\n")
        return 0
    changed = [name for name, digest in found.items() if golden.get(name) != digest]
    print(f"{len(found)} cases, {len(changed)} changed" + "".join(f"\n  {name}" for name in changed))
    return int(bool(changed))


if __name__ == "__main__":
    sys.exit(main())
