#!/bin/sh
# Learn hippocampus, caudate, putamen and thalamus on the left half of a real head, and score the right half.
#
#   examples/deep.sh [--folder DIR] [--data] [SETTING...]
#
# The head and its labels are ch2 and the AAL atlas of Debian's package mricron-data, which is installed if it is
# missing (with root or password-less sudo). Both are cut at the midline into DIR (default: deep): train has
# the left half and deep.ini, held-out the right half, which no training reads. --data ends after the cut. A second
# call continues an interrupted training. PONS names the program (default: pons). A SETTING such as
# train.steps=100 changes the INI file's value. The last line has the mean Dice of the right half.
set -eu

name=deep
. "$(dirname "$0")/head.sh"

# half NAME FOLDER START EXTENT: image and labels of one half.
half() {
    "$pons" data crop "$templates/ch2.nii.gz" -o "$2/images/ch2-$1.nii.gz" --start "$3" --extent "$4"
    "$pons" data crop "$templates/aal.nii.gz" -o "$2/labels/ch2-$1.nii.gz" --start "$3" --extent "$4"
}

install_head ch2.nii.gz aal.nii.gz
if [ ! -f "$folder/held-out/labels/ch2-right.nii.gz" ]; then
    half left "$folder/train" 0,0,0 90,217,181
    half right "$folder/held-out" 91,0,0 90,217,181
fi
cp "$ini" "$folder/train/deep.ini"
[ "$data_only" = no ] || exit 0
"$pons" train "$folder/train/deep.ini" "$@"

held=$folder/held-out
"$pons" predict "$folder/train/runs/deep" "$held/images/ch2-right.nii.gz" -o "$held/prediction.nii.gz"
score() {
    "$pons" evaluate --prediction "$held/prediction.nii.gz" --label "$held/labels/ch2-right.nii.gz" \
        --labels "hippocampus:37,38 caudate:71,72 putamen:73,74 thalamus:77,78" --metrics "dice hd95" "$@"
}
score --overlay "$held/overlay.png" --image "$held/images/ch2-right.nii.gz" || score
dice=$(score --json | grep -o '"dice":[0-9.]*' | tail -n 1 | cut -d : -f 2) # the mean comes last
echo "prediction  $held/prediction.nii.gz"
echo "overlay     $held/overlay.png"
printf 'held-out Dice %.4f, the mean of four structures\n' "$dice"
