"""`Release` and its two implementations, how it is saved, and the records of its reports."""

from closeknit.release.local_release import LocalRelease
from closeknit.release.origin import Origin
from closeknit.release.release import Release
from closeknit.release.release_paths import FORMATS
from closeknit.release.spark_release import SparkRelease

__all__ = ["FORMATS", "LocalRelease", "Origin", "Release", "SparkRelease"]
