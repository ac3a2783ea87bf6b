#!/bin/sh
# Two replicas on two cores beside one, and beside PyTorch's DistributedDataParallel over gloo: the spleen U-Net, two
# patches of 96^3 a micro-batch, both programs in turn, medians over rounds.
#
#   tests/peers/ddp.sh PONS [ROUNDS [FOLDER]]      needs: pip install torch monai
#
# A row is one way to use the two cores: one replica with one thread (the base) and with two, dp and ddp with
# two replicas of one thread each; PyTorch the same without dp, two threads in its better layout. Ratios are those of
# one round to its base, since the machine changes from minute to minute; what is printed is their median. What has
# been measured is kept in FOLDER: the same command goes on where it was interrupted. Ends with 1 if dp or ddp makes
# fewer than 1.9 times the micro-batches of the base, or fewer than one replica with two threads. Environment:
#   PRECISIONS  of fp32, bf16; default: both
#   SIDES       of pons, torch; default: both
#   RUNNER      a command put before each measurement, to keep the machine quiet
. "$(dirname "$0")/rounds.sh"

rounds=${2:-5}
whole ROUNDS "$rounds"
precisions=$(chosen PRECISIONS "${PRECISIONS:-}" fp32 bf16)
sides=$(chosen SIDES "${SIDES:-}" pons torch)
keep "${3:-}"
ways="pons.one pons.two pons.dp pons.ddp torch.one torch.two torch.ddp"

words() {
    case $1 in
    pons.one) echo '--set distribute.mode=single --set distribute.threads=1' ;;
    pons.two) echo '--set distribute.mode=single --set distribute.threads=2' ;;
    pons.dp) echo '--set distribute.mode=dp --set distribute.devices=cpu:0,1' ;;
    pons.ddp) echo '--set distribute.mode=ddp --set distribute.devices=cpu:0,1' ;;
    torch.one) echo '--ranks 1 --threads 1' ;;
    torch.two) echo '--ranks 1 --threads 2' ;;
    torch.ddp) echo '--ranks 2 --threads 1' ;;
    esac
}

# Micro-batches per second, and what of the sums was hidden, "-" where that is not known.
measure_pons() {
    # shellcheck disable=SC2046,SC2086
    $runner "$pons" bench -q "$folder/spleen.ini" --json --no-data --warm-up 2 --steps 9 \
        --set train.precision="$2" $(words "$1") >"$folder/json" 2>"$folder/log" || { cat "$folder/log" >&2; exit 1; }
    sed 's/.*"median":\([^,]*\),.*"micro_batches":\([0-9]*\).*"reduction":{"hidden":\([0-9.e+-]*\),.*/\1 \2 \3/
         s/.*"median":\([^,]*\),.*"micro_batches":\([0-9]*\).*/\1 \2 -/' "$folder/json" | awk '{ print $2 / $1, $3 }'
}

measure_torch() {
    # shellcheck disable=SC2046,SC2086
    $runner python3 "$here/ddp.py" --precision "$2" $(words "$1") --steps 4 >"$folder/json" 2>"$folder/log" ||
        { cat "$folder/log" >&2; exit 1; }
    sed 's/.*"micro_batches_per_second": \([0-9.]*\).*/\1 -/' "$folder/json"
}

# Each measurement is a line "ROUND MICRO-BATCHES/S HIDDEN" of $folder/PRECISION.WAY.
measure() {
    to=$folder/$3.$2
    has_round "$to" "$1" && return
    "measure_${2%%.*}" "$2" "$3" >"$folder/line"
    echo "$1 $(cat "$folder/line")" >>"$to"
    echo "$3, round $1: $2 $(cat "$folder/line")" >&2
}

# ratio FILE BASE: the median over rounds of the one to the other.
ratio() {
    awk 'NR == FNR { base[$1] = $2; next } $1 in base { print $2 / base[$1] }' "$2" "$1" | median
}

report_row() {
    at=$folder/$1.$2
    base=$folder/$1.${2%%.*}
    beside=-
    hidden=$(awk '$3 != "-" { print 100 * $3 }' "$at" | sort -g | awk '{ v[NR] = $1 } END { if (NR) printf "%.0f to %.0f %%", v[1], v[NR] }')
    case $2 in
    pons.*) [ ! -e "$folder/$1.torch.${2#pons.}" ] ||
        beside=$(ratio "$at" "$folder/$1.torch.${2#pons.}" | awk '{ printf "%.2f", $1 }') ;;
    esac
    echo "$(awk '{ print $2 }' "$at" | median) $(ratio "$at" "$base.one") $(ratio "$at" "$base.two")" |
        awk -v what="$1, $2" -v hidden="${hidden:--}" -v beside="$beside" '{
            printf "| %s | %.2f | %.2f | %.2f | %s | %s |\n", what, $1, $2, $3, hidden, beside }'
    case $2 in
    pons.dp | pons.ddp) echo "$1 $2 $(ratio "$at" "$base.one") $(ratio "$at" "$base.two")" >>"$folder/judged" ;;
    esac
}

cp "$here/spleen.ini" "$folder"
[ -e "$folder/phantom" ] || "$pons" data phantom -o "$folder/phantom" --cases 1 --extent 96,96,96 >&2
round=1
while [ "$round" -le "$rounds" ]; do
    for precision in $precisions; do
        for way in $ways; do
            case " $sides " in
            *" ${way%%.*} "*) measure "$round" "$way" "$precision" ;;
            esac
        done
    done
    round=$((round + 1))
done

: >"$folder/judged"
echo '| what | micro-batches/s | times one thread | times two threads | of the sums hidden | times PyTorch |'
echo '| --- | --- | --- | --- | --- | --- |'
for precision in $precisions; do
    for way in $ways; do
        [ ! -e "$folder/$precision.$way" ] || report_row "$precision" "$way"
    done
done
awk '$3 < 1.9 || $4 < 1 { printf "%s, %s: %.2f times one thread, %.2f times two: NOT ENOUGH\n", $1, $2, $3, $4; wrong = 1 }
     END { exit wrong }' "$folder/judged"
