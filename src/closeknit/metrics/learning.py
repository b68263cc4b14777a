"""Utility for learning: how well a classifier trained on a release, instead of the table, predicts a column.

Protocol. Rows are split first (`split_train_test`). The release is computed from the training rows alone; the classifier is
tested on the other, unchanged rows. It is compared with a classifier trained on the training rows themselves, and with their
most frequent value, which needs no release at all.

Training on a release needs rows of single values. As for COUNT queries, a row is assumed to lie uniformly in its cells, so a
value is drawn from each of them; inside a bucket, groups of columns that do not line up are combined at random, all by `seed`.
Features are all quasi and sensitive columns but the target: numbers by value, others by the place of the leaf in the column's
tree, so that a cut at a place separates whole branches as well as single leaves.

Source: the paper on slicing, sec. 6 (there C4.5 and naive Bayes, tenfold cross-validation). Different from the source: the
paper does not state how a classifier is trained on columns that do not line up, nor whether it is tested on rows of the
release; here neither is left open. The classifier is a random forest, or any that is given.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from closeknit.core.certificate import Record
from closeknit.core.columns import Column, Columns, concat_columns
from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.exact import Number
from closeknit.core.params import number, whole
from closeknit.core.reading import Reading
from closeknit.core.row_sorting import row_order
from closeknit.core.schema import Schema
from closeknit.forms.column_axes import Axis, axes_of, column_groups, original_columns
from closeknit.forms.release_reading import Published, reading_of
from closeknit.io.files import read
from closeknit.kernels.arrays import Reals

MOST_ROWS = 20_000  # that a classifier for a report is trained and tested on, drawn at random from more
TREES, LEAST_LEAF = 50, 10  # of the forest: trees, and rows that a leaf keeps together

Rows = Mapping[str, Reals]  # by column


class Scores(Record):
    """Accuracy of a classifier.

    Args:
        accuracy: Share of all rows that are guessed right.
        balanced: The same share on average over the values of the target.
    """

    accuracy: float
    balanced: float


class Learning(Record):
    """What a classifier learns from a release, from its original table, and from the target's distribution alone.

    Args:
        target: The column to guess.
        trained: Number of rows of the release.
        tested: Number of test rows, of which none is in the release.
        release: Scores after training on the release.
        original: Scores after training on the original table.
        majority: Scores of always guessing the most frequent value.
    """

    target: str
    trained: int
    tested: int
    release: Scores
    original: Scores
    majority: Scores

    @property
    def kept(self) -> float | None:
        """Share of the original's gain over the most frequent value that the release retains."""
        gain = self.original.accuracy - self.majority.accuracy
        return (self.release.accuracy - self.majority.accuracy) / gain if gain > 0 else None

    def __str__(self) -> str:
        return (
            f"Trained on the release, {self.release.accuracy:.1%} of {self.tested:,} other rows are guessed right in "
            f"'{self.target}'; trained on the table {self.original.accuracy:.1%}, always the most frequent value "
            f"{self.majority.accuracy:.1%}."
        )


class Retraining(Record):
    """What a classifier that is trained on a release guesses about its original table.

    Args:
        target: The column to guess.
        tested: Number of original rows that are guessed.
        release: Scores after training on the release.
        original: Scores after training on the original rows themselves.
        majority: Scores of always guessing the most frequent value.
    """

    target: str
    tested: int
    release: Scores
    original: Scores
    majority: Scores

    def __str__(self) -> str:
        return (
            f"Trained on the release, a classifier guesses '{self.target}' of {self.release.accuracy:.1%} of {self.tested:,} "
            f"original rows; trained on these rows themselves {self.original.accuracy:.1%}, and always the most frequent value "
            f"is right in {self.majority.accuracy:.1%}."
        )


def split_train_test(table: Any, schema: Schema, share: Number = 0.25, seed: int = 0) -> tuple[Columns, Columns]:
    """Split a table into training rows and rows to test on; the order of its rows does not matter.

    Args:
        table: Rows as a frame, file or `Columns`.
        schema: Schema of the table.
        share: Share of the rows to test on.
        seed: Seed of the split.

    >>> import closeknit as ck
    >>> train, test = split_train_test(ck.datasets.hospital(100), ck.datasets.hospital_schema())
    >>> train.rows, test.rows
    (75, 25)
    """
    part, seed = number("share", share, above=0, most=1), whole("seed", seed, least=0)
    columns = read(table)
    schema.list_needed(list(columns))
    canonical = schema.encode(columns).rows
    count = int(part * columns.rows)
    if not 0 < count < columns.rows:
        raise BadInput(
            f"share={share} of {columns.rows:,} rows leaves one side empty", right="give more rows, or another share"
        )
    drawn = canonical[np.random.default_rng(seed).permutation(columns.rows)]
    return columns.take(drawn[count:]), columns.take(drawn[:count])


def learning_accuracy(
    published: Published | Reading,
    original: Any,
    tested: Any,
    schema: Schema,
    target: str,
    classifier: Any = None,
    seed: int = 0,
) -> Learning:
    """Measure what a classifier learns about `target` from a release of `original`, tested on other rows.

    Args:
        published: A release of `original`, or what its form read.
        original: Training rows, as `split_train_test` returns them.
        tested: Rows to test on, as `split_train_test` returns them.
        schema: Schema of both.
        target: Column to predict; not a number.
        classifier: Any object with scikit-learn's `fit` and `predict` that takes missing values (NaN); it is copied. None
            takes a random forest.
        seed: Seed of the drawn values and of the forest.

    >>> import closeknit as ck
    >>> schema = ck.datasets.hospital_schema()
    >>> train, test = split_train_test(ck.datasets.hospital(400), schema)
    >>> learned = learning_accuracy(ck.anonymize(train, schema, [ck.KAnonymity(4)]), train, test, schema, "disease")
    >>> learned.trained, learned.tested, learned.majority.accuracy < learned.original.accuracy
    (300, 100, True)
    """
    seed, reading = whole("seed", seed, least=0), reading_of(published)
    train, test = original_columns(original, schema), original_columns(tested, schema)
    axes = {name: axis for name, axis in axes_of(concat_columns([train, test]), schema).items() if name in reading.columns}
    _check_target(target, axes)
    rng = np.random.default_rng(seed)
    from_release = draw_rows(reading, axes, rng)
    as_they_are, others = (_points(_leaves(columns, axes, schema), axes, rng) for columns in (train, test))
    scores = _score_all(classifier, seed, from_release, as_they_are, others, target)
    return Learning(target=target, trained=reading.columns.rows, tested=test.rows, **scores)


def release_accuracy(
    published: Published | Reading, original: Any, schema: Schema, target: str, classifier: Any = None, seed: int = 0
) -> Retraining:
    """Train a classifier on a release that exists already, and test it on the original rows.

    Both classifiers, that of the release and that of the original, are tested on the rows behind their training, so they can
    be compared with each other, but neither is an estimate for new people: `learning_accuracy` is, with rows that are set
    aside before the release is computed.

    Args:
        published: A release of `original`, or what its form read.
        original: The table.
        schema: Schema of the table.
        target: Column to predict; not a number.
        classifier: As for `learning_accuracy`.
        seed: Seed of the drawn values and rows, and of the forest.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    >>> found = release_accuracy(ck.anonymize(table, schema, [ck.KAnonymity(4)]), table, schema, "disease")
    >>> found.tested, found.majority.accuracy <= found.release.accuracy
    (300, True)
    """
    seed, reading, columns = whole("seed", seed, least=0), reading_of(published), original_columns(original, schema)
    axes = {name: axis for name, axis in axes_of(columns, schema).items() if name in reading.columns}
    _check_target(target, axes)
    rng = np.random.default_rng(seed)
    trained = _draw_some(draw_rows(reading, axes, rng), rng)
    tested = _draw_some(_points(_leaves(columns, axes, schema), axes, rng), rng)
    scores = _score_all(classifier, seed, trained, tested, tested, target)
    return Retraining(target=target, tested=len(tested[target]), **scores)


def _draw_some(rows: Rows, rng: np.random.Generator) -> dict[str, Reals]:
    count = len(next(iter(rows.values())))
    kept = rng.permutation(count)[:MOST_ROWS]
    return {name: points[kept] for name, points in rows.items()}


def draw_rows(published: Published | Reading, axes: Mapping[str, Axis], rng: np.random.Generator) -> dict[str, Reals]:
    """Draw rows of single values that a release may represent: groups of columns combined at random, values out of cells.

    A value is a number or the place of a leaf; NaN is missing.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(60), ck.datasets.hospital_schema()
    >>> release = ck.anonymize(table, schema, [ck.KAnonymity(5)])
    >>> rows = draw_rows(release, axes_of(table, schema), np.random.default_rng(0))
    >>> sorted(rows["stay"]) == sorted(table["stay"].cells()), len(rows["age"])
    (True, 60)
    """
    reading = reading_of(published)
    placed: dict[str, Column] = {}
    for names in column_groups(reading, axes):
        chance = np.empty(reading.columns.rows, dtype=np.int64)
        chance[rng.permutation(len(chance))] = np.arange(len(chance))
        order = row_order([(reading.class_of, len(reading.classes)), (chance, len(chance))], len(chance))
        placed |= {name: reading.columns[name].take(order) for name in names}
    return _points({name: placed[name] for name in axes}, axes, rng)


def _points(columns: Mapping[str, Column], axes: Mapping[str, Axis], rng: np.random.Generator) -> dict[str, Reals]:
    """Draw a value out of each cell, all equally likely."""
    points = {}
    for name, axis in axes.items():
        lo, hi = (ends[columns[name].codes] for ends in axis.ranges(columns[name]))
        drawn = lo + rng.random(len(lo)) * (hi - lo)
        points[name] = np.floor(drawn) if axis.leaves else drawn
    return points


def _leaves(columns: Columns, axes: Mapping[str, Axis], schema: Schema) -> dict[str, Column]:
    return {name: axis.leaf_column(columns[name], schema) for name, axis in axes.items()}


def _check_target(target: str, axes: Mapping[str, Axis]) -> None:
    if target not in axes:
        raise BadInput("is not a published column", column=target, right=suggest_name(target, axes))
    if not axes[target].leaves:
        raise BadInput("is a number, not a category", column=target, right="choose another column, or give it bins")
    if len(axes) < 2:
        raise BadInput("there is no column to predict from", column=target, right="publish at least two columns")


def _score_all(classifier: Any, seed: int, release: Rows, original: Rows, others: Rows, target: str) -> dict[str, Scores]:
    """Score on other rows what is learned from a release, from its original, and from the most frequent value alone."""
    learned = {"release": release, "original": original}
    guesses = {name: _guesses(classifier, seed, rows, others, target) for name, rows in learned.items()}
    guesses["majority"] = np.full(len(others[target]), _most_frequent(original[target], target))
    return {name: _scores(guessed, others[target]) for name, guessed in guesses.items()}


def _guesses(classifier: Any, seed: int, rows: Rows, others: Rows, target: str) -> Reals:
    """Train on rows whose target is known, and predict that of the others."""
    model, features = _classifier(classifier, seed), [name for name in others if name != target]
    known = np.flatnonzero(~np.isnan(rows[target]))
    if len(known) == 0:
        raise BadInput("no row of the release has a value to learn", column=target, right="choose another column")
    model.fit(np.column_stack([rows[name][known] for name in features]), rows[target][known].astype(np.int64))
    guesses: Reals = model.predict(np.column_stack([others[name] for name in features])).astype(np.float64)
    return guesses


def _most_frequent(values: Reals, target: str) -> float:
    known, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    if len(known) == 0:
        raise BadInput("no row of the table has a value to learn", column=target, right="choose another column")
    return float(known[np.argmax(counts)])


def _classifier(given: Any, seed: int) -> Any:
    """Return a fresh copy of the given classifier, or a random forest: fast, and suited to numbers and categories."""
    try:
        base, ensemble = importlib.import_module("sklearn.base"), importlib.import_module("sklearn.ensemble")
    except ImportError:
        raise BadInput("scikit-learn is not installed", right="install it with: pip install 'closeknit[learn]'") from None
    if given is not None:
        return base.clone(given)
    return ensemble.RandomForestClassifier(TREES, min_samples_leaf=LEAST_LEAF, random_state=seed % 2**32, n_jobs=1)


def _scores(guesses: Reals, truth: Reals) -> Scores:
    """Score the guesses; rows whose target is missing are not counted."""
    known = ~np.isnan(truth)
    if not known.any():
        raise BadInput("no row to test on has a value of the target", right="choose another column, or more rows")
    right, truth = (guesses == truth)[known], truth[known]
    shares = [float(right[truth == value].mean()) for value in np.unique(truth)]
    return Scores(accuracy=float(right.mean()), balanced=float(np.mean(shares)))
