#!/bin/sh
# The data path of the spleen tutorial beside MONAI's, on the same files, one thread each: both programs in
# turn, five rounds, medians.
#
#   tests/peers/data.sh PONS [ROUNDS]      needs: pip install monai nibabel
#
# Ends with a line for reading, for reading with preprocessing (Mvoxel/s), and for patches of 96^3 a second.
. "$(dirname "$0")/rounds.sh"

rounds=${2:-5}
whole ROUNDS "$rounds"
keep
cp "$here/data.ini" "$folder"
python3 "$here/data.py" "$folder/ct" make

# number NAME: what follows "NAME": in the line on stdin.
number() {
    grep -o "\"$1\": *[0-9.eE+-]*" | head -n 1 | cut -d : -f 2
}

round=0
while [ "$round" -lt "$rounds" ]; do
    "$pons" bench "$folder/data.ini" --data --json --steps 20 >"$folder/ours" 2>"$folder/log"
    python3 "$here/data.py" "$folder/ct" measure >"$folder/theirs" 2>"$folder/log"
    for part in read preprocess; do
        sed "s/.*\"$part\":/ /" "$folder/ours" | number megavoxels_per_second >>"$folder/pons.$part"
        number $part <"$folder/theirs" >>"$folder/monai.$part"
    done
    number per_second_of_one_thread <"$folder/ours" >>"$folder/pons.patches"
    number patches <"$folder/theirs" >>"$folder/monai.patches"
    round=$((round + 1))
done
for part in read preprocess patches; do
    echo "$part $(median <"$folder/pons.$part") $(median <"$folder/monai.$part")" |
        awk '{ printf "%-10s pons %.1f, MONAI %.1f, ratio %.1f\n", $1, $2, $3, $2 / $3 }'
done
