#!/bin/sh
# How a step scales with its work, and whether it stays what it is: time per voxel of the micro section over
# batches and patches, one thread and two, 1,000 steps of training.
#
#   tests/peers/scaling.sh PONS [PRECISION [ROUNDS]]        PRECISION: bf16 (default) or fp32
#
# Tables go to the standard output, progress to the standard error; ends with 1 if something is not as expected:
# time per voxel within 15 % of the median from 2 x 64^3 up, two threads at least 1.85 x one (median of ROUNDS (5), one
# and two in turn), no step or peak of memory at the end of 1,000 that is 5 % above that at the beginning. Environment:
#   PARTS     of batch, patch, threads, drift; default: all of them
#   RUNNER    a command put before each measurement, to keep the machine quiet
. "$(dirname "$0")/rounds.sh"

precision=$(chosen PRECISION "${2:-bf16}" bf16 fp32)
case $precision in
*' '*) refuse "one PRECISION at a time" ;;
esac
rounds=${3:-5}
whole ROUNDS "$rounds"
parts=$(chosen PARTS "${PARTS:-}" batch patch threads drift)
keep
cp "$here/spleen.ini" "$folder"
cd "$folder"
"$pons" data phantom -o phantom --cases 4 --extent 64,64,64 >&2
wrong=0

# bench BATCH SIDE THREADS: seconds of the micro section, and of the whole step.
bench() {
    # shellcheck disable=SC2086
    $runner "$pons" bench spleen.ini --json --no-data --warm-up 2 --steps 7 --set train.precision=$precision \
        --set distribute.threads="$3" --set train.batch="$1" --set patch.extent="$2" >json
    sed 's/.*"median":\([^,]*\),.*"micro":\([^,}]*\).*/\2 \1/' json
}

# The middle of column 3 of a table, and whether all rows behind row $2 are within 15 % of it.
judge_flat() {
    tail -n +"$2" "$1" | sort -g -k 3 | awk -v what="$3" '{ v[NR] = $3 } END {
        m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
        low = 100 * (v[1] / m - 1); high = 100 * (v[NR] / m - 1)
        printf "%s: %.1f ns a voxel, %+.0f %% to %+.0f %% of it: %s\n\n", what, m, low, high,
            (low >= -15 && high <= 15 ? "flat" : "NOT FLAT")
        exit !(low >= -15 && high <= 15) }' || wrong=1
}

scale() {
    set -- "$@"
    echo "$1 | voxels | ns a voxel | micro s"
    : >rows
    for size in $2; do
        [ "$1" = batch ] && batch=$size side=64 || { batch=2; side=$size; }
        bench "$batch" "$side" 2 >seconds
        echo "$size $((batch * side * side * side)) $(cat seconds)" |
            awk '{ printf "%s %d %.2f %.4f\n", $1, $2, 1e9 * $3 / $2, $3 }' | tee -a rows
        echo "$1 $size" >&2
    done
    judge_flat rows "$3" "time per voxel over $1"
}

# Seconds of whole steps: the columns of 'rows' are one thread, two, and the ratio of that round.
threads() {
    : >rows
    round=1
    while [ "$round" -le "$rounds" ]; do
        bench 2 96 1 >one
        bench 2 96 2 >two
        paste -d ' ' one two | awk '{ print $2, $4, $2 / $4 }' >>rows
        echo "threads, round $round: $(tail -n 1 rows)" >&2
        round=$((round + 1))
    done
    for column in 1 2 3; do
        cut -d ' ' -f $column rows | median
    done | paste -s -d ' ' - | awk -v all="$(cut -d ' ' -f 3 rows | sort -g | awk '{ printf " %.2f", $1 }')" '{
        printf "one thread %.4f s, two %.4f s: %.2f x, of%s%s\n\n", $1, $2, $3, all, ($3 >= 1.85 ? "" : ", LESS THAN 1.85")
        exit !($3 >= 1.85) }' || wrong=1
}

# Medians of a hundred steps at the beginning (behind the first fifty) and at the end.
drift() {
    # shellcheck disable=SC2086
    $runner "$pons" train spleen.ini -q --set train.steps=1000 --set train.precision=$precision \
        --set distribute.threads=2 --set train.batch=1 --set patch.extent=32 --set "model.channels=8 16 32" \
        --set "model.strides=2 2"
    grep '"kind":"step"' runs/peers/metrics.jsonl |
        sed 's/.*"seconds":\([0-9.e+-]*\).*"memory":\([0-9]*\).*/\1 \2/' >steps
    for part in first last; do
        if [ $part = first ]; then sed -n 51,150p steps; else tail -n 100 steps; fi | sort -g |
            awk 'NR == 50 { s = $1 } { m = $2 > m ? $2 : m } END { print s, m, NR }'
    done | awk 'NR == 1 { s = $1; m = $2 } { count += $3 } END {
        printf "1,000 steps: step %.2f ms, then %.2f ms; memory %.1f MiB, then %.1f MiB%s\n", 1e3 * s, 1e3 * $1,
            m / 1048576, $2 / 1048576, ($1 <= 1.05 * s && $2 <= 1.05 * m && count == 200 ? "" : ": DRIFT")
        exit !($1 <= 1.05 * s && $2 <= 1.05 * m && count == 200) }' || wrong=1
}

for part in $parts; do
    case $part in
    batch) scale batch "1 2 4 8" 2 ;;
    patch) scale patch "64 80 96 112 128 144 160" 1 ;;
    threads) threads ;;
    drift) drift ;;
    esac
done
exit $wrong
