#!/bin/sh
# Many small cases: the time and memory of 'data check', of the training that fills a disk cache, and of the next one.
#
#   tests/peers/cases.sh PONS [COUNT...]      without COUNT: 2500 5000 10000
#
# A line for each COUNT. Memory is the largest that is not a page of a mapped file.
. "$(dirname "$0")/rounds.sh"

shift
for count in "$@"; do
    whole COUNT "$count"
done
keep
{
    printf '%s\n' "[experiment]" "name = first" "output = runs" "[data]" "source = cases" "cache = disk" \
        "cache_dir = cache" "[patch]" "extent = 16 16 16" "[train]" "steps = 1" "batch = 2" "validate_every = 0"
    small_unet
} >"$folder/cases.ini"

# cost COMMAND...: prints seconds and MiB.
cost() {
    begin=$(date +%s%N)
    "$pons" "$@" >"$folder/log" 2>&1 &
    process=$!
    most=0
    while now=$(awk '/^RssAnon/ { print $2 }' "/proc/$process/status" 2>/dev/null) && [ -n "$now" ]; do
        [ "$now" -le "$most" ] || most=$now
        sleep 0.01
    done
    wait "$process" || { cat "$folder/log" >&2; exit 1; }
    echo "$begin $(date +%s%N) $most" | awk '{ printf "%.2f s, %.1f MiB", ($2 - $1) / 1e9, $3 / 1024 }'
}

for count in ${*:-2500 5000 10000}; do
    rm -rf "$folder/cases" "$folder/cache" "$folder/runs"
    "$pons" data phantom -o "$folder/cases" --cases "$count" --extent 16,16,16 >"$folder/log" 2>&1
    echo "$count cases: check $(cost data check "$folder/cases.ini")," \
        "first run $(cost train "$folder/cases.ini")," \
        "second run $(cost train "$folder/cases.ini" --set experiment.name=second)"
done
