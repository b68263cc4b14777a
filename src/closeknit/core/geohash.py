"""Geohash: cells of a grid over latitude and longitude, each named by the cell around it and one further character.

Source: G. Niemeyer, Geohash (2008), public domain. A character stands for five bits, which halve longitude and latitude in
turn, so a cell has 32 cells below it.
"""

from __future__ import annotations

import re

ALPHABET = "0123456789bcdefghjkmnpqrstuvwxyz"
MOST_CHARACTERS = 12  # cells of 4 by 2 centimetres
CELL = re.compile(f"[{ALPHABET}]{{1,{MOST_CHARACTERS}}}")


def geohash_of(latitude: float, longitude: float, characters: int) -> str:
    """The cell that holds a point.

    Args:
        latitude: from -90 to 90.
        longitude: from -180 to 180.
        characters: of the name of the cell.

    >>> geohash_of(57.64911, 10.40744, 11), geohash_of(90, 180, 3)
    ('u4pruydqqvj', 'zzz')
    """
    places, sides, name = (longitude, latitude), ([-180.0, 180.0], [-90.0, 90.0]), ""
    for first in range(0, 5 * characters, 5):
        digit = 0
        for bit in range(first, first + 5):  # even bits halve the longitude; every middle is exact as a float
            low, high = sides[bit % 2]
            middle = (low + high) / 2
            upper = places[bit % 2] >= middle
            sides[bit % 2][1 - upper] = middle
            digit = 2 * digit + upper
        name += ALPHABET[digit]
    return name


def geohash_bounds(cell: str) -> tuple[tuple[float, float], tuple[float, float]]:
    """Least and largest latitude, and least and largest longitude of a cell.

    Args:
        cell: its name.

    >>> geohash_bounds("u4")
    ((56.25, 61.875), (0.0, 11.25))
    """
    sides = {0: [-180.0, 180.0], 1: [-90.0, 90.0]}
    for bit in range(5 * len(cell)):
        side = sides[bit % 2]
        upper = ALPHABET.index(cell[bit // 5]) >> (4 - bit % 5) & 1
        side[1 - upper] = (side[0] + side[1]) / 2
    (west, east), (south, north) = sides[0], sides[1]
    return (south, north), (west, east)
