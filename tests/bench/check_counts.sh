#!/bin/sh
# Instructions per element of one kernel of each family, counted by callgrind, against the bounds of
# tests/bench/counts. Times would not be reliable on a machine with other work. The bounds hold for the AVX2 kernels
# of gcc 12 with -O2, because callgrind knows no AVX-512.
#
#   tests/bench/check_counts.sh [--record]       --record writes the counts as the new bounds
. "${srcdir:-.}/tests/support/checks.sh"
. "$source/tests/bench/counts.sh"
bounds=$source/tests/bench/counts
kernels=tests/bench/count_kernels

command -v valgrind >/dev/null || skip check_counts.sh valgrind
$kernels >"$folder/alone" || exit 1
grep -q '^build optimised' "$folder/alone" || skip check_counts.sh "optimised kernels"
libtool_exec=
[ ! -x ./libtool ] || libtool_exec="./libtool --mode=execute"

# Each return from 'counted' writes a file with the counts inside of it.
$libtool_exec valgrind --tool=callgrind --callgrind-out-file="$folder/out" --toggle-collect=counted \
    --zero-before=counted --dump-after=counted --collect-jumps=no $kernels >"$folder/names" 2>"$folder/log" || {
    cat "$folder/log"
    grep -q 'Illegal\|unhandled instruction' "$folder/log" && skip check_counts.sh "a valgrind that knows this processor"
    checks=1
    fail "the program of the counts"
    finish
    exit
}
lanes=$(sed -n 's/^lanes //p' "$folder/names")
compiler=$(sed -n 's/^compiler //p' "$folder/names")
[ "$lanes" = avx2 ] || skip check_counts.sh "AVX2 alone"
number=1
grep -v '^lanes \|^compiler \|^build ' "$folder/names" | while read -r name elements; do
    found=$(sed -n 's/^\(summary\|totals\): //p' "$folder/out.$number" | head -n 1)
    echo "$name $found $elements"
    number=$((number + 1))
done | per_element >"$folder/found"

if [ "${1-}" = --record ]; then
    record "$bounds" "$folder/found"
    exit 0
fi
hold "$bounds" "$folder/found" "$compiler"
finish
