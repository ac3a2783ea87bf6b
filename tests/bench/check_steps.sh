#!/bin/sh
# Instructions per element of kernels that are generated or selected for this processor, which the profiler of
# check_counts.sh does not support. A program counts its own instructions by single steps. The bounds of a processor
# are those of tests/bench/counts_LANES, for kernels of gcc 12 with -O2; a processor without such a file has no
# bounds.
#
#   tests/bench/check_steps.sh [--record]        --record writes the counts as the new bounds
. "${srcdir:-.}/tests/support/checks.sh"
. "$source/tests/bench/counts.sh"
kernels=tests/bench/count_kernels

$kernels >"$folder/alone" || exit 1
grep -q '^build optimised' "$folder/alone" || skip check_steps.sh "optimised kernels"
lanes=$(sed -n 's/^lanes //p' "$folder/alone")
bounds=$source/tests/bench/counts_$lanes
[ "${1-}" = --record ] || [ -f "$bounds" ] || skip check_steps.sh "bounds for $lanes"

$kernels --steps >"$folder/names"
code=$?
[ $code -ne 77 ] || skip check_steps.sh ptrace
[ $code -eq 0 ] || {
    checks=1
    fail "the program of the counts ended with $code"
    finish
    exit
}
grep -v '^lanes \|^compiler \|^build ' "$folder/names" | per_element >"$folder/found"
if [ "${1-}" = --record ]; then
    record "$bounds" "$folder/found"
    exit 0
fi
hold "$bounds" "$folder/found" "$(sed -n 's/^compiler //p' "$folder/names")"
finish
