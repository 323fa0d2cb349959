"""``python -m fkl``: explains itself; ``demo`` runs the main job on a photograph, ``info`` says what this machine has."""

from __future__ import annotations

import argparse
import os
import sys


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    from fkl import __version__

    parser = argparse.ArgumentParser(
        prog="python -m fkl",
        description="fkl composes image and tensor operations into one CUDA kernel, bound to its buffers.",
    )
    parser.add_argument("--version", action="version", version=f"fkl {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    demo = commands.add_parser("demo", help="preprocess a photograph for a network and restore it, and compare with NumPy")
    demo.add_argument("image", nargs="?", help="an image file (default: a photograph shipped with scikit-image)")
    demo.add_argument("--target", choices=("auto", "gpu", "cpu"), default="auto", help="default: the GPU if there is one")
    demo.add_argument("--output", default="fkl-demo.png", help="the picture to write (default: %(default)s)")
    commands.add_parser(
        "info", help="driver, devices, compilers and cache, and what to do about what is missing",
        epilog="exit status: 0 if at least one target can be used, else 1; 2 for a wrong setting",
    )
    cache = commands.add_parser("cache", help="show or clear the cache of compiled kernels")
    cache.add_argument("--clear", action="store_true", help="delete all entries")
    args = parser.parse_args(argv)
    if args.command is None:
        parser.print_help()
        return 0
    from fkl.compiler.errors import CompileError
    from fkl.runtime.errors import CudaError

    try:
        _check_settings()
        if args.command == "demo":
            from fkl.demo import run_demo

            return run_demo(args.image, args.target, args.output)
        if args.command == "info":
            from fkl.info import print_info

            return print_info()
        return _cache(args.clear)
    except (CompileError, CudaError, SettingError) as error:
        print(f"fkl {args.command}: {error}", file=sys.stderr)
        return 2


class SettingError(Exception):
    """An environment variable that cannot be understood."""


def _check_settings() -> None:
    from fkl.compiler.cache import size_limit
    from fkl.compiler.threads import thread_count
    from fkl.runtime.launch import graphs_wanted
    from fkl.variant import module_limit

    try:
        for setting in (thread_count, size_limit, module_limit, graphs_wanted):
            setting()
    except ValueError as error:
        raise SettingError(str(error)) from None


def _cache(clear: bool) -> int:
    from fkl.compiler import cache

    if clear:
        print(f"deleted {cache.clear()} entries")
    folder, count, size = cache.statistics()
    print(f"{folder}: {count} entries, {size / 2**20:.1f} MiB" if folder else f"no cache directory is in use: {cache.why_none()}")
    return 0


def run() -> int:
    """`main`, with an end of its own for output that nobody takes."""
    try:
        status = main()
        sys.stdout.flush()
        return status
    except OSError as error:
        # Whoever read has gone (`| head`), or the device is full. Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            print(f"fkl: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    try:
        sys.exit(run())
    except ModuleNotFoundError as missing:
        if not (missing.name or "").startswith("fkl."):
            raise
        sys.exit(
            f"{missing.name} is missing: this is fkl's source folder, not the installed package. "
            "Write python -P -m fkl, or go to another folder"
        )
