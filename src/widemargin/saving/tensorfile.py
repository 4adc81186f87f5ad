"""Model files: named arrays and one JSON header in the safetensors format.

A file is laid out as

    8 bytes         length N of the directory, little-endian
    N bytes         JSON directory: name -> dtype, shape, data_offsets
    the rest        the arrays, raw, little-endian, C order, without gaps

The directory's ``__metadata__["widemargin"]`` is a JSON string with the keys
``format_version``, ``sha256`` and ``header``. The checksum covers names,
dtypes, shapes, header and array bytes, but not their order in the file: another
tool may write the file again and it stays valid, while a changed value is
noticed. Reading runs no code from the file.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from io import BufferedReader
from typing import Any, NoReturn

import numpy as np

from ..system.replacing import replacing

__all__ = [
    "FORMAT_VERSION",
    "CheckpointError",
    "ModelFileError",
    "named",
    "read_arrays",
    "under",
    "write_arrays",
]

#: What is written, and the oldest that is read; docs/files.md says for how long.
FORMAT_VERSION, OLDEST_READ = 1, 1
#: The last release that reads a format which this one reads no more.
LAST_READER: dict[int, str] = {}
MAX_DIRECTORY_BYTES = 100_000_000

_METADATA = "__metadata__"
_OWN_KEY = "widemargin"
_DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "U64": np.dtype("<u8"),
    "U32": np.dtype("<u4"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
_CODES = {(dtype.kind, dtype.itemsize): code for code, dtype in _DTYPES.items()}


class ModelFileError(ValueError):
    """A model file is missing, damaged, altered, foreign or too new.

    Examples
    --------
    >>> read_arrays("no-such-file.safetensors")
    Traceback (most recent call last):
    ...
    widemargin.saving.tensorfile.ModelFileError: no-such-file.safetensors: there is no such file
    """


class CheckpointError(ValueError):
    """A checkpoint that cannot be used."""


@dataclass(frozen=True)
class _Entry:
    """Where one array lies in the data part of the file."""

    name: str
    code: str
    shape: tuple[int, ...]
    begin: int
    end: int


# Writing


def named(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same arrays under names that begin so."""
    return {prefix + name: array for name, array in arrays.items()}


def under(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays whose names begin so, without the beginning.

    Examples
    --------
    >>> under("a.", named("a.", {"x": 1}) | {"b.y": 2})
    {'x': 1}
    """
    return {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}


def write_arrays(
    path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]
) -> None:
    """Write arrays and a JSON header to a file, all of it or nothing.

    Parameters
    ----------
    path : path-like
        The file. An old file of this name keeps its permissions, and stays as
        it is if anything goes wrong.
    arrays : mapping of str to ndarray
        Of float64, float32, int64, int32, uint64, uint32, int8, uint8 or bool.
    header : mapping
        What JSON can hold: strings as keys, no NaN or infinity.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.safetensors")
    ...     write_arrays(path, {"coef": np.array([1.0, 2.0])}, {"C": 0.5})
    ...     arrays, header = read_arrays(path)
    >>> arrays, header
    ({'coef': array([1., 2.])}, {'C': 0.5})
    """
    stored = {name: _storable(name, array) for name, array in arrays.items()}
    own = _dump_own(stored, header)

    # Wide types first keeps every array aligned in the file.
    order = sorted(stored, key=lambda name: (-stored[name].itemsize, name))
    directory: dict[str, Any] = {_METADATA: {_OWN_KEY: own}}
    begin = 0
    for name in order:
        array = stored[name]
        end = begin + array.nbytes
        directory[name] = {
            "dtype": _code(array.dtype),
            "shape": list(array.shape),
            "data_offsets": [begin, end],
        }
        begin = end
    text = json.dumps(directory, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_DIRECTORY_BYTES:
        raise ValueError(
            f"names and header take {len(text)} bytes, more than {MAX_DIRECTORY_BYTES}; "
            "store large values as arrays"
        )

    with replacing(path) as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for name in order:
            file.write(_raw_bytes(stored[name]).data)


def _code(dtype: np.dtype[Any]) -> str:
    """Name of a dtype in the file; KeyError for those that are not stored."""
    return _CODES[dtype.kind, dtype.itemsize]


def _storable(name: object, array: object) -> np.ndarray:
    """The array as it lies in the file: little-endian and C-contiguous."""
    if not isinstance(name, str) or name == _METADATA:
        raise TypeError(f"{name!r} cannot be the name of an array")
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"{name!r} cannot be the name of an array: not valid Unicode") from None
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name!r} must be an array, not {type(array).__name__}")
    try:
        code = _code(array.dtype)
    except KeyError:
        raise TypeError(
            f"array {name!r} has dtype {array.dtype}; model files hold "
            f"{', '.join(str(dtype) for dtype in _DTYPES.values())}"
        ) from None
    return np.asarray(array, dtype=_DTYPES[code], order="C")


def _dump_own(stored: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> str:
    """Our JSON string: format version, checksum and the caller's header."""
    _refuse_non_string_keys(header)
    # Tuples become lists here, so that the checksum sees what a reader sees.
    plain = json.loads(json.dumps(dict(header), allow_nan=False))
    checksum = _checksum(stored, plain, FORMAT_VERSION)
    own = {"format_version": FORMAT_VERSION, "sha256": checksum, "header": plain}
    return json.dumps(own, allow_nan=False, separators=(",", ":"))


def _refuse_non_string_keys(value: object) -> None:
    """JSON would turn the key 1 into "1" without a word."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"header keys must be strings, not {key!r}")
            _refuse_non_string_keys(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_non_string_keys(item)


def _raw_bytes(array: np.ndarray) -> np.ndarray:
    """The bytes of a C-contiguous array, as a flat view."""
    return array.reshape(-1).view(np.uint8)


def _checksum(arrays: Mapping[str, np.ndarray], header: dict[str, Any], version: int) -> str:
    """SHA-256 of version, header, names, dtypes, shapes and values, in order of the names."""
    names = sorted(arrays)
    summary = [
        version,
        header,
        [[name, _code(arrays[name].dtype), list(arrays[name].shape)] for name in names],
    ]
    digest = hashlib.sha256(json.dumps(summary, sort_keys=True, allow_nan=False).encode("ascii"))
    for name in names:
        digest.update(_raw_bytes(arrays[name]).data)
    return digest.hexdigest()


# Reading


def read_arrays(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read what `write_arrays` wrote, checking every byte that matters.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    arrays : dict of str to ndarray
        Fresh writable arrays.
    header : dict
        The header given to `write_arrays`.

    Raises
    ------
    ModelFileError
        If the file is not a whole, unaltered model file of a known version;
        the text names the path and the reason.
    """
    label = os.fspath(path)
    try:
        with open(path, "rb") as file:
            return _read(file)
    except _Refused as error:
        raise ModelFileError(f"{label}: {error}") from error.__cause__
    except FileNotFoundError:
        raise ModelFileError(f"{label}: there is no such file") from None
    except OSError as error:
        raise ModelFileError(f"{label}: cannot be read ({error.strerror})") from error


class _Refused(Exception):
    """Why a file is refused; `read_arrays` adds the path."""


def _read(file: BufferedReader) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    size = os.fstat(file.fileno()).st_size
    directory, data_size = _read_directory(file, size)
    own = _own_metadata(directory)
    entries = [_entry(name, value) for name, value in directory.items() if name != _METADATA]
    entries.sort(key=lambda entry: (entry.begin, entry.end))
    _check_layout(entries, data_size)

    arrays = {}
    for entry in entries:
        arrays[entry.name] = _read_array(file, entry)
    if own["sha256"] != _checksum(arrays, own["header"], own["format_version"]):
        raise _Refused("the contents do not match their checksum; the file was altered")
    native = {name: a.astype(a.dtype.newbyteorder("="), copy=False) for name, a in arrays.items()}
    return native, own["header"]


def _read_directory(file: BufferedReader, size: int) -> tuple[dict[str, Any], int]:
    """The JSON directory and the number of bytes that follow it."""
    if size == 0:
        raise _Refused("the file is empty")
    if size < 8:
        raise _Refused(f"the file is truncated: {size} bytes")
    length = int.from_bytes(file.read(8), "little")
    if length > MAX_DIRECTORY_BYTES:
        raise _Refused("this is not a model file (its directory would be absurdly long)")
    if length > size - 8:
        raise _Refused(
            f"the file is truncated or foreign: a directory of {length} bytes "
            f"in a file of {size} bytes"
        )
    text = file.read(length)
    if len(text) != length:
        raise _Refused("the file is truncated: it shrank while it was read")
    if not text.startswith(b"{"):
        raise _Refused("this is not a model file (no JSON directory)")
    return _parse_json(text, "directory"), size - 8 - length


def _own_metadata(directory: dict[str, Any]) -> dict[str, Any]:
    """Our part of the metadata, of a version that this library knows."""
    metadata = directory.get(_METADATA)
    own_text = metadata.get(_OWN_KEY) if isinstance(metadata, dict) else None
    if not isinstance(own_text, str):
        raise _Refused("this safetensors file was not written by widemargin")
    own = _parse_json(own_text, "header")
    version = own.get("format_version")
    if type(version) is not int or version < 1:
        raise _Refused("the header has no valid format_version")
    if version > FORMAT_VERSION:
        raise _Refused(
            f"the file has format {version}{_writer(own)}, this widemargin reads up to "
            f"{FORMAT_VERSION}; upgrade widemargin to read it"
        )
    if version < OLDEST_READ:
        raise _Refused(
            f"the file has format {version}{_writer(own)}, this widemargin reads {OLDEST_READ} to "
            f"{FORMAT_VERSION}; widemargin {LAST_READER[version]} is the last that reads it: load "
            "it there, fit anew or export its arrays"
        )
    if set(own) != {"format_version", "sha256", "header"} or not isinstance(own["header"], dict):
        raise _Refused("the header is incomplete or has unknown keys")
    return own


def _writer(own: dict[str, Any]) -> str:
    """Which release wrote a file, where it says so."""
    header = own.get("header")
    release = header.get("widemargin") if isinstance(header, dict) else None
    return f" of widemargin {release!r:.40}" if isinstance(release, str) else ""


def _parse_json(text: bytes | str, what: str) -> dict[str, Any]:
    """A JSON object, refusing repeated keys and numbers that are not finite."""

    def refuse_constant(constant: str) -> NoReturn:
        raise _Refused(f"the {what} holds {constant}, which is not JSON")

    def finite(number: str) -> float:
        value = float(number)
        if not math.isfinite(value):
            raise _Refused(f"the {what} holds a number that is not finite")
        return value

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            raise _Refused(f"the {what} has a key twice")
        return result

    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        value = json.loads(
            text, parse_constant=refuse_constant, parse_float=finite, object_pairs_hook=unique
        )
    except (ValueError, RecursionError) as error:
        raise _Refused(f"the {what} is not valid JSON") from error
    if not isinstance(value, dict):
        raise _Refused(f"the {what} is not a JSON object")
    return value


def _entry(name: str, value: object) -> _Entry:
    """One line of the directory, checked on its own."""
    if not isinstance(value, dict) or set(value) != {"dtype", "shape", "data_offsets"}:
        raise _Refused(f"array {name!r} needs exactly dtype, shape and data_offsets")
    code, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(code, str) or code not in _DTYPES:
        raise _Refused(f"array {name!r} has the unknown dtype {code!r}")
    if not _are_counts(shape):
        raise _Refused(f"array {name!r} has an invalid shape")
    if not _are_counts(offsets) or len(offsets) != 2:
        raise _Refused(f"array {name!r} has invalid data_offsets")
    begin, end = offsets
    if end - begin != math.prod(shape) * _DTYPES[code].itemsize:
        raise _Refused(f"array {name!r} has a shape that does not fit its {end - begin} bytes")
    return _Entry(name, code, tuple(shape), begin, end)


def _are_counts(values: object) -> bool:
    """Whether this is a list of non-negative integers (`True` is not one)."""
    return isinstance(values, list) and all(type(v) is int and v >= 0 for v in values)


def _check_layout(entries: list[_Entry], data_size: int) -> None:
    """The arrays, sorted by place, must tile the data part."""
    place = 0
    for entry in entries:
        if entry.end > data_size:
            raise _Refused(f"the file is truncated: array {entry.name!r} runs past its end")
        if entry.begin < place:
            raise _Refused(f"array {entry.name!r} overlaps another one")
        if entry.begin > place:
            raise _Refused(f"there is a hole before array {entry.name!r}")
        place = entry.end
    if place != data_size:
        raise _Refused(f"{data_size - place} bytes follow the last array")


def _read_array(file: BufferedReader, entry: _Entry) -> np.ndarray:
    try:
        array = np.empty(entry.shape, dtype=_DTYPES[entry.code])
    except ValueError as error:  # too many axes, or a huge axis beside an empty one
        raise _Refused(f"array {entry.name!r} has a shape that NumPy cannot hold") from error
    raw = _raw_bytes(array)
    if file.readinto(raw.data) != raw.size:
        raise _Refused("the file is truncated: it shrank while it was read")
    if entry.code == "BOOL" and raw.size and raw.max() > 1:
        raise _Refused(f"array {entry.name!r} holds booleans that are neither 0 nor 1")
    return array
