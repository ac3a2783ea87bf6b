# What tests in shell begin and end with: the program, a folder that goes away, and a count in the words
# of Check, so that both kinds of tests are counted alike. A test reads it first,
#
#   . "${srcdir:-.}/tests/checks.sh"
#
# runs in the build folder, and ends with 'finish', whose status is its own.
set -u
LC_ALL=C
export LC_ALL
build=$(pwd)
source=$(cd "${srcdir:-.}" && pwd)
program=$(realpath "${PONS:-./pons}")
PONS_PLUGIN_PATH=${PONS_PLUGIN_PATH:-$build/stage}
export PONS_PLUGIN_PATH
folder=$(mktemp -d "${TMPDIR:-/tmp}/pons-$(basename "$0" .sh)-XXXXXX") || exit 1
trap 'rm -rf "$folder"' EXIT
checks=0
failures=0

fail() {
    failures=$((failures + 1))
    echo "FAILED: $*"
}

# check NAME COMMAND...: the command succeeds.
check() {
    name=$1
    shift
    checks=$((checks + 1))
    "$@" >"$folder/said" 2>&1 && return 0
    fail "$name: $*"
    cat "$folder/said"
    return 1
}

finish() {
    echo "$(((checks - failures) * 100 / checks))%: Checks: $checks, Failures: $failures, Errors: 0"
    [ "$failures" -eq 0 ]
}
