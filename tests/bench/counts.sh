# Shared functions of scripts that count instructions; read after tests/support/checks.sh. A line of bounds or counts
# is "NAME INSTRUCTIONS-PER-ELEMENT".
allowance=1.10

# skip SCRIPT NEEDS
skip() {
    echo "SKIPPED: $1: needs $2"
    exit 77
}

# per_element: convert lines "NAME INSTRUCTIONS ELEMENTS" to that form.
per_element() {
    awk '{ printf "%s %.3f\n", $1, $2 / $3 }'
}

# record BOUNDS FOUND: the counts replace the bounds; comments stay.
record() {
    { sed -n '/^#/p' "$1" 2>/dev/null; cat "$2"; } >"$folder/new"
    cp "$folder/new" "$1"
    cat "$2"
}

# compare BOUNDS FOUND: print each kernel above its bound or without one, and each bound without a kernel.
compare() {
    awk -v room=$allowance 'NR == FNR { if ($1 !~ /^#/ && NF == 2) bound[$1] = $2; next }
        { seen[$1] = 1 }
        !($1 in bound) { print $1 ": " $2 " instructions an element, no bound"; next }
        $2 > bound[$1] * room { printf "%s: %.3f instructions an element, expected at most %.3f\n", $1, $2, bound[$1] * room }
        END { for (name in bound) if (!(name in seen)) print name ": not counted" }' "$1" "$2"
}

# hold BOUNDS FOUND COMPILER: compare, as checks of the script.
hold() {
    [ "$3" = "gcc 12" ] || {
        allowance=1.5
        echo "the bounds are those of gcc 12, this is $3: half as much again is allowed"
    }
    checks=$(wc -l <"$2")
    compare "$1" "$2" >"$folder/wrong"
    failures=$(wc -l <"$folder/wrong")
    sed 's/^/FAILED: /' "$folder/wrong"
    awk 'NR == FNR { if (NF == 2) bound[$1] = $2; next }
        ($1 in bound) && $2 < 0.9 * bound[$1] { print $1 ": " $2 ", the bound " bound[$1] " can be lowered" }' \
        "$1" "$2"

    # The control: with two thirds of the counts as bounds, every kernel must exceed its bound.
    awk '/^#/ || NF != 2 { next } { print $1, $2 * 2 / 3 }' "$2" >"$folder/strict"
    allowance=1.4
    caught=$(compare "$folder/strict" "$2" | wc -l)
    [ "$caught" -eq "$checks" ] || fail "counts far above their bounds are not noticed"
    checks=$((checks + 1))
}
