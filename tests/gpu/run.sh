#!/usr/bin/env bash
# Build with meson alone, run the GPU tests, then the benchmarks. For machines with a GPU but without meson-python.
#
#     tests/gpu/run.sh [folder for results] [pytest arguments...]
#
# Needs: python with cython, meson, ninja, numpy, pytest, torch; a C and a C++ compiler; an NVRTC.
# FKL_BENCHMARKS    which benchmarks run, in order (default: all); empty: none
# FKL_MEMCHECK=1    instead of the tests: every operation under compute-sanitizer's memcheck
# FKL_PATIENCE=s    seconds a benchmark may take
# FKL_EVERY=n       of every operation's types, and of the random chains, every nth only
# FKL_SOAK=seconds  mixed calls from eight threads for so long, after the tests
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
export PYTHONPATH=$(dirname "$site")${PYTHONPATH:+:$PYTHONPATH} FKL_CACHE_DIR=$build/cache
cd "$out"
failed=0   # what fails does not keep the rest from running
check=(python -m pytest -q -c "$root/pyproject.toml" --rootdir "$root" -p no:cacheprovider)
if [ "${FKL_MEMCHECK:-}" = 1 ]; then
  # Every operation, of its types every twelfth, with a summary for each part. Left out: threads that share a kernel, which did not
  # end within five minutes under it, and the same quotients of many floats.
  export FKL_EVERY=${FKL_EVERY:-12}
  parts=("contract generated_images" "catalogue_gpu equals_cpu" "catalogue_gpu not equals_cpu" "matrix_gpu test"
         "quotients_gpu not test_floats" "contract not generated_images and not threads_share")
  # All parts at once: most of the time goes to the host.
  running=()
  for i in "${!parts[@]}"; do
    part=${parts[i]}
    compute-sanitizer --tool memcheck --error-exitcode 9 "${check[@]}" "$root/tests/gpu/test_${part%% *}.py" -k "${part#* }" "$@" \
      > "memcheck-$i.log" 2>&1 &
    running+=($!)
  done
  for i in "${!parts[@]}"; do
    wait "${running[i]}" || failed=1
    echo "== ${parts[i]}"
    tail -4 "memcheck-$i.log"
  done
else
  "${check[@]}" "$root/tests/gpu" "$@" 2>&1 | tee tests.log || failed=1
fi
[ -z "${FKL_SOAK:-}" ] || python "$root/tests/gpu/soak.py" "$FKL_SOAK" 2>&1 | tee soak.log || failed=1
for name in ${FKL_BENCHMARKS-launch compose kernels sweeps}; do
  echo "== $name"
  timeout "${FKL_PATIENCE:-600}" python "$root/benchmarks/$name.py" --out "$out" 2>&1 | tee "$name.log" || failed=1
done
exit $failed
