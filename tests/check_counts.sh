#!/bin/sh
# Instructions per element of one kernel of each family, counted by callgrind, against the bounds of
# tests/counts: times would not tell, on a machine that does something else besides. The bounds are of the AVX2
# kernels, since callgrind knows no AVX-512, as gcc 12 makes them with -O2.
#
#   tests/check_counts.sh [--record]       --record writes the counts that are found as the bounds
set -u
LC_ALL=C
export LC_ALL
headroom=1.10
bounds=${srcdir:-.}/tests/counts
program=${COUNT_KERNELS:-tests/count_kernels}
work=$(mktemp -d "${TMPDIR:-/tmp}/pons-counts-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

skip() {
    echo "SKIPPED: $1"
    exit 77
}

command -v valgrind >/dev/null || skip "valgrind is not installed (apt-get install valgrind)"
"$program" >"$work/alone" || exit 1
grep -q '^build optimised' "$work/alone" || skip "the kernels are $(sed -n 's/^build //p' "$work/alone"), not optimised"
libtool_exec=
[ ! -x ./libtool ] || libtool_exec="./libtool --mode=execute"

# Each leaving of 'counted' writes a file with what was counted inside of it.
$libtool_exec valgrind --tool=callgrind --callgrind-out-file="$work/out" --toggle-collect=counted \
    --zero-before=counted --dump-after=counted --collect-jumps=no "$program" >"$work/names" 2>"$work/log" || {
    cat "$work/log"
    grep -q 'Illegal\|unhandled instruction' "$work/log" && skip "valgrind does not know this processor's instructions"
    echo "FAILED: the program of the counts"
    echo "0%: Checks: 1, Failures: 1, Errors: 0"
    exit 1
}
lanes=$(sed -n 's/^lanes //p' "$work/names")
compiler=$(sed -n 's/^compiler //p' "$work/names")
[ "$lanes" = avx2 ] || skip "the bounds are of AVX2, here are $lanes"
number=1
grep -v '^lanes \|^compiler \|^build ' "$work/names" | while read -r name elements; do
    found=$(sed -n 's/^\(summary\|totals\): //p' "$work/out.$number" | head -n 1)
    echo "$name $found $elements" | awk '{ printf "%s %.3f\n", $1, $2 / $3 }'
    number=$((number + 1))
done >"$work/found"

if [ "${1-}" = --record ]; then
    { sed -n '/^#/p' "$bounds" 2>/dev/null; cat "$work/found"; } >"$work/new"
    cp "$work/new" "$bounds"
    cat "$work/found"
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
        END { for (name in bound) if (!(name in seen)) print name ": not counted" }' "$1" "$work/found"
}

checks=$(wc -l <"$work/found")
compare "$bounds" >"$work/wrong"
failures=$(wc -l <"$work/wrong")
sed 's/^/FAILED: /' "$work/wrong"
awk 'NR == FNR { if (NF == 2) bound[$1] = $2; next }
    ($1 in bound) && $2 < 0.9 * bound[$1] { print $1 ": " $2 ", the bound " bound[$1] " can be lowered" }' \
    "$bounds" "$work/found"

# Against bounds of two thirds every kernel must be found to need more, or nothing is compared here.
awk '/^#/ || NF != 2 { next } { print $1, $2 * 2 / 3 }' "$work/found" >"$work/strict"
headroom=1.4 compare "$work/strict" | wc -l | {
    read -r caught
    [ "$caught" -eq "$checks" ]
} || {
    echo "FAILED: counts far above their bounds are not noticed"
    failures=$((failures + 1))
}
checks=$((checks + 1))
echo "$(((checks - failures) * 100 / checks))%: Checks: $checks, Failures: $failures, Errors: 0"
[ "$failures" -eq 0 ]
