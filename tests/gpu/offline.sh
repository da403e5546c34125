#!/usr/bin/env bash
# Builds evo and runs the GPU tests and GPU benchmarks on a machine that reaches no package registry.
#
#   tests/gpu/offline.sh collect WHEELS [PYTHON_VERSION]   where there is one: fills the folder WHEELS, for Linux x86-64
#   tests/gpu/offline.sh run WHEELS RESULTS                on the GPU machine: leaves logs and the table in RESULTS
#
# Each part has a time limit (SETUP_LIMIT_S, TESTS_LIMIT_S, BENCHMARKS_LIMIT_S in the environment), and leaves what it has done by
# then; RESULTS/outcomes.txt says how each ended.
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

# Seconds for each part: pytest and run.py print as they go, so what a part has done before its time is up is kept.
: "${SETUP_LIMIT_S:=600}" "${TESTS_LIMIT_S:=1500}" "${BENCHMARKS_LIMIT_S:=1200}"

# Runs a command within a time limit, with its output in a file as well; leaves how it ended in $results/outcomes.txt.
part() {
    local name=$1 limit_s=$2 file=$3 status=0 outcome
    shift 3
    timeout --signal=INT --kill-after=30 "$limit_s" "$@" 2>&1 | tee "$results/$file" || status=$?
    case $status in
    0) outcome=passed ;;
    124 | 137) outcome="ended after ${limit_s} s" ;;
    *) outcome="failed with $status" ;;
    esac
    echo "$name: $outcome" | tee -a "$results/outcomes.txt"
    return "$status"
}

run() {
    local wheels results venv
    wheels=$(realpath "$1") results=$(mkdir -p "$2" && realpath "$2") venv=$(mktemp -d)/venv
    trap 'rm -rf "$(dirname "'"$venv"'")"' EXIT
    rm -f "$results/outcomes.txt"
    python3 -m venv --system-site-packages "$venv"
    export PATH="$venv/bin:$PATH" PIP_NO_INDEX=1 PIP_FIND_LINKS="$wheels" PYTHONUNBUFFERED=1
    cd "$here"
    part setup "$SETUP_LIMIT_S" setup.txt pip install --quiet '.[test]'
    # No part's failure stops the others: a GPU machine may be lent only once.
    local status=0
    part doctor 120 doctor.txt evo doctor --test || status=$?
    part tests "$TESTS_LIMIT_S" tests.txt pytest tests/gpu -v --durations=20 || status=$?
    part benchmarks "$BENCHMARKS_LIMIT_S" benchmarks.md python tests/bench/run.py gpu || status=$?
    return "$status"
}

case "${1:-}" in
collect | run) "$@" ;;
*) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
