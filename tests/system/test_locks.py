"""One run at a time in a folder, signals, and what an operating system does in its own way."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from widemargin import SVMClassifier
from widemargin.saving.checkpoints import CheckpointError, remove_checkpoint
from widemargin.solvers import OutOfCore
from widemargin.solvers.out_of_core.disk_file import DiskFile
from widemargin.streams import ArrayStream
from widemargin.system import platform as system
from widemargin.system.locking import LOCK, FolderLock, Locked, check_free
from widemargin.system.replacing import replacing

HOLD = """
import sys, time
from widemargin.system.locking import FolderLock
FolderLock(sys.argv[1]).take()
print("locked", flush=True)
time.sleep(60)
"""


def rows(n=600):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    return rng.normal(size=(n, 4)) + y[:, None], y


@pytest.fixture
def holder(tmp_path):
    """Another process that has locked the folder `tmp_path / "ck"`."""
    words = [sys.executable, "-c", HOLD, str(tmp_path / "ck")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "locked\n"
        yield process
        process.kill()


# -------------------------------------------------------------------- the lock


def test_a_second_process_is_refused_with_the_number_of_the_first(tmp_path, holder):
    X, y = rows()
    for resume in (False, True):
        with pytest.raises(CheckpointError, match=rf"ck is in use by process {holder.pid};"):
            SVMClassifier().fit_stream((X, y), checkpoint=tmp_path / "ck", resume=resume)
    remove_checkpoint(tmp_path / "ck")  # leaves what another run uses
    assert (tmp_path / "ck" / LOCK).exists()
    with pytest.raises(Locked, match=f"process {holder.pid}"):
        check_free(tmp_path / "ck")


@pytest.mark.parametrize("resume", [False, True])
def test_a_stale_lock_is_taken_over(tmp_path, holder, resume):
    holder.kill()
    holder.wait()
    check_free(tmp_path / "ck")
    # the number of the dead process belongs to a living one
    (tmp_path / "ck" / LOCK).write_text(f"{os.getppid()} here\n")
    SVMClassifier().fit_stream(rows(), checkpoint=tmp_path / "ck", resume=resume)
    assert not (tmp_path / "ck").exists()


def test_threads_of_one_process(tmp_path):
    found = []

    def second(progress=None):
        try:
            FolderLock(tmp_path).take()
        except Locked as error:
            found.append(str(error))

    with FolderLock(tmp_path):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert found == [f"{tmp_path} is in use by process {os.getpid()}, which is this one"]
    assert not list(tmp_path.iterdir())


def test_a_fit_within_a_fit_is_refused(tmp_path):
    X, y = rows()
    options = {"checkpoint": tmp_path / "ck", "resume": True}

    def again(progress):
        with pytest.raises(CheckpointError, match="which is this one"):
            SVMClassifier().fit_stream((X, y), **options)

    SVMClassifier().fit_stream((X, y), on_progress=again, **options)
    assert not (tmp_path / "ck").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_neither_holds_nor_frees_the_lock(tmp_path):
    lock = FolderLock(tmp_path)
    lock.take()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        lock.release()
        os.read(read, 1)  # alive until the parent is done
        os._exit(0)
    with pytest.raises(Locked):
        check_free(tmp_path)
    lock.release()
    check_free(tmp_path)
    with FolderLock(tmp_path):
        os.write(write, b".")
        assert os.waitpid(child, 0)[1] == 0
        with pytest.raises(Locked):
            check_free(tmp_path)


@pytest.mark.parametrize("solver", ["streaming_dual", OutOfCore(memory=4000 / 2**20)])
def test_the_lock_goes_with_the_run_however_it_ends(tmp_path, solver):
    X, y = rows()
    folder = tmp_path / "ck"

    class Stop(Exception):
        pass

    def stop(progress):
        assert (folder / LOCK).exists()
        raise Stop

    model = SVMClassifier(solver=solver, random_state=0)
    options = {"checkpoint": folder, "checkpoint_seconds": 0.0}
    with pytest.raises(Stop):
        model.fit_stream((X, y), on_progress=stop, **options)
    check_free(folder)
    assert not (folder / LOCK).exists()
    model.fit_stream((X, y), resume=True, keep_checkpoint=True, **options)
    assert "state.safetensors" in os.listdir(folder) and LOCK not in os.listdir(folder)
    with pytest.raises(CheckpointError, match="holds the checkpoint"):
        model.fit_stream((X, y), **options)
    assert LOCK not in os.listdir(folder)
    remove_checkpoint(folder)
    assert not folder.exists()


def test_blocks_on_disk_belong_to_one_run(tmp_path):
    first = DiskFile(tmp_path, "blocks.bin")
    first.write(np.arange(3.0), 0)
    with pytest.raises(BlockingIOError, match=r"in use by another run\. Name another folder"):
        DiskFile(tmp_path, "blocks.bin")
    first.leave()
    second = DiskFile(tmp_path, "blocks.bin")
    assert second.size == 24
    second.close()
    assert not list(tmp_path.iterdir())


# -------------------------------------------------------------------- resumed with other limits


def books(model):
    """What must be equal of two models, clocks left out."""
    history = {name: model.history_[name] for name in ("passes", "rows", "primal", "dual", "gap")}
    weights = model.dual_coef_ if model.is_kernel_machine else model.coef_
    seen = weights, model.intercept_, *history.values()
    return [array.tobytes() for array in seen], model.certificate_, model.fingerprint_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("solver", "verify"),
    [
        ("streaming_dual", None),
        ("streaming_dual", False),
        (OutOfCore(memory=4000 / 2**20), None),
        ("functional_descent", None),
        ("lasvm", None),
    ],
)
def test_more_passes_later_are_more_passes_from_the_start(tmp_path, solver, verify):
    stream = ArrayStream(*rows(), chunk_rows=100)

    def fit(passes, **options):
        model = SVMClassifier(0.3, tol=1e-15, solver=solver, random_state=0)
        if solver == "lasvm":
            model.set_params(kernel="rbf")
        return books(model.fit_stream(stream, passes=passes, verify=verify, **options))

    options = {"checkpoint": tmp_path / "ck", "resume": True, "keep_checkpoint": True}
    for passes in (1, 2, 2, 4):
        assert fit(passes, **options) == fit(passes), passes
    assert fit(3, **options) == fit(4)  # it has made four


@pytest.mark.parametrize("solver", ["streaming_dual", OutOfCore(memory=4000 / 2**20)])
def test_a_run_that_has_ended_goes_on_to_a_smaller_gap(tmp_path, solver):
    X, y = rows()
    options = {"checkpoint": tmp_path / "ck", "resume": True, "keep_checkpoint": True}

    def fit(tol):
        model = SVMClassifier(0.3, tol=tol, solver=solver, random_state=0)
        return model.fit_stream((X, y), passes=None, **options)

    first, second, third = fit(1e-2), fit(1e-2), fit(1e-5)
    assert books(first) == books(second) and first.certificate_.gap <= 1e-2
    assert third.certificate_.gap <= 1e-5 and third.stopped_by_ == "gap"
    assert third.history_["passes"][-1] > first.history_["passes"][-1]
    assert fit(1e-3).certificate_ == third.certificate_  # less than there is already
    with pytest.raises(CheckpointError, match="made with C"):
        SVMClassifier(0.4, solver=solver, random_state=0).fit_stream((X, y), **options)


def test_seconds_are_those_of_a_call(tmp_path):
    stream = ArrayStream(*rows(), chunk_rows=100)
    whole = SVMClassifier(random_state=0).fit_stream(stream, passes=3)
    options = {"checkpoint": tmp_path / "ck", "resume": True, "passes": 3}
    for calls in range(50):  # noqa: B007 - it is used below
        model = SVMClassifier(random_state=0, max_seconds=1e-5).fit_stream(stream, **options)
        if model.stopped_by_ != "seconds":
            break
    assert 3 < calls < 49 and books(model) == books(whole)
    assert not (tmp_path / "ck").exists()


# -------------------------------------------------------------------- other systems


def test_locks_of_windows(tmp_path, monkeypatch):
    calls = []

    def locking(file, mode, count):
        calls.append((os.lseek(file, 0, os.SEEK_CUR), mode, count))
        if len(calls) > 1:
            raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(system, "fcntl", None)
    monkeypatch.setattr(system, "msvcrt", SimpleNamespace(LK_NBLCK=2, locking=locking))
    with FolderLock(tmp_path), pytest.raises(Locked, match=f"process {os.getpid()}"):
        check_free(tmp_path)
    assert calls == [(system.LOCKED_BYTE, 2, 1)] * 2  # the words before that byte can be read


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def flock(file, mode):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(system, "fcntl", SimpleNamespace(LOCK_EX=2, LOCK_NB=4, flock=flock))
    with FolderLock(tmp_path), FolderLock(tmp_path):
        pass
    assert not list(tmp_path.iterdir())


def test_reading_and_writing_where_a_file_has_one_place(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "pwrite")
    monkeypatch.delattr(os, "preadv")
    file, found = DiskFile(tmp_path, "x"), np.zeros(3)
    assert file.write(np.arange(4.0), 8) == 40
    file.read(found, 16)
    assert found.tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(OSError, match="bytes too early"):
        file.read(found, 24)
    file.close()


def test_a_file_that_somebody_reads_is_replaced_later(tmp_path, monkeypatch):
    refusals, real = [1, 2, 3], os.replace

    def busy(part, path):
        if refusals:
            raise PermissionError(errno.EACCES, f"the file is in use {refusals.pop()}")
        real(part, path)

    monkeypatch.setattr(os, "replace", busy)
    with pytest.raises(PermissionError), replacing(tmp_path / "m") as file:  # here that is final
        file.write(b"1")
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(system, "os", AsWindows())
    with replacing(tmp_path / "m") as file:
        file.write(b"2")
    assert (tmp_path / "m").read_bytes() == b"2" and not refusals


def test_the_lock_file_is_closed_before_it_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(system, "os", AsWindows())
    with FolderLock(tmp_path):
        pass
    assert not list(tmp_path.iterdir())


class AsWindows:
    """The module `os` with another name of the system."""

    name = "nt"

    def __getattr__(self, name):
        return getattr(os, name)


class Kernel:
    """Processes of Windows: 7 runs, 8 has ended but is known, others are unknown or not ours."""

    def __init__(self):
        self.open, self.error = [], 0

    def open_process(self, access, inherit, number):
        self.error = 5 if number == 9 else 87
        return 0 if number > 8 else self.open.append(number) or 100 + number

    def GetExitCodeProcess(self, handle, code):
        code._obj.value = 259 if handle.value == 107 else 1
        return 1

    def CloseHandle(self, handle):
        self.open.remove(handle.value - 100)


def test_processes_of_windows(monkeypatch):
    import ctypes

    kernel = Kernel()
    kernel.OpenProcess = lambda *asked: kernel.open_process(*asked)
    monkeypatch.setattr(ctypes, "WinDLL", lambda *_, **__: kernel, raising=False)
    monkeypatch.setattr(ctypes, "get_last_error", lambda: kernel.error, raising=False)
    monkeypatch.setattr(system, "os", AsWindows())
    assert [system.is_running(number) for number in (7, 8, 9, 10)] == [True, False, True, False]
    assert not kernel.open


# -------------------------------------------------------------------- signals


@pytest.mark.parametrize("before", [signal.default_int_handler, signal.SIG_IGN])
def test_termination_is_an_interrupt(before):
    ours, old = signal.getsignal(signal.SIGTERM), signal.signal(signal.SIGINT, before)
    try:
        with system.hard_termination() as was_asked:
            assert not was_asked()
            with system.soft_interrupt() as is_stopped:
                os.kill(os.getpid(), signal.SIGTERM)
                assert is_stopped() and was_asked()
                with pytest.raises(KeyboardInterrupt):
                    os.kill(os.getpid(), signal.SIGTERM)
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGINT, old)
    assert signal.getsignal(signal.SIGTERM) == ours


def test_termination_that_is_ignored_stays_so():
    old = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with system.hard_termination():
            os.kill(os.getpid(), signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, old)


def test_signals_are_left_alone_in_threads():
    found = []

    def inside():
        with system.hard_termination() as was_asked, system.soft_interrupt() as is_stopped:
            found.append(was_asked() or is_stopped())

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert found == [False]
