#!/bin/sh
# Instructions per element of one kernel of each family, counted by callgrind, against the bounds of
# tests/counts: times would not tell, on a machine that does something else besides. The bounds are of the AVX2
# kernels, since callgrind knows no AVX-512, as gcc 12 makes them with -O2.
#
#   tests/check_counts.sh [--record]       --record writes the counts that are found as the bounds
. "${srcdir:-.}/tests/checks.sh"
. "$source/tests/counts.sh"
bounds=$source/tests/counts
kernels=tests/count_kernels

command -v valgrind >/dev/null || skip "valgrind is not installed (apt-get install valgrind)"
$kernels >"$folder/alone" || exit 1
grep -q '^build optimised' "$folder/alone" || skip "the kernels are $(sed -n 's/^build //p' "$folder/alone"), not optimised"
libtool_exec=
[ ! -x ./libtool ] || libtool_exec="./libtool --mode=execute"

# Each leaving of 'counted' writes a file with what was counted inside of it.
$libtool_exec valgrind --tool=callgrind --callgrind-out-file="$folder/out" --toggle-collect=counted \
    --zero-before=counted --dump-after=counted --collect-jumps=no $kernels >"$folder/names" 2>"$folder/log" || {
    cat "$folder/log"
    grep -q 'Illegal\|unhandled instruction' "$folder/log" && skip "valgrind does not know this processor's instructions"
    checks=1
    fail "the program of the counts"
    finish
    exit
}
lanes=$(sed -n 's/^lanes //p' "$folder/names")
compiler=$(sed -n 's/^compiler //p' "$folder/names")
[ "$lanes" = avx2 ] || skip "the bounds are of AVX2, here are $lanes"
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
