"""The cache of compiled kernels on disk: content-addressed, verified, bounded, and never a reason to fail.

An entry is a file ``<first two digits>/<key>.fkl``: a magic word, the length and the digest of the payload, the payload.
It is written under a temporary name and renamed, so that readers see whole entries only; whatever does not verify is
deleted and compiled anew. Where the directory cannot be used, kernels stay in memory and one warning says why.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import stat
import threading
import time
from collections.abc import Iterator

__all__ = ["claim", "clear", "directory", "get", "key_of", "newest", "put", "size_limit", "statistics", "why_none"]

_MAGIC = b"fklcache1\n"
_HEAD = len(_MAGIC) + 8 + 32
#: Bytes the directory may hold unless FKL_CACHE_SIZE says otherwise.
_DEFAULT_SIZE = 512 << 20
_SUFFIXES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}

_log = logging.getLogger("fkl")
_lock = threading.Lock()
_warned = False
#: What the directory holds as far as this process knows, and its writes since it last looked.
_held = 0
_writes = 0


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def key_of(*parts: bytes | str) -> str:
    """The name of an entry: the digest of everything that its content depends on."""
    total = hashlib.sha256(_MAGIC)
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        total.update(b"%d:" % len(raw))
        total.update(raw)
    return total.hexdigest()


def size_limit() -> int:
    """Bytes the directory may hold.

    Raises
    ------
    ValueError
        ``FKL_CACHE_SIZE`` is no size.
    """
    text = os.environ.get("FKL_CACHE_SIZE", "").strip().lower().removesuffix("b").removesuffix("i")
    if not text:
        return _DEFAULT_SIZE
    number, unit = (text[:-1], text[-1]) if text[-1] in "kmg" else (text, "")
    if not number.isdecimal():
        raise ValueError(f'FKL_CACHE_SIZE is a number of bytes, such as "512M", got {os.environ["FKL_CACHE_SIZE"]!r}')
    return int(number) * _SUFFIXES[unit]


def directory() -> str | None:
    """Where entries lie; None if the cache is switched off (``FKL_CACHE=0``) or the directory cannot be used."""
    return _directory(os.environ.get("FKL_CACHE", ""), os.environ.get("FKL_CACHE_DIR", ""), os.environ.get("HOME", ""))


def why_none() -> str:
    """Which variable to look at where `directory` is None."""
    switch = os.environ.get("FKL_CACHE", "")
    if _off(switch):
        return f"FKL_CACHE={switch} switches it off"
    return "the directory cannot be used (see the warning); FKL_CACHE_DIR names another"


def _off(switch: str) -> bool:
    return switch.lower() in ("0", "off", "no", "false")


@functools.lru_cache(maxsize=16)
def _directory(switch: str, named: str, home: str) -> str | None:
    if _off(switch):
        return None
    path = named
    try:
        if not path:
            from platformdirs import user_cache_path

            path = str(user_cache_path("fkl"))
            os.makedirs(path, mode=0o700, exist_ok=True)
        else:
            os.makedirs(path, exist_ok=True)
        status = os.stat(path)
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(20, "not a directory", path)
        if status.st_mode & stat.S_IWOTH:
            # Compiled code is loaded from here: nobody but the owner and the group may be able to plant any.
            _warn(path, "everybody may write there; take that right away (chmod o-w)")
            return None
        if not os.access(path, os.W_OK | os.X_OK):
            raise PermissionError(13, "not writable", path)
    except (OSError, RuntimeError, ImportError) as error:
        _warn(path or "(default)", str(error))
        return None
    return path


def _warn(path: str, reason: str) -> None:
    """Say once a process that kernels are not kept."""
    global _warned
    with _lock:
        if _warned:
            return
        _warned = True
    _log.warning(
        "compiled kernels are kept in memory only: the cache directory %s cannot be used (%s). "
        "Set FKL_CACHE_DIR to a directory of your own, or FKL_CACHE=0 to silence this",
        path, reason,
    )  # fmt: skip


def _path(folder: str, key: str) -> str:
    return f"{folder}/{key[:2]}/{key}.fkl"


def get(key: str) -> bytes | None:
    """An entry's payload; None if there is none that verifies."""
    folder = directory()
    if folder is None:
        return None
    path = _path(folder, key)
    try:
        with open(path, "rb") as file:
            raw = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        _log.debug("cache entry %s cannot be read: %s", path, error)
        _discard(path)
        return None
    payload = raw[_HEAD:]
    length = int.from_bytes(raw[len(_MAGIC) : len(_MAGIC) + 8], "little")
    if raw[: len(_MAGIC)] != _MAGIC or length != len(payload) or hashlib.sha256(payload).digest() != raw[_HEAD - 32 : _HEAD]:
        _log.warning("cache entry %s is damaged and will be rebuilt", path)
        _discard(path)
        return None
    try:
        os.utime(path)  # the time of last use decides what is evicted first; access times are often switched off
    except OSError as error:
        _log.debug("cache entry %s keeps its time: %s", path, error)
    return payload


#: Seconds that a process waits for another that makes the same entry, before it makes one too.
_PATIENCE = 60.0


@contextlib.contextmanager
def claim(key: str) -> Iterator[None]:
    """One process at a time makes an entry: many that start at once compile a chain once. The others look again afterwards.

    Nothing depends on it: where files cannot be locked, or a holder takes too long, processes compile side by side.
    """
    # fcntl rather than a library: the well-known one takes 30 ms to import, as long as a compile.
    import fcntl

    size_limit()  # raises now rather than when the work is done
    folder = directory()
    handle = -1
    if folder is not None:
        try:
            os.makedirs(f"{folder}/{key[:2]}", exist_ok=True)
            handle = os.open(f"{folder}/{key[:2]}/.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            end = time.monotonic() + _PATIENCE
            while time.monotonic() < end:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(0.005)
        except OSError as error:
            _log.debug("cache entries in %s/%s cannot be claimed: %s", folder, key[:2], error)
    try:
        yield
    finally:
        if handle >= 0:
            with contextlib.suppress(OSError):  # of a file system without locks
                # Closing would do, were it not for a child forked meanwhile, which has the file open too.
                fcntl.flock(handle, fcntl.LOCK_UN)
            os.close(handle)


def newest(prefix: str) -> bytes | None:
    """The payload of the latest entry whose key starts so; None if none verifies."""
    folder = directory()
    if folder is None:
        return None
    try:
        names = [n for n in os.listdir(f"{folder}/{prefix[:2]}") if n.startswith(prefix) and n.endswith(".fkl")]
    except OSError:  # nothing was ever kept there
        return None
    dated = sorted(((os.stat(f"{folder}/{prefix[:2]}/{n}").st_mtime, n) for n in names), reverse=True)
    for _, name in dated:
        payload = get(name.removesuffix(".fkl"))
        if payload is not None:
            return payload
    return None


def _discard(path: str) -> None:
    import shutil

    try:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    except OSError as error:
        _log.debug("cache entry %s cannot be deleted: %s", path, error)


def put(key: str, payload: bytes) -> None:
    """Keep an entry; a full disk or a vanished directory only warns."""
    import tempfile

    folder = directory()
    if folder is None:
        return
    path = _path(folder, key)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + len(payload).to_bytes(8, "little") + hashlib.sha256(payload).digest() + payload)
            if os.environ.get("FKL_CACHE_DIR"):
                # A directory that was named may be shared: entries get the rights that the umask leaves.
                os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, path)
        except BaseException:
            _discard(temporary)
            raise
    except OSError as error:
        _warn(folder, str(error))
        return
    _bound(folder, len(payload) + _HEAD)


@functools.cache
def _umask() -> int:
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    return 0o022


def entries(folder: str) -> list[tuple[float, int, str]]:
    """Time of last use, size and path of every entry."""
    found = []
    for at, _, names in os.walk(folder):
        for name in names:
            if not name.endswith(".fkl"):
                continue
            path = f"{at}/{name}"
            try:
                status = os.stat(path)
            except OSError:  # another process was faster
                continue
            found.append((status.st_mtime, status.st_size, path))
    return found


def _bound(folder: str, added: int) -> None:
    """Evict the least recently used entries beyond the limit; other processes' entries are counted now and then."""
    global _held, _writes
    limit = size_limit()
    with _lock:
        _held += added
        _writes += 1
        if _writes % 64 != 1 and _held <= limit:
            return
        found = sorted(entries(folder))
        _held = sum(size for _, size, _ in found)
        # The newest entry stays, also where it alone is above the limit.
        for _, size, path in found[:-1]:
            if _held <= limit:
                break
            _discard(path)
            _held -= size


def statistics() -> tuple[str | None, int, int]:
    """Directory, number of entries and their bytes."""
    folder = directory()
    if folder is None:
        return None, 0, 0
    found = entries(folder)
    return folder, len(found), sum(size for _, size, _ in found)


def clear() -> int:
    """Delete all entries; returns how many there were."""
    folder = directory()
    found = entries(folder) if folder is not None else []
    for _, _, path in found:
        _discard(path)
    return len(found)
