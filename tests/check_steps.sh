#!/bin/sh
# Instructions per element of kernels that are made or chosen for the processor at hand, and which the profiler of
# check_counts.sh does not know: a program counts its own, one step after another. A processor's bounds are those of
# tests/counts_LANES, as gcc 12 makes the kernels with -O2; where there is no such file none are known yet.
#
#   tests/check_steps.sh [--record]        --record writes the counts that are found as the bounds
. "${srcdir:-.}/tests/checks.sh"
. "$source/tests/counts.sh"
kernels=tests/count_kernels

$kernels >"$folder/alone" || exit 1
grep -q '^build optimised' "$folder/alone" || skip "the kernels are $(sed -n 's/^build //p' "$folder/alone"), not optimised"
lanes=$(sed -n 's/^lanes //p' "$folder/alone")
bounds=$source/tests/counts_$lanes
[ "${1-}" = --record ] || [ -f "$bounds" ] || skip "there are no bounds for $lanes"

$kernels --steps >"$folder/names"
code=$?
[ $code -ne 77 ] || skip "no process may be followed here"
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
