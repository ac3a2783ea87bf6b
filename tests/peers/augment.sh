#!/bin/sh
# Random transforms beside nnU-Net's and MONAI's, on patches of the same volumes. Both programs in turn, one thread
# each, medians of processor milliseconds a patch, since shared machines stretch wall time.
#
#   tests/peers/augment.sh PONS [ROUNDS [FOLDER]]      needs: pip install nnunetv2 monai nibabel; taskset
#
# Lines of the table, pons' steps and the peer's:
#
#   nnunet    128^3, profile nnunet; nnU-Net's training transforms, the same steps at the same probabilities
#   profile   96^3, profile standard; MONAI's transforms of these steps at the same probabilities
#   flips     96^3, affine (0.2), flips (0.5), noise (0.15); the same steps of MONAI
#   standard  96^3, profile standard; affine, flips and noise of MONAI, so pons does more
#
# pons' time includes the choice of a position and the cut, MONAI's the crop, nnU-Net's only its transforms.
. "$(dirname "$0")/rounds.sh"

rounds=${2:-3}
whole ROUNDS "$rounds"
keep "${3:-}"
cp "$here/augment.ini" "$folder"
[ -d "$folder/ct" ] || python3 "$here/augment.py" "$folder/ct" make

# own NAME EXTENT SET...: adds milliseconds a patch to pons.NAME.
own() {
    name=$1
    extent=$2
    shift 2
    taskset -c 0 "$pons" bench "$folder/augment.ini" --data --json --steps 40 --set patch.extent="$extent" "$@" \
        --set data.loader_threads=0 2>"$folder/log" >"$folder/ours"
    sed 's/.*"processor_seconds_each": *\([0-9.e-]*\).*/\1/' "$folder/ours" |
        awk '{ print 1000 * $1 }' >>"$folder/pons.$name"
}

peer() {
    taskset -c 0 python3 "$here/augment.py" "$folder/ct" "$1" 2>"$folder/log" | awk '$1 == "figures" { print $2 }' \
        >>"$folder/peer.$1"
}

rm -f "$folder"/pons.* "$folder"/peer.*
round=0
while [ "$round" -lt "$rounds" ]; do
    own nnunet "128 128 128" --set augment.profile=nnunet
    peer nnunet
    own standard "96 96 96" --set augment.profile=standard
    own flips "96 96 96" --set augment.steps="affine flip gaussian_noise"
    peer profile
    peer flips
    round=$((round + 1))
done

# compare NAME OURS THEIRS
compare() {
    echo "$(median <"$folder/pons.$2") $(median <"$folder/peer.$3")" |
        awk -v name="$1" '{ printf "%-9s pons %.1f ms, peer %.1f ms, ratio %.1f\n", name, $1, $2, $2 / $1 }'
}

compare nnunet nnunet nnunet
compare profile standard profile
compare flips flips flips
compare standard standard flips
