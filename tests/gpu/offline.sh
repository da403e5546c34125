#!/usr/bin/env bash
# Installs evo and runs report.py on a machine that reaches no package registry.
#
#   tests/gpu/offline.sh collect WHEELS [PYTHON_VERSION]   where there is one: fills the folder WHEELS, for Linux x86-64
#   tests/gpu/offline.sh run WHEELS [OUT.json]             on the GPU machine, which has a C compiler
#
# Packages that the GPU machine's Python already has are taken from there, so WHEELS may hold just the missing ones.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)

collect() {
    local platforms=() number
    for number in 17 24 27 28 31 34 35; do platforms+=(--platform "manylinux_2_${number}_x86_64"); done
    python3 - "$here/pyproject.toml" <<'PYTHON' |
import sys, tomllib
project = tomllib.load(open(sys.argv[1], "rb"))
print("\n".join([*project["build-system"]["requires"], *project["project"]["dependencies"], "cmake", "ninja"]))
PYTHON
        python3 -m pip download --quiet --dest "$1" --only-binary=:all: --python-version "${2:-3.12}" --implementation cp \
            "${platforms[@]}" --platform manylinux2014_x86_64 --requirement /dev/stdin
}

run() {
    local venv
    venv=$(mktemp -d)/venv
    trap 'rm -rf "$(dirname "'"$venv"'")"' EXIT
    python3 -m venv "$venv"
    # A virtual environment made from another one does not see that one's packages by itself.
    python3 -c 'import site; print("\n".join(site.getsitepackages()))' \
        >"$("$venv/bin/python" -c 'import site; print(site.getsitepackages()[0])')/outer.pth"
    PIP_NO_INDEX=1 PIP_FIND_LINKS=$(realpath "$1") "$venv/bin/pip" install --quiet "$here"
    "$venv/bin/python" "$here/tests/gpu/report.py" "${2:-gpu.json}"
}

case "${1:-}" in
collect | run) "$@" ;;
*) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
