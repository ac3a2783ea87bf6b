#!/bin/sh
# Instructions per element of one kernel of each family, counted by callgrind, against the bounds of
# tests/counts: times would not tell, on a machine that does something else besides. The bounds are of the AVX2
# kernels, since callgrind knows no AVX-512, as gcc 12 makes them with -O2.
#
#   tests/check_counts.sh [--record]       --record writes the counts that are found as the bounds
. "${srcdir:-.}/tests/checks.sh"
headroom=1.10
bounds=$source/tests/counts
kernels=tests/count_kernels

skip() {
    echo "SKIPPED: $1"
    exit 77
}

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
    echo "$name $found $elements" | awk '{ printf "%s %.3f\n", $1, $2 / $3 }'
    number=$((number + 1))
done >"$folder/found"

if [ "${1-}" = --record ]; then
    { sed -n '/^#/p' "$bounds" 2>/dev/null; cat "$folder/found"; } >"$folder/new"
    cp "$folder/new" "$bounds"
    cat "$folder/found"
    exit 0
fi
[ "$compiler" = "gcc 12" ] || {
    headroom=1.5
    echo "the bounds are those of gcc 12, this is $compiler: half as much again is allowed"
}

# compare BOUNDS: a line for each kernel that needs more, or has no bound; for each bound without a kernel.
compare() {
    awk -v room=$headroom 'NR == FNR { if ($1 !~ /^#/ && NF == 2) bound[$1] = $2; next }
        { seen[$1] = 1 }
        !($1 in bound) { print $1 ": " $2 " instructions an element, no bound"; next }
        $2 > bound[$1] * room { printf "%s: %.3f instructions an element, expected at most %.3f\n", $1, $2, bound[$1] * room }
        END { for (name in bound) if (!(name in seen)) print name ": not counted" }' "$1" "$folder/found"
}

checks=$(wc -l <"$folder/found")
compare "$bounds" >"$folder/wrong"
failures=$(wc -l <"$folder/wrong")
sed 's/^/FAILED: /' "$folder/wrong"
awk 'NR == FNR { if (NF == 2) bound[$1] = $2; next }
    ($1 in bound) && $2 < 0.9 * bound[$1] { print $1 ": " $2 ", the bound " bound[$1] " can be lowered" }' \
    "$bounds" "$folder/found"

# Against bounds of two thirds every kernel must be found to need more, or nothing is compared here.
awk '/^#/ || NF != 2 { next } { print $1, $2 * 2 / 3 }' "$folder/found" >"$folder/strict"
headroom=1.4 compare "$folder/strict" | wc -l | {
    read -r caught
    [ "$caught" -eq "$checks" ]
} || {
    fail "counts far above their bounds are not noticed"
}
checks=$((checks + 1))
finish
