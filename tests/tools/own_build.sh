# The beginning and the end of scripts that build pons in a folder of their own and count what passed. A script reads
# this file first,
#
#   . "$(dirname "$0")/own_build.sh"       tests/run.sh: tools/own_build.sh
#
# sets 'build' or calls 'read_build', works in that folder after 'enter_build', counts in 'passed' and 'failed', and
# ends with 'finish', whose status is its own.
set -u
caller=$(pwd)
script=$(realpath "$0")
script=tests/${script##*/tests/}
source=$(realpath "$0")
source=${source%"/$script"}
cd "$source" || exit 1
passed=0
failed=0

refuse() {
    echo "$script: $1" >&2
    exit 2
}

# stop WHY: end with WHY; nothing was tested.
stop() {
    echo "$script: $1" >&2
    echo "0 passed, 1 failed"
    exit 1
}

# value_of FLAG [VALUE...]: store the value in 'value'.
value_of() {
    [ $# -gt 1 ] || refuse "'$1' without a value"
    value=$2
}

# build_in FOLDER: a relative path starts at the caller's folder.
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

# enter_build: make the folder, and a configure script if there is none.
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
