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

# ends CODE TEXT COMMAND...: with that code and that text.
ends() {
    code=$1
    text=$2
    shift 2
    "$@" >"$folder/out" 2>&1
    found=$?
    [ $found = "$code" ] && grep -qF -e "$text" "$folder/out" && return 0
    echo "code $found, expected $code and '$text'"
    cat "$folder/out"
    return 1
}

# phantom NAME CASES EXTENT: a dataset in a folder NAME here; what was said is in 'log'.
phantom() {
    "$program" data phantom -o "$1" --cases "$2" --extent "$3" 2>log || { cat log; exit 1; }
}

finish() {
    echo "$(((checks - failures) * 100 / checks))%: Checks: $checks, Failures: $failures, Errors: 0"
    [ "$failures" -eq 0 ]
}
