#!/bin/sh
# Learn the T1 intensities of the left half of a real head from two poor copies, and score the right half.
#
#   examples/head_t1.sh [--folder DIR] [--data] [SETTING...]
#
# The head is ch2 of Debian's package mricron-data, which is installed if it is missing (with root or password-less
# sudo). Three images of it at 2 mm go into DIR (default: head_t1): the T1 itself, a copy of inverted contrast and one
# that is blurred to 6 mm. train has the left half and head_t1.ini, held-out the right half, which no training reads.
# --data ends after the cut. A second call continues an interrupted training. PONS names the program (default: pons).
# A SETTING such as train.steps=100 changes the INI file's value. The last lines compare the image that is made, and
# both copies, with the T1 of the right half.
set -eu

name=head_t1
. "$(dirname "$0")/head.sh"

# copy NAME EXTENT FROM: a copy of the whole head by way of a grid of EXTENT, cut into its halves.
copy() {
    "$pons" data preprocess -q "$folder/copies.ini" -o "$folder/$1" --set "preprocess.coarse.extent=$2" \
        --set "preprocess.scale_range.from=$3"
    "$pons" data crop "$folder/$1/ch2/image.nii.gz" -o "$folder/train/images/left-$1.nii.gz" \
        --start 0,0,0 --extent 45,108,90
    "$pons" data crop "$folder/$1/ch2/image.nii.gz" -o "$folder/held-out/images/right-$1.nii.gz" \
        --start 45,0,0 --extent 45,108,90
}

install_head ch2.nii.gz
mkdir -p "$folder/train" "$folder/held-out"
if [ ! -f "$folder/held-out/images/right-blurred.nii.gz" ]; then
    cat >"$folder/copies.ini" <<END
[data]
image = $templates/ch2.nii.gz
[preprocess]
steps = coarse fine scale_range
[preprocess.coarse]
plugin = resize
mode = area
extent = 90 108 90
[preprocess.fine]
plugin = resize
extent = 90 108 90
[preprocess.scale_range]
from = 0 180
to = -1 1
clip = yes
END
    copy t1 "90 108 90" "0 180"
    copy inverted "90 108 90" "180 0"
    copy blurred "30 36 30" "0 180"
fi
cp "$ini" "$folder/train/head_t1.ini"
[ "$data_only" = no ] || exit 0
"$pons" train "$folder/train/head_t1.ini" "$@"

images=$folder/held-out/images
made=$folder/held-out/made-t1.nii.gz
"$pons" predict "$folder/train/runs/head_t1" "$images/right-inverted.nii.gz,$images/right-blurred.nii.gz" -o "$made"
echo "made        $made"
echo "image       PSNR, dB    SSIM      MAE"
for image in "$made" "$images/right-blurred.nii.gz" "$images/right-inverted.nii.gz"; do
    shown=${image##*/*-}
    [ "$image" != "$made" ] || shown=made
    "$pons" evaluate --prediction "$image" --label "$images/right-t1.nii.gz" --metrics "psnr ssim mae" --range 2 |
        awk -v "name=${shown%.nii.gz}" '$1 == "mean" { printf "%-10s %9s %9s %9s\n", name, $3, $4, $5 }'
done
