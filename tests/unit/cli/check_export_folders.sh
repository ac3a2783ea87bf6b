#!/bin/sh
# pons export --nnunet and --bundle: the folder of nnU-Net is predicted like its run, a bundle is imported to the run's
# own logits, and what the other program cannot say is refused by its option. tests/peers/export.py runs both programs.
. "${srcdir:-.}/tests/support/checks.sh"
cd "$folder" || exit 1
phantom data 2 20,16,18
image=data/imagesTr/phantom_001.nii.gz

# train NAME PREPROCESS WINDOW MODEL: a run of two steps.
train() {
    cat >"$1.ini" <<END
[experiment]
name = $1
[data]
source = data
labels = background:0 brain:1
validation = none
[preprocess]
$2
[patch]
extent = 16 16 8
[window]
$3
[train]
steps = 2
precision = fp32
[loss]
plugin = dice_ce
[optimizer]
plugin = sgd
lr = 1e-2
[predict]
resample = logits
[model]
$4
END
    "$program" train "$1.ini" -q >log 2>&1 || { cat log; exit 1; }
}

# ---- nnU-Net -------------------------------------------------------------------------------------
train planned 'steps = crop_foreground normalize spacing
[preprocess.crop_foreground]
select = nonzero
[preprocess.normalize]
scheme = zscore
[preprocess.spacing]
mm = 1.3 1 1.2
method = nnunet' 'mode = nnunet
overlap = 0.5
mirror = 0 2' 'plugin = residual_unet
features_per_stage = 4 8 8
kernel_sizes = 3,3,1 3 3
strides = 1 2,2,1 2
n_blocks_per_stage = 1 2 1
negative_slope = 0.25
eps = 1e-3'
check 'a run becomes a model folder' "$program" export runs/planned --nnunet planned
check 'the run is predicted' "$program" predict runs/planned "$image" -o run.nii
check 'the folder is predicted' "$program" predict planned "$image" -o folder.nii
check 'to the same labels' cmp run.nii folder.nii
check 'which are not all background' [ "$(tail -c +353 run.nii | tr -d '\000' | wc -c)" -gt 0 ]
check 'it has the slope' grep -q '"negative_slope": 0.25' planned/plans.json
check 'and what is added to the variance' grep -q '"eps": 0.001' planned/plans.json
check 'axes are those of the file' grep -q '"patch_size": \[' planned/plans.json
check 'the mirrored axes are in the checkpoint' grep -qa inference_allowed_mirroring_axes \
    planned/fold_0/checkpoint_final.pth
check 'a fold is imported' "$program" import planned/fold_0 -o fold.safetensors --config planned.ini
weights=$(echo runs/planned/checkpoints/step-*2/model.safetensors)
check 'to the bytes of the run' cmp fold.safetensors "$weights"

# refused TEXT FLAGS...: the folder 'none' is not made.
refused() {
    text=$1
    shift
    ends 3 "$text" "$program" export "$@" && [ ! -e none ] && [ "$(wc -l <"$folder/out")" -eq 1 ]
}
check 'a folder stays' ends 2 "'planned' exists" "$program" export runs/planned --nnunet planned
check 'windows of MONAI' refused '[window] mode: found gaussian, expected nnunet' runs/planned --nnunet none \
    --set window.mode=gaussian
check 'their overlap' refused '[window] overlap: found 0.25' runs/planned --nnunet none --set window.overlap=0.25
check 'probabilities' refused '[predict] resample: found probabilities' runs/planned --nnunet none \
    --set predict.resample=probabilities
check 'components' refused '[predict] keep_largest' runs/planned --nnunet none --set predict.keep_largest=brain
check 'a grid of MONAI' refused '[preprocess.spacing] method: found "monai"' runs/planned --nnunet none \
    --set preprocess.spacing.method=monai
check 'another foreground' refused '[preprocess.crop_foreground] select: found "above"' runs/planned --nnunet none \
    --set preprocess.crop_foreground.select=above
train bare 'steps = normalize' 'mode = nnunet
overlap = 0.5' 'plugin = plain_unet
features_per_stage = 4 8
kernel_sizes = 3
strides = 1 2'
check 'no crop' refused 'found no crop_foreground' runs/bare --nnunet none
check 'another order' refused "found 'normalize' too late" runs/planned --nnunet none \
    --set 'preprocess.steps=crop_foreground spacing normalize'
check 'a step that nnU-Net lacks' refused "found 'pad', which nnU-Net does not have" runs/planned --nnunet none \
    --set 'preprocess.steps=crop_foreground normalize spacing pad' --set preprocess.pad.extent=16
check "MONAI's normalisation of all channels is that of each" "$program" export runs/planned --nnunet monai \
    --set preprocess.normalize.scheme=monai
check 'with a mask of its own it is not' refused '[preprocess.normalize] scheme' runs/planned --nnunet none \
    --set preprocess.normalize.scheme=monai --set preprocess.normalize.nonzero=yes
check 'a network without a class of MONAI' ends 3 \
    "[model] plugin: found residual_unet, of which MONAI has no class" "$program" export runs/planned --bundle none
check 'a hint names what takes it' grep -qxF \
    'hint: -o MODEL.onnx takes every network, --nnunet DIR those of nnU-Net' "$folder/out"
if grep -q '{ "onnx",[^}]* true }' "$build/core/base/build_features.h"; then
    check 'the folder of a model is made' "$program" export runs/planned -o new/folder/model.onnx
else
    echo "SKIPPED: the folder of a model is made: needs onnx"
fi

# ---- MONAI ---------------------------------------------------------------------------------------
train bundled 'steps = orient spacing scale_range crop_foreground normalize
[preprocess.spacing]
mm = 1.3 1 1.2
[preprocess.scale_range]
from = 0 700
to = 0 1
clip = yes' 'mode = gaussian' 'plugin = unet
channels = 4 8
strides = 2
num_res_units = 1
norm = batch'
check 'a run becomes a bundle' "$program" export runs/bundled --bundle bundled
for file in LICENSE configs/metadata.json configs/inference.json models/model.pt docs/README.md; do
    check "it has $file" [ -s "bundled/$file" ]
done
for key in version monai_version pytorch_version numpy_version required_packages_version task description authors \
    copyright network_data_format; do
    check "the metadata have $key" grep -q "^    \"$key\":" bundled/configs/metadata.json
done
full_disk() {
    (ulimit -f 4 && trap '' XFSZ && ends 1 'cannot write' "$program" export runs/bundled --bundle full) &&
        [ ! -e full ]
}
check 'a full disk leaves no folder' full_disk
check 'it is imported with the network of the run' ends 0 'plugin=unet, channels=4 8, strides=2' "$program" import \
    bundled -o again.safetensors --config bundled.ini
check 'the run is predicted' "$program" predict runs/bundled "$image" -o run.nii --logits
check 'and what was imported' "$program" predict again.safetensors --config bundled.ini "$image" -o again.nii --logits
check 'to the same logits' cmp run_logits.nii.gz again_logits.nii.gz
train chained 'steps = normalize' 'mode = gaussian' 'plugin = dynunet
kernel_size = 3 3 3
strides = 1 2 2,2,1
upsample_kernel_size = 2 2,2,1
filters = 4 8 8
deep_supervision = yes'
check 'a DynUNet becomes a bundle' "$program" export runs/chained --bundle chained
for name in downsample upsample next_layer.downsample next_layer.super_head.conv next_layer.next_layer.conv1; do
    check "MONAI's chain of layers has $name" grep -qa "skip_layers\.$name" chained/models/model.pt
done
check 'two names of a tensor are imported as one' "$program" import chained -o chain.safetensors --config chained.ini
check 'to the bytes of the run' cmp chain.safetensors "$(echo runs/chained/checkpoints/step-*2/model.safetensors)"
check 'windows of nnU-Net' refused '[window] mode: found nnunet' runs/bundled --bundle none --set window.mode=nnunet
check 'flipped windows' refused '[window] mirror' runs/bundled --bundle none --set window.mirror=0
check 'a grid of nnU-Net' refused '[preprocess.spacing] method: found "nnunet"' runs/bundled --bundle none \
    --set preprocess.spacing.method=nnunet
check 'a step that MONAI lacks' refused "found 'center_crop', which MONAI does not have" runs/bundled --bundle none \
    --set 'preprocess.steps=orient spacing scale_range crop_foreground normalize center_crop' \
    --set preprocess.center_crop.extent=8
check 'a network that is not of nnU-Net' refused '[model] plugin: found unet' runs/bundled --nnunet none

# ---- outputs -------------------------------------------------------------------------------------
check 'no output' ends 2 'expected one output' "$program" export runs/bundled
check 'two outputs' ends 2 'expected one output' "$program" export runs/bundled --bundle a --nnunet b
check 'an option of another output' ends 2 '--fixed is for -o' "$program" export runs/bundled --bundle a --fixed
finish
