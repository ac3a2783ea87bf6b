#!/bin/sh
# The comm plugin 'mpi' between processes that mpirun starts.
. "${srcdir:-.}/tests/support/checks.sh"
command -v mpirun >/dev/null || { echo "SKIPPED: check_mpi.sh: needs mpirun"; exit 77; }
ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS-} # Open MPI keeps much of what it takes
export ASAN_OPTIONS

# start COUNT WISH: an error line begins with 'rank N: '. mpirun ends the processes that leave MPI
# unfinished and reports it at length, with its own exit code.
start() {
    checks=$((checks + 1))
    said=$(timeout "$(patient 60)" mpirun --allow-run-as-root --oversubscribe -quiet -n "$1" tests/unit/cluster/comm_mpi "$2" 2>&1)
    code=$?
    if [ "$code" -eq 124 ] || [ "$code" -ne 0 ] && [ "$2" = trials ] ||
        echo "$said" | grep -q '^rank '; then
        failures=$((failures + 1))
        echo "$1 processes, $2: code $code: $said"
    fi
}

for count in 1 2 3 4; do
    start "$count" trials
done
start 2 size
start 3 mismatch
start 3 abort
finish
