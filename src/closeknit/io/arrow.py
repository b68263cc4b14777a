"""Arrow arrays to and from a `Column`; Parquet and all frames are converted through Arrow."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from closeknit.core.columns import Codes, Column, Columns
from closeknit.core.errors import BadInput, refuse_empty
from closeknit.io.buffers import codes_from_arrow, codes_to_arrow, numbers_from_arrow, numbers_to_arrow, texts_to_arrow
from closeknit.io.faults import refuse_nul
from closeknit.io.names import check_names

_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # in units of each resolution


def columns_from_arrow(table: pa.Table, file: object = None) -> Columns:
    """A table with typed distinct values; empty text and NaN are missing.

    >>> table = columns_from_arrow(pa.table({"age": [30, None, 30], "sex": ["f", "", "m"]}))
    >>> table["age"].cells(), table["sex"].cells()
    ([30, None, 30], ['f', None, 'm'])
    """
    check_names(table.column_names, file)
    if file is not None:  # an empty frame may be one of many
        refuse_empty(table.num_rows, file)
    return Columns({name: column_from_arrow(table.column(name), name, file) for name in table.column_names}, table.num_rows)


def column_from_arrow(cells: pa.ChunkedArray, name: str, file: object = None) -> Column:
    """One column; nested and other unsupported types are refused with the column's name.

    >>> column_from_arrow(pa.chunked_array([[2.5, float("nan")]]), "cost").cells()
    [2.5, None]
    """
    plain, is_kind = _without_categories(cells), pa.types
    kind = plain.type
    if is_kind.is_string(kind) or is_kind.is_large_string(kind):
        return _texts(*_encode(plain), name, file)
    if is_kind.is_boolean(kind) or is_kind.is_integer(kind):
        distinct, codes = _encode(plain)
        values = numbers_from_arrow(distinct)
        return Column(values.astype(np.int64) if values.dtype.kind in "iu" and kind != pa.uint64() else values, codes)
    if is_kind.is_floating(kind) or is_kind.is_decimal(kind):
        return _floats(*_encode(plain))
    if is_kind.is_date(kind) or is_kind.is_timestamp(kind):
        return _days(*_encode(plain), name, file)
    if is_kind.is_duration(kind):
        return _durations(*_encode(plain))
    right = "give text, numbers, booleans, dates or durations, or leave the column out"
    raise BadInput(f"cells of type {kind} are not supported", file=file, column=name, right=right)


def column_from_cell(cell: object, name: str) -> Column:
    """A single cell, read as in a frame.

    >>> column_from_cell(np.float32(0.1), "cost").cells(), column_from_cell(float("nan"), "cost").cells()
    ([0.1], [None])
    """
    try:
        one = np.array([cell]) if isinstance(cell, np.generic) else [cell]
        cells = pa.chunked_array([pa.array(one, from_pandas=True)])
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        right = "give text, a number, a boolean, a date or None"
        raise BadInput(f"a cell of type {type(cell).__name__} is not supported", column=name, right=right) from None
    return column_from_arrow(cells, name)


def _without_categories(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(cells.type):
        return _without_categories(cells.cast(cells.type.value_type))
    if pa.types.is_null(cells.type):
        return cells.cast(pa.string())
    return cells.cast(pa.large_string()) if pa.types.is_string_view(cells.type) else cells


def _encode(plain: pa.ChunkedArray) -> tuple[pa.Array, Codes]:
    array = plain.dictionary_encode().unify_dictionaries().combine_chunks()
    return array.dictionary, codes_from_arrow(array.indices)


def _texts(distinct: pa.Array, codes: Codes, name: str, file: object) -> Column:
    values = np.array(distinct.to_pylist(), dtype=object)
    if pc.any(pc.match_substring(distinct, "\0")).as_py():
        refuse_nul(Columns({name: Column(values, codes).drop_unused()}, len(codes)), file)
    nothing = np.flatnonzero(values == "")
    if len(nothing):
        codes[codes == nothing[0]] = -1
    return Column(values, codes).drop_unused()


def _floats(distinct: pa.Array, codes: Codes) -> Column:
    if pa.types.is_decimal(distinct.type):
        distinct = distinct.cast(pa.float64())
    stored = numbers_from_arrow(distinct)
    numbers = stored.astype(np.float64) if stored.dtype == np.float64 else widen(stored)
    numbers += 0.0  # turns -0.0 into 0.0
    values, place = np.unique(numbers, return_inverse=True)
    place[np.isnan(numbers)] = -1
    return Column(values, np.append(place, -1)[codes]).drop_unused()


def widen(narrow: NDArray[np.generic]) -> NDArray[np.float64]:
    """The same numbers in 64 bits, from their shortest decimals: 0.1 remains "0.1", not "0.10000000149011612".

    >>> widen(np.array([0.1], dtype=np.float32)).tolist()
    [0.1]
    """
    return np.array([float(str(number)) for number in narrow], dtype=np.float64)


def fits_narrow(numbers: NDArray[np.generic], kind: np.dtype[np.floating]) -> bool:
    """Whether `widen` restores these numbers after they are converted to fewer bits.

    >>> fits_narrow(np.array([0.1]), np.dtype("float32")), fits_narrow(np.array([1 / 3]), np.dtype("float32"))
    (True, False)
    """
    with np.errstate(over="ignore"):
        return bool(np.array_equal(widen(numbers.astype(kind)), numbers.astype(np.float64)))


def _days(distinct: pa.Array, codes: Codes, name: str, file: object) -> Column:
    """Days as such; timestamps with a time of day as ISO text, in the time of their zone."""
    if pa.types.is_timestamp(distinct.type):
        if distinct.type.tz is not None:
            try:
                distinct = pc.local_timestamp(distinct)
            except pa.ArrowInvalid:
                what, right = f"the time zone {distinct.type.tz} is not known here", "take it off the timestamps"
                raise BadInput(what, file=file, column=name, right=right) from None
        unit = distinct.type.unit
        stamps = numbers_from_arrow(distinct.cast(pa.int64())).astype(np.int64)
        if (stamps % (86_400 * _SECOND[unit]) != 0).any():
            moments = stamps.astype(f"datetime64[{unit}]")
            texts = np.datetime_as_string(moments).tolist()
            return Column(moments, codes).with_texts([t.rstrip("0").rstrip(".") if "." in t else t for t in texts])
    days = numbers_from_arrow(distinct.cast(pa.date32()).cast(pa.int32()))
    return Column(days.astype("datetime64[D]"), codes)


def _durations(distinct: pa.Array, codes: Codes) -> Column:
    """Durations as ISO text in seconds."""
    counts = numbers_from_arrow(distinct.cast(pa.int64())).astype(np.int64)
    texts = [f"{Decimal(count) / _SECOND[distinct.type.unit]:f}" for count in counts.tolist()]
    plain = [text.rstrip("0").rstrip(".") if "." in text else text for text in texts]
    return Column(counts, codes).with_texts([f"{'-' * text.startswith('-')}PT{text.lstrip('-')}S" for text in plain])


def array_from_column(column: Column) -> pa.Array:
    """The cells as a new Arrow array of the plain type of the values.

    >>> array_from_column(Columns.of({"age": [30, None, 31]})["age"]).to_pylist()
    [30, None, 31]
    """
    column = column.drop_unused()
    return values_to_arrow(column.values).take(codes_to_arrow(column.codes))


def values_to_arrow(values: NDArray[np.generic]) -> pa.Array:
    """The distinct values of a column as an Arrow array of their plain type.

    Args:
        values: as `Column` has them.

    >>> values_to_arrow(np.array(["flu", "gout"], dtype=object)).type
    DataType(string)
    """
    if values.dtype == object:
        return texts_to_arrow(values.tolist()).cast(pa.string())
    if values.dtype.kind == "M":
        return numbers_to_arrow(values.astype("datetime64[D]").astype(np.int32), pa.date32())
    return numbers_to_arrow(values)


def array_like(column: Column, kind: pa.DataType) -> pa.Array:
    """The cells as a new Arrow array of this type if every value fits it unchanged, otherwise of their plain type.

    >>> array_like(Columns.of({"age": [30, 31]})["age"], pa.int8()).type
    DataType(int8)
    >>> array_like(Columns.of({"age": ["[30, 39]"]})["age"], pa.int8()).type
    DataType(string)
    """
    column = column.drop_unused()
    plain = array_from_column(column)
    if pa.types.is_dictionary(kind):
        inner = array_like(column, kind.value_type)
        return _dictionary_like(inner, kind) if inner.type == kind.value_type else plain
    if kind in (pa.float16(), pa.float32()) and pa.types.is_floating(plain.type):
        return plain.cast(kind) if fits_narrow(column.values, kind.to_pandas_dtype()) else plain
    text = pa.types.is_string(plain.type)
    if text != (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        return plain
    try:
        cast = plain.cast(kind)
        return cast if cast.cast(plain.type).equals(plain) else plain
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return plain


def _dictionary_like(plain: pa.Array, kind: pa.DictionaryType) -> pa.Array:
    values = plain.unique().drop_null()
    values = values.take(pc.sort_indices(values))
    try:
        codes = pc.index_in(plain, value_set=values).cast(kind.index_type)
    except pa.ArrowInvalid:
        return plain
    return pa.DictionaryArray.from_arrays(codes, values, ordered=False)
