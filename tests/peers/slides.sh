#!/bin/sh
# Patches of 224 x 224 of a slide with JPEG tiles, read and augmented as in MONAI's pathology example: milliseconds of a
# processor, ours and MONAI's in turn, since shared machines stretch wall time.
#
#   tests/peers/slides.sh PONS [ROUNDS]      needs: pip install torchvision monai pillow; libtiff-tools; MAKE_SLIDE
#
# MAKE_SLIDE is the tests' program that makes slides, by default tests/support/data/make_slide in the current folder.
. "$(dirname "$0")/rounds.sh"

rounds=${2:-3}
whole ROUNDS "$rounds"
make=$(realpath -m "${MAKE_SLIDE:-tests/support/data/make_slide}")
[ -x "$make" ] || refuse "no program '$make'"
keep ""
mkdir -p "$folder/training/images"
"$make" "$folder/raw.tif" 6000 6000 256 1 0,0,6000,6000,dc78be 1000,1000,2000,3000,5a328c
tiffcp -c jpeg:80 -t -w 256 -l 256 "$folder/raw.tif" "$folder/training/images/a.tif"
cp "$here/../../examples/camelyon_resnet18.ini" "$folder/"
cd "$folder"
awk 'BEGIN { srand(3)
             for (i = 0; i < 120; i++) {
                 printf "a,%d,%d", 400 + int(rand() * 5200), 400 + int(rand() * 5200)
                 for (k = 0; k < 9; k++) printf ",%d", (i + k) % 2
                 print ""
             } }' >training.csv
awk -F, 'BEGIN { OFS = "," } NR <= 3 { $2++; print }' training.csv >validation.csv
for round in $(seq "$rounds"); do
    "$pons" bench camelyon_resnet18.ini --data --set data.loader_threads=1 --set train.batch=16 2>/dev/null |
        sed -n "s/.*processor \(.*\) each/$round pons: \1/p"
    for kind in tensor pil; do
        python3 "$here/slides.py" training/images/a.tif training.csv $kind 2>/dev/null | sed "s/^/$round /"
    done
done
