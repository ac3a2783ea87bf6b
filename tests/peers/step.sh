#!/bin/sh
# One training step of the spleen U-Net (2 patches of 96^3, two threads) beside PyTorch + MONAI: both
# programs in turn, five rounds, medians. PyTorch counts with its best of contiguous and channels_last.
#
#   tests/peers/step.sh PONS [ROUNDS]      needs: pip install torch monai einops
#
# Ends with a line per precision: median of pons, median of PyTorch, ratio PyTorch / pons.
set -eu

pons=$1
rounds=${2:-5}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/spleen.ini" "$work"
"$pons" data phantom -o "$work/phantom" --cases 2 --extent 112,112,112

median() {
    sort -n "$1" | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

round=0
while [ "$round" -lt "$rounds" ]; do
    for precision in fp32 bf16; do
        "$pons" bench "$work/spleen.ini" --json --set train.precision=$precision \
            --set distribute.threads=2 |
            grep -o '"median":[0-9.eE+-]*' | head -n 1 | cut -d : -f 2 >>"$work/pons.$precision"
        for layout in contiguous channels_last; do
            python3 "$here/step.py" --precision $precision --layout $layout --threads 2 2>"$work/log" |
                grep -o '"median": [0-9.]*' | cut -d ' ' -f 2 >>"$work/torch.$precision.$layout"
        done
    done
    round=$((round + 1))
done
for precision in fp32 bf16; do
    ours=$(median "$work/pons.$precision")
    theirs=$( { median "$work/torch.$precision.contiguous"; median "$work/torch.$precision.channels_last"; } |
        sort -n | head -n 1)
    echo "$precision pons $ours torch $theirs" |
        awk '{ printf "%s: pons %.4f s, PyTorch %.4f s, ratio %.2f\n", $1, $3, $5, $5 / $3 }'
done
