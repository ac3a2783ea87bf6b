# What scripts begin with that build pons in a folder of their own, and end with a count of what
# passed. One reads it first,
#
#   . "$(dirname "$0")/own_build.sh"
#
# sets 'build' or lets 'read_build' do it, works in that folder from 'enter_build' on, counts in
# 'passed' and 'failed', and ends with 'finish', whose status is its own.
set -u
script=tests/$(basename "$0")
caller=$(pwd)
cd "$(dirname "$0")/.." || exit 1
source=$(pwd)
passed=0
failed=0

refuse() {
    echo "$script: $1" >&2
    exit 2
}

# stop WHY: nothing was tested.
stop() {
    echo "$script: $1" >&2
    echo "0 passed, 1 failed"
    exit 1
}

# value_of FLAG [VALUE...]: in 'value'.
value_of() {
    [ $# -gt 1 ] || refuse "'$1' without a value"
    value=$2
}

# build_in FOLDER: from where the caller stands.
build_in() {
    case $1 in
    '') refuse "'--build' without a folder" ;;
    /*) build=$1 ;;
    *) build=$caller/$1 ;;
    esac
}

# read_build ARGUMENT...: of a script that takes '--build FOLDER' and nothing else.
read_build() {
    while [ $# -gt 0 ]; do
        [ "$1" = --build ] || refuse "unknown argument '$1'"
        value_of "$@"
        build_in "$value"
        shift 2
    done
}

# The folder, and a configure script.
enter_build() {
    if [ ! -x configure ] || [ ! -f build-aux/ltmain.sh ]; then
        ./autogen.sh >/dev/null 2>&1 || stop "autogen.sh failed"
    fi
    mkdir -p "$build" || stop "cannot make '$build'"
    cd "$build" || stop "cannot enter '$build'"
    build=$(pwd)
}

finish() {
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}
