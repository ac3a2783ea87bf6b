#!/bin/sh
# The data path of the spleen tutorial beside MONAI's, on the same files, one thread each: both programs in
# turn, five rounds, medians.
#
#   tests/peers/data.sh PONS [ROUNDS]      needs: pip install monai nibabel
#
# Ends with a line for reading, for reading with preprocessing (Mvoxel/s), and for patches of 96^3 a second.
set -eu

pons=$1
rounds=${2:-5}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/data.ini" "$work"
python3 "$here/data.py" "$work/ct" make

median() {
    sort -n "$1" | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# number NAME: what follows "NAME": in the line on stdin.
number() {
    grep -o "\"$1\": *[0-9.eE+-]*" | head -n 1 | cut -d : -f 2
}

round=0
while [ "$round" -lt "$rounds" ]; do
    "$pons" bench "$work/data.ini" --data --json --steps 20 >"$work/ours" 2>"$work/log"
    python3 "$here/data.py" "$work/ct" measure >"$work/theirs" 2>"$work/log"
    for part in read preprocess; do
        sed "s/.*\"$part\":/ /" "$work/ours" | number megavoxels_per_second >>"$work/pons.$part"
        number $part <"$work/theirs" >>"$work/monai.$part"
    done
    number per_second_of_one_thread <"$work/ours" >>"$work/pons.patches"
    number patches <"$work/theirs" >>"$work/monai.patches"
    round=$((round + 1))
done
for part in read preprocess patches; do
    echo "$part $(median "$work/pons.$part") $(median "$work/monai.$part")" |
        awk '{ printf "%-10s pons %.1f, MONAI %.1f, ratio %.1f\n", $1, $2, $3, $2 / $3 }'
done
