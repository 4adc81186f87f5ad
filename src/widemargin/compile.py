"""How compiled functions are made, cached and passed to each other.

Two rules keep a compiled result both quick to load and never stale:

* `kernel` compiles a function of this package and caches it on disk. Numba checks only the file a
  function stands in; kernels here call kernels of other files, so the cache entry is stamped with
  the contents of *all* compiled sources that its file imports, and described by the fields of the
  named tuples that it is given: nothing old is ever run.
* A function that a caller chooses at run time (a problem's oracle, a solver's update) is passed as
  a **typed pointer** (`pointer`), which caches on disk and notices an edited function.

Numba's cache index is a pickle that names the argument types. A type of the caller's own module
would make the index of *our* function unreadable wherever that module is absent, so code compiled
for such types has an index of its own, and an index that cannot be read counts as empty.
"""

from __future__ import annotations

import hashlib
import logging
import pickle
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from numba import config, njit, types
from numba.core.caching import IndexDataCacheFile

from .system.sources import package_stamp, stamp_of

logger = logging.getLogger(__name__)

#: NaN never enters a kernel (input is checked at the door); infinities do and keep their meaning.
FAST_MATH = {"contract", "reassoc", "nsz", "arcp", "nnan"}

#: Whether compiled code looks at every index: NUMBA_BOUNDSCHECK=1, for audits. Numba cannot look
#: into loops written in LLVM; each has a plain twin that takes its place here.
IS_CHECKED = bool(getattr(config, "BOUNDSCHECK", False))

VECTOR = types.float64[::1]
INDEX = types.uint32[::1]


UNREADABLE = (ImportError, AttributeError, EOFError, TypeError, ValueError, pickle.PickleError)


def fields_of(kinds: Any) -> tuple:
    """Names and fields of the named tuples among types, those within types included."""
    found: list = []
    for kind in kinds:
        owner = getattr(kind, "instance_class", None)
        if owner is not None:
            found.append((owner.__qualname__, owner._fields))
        found.extend(fields_of(getattr(kind, "types", ())))
        found.extend(fields_of(getattr(getattr(kind, "signature", None), "args", ())))
    return tuple(found)


def described(key: tuple) -> tuple:
    """Numba's key of an entry, which begins with a signature or its types, and its fields."""
    return (*key, fields_of(getattr(key[0], "args", key[0])))


class CacheFile(IndexDataCacheFile):
    """Numba's cache of one function; what cannot be read is compiled again.

    To Numba a named tuple is its name and types: entries are told apart by the fields as well.
    """

    def _load_index(self):
        try:
            return super()._load_index()
        except UNREADABLE as error:
            logger.info("the cache %s is not readable: %r", self._index_path, error)
            return {}

    def load(self, key):
        """The entry of `key`, or None."""
        try:
            return super().load(described(key))
        except UNREADABLE as error:
            logger.info("an entry of %s is not readable: %r", self._index_path, error)
            return None

    def save(self, key, data):
        """Keep an entry."""
        super().save(described(key), data)


def cached(function: Callable, owners: tuple[str, ...] = (), **more: Any) -> Any:
    """`function` as a Numba dispatcher, cached on disk where a cache can be written.

    `owners` names the caller's types it is compiled for, which get an index of their own; `more`
    are further options of Numba.
    """
    options = {"nogil": True, "error_model": "numpy", "fastmath": FAST_MATH, **more}
    try:
        dispatcher = njit(cache=True, **options)(function)
    except RuntimeError as error:  # no writable folder, or a function typed at a prompt
        logger.info("compiled code is not cached: %s", error)
        return njit(**options)(function)
    cache = dispatcher._cache
    stamp: Any = stamp_of(function.__module__)
    if not function.__module__.startswith("widemargin."):  # may call our kernels all the same
        stamp = (cache._cache_file._source_stamp, package_stamp())
    base = cache._impl.filename_base + ("-checked" if IS_CHECKED else "")
    if owners:
        base += "-" + hashlib.sha256(repr(owners).encode()).hexdigest()[:12]
    cache._cache_file = CacheFile(cache._cache_path, base, stamp)
    return dispatcher


def foreign_types(signature: Any) -> tuple[str, ...]:
    """Named tuples of a signature that are not of this package."""
    kinds = (getattr(kind, "instance_class", None) for kind in signature.args)
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in kinds if kind is not None}
    return tuple(sorted(name for name in names if not name.startswith("widemargin.")))


def inlined(function: Callable) -> Any:
    """A small function that is copied into every kernel that calls it.

    A call passes each array as seven words and counts its references; for a row of a dozen entries
    that costs more than the arithmetic. Keep such functions to one loop: with a loop in each branch
    of an `if` the reference counts stay, and everything is four times slower.
    """
    return njit(inline="always", nogil=True, error_model="numpy", fastmath=FAST_MATH)(function)


def kernel(function: Callable) -> Any:
    """Compile a function of this package lazily, once per combination of argument types."""
    return cached(function)


def strict(function: Callable) -> Any:
    """A kernel without fast-math: sums whose rounding is bounded are not reordered."""
    return cached(function, fastmath=False)


def borrowing(function: Callable) -> Any:
    """A kernel that borrows its arrays from Python: their references are not counted.

    A step that reads a few dozen arrays of named tuples through some nested calls counts hundreds
    of references, each an atomic operation: 2 us where the arithmetic takes one. Python
    holds the arrays during the call, so nothing has to be counted. Such a function cannot allocate
    (Numba refuses to compile it), and one that returns an array may be called by borrowing
    functions only: a counting one would give back a reference that it never got.
    """
    return cached(function, _nrt=False)


@lru_cache(None)
def pointer(function: Any, signature: Any) -> Any:
    """`function` compiled for one signature, to be passed as a typed pointer.

    A borrowing or strict function stays one.

    Parameters
    ----------
    function : compiled or plain function
        An oracle or an update.
    signature : numba signature
        The exact types it is called with.
    """
    options = getattr(function, "targetoptions", {})
    kept = {name: options[name] for name in ("_nrt", "fastmath") if name in options}
    plain = getattr(function, "py_func", function)
    dispatcher = cached(plain, foreign_types(signature), **kept)
    dispatcher.compile(signature)
    dispatcher.disable_compile()
    find, (only,) = dispatcher.get_compile_result, dispatcher.overloads.values()

    def result_of(wanted):
        """What is compiled. Every call that passes the pointer asks twice, and hashes all types."""
        return only if wanted.args == only.signature.args else find(wanted)

    dispatcher.get_compile_result = result_of
    return dispatcher
