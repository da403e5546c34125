#!/usr/bin/env bash
# Builds evo and runs the GPU tests and GPU benchmarks on a machine that reaches no package registry.
#
#   tests/gpu/offline.sh collect WHEELS [PYTHON_VERSION]   where there is one: fills the folder WHEELS, for Linux x86-64
#   tests/gpu/offline.sh run WHEELS RESULTS                on the GPU machine: leaves logs and the table in RESULTS
#
# Packages that the GPU machine's Python already has are taken from there, so WHEELS may hold just the missing ones. A C compiler
# is needed there as well.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)

# What a build, the tests and the benchmarks need; pip finds out the rest.
packages() {
    python3 - "$here/pyproject.toml" <<'PYTHON'
import sys, tomllib
project = tomllib.load(open(sys.argv[1], "rb"))
needed = [*project["build-system"]["requires"], *project["project"]["dependencies"], "cmake", "ninja"]
print("\n".join([*needed, *project["project"]["optional-dependencies"]["test"]]))
PYTHON
}

collect() {
    local wheels=$1 version=${2:-3.12} platforms=() number
    for number in 17 24 27 28 31 34 35; do platforms+=(--platform "manylinux_2_${number}_x86_64"); done
    packages | python3 -m pip download --quiet --dest "$wheels" --only-binary=:all: --python-version "$version" \
        --implementation cp "${platforms[@]}" --platform manylinux2014_x86_64 --requirement /dev/stdin
}

run() {
    local wheels results venv
    wheels=$(realpath "$1") results=$(mkdir -p "$2" && realpath "$2") venv=$(mktemp -d)/venv
    trap 'rm -rf "$(dirname "'"$venv"'")"' EXIT
    python3 -m venv --system-site-packages "$venv"
    export PATH="$venv/bin:$PATH" PIP_NO_INDEX=1 PIP_FIND_LINKS="$wheels" PYTHONUNBUFFERED=1
    cd "$here"
    pip install --quiet '.[test]'
    evo doctor | tee "$results/doctor.txt"
    # A failure of the tests does not stop the benchmarks: a GPU machine may be lent only once.
    local status=0
    pytest tests/gpu -v --durations=20 2>&1 | tee "$results/tests.txt" || status=$?
    python tests/bench/run.py gpu 2>&1 | tee "$results/benchmarks.md" || status=$?
    return "$status"
}

case "${1:-}" in
collect | run) "$@" ;;
*) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
