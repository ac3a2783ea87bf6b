# The beginning and the end of a shell test: the program, a temporary folder, and a count in Check's words, so that
# one script counts both kinds of tests. A test reads this file first,
#
#   . "${srcdir:-.}/tests/support/checks.sh"
#
# runs in the build folder, and ends with 'finish', whose status is the test's own.
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

# ends CODE TEXT COMMAND...: the command ends with CODE and prints TEXT.
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

# patient SECONDS: the deadline on this machine for SECONDS on an idle one (patience.sh).
patient() { echo $(($1 * ${CK_TIMEOUT_MULTIPLIER:-1})); }

# phantom NAME CASES EXTENT: make a dataset in folder NAME; the file 'log' gets stderr.
phantom() {
    "$program" data phantom -o "$1" --cases "$2" --extent "$3" 2>log || { cat log; exit 1; }
}

. "$source/tests/support/small_unet.sh"

# losses RUN: the loss and the norm of the gradient, a line for each step.
losses() { sed -n 's/^{"kind":"step",.*"loss":\([^,]*\),.*"grad_norm":\([^,]*\),.*/\1 \2/p' "runs/$1/metrics.jsonl"; }

# ---- GPUs -----------------------------------------------------------------------------------------
# The GPUs are the two of tests/fake; with PONS_TEST_CARD=real they are those of this machine.

fakes=$build/tests/fake/.libs
case ${PONS_TEST_CARD:-} in
'') cards=$fakes ;;
real) cards= ;;
*) echo "PONS_TEST_CARD = '$PONS_TEST_CARD', expected 'real' or nothing" >&2; exit 2 ;;
esac

# on_cards COMMAND...: the command finds the GPU libraries. The Makefile hides the machine's own GPUs from all tests
# by CUDA_VISIBLE_DEVICES, because 'auto' would take them.
on_cards() (
    [ -z "$cards" ] || export LD_LIBRARY_PATH="$cards${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    [ -z "$cards" ] || [ -n "${CUDA_VISIBLE_DEVICES-}" ] || unset CUDA_VISIBLE_DEVICES
    "$@"
)

cuda() { on_cards "$program" "$@"; }

# list_cards: the lines of 'pons devices' about GPUs; the program runs once.
list_cards() {
    [ -e "$folder/cards" ] || cuda devices | grep '^cuda:[0-9]' >"$folder/cards"
    cat "$folder/cards"
}

# made_up LIBRARY: a fake library exists. The build decides this for fake GPUs, because the tests check the answer of
# pons.
made_up() { [ -n "$cards" ] && [ -f "$cards/$1" ]; }

# given WHAT NAME: the GPUs satisfy WHAT, which test NAME needs; else a line says that NAME is skipped. WHAT:
#   faults      fake GPUs: their answers are known, and a test can choose their faults
#   two         at least two GPUs
#   cudnn, nccl these libraries, which pons does not require
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

# only WHAT check NAME COMMAND...: run the check where 'given' says that WHAT holds.
only() {
    what=$1
    shift
    given "$what" "$2" && "$@"
}

finish() {
    echo "$(((checks - failures) * 100 / checks))%: Checks: $checks, Failures: $failures, Errors: 0"
    [ "$failures" -eq 0 ]
}
