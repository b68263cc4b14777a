"""What a release is still worth: plain functions on what was published and the table it was made of."""

from closeknit.metrics.learning import Learning, Scores, held_out, learning_accuracy
from closeknit.metrics.queries import Workload, WorkloadError, actual_counts, estimated_counts, queries, workload_error

__all__ = [
    "Learning",
    "Scores",
    "Workload",
    "WorkloadError",
    "actual_counts",
    "estimated_counts",
    "held_out",
    "learning_accuracy",
    "queries",
    "workload_error",
]
