# What scripts that count instructions share; read after tests/checks.sh. Lines of a file of bounds and of
# what was found are "NAME INSTRUCTIONS-AN-ELEMENT".
headroom=1.10

skip() {
    echo "SKIPPED: $1"
    exit 77
}

# per_element: lines "NAME INSTRUCTIONS ELEMENTS" become such lines.
per_element() {
    awk '{ printf "%s %.3f\n", $1, $2 / $3 }'
}

# record BOUNDS FOUND: what was found becomes the bounds, below their comments.
record() {
    { sed -n '/^#/p' "$1" 2>/dev/null; cat "$2"; } >"$folder/new"
    cp "$folder/new" "$1"
    cat "$2"
}

# compare BOUNDS FOUND: a line for each kernel that needs more, or has no bound; for each bound without a kernel.
compare() {
    awk -v room=$headroom 'NR == FNR { if ($1 !~ /^#/ && NF == 2) bound[$1] = $2; next }
        { seen[$1] = 1 }
        !($1 in bound) { print $1 ": " $2 " instructions an element, no bound"; next }
        $2 > bound[$1] * room { printf "%s: %.3f instructions an element, expected at most %.3f\n", $1, $2, bound[$1] * room }
        END { for (name in bound) if (!(name in seen)) print name ": not counted" }' "$1" "$2"
}

# hold BOUNDS FOUND COMPILER: all of it, as checks of the script.
hold() {
    [ "$3" = "gcc 12" ] || {
        headroom=1.5
        echo "the bounds are those of gcc 12, this is $3: half as much again is allowed"
    }
    checks=$(wc -l <"$2")
    compare "$1" "$2" >"$folder/wrong"
    failures=$(wc -l <"$folder/wrong")
    sed 's/^/FAILED: /' "$folder/wrong"
    awk 'NR == FNR { if (NF == 2) bound[$1] = $2; next }
        ($1 in bound) && $2 < 0.9 * bound[$1] { print $1 ": " $2 ", the bound " bound[$1] " can be lowered" }' \
        "$1" "$2"

    # Against bounds of two thirds every kernel must be found to need more, or nothing is compared here.
    awk '/^#/ || NF != 2 { next } { print $1, $2 * 2 / 3 }' "$2" >"$folder/strict"
    headroom=1.4
    caught=$(compare "$folder/strict" "$2" | wc -l)
    [ "$caught" -eq "$checks" ] || fail "counts far above their bounds are not noticed"
    checks=$((checks + 1))
}
