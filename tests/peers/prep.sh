#!/bin/sh
# Preprocessing and fingerprint of CT beside nnU-Net's, and surface metrics beside MONAI's, on the same files. Both
# programs in turn, one thread each, medians of processor seconds, since shared machines stretch wall time.
#
#   tests/peers/prep.sh PONS [ROUNDS [FOLDER]]      needs: pip install nnunetv2 monai nibabel; taskset, GNU time
#
# pons' seconds are those of whole commands: 'data preprocess --cache', which also writes the cases; 'init', which also
# plans; 'evaluate'. The peers' are those of the work alone, without imports; that of metrics reads, as pons does.
. "$(dirname "$0")/rounds.sh"

rounds=${2:-3}
whole ROUNDS "$rounds"
keep "${3:-}"
[ -d "$folder/predictions" ] || python3 "$here/prep.py" "$folder" make

# own NAME COMMAND...: adds processor seconds and peak MiB of the command to pons.NAME.
own() {
    name=$1
    shift
    command time -f '%U %S %M' -o "$folder/cost" taskset -c 0 "$pons" "$@" >"$folder/log" 2>&1
    awk '{ print $1 + $2, $3 / 1024 }' "$folder/cost" >>"$folder/pons.$name"
}

peer() {
    python3 "$here/prep.py" "$folder" "$1" 2>"$folder/log" | awk '$1 == "figures" { print $2, $3 }' >>"$folder/peer.$1"
}

ini() {
    [ -e "$folder/$1.ini" ] || "$pons" init "$folder/raw/$2" -o "$folder/$1.ini" --memory 2GiB >"$folder/log"
}

ini near Dataset901_Near
ini far Dataset902_Far
rm -f "$folder"/pons.* "$folder"/peer.*
round=0
while [ "$round" -lt "$rounds" ]; do
    for kind in near far; do
        rm -rf "$folder/cases"
        own $kind data preprocess "$folder/$kind.ini" --cache --set data.cache_dir="$folder/cases"
        peer $kind
    done
    own print init "$folder/raw/Dataset940_Many" -o "$folder/many.ini" --force --memory 2GiB
    peer print
    own metrics evaluate --prediction "$folder/predictions" --label "$folder/labels" --metrics "hd95 nsd"
    peer metrics
    round=$((round + 1))
done
for name in near far print metrics; do
    for side in pons peer; do
        for column in 1 2; do
            cut -d ' ' -f $column "$folder/$side.$name" | median
        done
    done | tr '\n' ' ' | awk -v name=$name '{
        printf "%-8s pons %.2f s, %.0f MiB; peer %.2f s, %.0f MiB; ratio %.1f\n", name, $1, $2, $3, $4, $3 / $1 }'
done
