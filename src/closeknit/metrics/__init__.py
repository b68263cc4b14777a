"""Utility and privacy metrics: plain functions of a release, some of them compared with the original table."""

from closeknit.metrics.distances import ClassDistances, Spread, class_distances, distances_by_class
from closeknit.metrics.lattice import GroupBy, LatticeDivergence, kl_divergence
from closeknit.metrics.learning import Learning, Retraining, Scores, learning_accuracy, release_accuracy, split_train_test
from closeknit.metrics.measures import Measures, measures
from closeknit.metrics.privacy_levels import Level, PrivacyLevels, SecretLevels, measure_levels
from closeknit.metrics.queries import Workload, WorkloadError, actual_counts, estimate_counts, queries, workload_error
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
from closeknit.metrics.usefulness import Distribution, Usefulness, cramers_v, usefulness
from closeknit.metrics.window_errors import WindowErrors, window_errors

__all__ = [
    "ClassDistances",
    "Distribution",
    "Diversity",
    "GroupBy",
    "LatticeDivergence",
    "Learning",
    "Level",
    "Measures",
    "PrivacyLevels",
    "Retraining",
    "Scores",
    "SecretLevels",
    "SizeBar",
    "Sizes",
    "Spread",
    "Usefulness",
    "WindowErrors",
    "Workload",
    "WorkloadError",
    "actual_counts",
    "class_distances",
    "class_sizes",
    "classification_metric",
    "cramers_v",
    "discernibility",
    "distances_by_class",
    "diversity",
    "estimate_counts",
    "kl_divergence",
    "learning_accuracy",
    "loss_by_column",
    "measure_levels",
    "measures",
    "queries",
    "release_accuracy",
    "split_train_test",
    "usefulness",
    "window_errors",
    "workload_error",
]
