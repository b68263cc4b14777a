"""Measure and write it down: `python benchmarks/run.py [name ...]`, or `make bench` for everything.

    start    what a new user waits for: the first call, which compiles, and later calls
    sal      500,000 rows from CSV file to saved folder, against the floor: time, memory, imports, steps
    adult    loss of dealing as printed against aware dealing, and what closeness costs
    sabre    SAL and Adult over t: fills, bounds, cuts, polish, slack
    burel    SAL over beta: cuts, polish, slack; ranges of salaries
    speed    SABRE and BUREL on SAL from CSV file to saved folder, against the floor
    growth   SABRE and BUREL on 100,000 to 10,000,000 generated rows
    mondrian   options on Adult compared with SABRE and Stack & Deal; SAL against the floor; 10,000,000 generated rows
    incognito  the known best levels of Adult; SAL with five and seven columns against the floor
    several  two sensitive attributes of Adult over t and k: class sizes, loss, time of ten methods
    several_large  PcaDraw and Fragmentation on SAL with a second, generated sensitive attribute
    slicing  Slicing and Anatomy: Adult with fifteen columns, SAL against the floor, growth
    measures  how long measuring takes on SAL: divergence, measured levels, distances, queries
    risk     risk measures of a million rows; special uniques on Adult
    workload  COUNT queries and a classifier on generalized, bucketized and sliced releases of Adult
    knit     Knit on Adult compared with our other methods and ARX's quoted figures: loss, utility, time
    knit_lines  Knit on lines of Adult that it was not tuned for, compared with Mondrian and ARX's quoted figures
    knit_drawn  Knit on lines drawn at random, compared with every other method and the lower bound
    knit_large  Knit on 100,000 rows of SAL, and on a million compared with Mondrian
    knit_ten_million  Knit and Mondrian on ten million rows
    knit_time  loss of Knit for larger budgets, and the picture of it in the docs
    knit_optimum  how far Knit is from the best possible: all partitions of tiny tables, a lower bound for larger ones
    refinement  what follows from a known method, and from how cells are written
    minimality  what an adversary who knows the method learns from its classes, for every method
    known_algorithm  every attack of an adversary who knows the algorithm, on every method and several tables
    coarsening  loss of ages that are snapped when written, and coarsened before the method, on Adult
    soft_stop  loss of SoftStop on Adult compared with Knit and Mondrian
    stream_delay  loss of every stream over the mean and the largest delay, and the picture of it in the docs
    stream_speed  rows a second of every stream, and memory over 50,000,000 rows
    stream_ends  rows a second of streams from files, PostgreSQL, HTTP and Spark to files and PostgreSQL
    spark    Mondrian and SABRE on 1,000,000 to 100,000,000 generated rows on Spark, compared with its reading and writing
    databases  1,000,000 generated rows out of PostgreSQL and back, compared with `psql \\copy`
    databases_large  the same with 10,000,000 rows
    web      Adult and SAL by `closeknit serve` compared with the command, and its response time
    files    reading Excel and Stata files compared with what their libraries need alone
    arx      quoted figures of ARX on Adult compared with ours
    rivals   pycanon measuring the same release, anjana making one

What the sources measured is run again by `benchmarks/experiments/run.py`.

Results are printed, and each section of RESULTS.md is replaced by its new version. `--rows N` tries the code on a generated
table of N rows and leaves RESULTS.md alone, unless `--results FILE` says where to write.
"""

from __future__ import annotations

import argparse
import datetime
import warnings
from pathlib import Path

import adult
import arx
import burel
import coarsening
import databases
import files
import growth
import incognito
import knit
import knit_drawn
import knit_large
import knit_lines
import knit_optimum
import knit_time
import known_algorithm
import machine
import measures
import minimality
import mondrian
import on_spark
import refinement
import risk
import rivals
import sabre
import sal
import several
import several_large
import slicing
import soft_stop
import speed
import start
import stream_delay
import stream_ends
import stream_speed
import web
import workload
from sections import Section, replace

PAGE = Path(__file__).with_name("RESULTS.md")
BENCHMARKS = {
    "start": ("Start: the first call and later ones", start.run),
    "sal": ("SAL: from CSV file to saved folder", sal.run),
    "adult": ("Adult: what a release loses", adult.run),
    "sabre": ("SABRE: effect of each step", sabre.run),
    "burel": ("BUREL: effect of each step", burel.run),
    "speed": ("Speed of SABRE and BUREL: from CSV file to saved folder", speed.run),
    "growth": ("Growth of SABRE and BUREL", growth.run),
    "mondrian": ("Mondrian: effect of its options, and speed", mondrian.run),
    "incognito": ("Incognito: the best levels, and how fast they are found", incognito.run),
    "several": ("Several sensitive attributes: Adult with two of them", several.run),
    "several_large": ("Several sensitive attributes: 500,000 rows from CSV file to saved folder", several_large.run),
    "slicing": ("Slicing and Anatomy: exact values in buckets", slicing.run),
    "measures": ("Measuring releases: how long it takes on SAL", measures.run),
    "risk": ("Risk measures: how long they take", risk.run),
    "workload": ("Utility of a release: COUNT queries and learning on Adult", workload.run),
    "knit": ("Knit on Adult: loss, utility and time", knit.run),
    "knit_lines": ("Knit on lines that it was not tuned for", knit_lines.run),
    "knit_drawn": ("Knit on lines drawn at random", knit_drawn.run),
    "knit_large": ("Knit on more rows", knit_large.run),
    "knit_ten_million": ("Knit on ten million rows", knit_large.run_ten_million),
    "knit_time": ("Knit: loss for larger budgets", knit_time.run),
    "knit_optimum": ("Knit: how far from the best possible", knit_optimum.run),
    "refinement": ("Refinement and downcoding: what follows from a known method", refinement.run),
    "minimality": ("Minimality: what an adversary who knows the method learns", minimality.run),
    "known_algorithm": ("The algorithm is known: attacks on every method", known_algorithm.run),
    "coarsening": ("Coarsening before the method compared with snapping", coarsening.run),
    "soft_stop": ("SoftStop: what safety against a known algorithm costs", soft_stop.run),
    "stream_delay": ("Streams: loss over delay", stream_delay.run),
    "stream_speed": ("Streams: rows a second, and memory", stream_speed.run),
    "stream_ends": ("Streams: rows a second from end to end", stream_ends.run),
    "spark": ("Spark: large tables on this machine", on_spark.run),
    "databases": ("Databases: out of PostgreSQL and back", databases.run),
    "databases_large": ("Databases: ten million rows out of PostgreSQL and back", databases.run_large),
    "web": ("The service: jobs compared with the command line, and response times", web.run),
    "files": ("Spreadsheets and statistical files: reading compared with the library alone", files.run),
    "arx": ("ARX, quoted, on Adult's training rows", arx.run),
    "rivals": ("Other tools on Adult", rivals.run),
}


def main(arguments: list[str] | None = None) -> None:
    requested = _arguments(arguments)
    page = requested.results or (None if requested.rows else PAGE)
    warnings.simplefilter("ignore")
    for name in requested.names or BENCHMARKS:
        title, run = BENCHMARKS[name]
        section = Section(title)
        tried = f" --rows {requested.rows}" if requested.rows else ""
        section.say(f"`python benchmarks/run.py {name}{tried}`, {datetime.date.today()}; {machine.described()}.")
        section.say(machine.busy())
        run(section, requested.rows)
        print(section.text(), end="\n\n", flush=True)
        if page is not None:
            replace(page, name, section.text(), list(BENCHMARKS))


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="which benchmarks; all if none is named")
    parser.add_argument("--rows", type=int, help="try the code on a generated table of this size")
    parser.add_argument("--results", type=Path, help="the page to write; RESULTS.md if no --rows is given")
    requested = parser.parse_args(arguments)
    for name in requested.names:
        if name not in BENCHMARKS:
            parser.error(f"there is no benchmark '{name}'; known are: {', '.join(BENCHMARKS)}")
    return requested


if __name__ == "__main__":
    main()
