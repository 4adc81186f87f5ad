"""The reader and writer of model files: exact, whole or nothing, strict."""

from __future__ import annotations

import json
import os
import stat

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from widemargin.saving import tensorfile
from widemargin.saving.tensorfile import ModelFileError, read_arrays, write_arrays

DTYPES = ["<f8", ">f8", "<f4", "<i8", ">i8", "<i4", "<u8", "<u4", "u1", "i1", "?"]
HEADER = {"kind": "test", "C": 0.1, "classes": ["a", "é"], "nested": {"n": None, "flag": True}}

arrays_of_any_kind = hnp.arrays(
    dtype=st.sampled_from(DTYPES).map(np.dtype),
    shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def example_arrays() -> dict[str, np.ndarray]:
    return {
        "coef": np.linspace(-1.0, 1.0, 12).reshape(3, 4),
        "indices": np.array([3, 1, 2], dtype=np.int32),
        "seen": np.array([True, False, True]),
        "none": np.empty((0, 5), dtype=np.float32),
        "scalar": np.array(7, dtype=np.uint64),
    }


def assert_same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert set(found) == set(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype.newbyteorder("=")
        assert found[name].shape == array.shape
        native = array.astype(found[name].dtype)
        assert found[name].tobytes() == native.tobytes()  # bits, so that NaN and -0.0 count


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


@pytest.fixture
def written(path):
    write_arrays(path, example_arrays(), HEADER)
    return path


def assemble(path, directory: object, data: bytes = b"") -> None:
    """A file with a directory made by hand (an object, or its JSON text)."""
    text = directory if isinstance(directory, bytes) else json.dumps(directory).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def own_metadata(**changes: object) -> dict[str, str]:
    own = {"format_version": 1, "sha256": "0" * 64, "header": {}, **changes}
    return {"widemargin": json.dumps(own)}


# Round trips


@given(arrays=st.dictionaries(names, arrays_of_any_kind, max_size=4), header=json_values)
def test_round_trip_is_exact(tmp_path_factory, arrays, header):
    arrays.pop("__metadata__", None)
    path = tmp_path_factory.getbasetemp() / "round-trip.safetensors"
    write_arrays(path, arrays, {"value": header})
    found, found_header = read_arrays(path)
    assert_same(found, arrays)
    assert found_header == {"value": header}
    assert_same(load_file(path), arrays)


def test_arrays_without_contiguous_memory(path):
    array = np.arange(24.0).reshape(4, 6)
    views = {
        "transposed": array.T,
        "strided": array[::2, ::-3],
        "fortran": np.asfortranarray(array),
    }
    write_arrays(path, views, {})
    assert_same(read_arrays(path)[0], views)


def test_read_arrays_are_writable_and_aligned(written):
    for array in read_arrays(written)[0].values():
        assert array.flags.writeable
        assert array.flags.aligned


def test_same_content_gives_the_same_bytes(tmp_path):
    arrays = example_arrays()
    write_arrays(tmp_path / "a", arrays, HEADER)
    write_arrays(tmp_path / "b", dict(reversed(arrays.items())), HEADER)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_tuples_come_back_as_lists(path):
    write_arrays(path, {}, {"shape": (1, 2)})
    assert read_arrays(path)[1] == {"shape": [1, 2]}


# Agreement with the safetensors package


def test_safetensors_package_opens_our_files(written):
    assert_same(load_file(written), example_arrays())


def test_we_open_files_of_the_safetensors_package(written, tmp_path):
    with safe_open(written, framework="np") as file:
        metadata = file.metadata()
    again = tmp_path / "again.safetensors"
    save_file(load_file(written), again, metadata={**metadata, "format": "np"})
    arrays, header = read_arrays(again)
    assert_same(arrays, example_arrays())
    assert header == HEADER


def test_foreign_safetensors_file_is_refused(path):
    save_file(example_arrays(), path)
    with pytest.raises(ModelFileError, match="not written by widemargin"):
        read_arrays(path)


# Damage


def test_every_truncation_is_refused(written):
    whole = written.read_bytes()
    for length in range(len(whole)):
        written.write_bytes(whole[:length])
        with pytest.raises(ModelFileError, match=written.name):
            read_arrays(written)


def test_appended_bytes_are_refused(written):
    written.write_bytes(written.read_bytes() + b"\0")
    with pytest.raises(ModelFileError, match="follow the last array"):
        read_arrays(written)


def refused_or_unchanged(path) -> bool:
    """Whether the file was refused; a file that is read must give the original content."""
    try:
        arrays, header = read_arrays(path)
    except ModelFileError:
        return True
    assert_same(arrays, example_arrays())
    assert header == HEADER
    return False


def test_byte_flips_never_give_altered_data(written):
    whole = written.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(800):
        damaged = bytearray(whole)
        for place in rng.integers(len(whole), size=rng.integers(1, 4)):
            damaged[place] ^= int(rng.integers(1, 256))
        written.write_bytes(damaged)
        refused += refused_or_unchanged(written)
    assert refused > 780  # the rest hit padding


def test_every_flipped_bit_of_the_arrays_is_noticed(written):
    whole = written.read_bytes()
    start = 8 + int.from_bytes(whole[:8], "little")
    for place in range(start, len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << (place % 8)
        written.write_bytes(damaged)
        with pytest.raises(ModelFileError):
            read_arrays(written)


@given(content=st.binary(max_size=200))
def test_random_bytes_are_refused(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "random.bin"
    path.write_bytes(content)
    with pytest.raises(ModelFileError):
        read_arrays(path)


def test_missing_empty_and_folder(tmp_path):
    with pytest.raises(ModelFileError, match=r"nothing\.here: there is no such file"):
        read_arrays(tmp_path / "nothing.here")
    (tmp_path / "empty").touch()
    with pytest.raises(ModelFileError, match="empty: the file is empty"):
        read_arrays(tmp_path / "empty")
    with pytest.raises(ModelFileError, match="cannot be read"):
        read_arrays(tmp_path)


def test_npz_and_pickle_files_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.zeros(3))
    (tmp_path / "a.pkl").write_bytes(b"\x80\x05cos\nsystem\n(S'false'\ntR." + bytes(20))
    for name in ["a.npz", "a.pkl"]:
        with pytest.raises(ModelFileError, match="not a model file"):
            read_arrays(tmp_path / name)


def test_absurd_directory_length_reserves_no_memory(path):
    with open(path, "wb") as file:
        file.write((200_000_000).to_bytes(8, "little"))
        file.truncate(300_000_000)  # sparse: takes no room
    with pytest.raises(ModelFileError, match="absurdly long"):
        read_arrays(path)


def entry(dtype: object, shape: object, *offsets: object) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": list(offsets)}


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"a": entry("F64", [1], 0, 8), "b": entry("F64", [1], 4, 12)}, "overlaps"),
        ({"a": entry("F64", [1], 0, 8), "b": entry("U8", [4], 12, 16)}, "hole"),
        ({"a": entry("F64", [1], 8, 16)}, "hole"),
        ({"a": entry("F64", [1], 0, 8)}, "follow the last"),
        ({"a": entry("F64", [3], 0, 24)}, "past its end"),
        ({"a": entry("F64", [3], 0, 16)}, "does not fit"),
        ({"a": entry("F64", [2], 16, 0)}, "does not fit"),
        ({"a": entry("F64", [-2], 0, 16)}, "invalid shape"),
        ({"a": entry("F64", [True, 2], 0, 16)}, "invalid shape"),
        ({"a": entry("F64", [2.0], 0, 16)}, "invalid shape"),
        ({"a": entry("F64", "2", 0, 16)}, "invalid shape"),
        ({"a": entry("F64", [2**62, 4, 2**62], 0, 16)}, "does not fit"),
        ({"a": entry("U8", [0, 2**70], 0, 0), "b": entry("F64", [2], 0, 16)}, "NumPy"),
        ({"a": entry("U8", [1] * 200 + [16], 0, 16)}, "NumPy"),
        ({"a": entry("F64", [2], 0)}, "data_offsets"),
        ({"a": entry("F64", [2], -16, 0)}, "data_offsets"),
        ({"a": entry("F16", [8], 0, 16)}, "unknown dtype"),
        ({"a": entry("O", [2], 0, 16)}, "unknown dtype"),
        ({"a": entry(["F64"], [2], 0, 16)}, "unknown dtype"),
        ({"a": {**entry("F64", [2], 0, 16), "code": "x"}}, "exactly"),
        ({"a": [1]}, "exactly"),
        ({"a": entry("BOOL", [16], 0, 16)}, "booleans"),
        ({"a": entry("F64", [2], 0, 16)}, "checksum"),
    ],
)
def test_bad_directory_entries(path, entries, message):
    assemble(path, {"__metadata__": own_metadata(), **entries}, b"\x02" * 16)
    with pytest.raises(ModelFileError, match=message):
        read_arrays(path)


@pytest.mark.parametrize(
    ("directory", "message"),
    [
        (b'{"a": 1', "not valid JSON"),
        (b'{"\xff": 1}', "not valid JSON"),
        (b"[1]", "not a model file"),
        (b'{"a":' + b"[" * 100_000 + b"}", "not valid JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not valid JSON"),
        (b'{"a": 1, "a": 1}', "twice"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "Infinity"),
        (b'{"a": 1e999}', "not finite"),
        (b"{}", "not written by widemargin"),
        (b'{"__metadata__": {"widemargin": 1}}', "not written by widemargin"),
        (b'{"__metadata__": {"widemargin": "NaN"}}', "NaN"),
        (b'{"__metadata__": {"widemargin": "[]"}}', "not a JSON object"),
        ({"__metadata__": own_metadata(format_version=2)}, "upgrade widemargin"),
        ({"__metadata__": own_metadata(format_version=0)}, "format_version"),
        ({"__metadata__": own_metadata(format_version=True)}, "format_version"),
        ({"__metadata__": own_metadata(header=[])}, "incomplete"),
        ({"__metadata__": own_metadata(header={"a": float("nan")})}, "NaN"),
        ({"__metadata__": own_metadata(more=1)}, "unknown keys"),
        ({"__metadata__": own_metadata(sha256=None)}, "checksum"),
    ],
)
def test_bad_directories(path, directory, message):
    assemble(path, directory)
    with pytest.raises(ModelFileError, match=message):
        read_arrays(path)


def test_files_of_other_formats_are_refused_by_release(path, monkeypatch):
    with monkeypatch.context() as later:
        later.setattr(tensorfile, "FORMAT_VERSION", 2)
        write_arrays(path, {}, {"widemargin": "0.9.1"})
    wanted = "format 2 of widemargin '0.9.1', this widemargin reads up to 1; upgrade widemargin"
    with pytest.raises(ModelFileError, match=wanted):
        read_arrays(path)
    write_arrays(path, {}, {})
    monkeypatch.setattr(tensorfile, "FORMAT_VERSION", 2)
    monkeypatch.setattr(tensorfile, "OLDEST_READ", 2)
    monkeypatch.setattr(tensorfile, "LAST_READER", {1: "0.8"})
    with pytest.raises(
        ModelFileError, match=r"format 1, .* widemargin 0\.8 is the last that reads"
    ):
        read_arrays(path)


def test_renamed_array_and_changed_header_are_noticed(written):
    whole = written.read_bytes()
    for old, new in [(b'"coef"', b'"cofe"'), (b"[3,4]", b"[4,3]"), (b"test", b"tent")]:
        assert whole.count(old) == 1
        written.write_bytes(whole.replace(old, new))
        with pytest.raises(ModelFileError, match="checksum"):
            read_arrays(written)


# Writing: whole or nothing


@pytest.mark.parametrize(
    ("arrays", "header", "error"),
    [
        ({}, {"a": object()}, TypeError),
        ({}, {"a": np.zeros(2)}, TypeError),
        ({}, {"a": float("nan")}, ValueError),
        ({}, {"a": [{"b": float("inf")}]}, ValueError),
        ({}, {1: "a"}, TypeError),
        ({}, {"a": [{None: 1}]}, TypeError),
        ({"a": np.array([object()])}, {}, TypeError),
        ({"a": np.array(["text"])}, {}, TypeError),
        ({"a": np.zeros(2, np.complex128)}, {}, TypeError),
        ({"a": np.zeros(2, np.float16)}, {}, TypeError),
        ({"a": [1.0, 2.0]}, {}, TypeError),
        ({1: np.zeros(2)}, {}, TypeError),
        ({"__metadata__": np.zeros(2)}, {}, TypeError),
        ({"\ud800": np.zeros(2)}, {}, ValueError),
    ],
)
def test_refused_content_leaves_the_old_file(written, arrays, header, error):
    before = written.read_bytes()
    with pytest.raises(error):
        write_arrays(written, arrays, header)
    assert written.read_bytes() == before
    assert os.listdir(written.parent) == [written.name]


@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_interrupted_write_leaves_the_old_file(written, monkeypatch, step, error):
    before = written.read_bytes()

    def fail(*args):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(tensorfile.os, step, fail)
        with pytest.raises(type(error)):
            write_arrays(written, {"coef": np.ones(1000)}, {})
    assert written.read_bytes() == before
    assert os.listdir(written.parent) == [written.name]


def test_failed_first_write_leaves_nothing(path, monkeypatch):
    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr(tensorfile.os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_arrays(path, example_arrays(), HEADER)
    assert os.listdir(path.parent) == []


def test_missing_folder_and_folder_as_target(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_arrays(tmp_path / "no" / "model", {}, {})
    with pytest.raises(OSError):
        write_arrays(tmp_path, {}, {})
    assert os.listdir(tmp_path) == []
    assert not [name for name in os.listdir(tmp_path.parent) if name.endswith(".part")]


@pytest.mark.skipif(os.name != "posix", reason="permission bits are a POSIX matter")
def test_permissions(path):
    old = os.umask(0o027)
    try:
        write_arrays(path, {}, {})
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o604)
    write_arrays(path, example_arrays(), {})
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anything")
def test_read_only_file_is_not_replaced(written):
    before = written.read_bytes()
    written.chmod(0o444)
    with pytest.raises(PermissionError):
        write_arrays(written, {}, {})
    assert written.read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="symbolic links need rights elsewhere")
def test_symbolic_link_stays_a_link(written):
    link = written.with_name("latest")
    link.symlink_to(written.name)
    write_arrays(link, {"a": np.ones(2)}, {})
    assert link.is_symlink()
    assert_same(read_arrays(written)[0], {"a": np.ones(2)})
