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

# patient SECONDS: a deadline of so many on an idle machine, on this one (patience.sh).
patient() { echo $(($1 * ${CK_TIMEOUT_MULTIPLIER:-1})); }

# phantom NAME CASES EXTENT: a dataset in a folder NAME here; what was said is in 'log'.
phantom() {
    "$program" data phantom -o "$1" --cases "$2" --extent "$3" 2>log || { cat log; exit 1; }
}

# ---- cards ---------------------------------------------------------------------------------------
# They are those of tests/fake, two of them; with PONS_TEST_CARD=real those of this machine.

fakes=$build/tests/fake/.libs
case ${PONS_TEST_CARD:-} in
'') cards=$fakes ;;
real) cards= ;;
*) echo "PONS_TEST_CARD = '$PONS_TEST_CARD', expected 'real' or nothing" >&2; exit 2 ;;
esac

# on_cards COMMAND...: the command finds the libraries of the cards. The Makefile hides the machine's own GPUs from all
# tests by CUDA_VISIBLE_DEVICES, since auto would take them.
on_cards() (
    [ -z "$cards" ] || export LD_LIBRARY_PATH="$cards${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    [ -z "$cards" ] || [ -n "${CUDA_VISIBLE_DEVICES-}" ] || unset CUDA_VISIBLE_DEVICES
    "$@"
)

cuda() { on_cards "$program" "$@"; }

# The lines of 'pons devices' about cards; asked once.
list_cards() {
    [ -e "$folder/cards" ] || cuda devices | grep '^cuda:[0-9]' >"$folder/cards"
    cat "$folder/cards"
}

# Made-up cards have what was built for them: what pons says of it is for the tests to look at.
made_up() { [ -n "$cards" ] && [ -f "$cards/$1" ]; }

# given WHAT NAME: whether the cards are such that NAME can be looked at; else a line says what is left out. WHAT:
#   faults      made-up ones: what they say is known, and what goes wrong there can be chosen
#   two         at least two of them
#   cudnn, nccl the libraries, beside what pons needs of them
given() {
    case $1 in
    faults) needs="made-up cards"; [ -n "$cards" ] ;;
    two) needs="two cards"; [ -n "$cards" ] || [ "$(list_cards | wc -l)" -ge 2 ] ;;
    cudnn) needs="cuDNN"; made_up libcudnn.so.9 || { [ -z "$cards" ] &&
        list_cards | head -n 1 | grep -q 'cuDNN [0-9]'; } ;;
    nccl) needs="NCCL"; made_up libnccl.so.2 || { [ -z "$cards" ] && cuda doctor | grep -q '^nccl  *ready'; } ;;
    esac && return
    echo "SKIPPED: $2: needs $needs"
    return 1
}

# only WHAT check NAME COMMAND...
only() {
    what=$1
    shift
    given "$what" "$2" && "$@"
}

finish() {
    echo "$(((checks - failures) * 100 / checks))%: Checks: $checks, Failures: $failures, Errors: 0"
    [ "$failures" -eq 0 ]
}
