#!/bin/sh
# Build pons in a folder of its own and run its tests; the last line is 'N passed, N failed, N skipped'. A skip fails
# where what it needs is there (tools/lacks.sh), and so does a program of tests/programs that has not run.
#
#   tests/run.sh [--install-only] [--build FOLDER] [--configure 'FLAGS'] [--without 'PATTERN']
#
# Tests whose names match the extended regular expression PATTERN are built and not run.
# With root (or sudo without a password) it first installs the Debian packages that are missing.
. "$(dirname "$0")/tools/own_build.sh"
. "$source/tests/tools/lacks.sh"
build=$source/build
flags=
install_only=no
without=
packages="gcc make autoconf automake libtool pkg-config zlib1g-dev libinih-dev libnifti-dev libjansson-dev
    libxxhash-dev check libdnnl-dev libdeflate-dev libpng-dev libjpeg62-turbo-dev libtiff-dev libopenslide-dev
    liblmdb-dev libcurl4-openssl-dev libprotobuf-c-dev protobuf-c-compiler libonnx-dev g++ libgloo-dev
    libopenmpi-dev openmpi-bin python3-pip strace valgrind ccache mricron-data
    debhelper lintian mandoc cmark-gfm doxygen"

while [ $# -gt 0 ]; do
    case $1 in
    --install-only) install_only=yes ;;
    --build) value_of "$@"; build_in "$value"; shift ;;
    --configure) value_of "$@"; flags=$value; shift ;;
    --without) value_of "$@"; without=$value; shift ;;
    *) refuse "unknown argument '$1'" ;;
    esac
    shift
done

install_packages() {
    missing=
    command -v dpkg-query >/dev/null || return 0
    for package in $packages; do
        dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q ' installed$' ||
            missing="$missing $package"
    done
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" -eq 0 ]; then
        as_root=
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        as_root=sudo
    else
        echo "these packages are missing and cannot be installed without root:$missing" >&2
        [ "$install_only" = no ] # without them the tests that need them are left out
        return
    fi
    $as_root apt-get update -qq || return 1
    # shellcheck disable=SC2086 # lists of words
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
}

# Check's own lines, 'NN%: Checks: N, Failures: N, Errors: N'; tests in shell print the same.
count_checks() {
    find "$build/tests" -name '*.log' -exec cat {} + 2>/dev/null |
        sed -n 's/^[0-9]*%: Checks: \([0-9]*\), Failures: \([0-9]*\), Errors: \([0-9]*\)$/\1 \2 \3/p' |
        awk '{ all += $1; bad += $2 + $3 } END { printf "%d %d\n", all - bad, bad }'
}

# Lines 'SKIPPED: TEST: needs WHAT' of all logs, each once.
skips() {
    find "$build/tests" -name '*.log' -exec sed -n 's/^SKIPPED: \(.*: needs .*\)$/\1/p' {} + | sort -u
}

# Checks that Check counts as passed and that found out by themselves that they cannot run.
count_skipped_inside() {
    find "$build/tests" -name '*.log' -exec sed -n 's/^\([0-9]*\) of these checks are skipped$/\1/p' {} + |
        awk '{ n += $1 } END { print n + 0 }'
}

# What is skipped though nothing is lacking.
unexpected_skips() {
    skips | while read -r line; do
        lacks "${line##*: needs }" || echo "skipped, and nothing is lacking: $line"
    done
}

# Programs of tests/programs that have not passed though what they need is there, and tests that are not in it.
programs_astray() {
    grep -v '^#' "$source/tests/programs" | while read -r program needs; do
        for need in $needs; do
            ! lacks "$need" || continue 2
        done
        [ -z "$without" ] || ! echo "tests/$program" | grep -qE "$without" || continue
        result=$(sed -n 's/^:test-result: //p' "tests/$program.trs" 2>/dev/null)
        case $result in
        PASS | FAIL) ;; # a failure counts by itself
        SKIP) grep -q '^SKIPPED: .*: needs ' "tests/$program.log" ||
            echo "skipped without a reason: tests/$program" ;;
        *) echo "did not run: tests/$program" ;;
        esac
    done
    make -s list-tests | tr ' ' '\n' | sed 's|^tests/||' | while read -r program; do
        grep -qE "^$program( |$)" "$source/tests/programs" || echo "is not in tests/programs: tests/$program"
    done
}

# What kernels were tested on and what this processor has not (units.h).
show_units() {
    find "$build/tests" -name '*.log' -exec grep -h '^ran on ' {} + 2>/dev/null | sort -u
}

# The ten programs with the most seconds of processors, of the lines of tools/timed.sh.
show_slowest() {
    find "$build/tests" -name '*.log' | while read -r log; do
        line=$(sed -n 's/^took \([0-9]*\) s, \([0-9.]*\) s of processors$/\2 \1/p' "$log" | tail -n 1)
        log=${log#"$build/tests/"}
        [ -z "$line" ] || echo "$line ${log%.log}"
    done | sort -rn | awk '
        { all += $1; if (NR <= 10) slowest = slowest sprintf("%10.1f %6d  %s\n", $1, $2, $3) }
        END { printf "processors s  wall s  program, of %.0f s of %d programs\n%s", all, NR, slowest }'
}

# What failed, once more at the end: of a long output often only the tail is kept.
show_failures() {
    find "$build/tests" -name '*.trs' -exec grep -l '^:test-result: [FE]' {} + | sort |
    while read -r result; do
        log=${result%.trs}.log
        echo "== ${log#"$build/"}"
        head -n -30 "$log" | grep -E ':[FE]:|^FAILED' | tail -n 20
        tail -n 30 "$log"
    done
}

install_packages || stop "packages could not be installed"
[ "$install_only" = no ] || exit 0
enter_build
# shellcheck disable=SC2086 # a list of words
"$source/configure" $flags || stop "configure failed"
make -j"$(nproc)" || stop "make failed"
find tests \( -name '*.log' -o -name '*.trs' \) -exec rm -f {} + 2>/dev/null
if [ -n "$without" ]; then
    tests=$(make -s list-tests | tr ' ' '\n' | grep -vE "$without" | tr '\n' ' ')
    make -j"$(($(nproc) + 3))" check TESTS="$tests"
else
    make -j"$(($(nproc) + 3))" check # many only wait
fi
status=$?
read -r passed failed <<END
$(count_checks)
END
if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then
    echo "make check failed in a program that printed no counts" >&2
    failed=1
fi
passed=$((passed - $(count_skipped_inside)))
skipped=$(skips | wc -l)
astray=$(unexpected_skips; programs_astray)
[ -z "$astray" ] || failed=$((failed + $(echo "$astray" | wc -l)))
[ "$status" -eq 0 ] || show_failures
show_units
show_slowest
skips | sed 's/^/SKIPPED: /'
[ -z "$astray" ] || echo "$astray"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
