"""`Release`: what can leave, how it is saved, and the records of its reports."""

from closeknit.release.origin import Origin
from closeknit.release.release import FORMATS, Release

__all__ = ["FORMATS", "Origin", "Release"]
