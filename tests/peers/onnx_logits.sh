#!/bin/sh
# Logits of every segmentation network, exported and run by onnxruntime, beside those of pons: at the extent of the
# window and, where the model frees the extents, at another one.
#
#   tests/peers/onnx_logits.sh PONS [FOLDER]      needs: pip install onnx onnxruntime nibabel
. "$(dirname "$0")/rounds.sh"

keep "${2:-}"
cd "$folder"
"$pons" data phantom -q -o volumes --cases 2 --extent 32,32,32
"$pons" data phantom -q -o slices --cases 2 --extent 32,32,1
# Images of a normal distribution, as networks see them. On larger values onnxruntime's instance norm loses digits.
python3 - <<'END'
import nibabel, numpy
for name, extents in ("volumes", [(32, 32, 32), (32, 48, 32), (64, 64, 64)]), ("slices", [(32, 32, 1), (32, 48, 1)]):
    for extent in extents:
        voxels = numpy.random.default_rng(1).normal(size=extent).astype(numpy.float32)
        nibabel.save(nibabel.Nifti1Image(voxels, numpy.eye(4)), f"{name}_{extent[1]}.nii.gz")
END

# compare NAME DATA EXTENT LINES [HEIGHTS]: the network of LINES after one step. DATA is a folder of phantoms, and the
# start of names of images, which end in their second extent.
compare() {
    cat >"$1.ini" <<END
[experiment]
name = $1
[data]
source = $2
validation = none
[preprocess]
steps =
[patch]
extent = $3
[train]
steps = 1
precision = fp32
[loss]
plugin = dice_ce
[optimizer]
plugin = adam
lr = 1e-3
[model]
$4
END
    "$pons" train -q "$1.ini"
    "$pons" export -q "runs/$1" -o "$1.onnx"
    pairs=
    for height in ${5:-32 48}; do
        window=$(echo "$3" | awk -v j="$height" '{ print $1, j, NF == 1 ? $1 : $3 }')
        "$pons" predict -q "runs/$1" "$2_$height.nii.gz" -o "$1_$height.nii.gz" --logits --force \
            --set "window.extent=$window"
        pairs="$pairs $2_$height.nii.gz $1_${height}_logits.nii.gz"
    done
    # shellcheck disable=SC2086 # two words each
    python3 "$here/onnx_logits.py" "$1.onnx" $pairs
}

stages='features_per_stage = 8 16 32
strides = 1 2 2
kernel_sizes = 3 3 3'
levels='channels = 8 16 32
strides = 2 2'
compare unet volumes 32 "plugin = unet
$levels
num_res_units = 2"
compare unet_2d slices '32 32 1' "plugin = unet
$levels
norm = batch
act = relu"
compare segresnet volumes 32 'plugin = segresnet'
compare segresnet_2d slices '32 32 1' 'plugin = segresnet'
compare dynunet volumes 32 'plugin = dynunet
kernel_size = 3 3 3
strides = 1 2 2
upsample_kernel_size = 2 2
filters = 8 16 32'
compare basicunet volumes 32 'plugin = basicunet
features = 8 8 16 16 32 8'
compare attention_unet volumes 32 "plugin = attention_unet
$levels"
compare vnet volumes 32 'plugin = vnet'
compare meshnet volumes 32 'plugin = meshnet'
compare highresnet volumes 32 'plugin = highresnet'
compare plain_unet volumes 32 "plugin = plain_unet
$stages"
compare residual_unet volumes 32 "plugin = residual_unet
$stages
n_blocks_per_stage = 1 2 2"
compare swin_unetr volumes 64 'plugin = swin_unetr
feature_size = 12' 64
