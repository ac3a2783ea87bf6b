#!/bin/sh
# A loss reads logits and labels in one forward pass, as 'pons explain' lists.
. "${srcdir:-.}/tests/support/checks.sh"

cd "$folder" || exit 1
phantom ph 1 36,34,34
voxels=$((2 * 32 * 32 * 32))

# passes LOSS PRECISION: count the kernels of the loss that read or write at least a byte of each
# voxel.
passes() {
    printf '%s\n' "[experiment]" "name = one" "[data]" "source = ph" "validation = none" "[preprocess]" \
        "steps = normalize" "[patch]" "extent = 32" "[model]" "plugin = unet" "channels = 2 4" "strides = 2" \
        "[loss]" "plugin = $1" "[optimizer]" "plugin = adam" "lr = 0.01" "[train]" "steps = 1" "batch = 2" \
        "precision = $2" >one.ini
    "$program" explain --json one.ini | tr '{' '\n' |
        sed -n 's/.*"section":"micro".*"name":"loss[#0-9]*".*"bytes":\([0-9]*\).*/\1/p' |
        awk -v least=$voxels '$1 >= least { n++ } END { print n + 0 }'
}
for loss in bce cross_entropy dice dice_ce dice_focal focal generalized_dice l1 mse nnunet tversky; do
    for precision in fp32 bf16; do
        check "$loss in $precision is one pass" test "$(passes $loss $precision)" -eq 1
    done
done

cd / || exit 1
finish
