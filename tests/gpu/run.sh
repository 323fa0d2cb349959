#!/usr/bin/env bash
# Build with meson alone, run the GPU tests, then the benchmarks. For machines with a GPU but without meson-python.
#
#     tests/gpu/run.sh [folder for results] [pytest arguments...]
#
# Needs: python with cython, meson, ninja, numpy, pytest, torch; a C and a C++ compiler; an NVRTC.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(mkdir -p "${1:-build/gpu}" && cd "${1:-build/gpu}" && pwd)
shift || true
root=$PWD
build=$root/build/gpu-meson
[ -f "$build/build.ninja" ] || meson setup "$build" --prefix=/ -Dbuildtype=release > "$out/build.log"
ninja -C "$build" >> "$out/build.log" 2>&1 || { tail -40 "$out/build.log"; exit 1; }
rm -rf "$build/installed"
meson install -C "$build" --destdir "$build/installed" >> "$out/build.log"
site=$(dirname "$(find "$build/installed" -path '*/fkl/__init__.py' | head -1)")
export PYTHONPATH=$(dirname "$site") FKL_CACHE_DIR=$build/cache
cd "$out"
python -m pytest -q -c "$root/pyproject.toml" --rootdir "$root" -p no:cacheprovider "$root/tests/gpu" "$@" 2>&1 | tee tests.log
[ "${FKL_BENCHMARKS:-1}" = 0 ] || for b in "$root"/benchmarks/bench_*.py; do
  echo "== $(basename "$b")"
  python "$b" --out "$out" 2>&1 | tee "$(basename "$b" .py).log"
done
