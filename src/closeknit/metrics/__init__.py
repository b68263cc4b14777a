"""What a release is still worth and what it reaches: plain functions on what was published, some beside the original table."""

from closeknit.metrics.distances import ClassDistances, Spread, class_distances, distances_by_class
from closeknit.metrics.lattice import GroupBy, LatticeDivergence, kl_divergence
from closeknit.metrics.learning import Learning, Scores, held_out, learning_accuracy
from closeknit.metrics.measures import Measures, measures
from closeknit.metrics.queries import Workload, WorkloadError, actual_counts, estimated_counts, queries, workload_error
from closeknit.metrics.reached import Level, Reached, SecretReached, reached
from closeknit.metrics.sizes import (
    Diversity,
    SizeBar,
    Sizes,
    class_sizes,
    classification_metric,
    discernibility,
    diversity,
    loss_by_column,
)
from closeknit.metrics.windows import WindowErrors, window_errors

__all__ = [
    "ClassDistances",
    "Diversity",
    "GroupBy",
    "LatticeDivergence",
    "Learning",
    "Level",
    "Measures",
    "Reached",
    "Scores",
    "SecretReached",
    "SizeBar",
    "Sizes",
    "Spread",
    "WindowErrors",
    "Workload",
    "WorkloadError",
    "actual_counts",
    "class_distances",
    "class_sizes",
    "classification_metric",
    "discernibility",
    "distances_by_class",
    "diversity",
    "estimated_counts",
    "held_out",
    "kl_divergence",
    "learning_accuracy",
    "loss_by_column",
    "measures",
    "queries",
    "reached",
    "window_errors",
    "workload_error",
]
