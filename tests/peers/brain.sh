#!/bin/sh
# How long it takes to a held-out Dice of 0.94 on the brain of examples/quickstart.sh, beside MONAI.
#
#   tests/peers/brain.sh PONS [FOLDER]      needs: pip install torch monai nibabel; Debian's mricron-data
#
# A program's time is that of its shortest run, from the start of the process to the score, whose Dice is at
# least 0.94; runs are tried with more and more steps, each with a schedule of its own. MONAI counts with the
# faster of the same network and a smaller one. pons averages its weights over ten steps, since runs are short,
# and does not mirror, since MONAI does not. Environment:
#   STEPS     numbers of steps to try; default: 20 30 40 60 100 150 200 300 400
#   SIDES     of pons, same, small (MONAI's two); default: all of them
#   RUNNER    a command put before each run, to keep the machine quiet
. "$(dirname "$0")/rounds.sh"

tried=${STEPS:-20 30 40 60 100 150 200 300 400}
for steps in $tried; do
    whole STEPS "$steps"
done
sides=$(chosen SIDES "${SIDES:-}" pons same small)
keep "${2:-}"
templates=/usr/share/mricron/templates
cd "$folder"

# half NAME START EXTENT: image and mask of one half of the head.
half() {
    "$pons" data crop $templates/ch2.nii.gz -o "$1/images/head.nii.gz" --start "$2" --extent "$3"
    "$pons" data crop $templates/ch2bet.nii.gz -o "$1/labels/head.nii.gz" --start "$2" --extent "$3" --above 0
}

# Dice and seconds of one run.
run_pons() {
    rm -rf train/runs
    begin=$(date +%s.%N)
    # shellcheck disable=SC2086
    $runner "$pons" train -q train/brain.ini --set train.steps="$1" \
        --set train.ema_decay=0.9 >&2
    $runner "$pons" predict -q train/runs/brain held-out/images/head.nii.gz -o prediction.nii.gz \
        --set window.mirror= >&2
    "$pons" evaluate --prediction prediction.nii.gz --label held-out/labels/head.nii.gz --labels brain:1 --json >scores
    end=$(date +%s.%N)
    echo "$(grep -o '"dice":[0-9.]*' scores | head -n 1 | cut -d : -f 2) $begin $end" |
        awk '{ printf "%.4f %.1f\n", $1, $3 - $2 }'
}

run_monai() {
    # shellcheck disable=SC2086
    $runner python3 "$here/brain.py" --train train/images/head.nii.gz train/labels/head.nii.gz --held-out \
        held-out/images/head.nii.gz held-out/labels/head.nii.gz --steps "$2" --network "$1" 2>>warnings
}

[ -d held-out ] || {
    half train 0,0,0 90,217,181
    half held-out 90,0,0 91,217,181
} >&2
cp "$here/../../examples/brain.ini" train
: >times
echo "side  steps  Dice    seconds"
for side in $sides; do
    for steps in $tried; do
        if [ "$side" = pons ]; then run_pons "$steps"; else run_monai "$side" "$steps"; fi >result
        read -r dice seconds <result
        printf '%-5s %5d  %s  %s\n' "$side" "$steps" "$dice" "$seconds"
        if awk "BEGIN { exit !($dice >= 0.94) }"; then
            echo "$side $seconds" >>times
            break
        fi
    done
done
awk '$1 == "pons" { ours = $2; next } { theirs = theirs == "" || $2 < theirs ? $2 : theirs }
    END { if (ours == "" || theirs == "") exit 1
          printf "to 0.94: pons %.1f s, MONAI %.1f s: %.2f of it\n", ours, theirs, ours / theirs }' times
