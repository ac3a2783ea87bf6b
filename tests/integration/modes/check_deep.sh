#!/bin/sh
# examples/deep.sh and examples/head_t1.sh on the head of mricron-data: the halves that they cut, and a few steps of
# their trainings with all that follows. The whole trainings take minutes and are not run here.
. "${srcdir:-.}/tests/support/checks.sh"
if [ ! -f /usr/share/mricron/templates/aal.nii.gz ]; then
    echo "SKIPPED: check_deep.sh: needs mricron-data"
    exit 77
fi
PONS=$program
export PONS
script=$source/examples/deep.sh

# voxels FILE ID: voxels of an id, of one byte each behind a header of 352.
voxels() { gzip -dc "$1" | tail -c +353 | od -A n -v -t u1 -w1 | grep -c "^ *$2\$"; }
# halves ID LEFT RIGHT: voxels of an id in either half.
halves() {
    [ "$(voxels "$folder/a/train/labels/ch2-left.nii.gz" "$1") \
$(voxels "$folder/a/held-out/labels/ch2-right.nii.gz" "$1")" = "$2 $3" ]
}
# dimensions FILE: the header's extents, little-endian 16-bit integers from byte 42 on.
dimensions() { gzip -dc "$1" | od -A n -t d2 -j 42 -N 6 --endian=little | tr -s ' ' | sed 's/^ //'; }

check "the head is cut" "$script" --folder "$folder/a" --data
for file in train/images/ch2-left train/labels/ch2-left held-out/images/ch2-right held-out/labels/ch2-right; do
    check "$file is a half without the middle plane" \
        [ "$(dimensions "$folder/a/$file.nii.gz")" = "90 217 181" ]
done
check "the left half has the left hippocampus" halves 37 7469 0
check "the right half has the right hippocampus" halves 38 0 7606
check "nothing is trained by --data" [ ! -e "$folder/a/train/runs" ]
check "deep.ini is explained as it is" "$program" explain "$folder/a/train/deep.ini"

short() {
    "$script" --folder "$folder/a" train.steps=4 "patch.extent=32 48 32" "model.channels=4 8 16" \
        "model.strides=2 2" window.overlap=0.1 >"$folder/short" 2>&1 || { cat "$folder/short"; return 1; }
}
check "a short training runs through" short
mean=$(awk '$1 == "mean" && $2 == "(mean)" { print $3 }' "$folder/short")
check "and ends with the mean of its table" grep -q "^held-out Dice ${mean:-none}, the mean" "$folder/short"
check "a prediction is there" [ "$(dimensions "$folder/a/held-out/prediction.nii.gz")" = "90 217 181" ]

mkdir -p "$folder/mine/train"
check "folders of others stay" ends 2 "mine/train' was not made by this script" "$script" --folder "$folder/mine"
check "--folder needs a folder" ends 2 "needs a folder" "$script" --folder
# ---- head_t1.sh ----------------------------------------------------------------------------------

script=$source/examples/head_t1.sh
check "three images of the head are cut" "$script" --folder "$folder/b" --data
for file in train/images/left held-out/images/right; do
    for image in t1 inverted blurred; do
        check "$file-$image is a half" [ "$(dimensions "$folder/b/$file-$image.nii.gz")" = "45 108 90" ]
    done
done
check "head_t1.ini is explained as it is" "$program" explain "$folder/b/train/head_t1.ini"
synthesis() {
    "$script" --folder "$folder/b" train.steps=2 train.batch=1 model.ch=4 model.num_groups=2 diffusion.steps=2 \
        patch.extent=16 "window.extent=48 56 48" window.overlap=0.1 >"$folder/synthesis" 2>&1 ||
        { cat "$folder/synthesis"; return 1; }
}
check "a short training runs through" synthesis
check "the image is there" [ "$(dimensions "$folder/b/held-out/made-t1.nii.gz")" = "45 108 90" ]
check "and has a row" grep -qE '^made +-?[0-9]+[.][0-9]+ ' "$folder/synthesis"
check "the blurred copy has its own" grep -qE '^blurred +22[.]98[0-9]* +0[.]70' "$folder/synthesis"
check "and the inverted one" grep -qE '^inverted +3[.]04[0-9]* ' "$folder/synthesis"
script=$source/examples/deep.sh

check "unknown arguments are refused" ends 2 "unknown argument '--x'" "$script" --x
finish
