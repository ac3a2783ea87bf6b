#!/bin/sh
# pons import: weights of one network from PyTorch's formats, safetensors and a bundle become the same file. Damaged
# and foreign files are refused, and nothing is written then.
. "${srcdir:-.}/tests/support/checks.sh"
cd "$folder" || exit 1
given=$source/tests/golden/torch

# config NAME: NAME.ini, for the network of the weights.
config() {
    cat >"$1.ini" <<'INI'
[experiment]
name = run
[data]
labels = background:0 brain:1-9
[patch]
extent = 16
[loss]
plugin = dice
[optimizer]
plugin = adam
[train]
epochs = 1
INI
}
config bundle
echo '[model]' >>bundle.ini
cp bundle.ini a.ini
cat >>a.ini <<'INI'
plugin = unet
channels = 2 4
strides = 2
num_res_units = 1
norm = batch
INI

# imports FILE NAME ARGUMENT...: NAME.safetensors is made of it, and standard output stays empty.
imports() {
    from=$1 name=$2
    shift 2
    "$program" import "$from" -o "$name.safetensors" --config a.ini "$@" >out 2>err
    [ $? -eq 0 ] && [ ! -s out ] && grep -q "27 tensors of '.*' -> $name.safetensors" err && return 0
    cat out err
    return 1
}

# refused CODE TEXT FILE ARGUMENT...: the file that was there stays, and no other one is left.
refused() {
    code=$1 text=$2 from=$3
    shift 3
    echo kept >bad.safetensors
    "$program" import "$from" -o bad.safetensors --config a.ini "$@" >out 2>err
    [ $? -eq "$code" ] && grep -qF -e "$text" err && [ ! -s out ] && [ "$(cat bad.safetensors)" = kept ] &&
        [ "$(find . -name 'bad.safetensors*' | wc -l)" -eq 1 ] && return 0
    cat err out
    return 1
}

check "safetensors are imported" imports "$given/unet.safetensors" plain
check "a zip archive with channels last is imported" imports "$given/unet.pt" zip
check "it has the same tensors" cmp plain.safetensors zip.safetensors
check "the older format with wrapped names is imported" imports "$given/unet_old.pth" old
check "it has the same tensors" cmp plain.safetensors old.safetensors
check "a prefix may be given" imports "$given/unet_old.pth" old2 --prefix net.
check "float16, double and bfloat16 of a compiled network become float32" imports "$given/unet_half.pt" half
check "such a file has the same size" [ "$(wc -c <half.safetensors)" -eq "$(wc -c <plain.safetensors)" ]
check "a written file is imported again" imports plain.safetensors again
check "to the same bytes" cmp plain.safetensors again.safetensors
check "a bundle has weights and network" "$program" import "$given/bundle" -o bundle.safetensors --config bundle.ini
check "it has the same tensors" cmp plain.safetensors bundle.safetensors
mkdir -p b/models b/configs && cp "$given/unet.pt" b/models/model.pt
# network TEXT: the bundle b with this network.
network() { printf '{"network_def": {"_target_": %s}}\n' "$1" >b/configs/inference.json; }
network '"monai.networks.nets.Other"'
check "the INI file decides where the class is unknown" imports b other
check "which is said" grep -qF "[model] is that of a.ini, since the bundle names monai.networks.nets.Other" err
network '"UNet", "channels": "$[2, 4]"'
check "an expression is refused" refused 3 "argument 'channels' of the network is the expression '\$[2, 4]'" b
network '"UNet", "channels": "@x"'
check "a value that is missing is refused" refused 3 "is '@x', which the file does not have" b
network '"UNet", "channels": "@a"}, "a": ["@a"], "b": {"c": 1'
check "a list that holds itself is refused" refused 3 "has lists within lists, more than 16 deep" b
network '"UNet", "channels": "@a"}, "a": ["@b","@b"], "b": ["@c","@c"], "c": ["@d","@d","@d","@d"], "d": ["@e","@e",
    "@e","@e"], "e": ["@f","@f","@f","@f"], "f": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16], "g": {"h": 1'
check "lists that multiply are refused" refused 3 "'channels' of the network has more than 4095 characters" b
network '"UNet", "groups": 3'
check "an argument without an option is refused" refused 3 "argument 'groups' = 3 of class 'UNet'" b
network '"UNet", "in_channels": "@n"}, "n": 2, "m": {"o": 1'
check "the channels of images are the bundle's" refused 3 "expected [2, 2, 3, 3, 3]" b
check "those that are given win" imports b given --channels 1
network '"SegResNet", "init_filters": 8, "norm": ["GROUP", {"num_groups": 4}], "act": ["RELU", {"inplace": true}]'
check "a layer's arguments are options" refused 3 \
    "[model] of the bundle: plugin=segresnet, init_filters=8, norm=group, num_groups=4, act=relu" b
network '"UNet"'
rm b/models/model.pt
check "a folder without weights is refused" refused 3 "'b' holds no weights" b
# Kernels 1,3,5 of the plan are 1,5,3 in the file.
config nnunet
cat >>nnunet.ini <<'INI'
[model]
plugin = plain_unet
features_per_stage = 2 2
kernel_sizes = 1,5,3 3
strides = 1 1,2,2
n_conv_per_stage = 1
n_conv_per_stage_decoder = 1
INI
check "a checkpoint of nnU-Net is imported" \
    "$program" import "$given/nnunet.pth" -o turned.safetensors --config nnunet.ini
check "and weights with turned kernels" \
    "$program" import "$given/nnunet.safetensors" -o file.safetensors --config nnunet.ini
check "they are equal" cmp turned.safetensors file.safetensors
check "a folder of the output is made" imports plain.safetensors new/deep/again

sed 's/^labels.*/source = nowhere/' a.ini >bare.ini
check "labels that only a dataset has are asked for" ends 3 \
    "hint: the labels of [data] source are in resolved.ini of a run" "$program" import plain.safetensors \
    -o bare.safetensors --config bare.ini

phantom ph 1 18,16,16
image=ph/imagesTr/phantom_000.nii.gz
# predicts FILE: its logits are those of the imported file.
predicts() {
    "$program" predict "$1" "$image" -o p.nii.gz --logits --config a.ini && cmp p_logits.nii.gz plain_logits.nii.gz
}
"$program" predict plain.safetensors "$image" -o plain.nii.gz --logits --config a.ini 2>log || cat log
check "the older format predicts as it is" predicts "$given/unet_old.pth"
check "a zip archive does" predicts "$given/unet.pt"


# trains NAME ARGUMENT...: one step of a run from pretrained weights, on the phantom.
trains() {
    name=$1
    shift
    "$program" train "${network:-a.ini}" --set experiment.name="$name" --set data.source=ph --set data.validation=none \
        --set train.epochs= --set train.steps=1 --set optimizer.lr=1e-30 "$@" >train.log 2>&1
    code=$?
    cat train.log
    return $code
}
# same_start A B: the first losses of two runs are equal.
same_start() { losses "$1" >left && losses "$2" >right && [ -s left ] && cmp left right; }
check "training begins with safetensors" trains one --set train.pretrained=plain.safetensors
check "training begins with a PyTorch file" trains two --set train.pretrained="$given/unet.pt"
check "the same way" same_start one two
check "training begins with the older format" trains three --set train.pretrained="$given/unet_old.pth"
check "the same way" same_start one three
check "training begins with a bundle" trains four --set train.pretrained="$given/bundle"
check "the same way" same_start one four
check "training begins with a run" trains five --set train.pretrained=runs/one
check "the same way" same_start one five
check "a run is imported" imports runs/one of_run
check "another number of classes is refused" ends 3 "has shape [6, 2, 3, 3, 3], expected [6, 3, 3, 3, 3]" trains six \
    --set train.pretrained="$given/unet.pt" --set "data.labels=background:0 brain:1 other:2"
check "a hint leads to the head" grep -qx 'hint: \[train\] pretrained_skip = head draws the last convolutions anew, for another number of classes' "$folder/out"
check "without the head it trains" trains six --set train.pretrained="$given/unet.pt" --set train.pretrained_skip=head \
    --set "data.labels=background:0 brain:1 other:2"
grep -o "drawn anew: .*" train.log | sort >skipped
check "the tensors of the head are listed" grep -q "drawn anew: model.2.1.conv.unit0.conv.bias" skipped
# All tensors of the last level have the classes as an extent, and no other one has.
check "and no others" [ "$(grep -c . skipped)" -eq "$(grep -c "drawn anew: model.2." skipped)" ]
check "the head also starts anew for the same classes" trains seven --set train.pretrained="$given/unet.pt" \
    --set train.pretrained_skip=head
check "which changes the loss" sh -c '! cmp -s "$0/one/metrics.jsonl" "$0/seven/metrics.jsonl"' runs
model=$source/tests/golden/nnunet/models/plain
config nnunet
sed -i 's/^labels = .*/labels = background:0 a:1 b:2/' nnunet.ini
cat >>nnunet.ini <<'INI'
[model]
plugin = plain_unet
features_per_stage = 4 8 12
kernel_sizes = 3,3,1 3 3
strides = 1 2,2,1 2
INI
network=nnunet.ini
check "a fold of nnU-Net is imported" "$program" import "$model/fold_0" -o fold.safetensors --config nnunet.ini
check "training begins with it" trains fold --set train.pretrained="$model/fold_0"
check "training begins with what was imported" trains imported --set train.pretrained=fold.safetensors
check "the same way" same_start fold imported
check "of folds one is asked for" ends 3 "/plain' holds folds, expected one of them, as '" \
    trains folds --set train.pretrained="$model"
network=a.ini
check "a folder without weights is refused" ends 3 "/ph' holds no weights" trains eight \
    --set train.pretrained=ph
check "a pickle that calls is refused" ends 4 "it names 'posix.system'" trains nine \
    --set train.pretrained="$given/calls.pt"

check "all differences are told" refused 3 "1 tensors are missing, 1 are not part of it, 1 have another shape" \
    "$given/differs.pt"
check "the missing one is named" grep -q "tensor 'model.2.1.conv.unit0.conv.weight' is missing, expected shape" err
check "the unknown one is named" grep -q "tensor 'extra.weight' \[3\] is not part of the network" err
check "the other shape is named" grep -q "has shape \[2, 2\], expected \[2, 1, 3, 3, 3\]" err
check "one line each" [ "$(grep -c "^error: " err)" -eq 4 ]
check "channels of the image are an option" refused 3 "expected [2, 2, 3, 3, 3]" "$given/unet.pt" --channels 2
check "another prefix has nothing" refused 3 "are missing" "$given/unet_old.pth" --prefix other.
check "twenty lines name what is missing" [ "$(grep -c "' is missing, expected shape" err)" = 20 ]
check "and their number ends the list" grep -q "': and [1-9][0-9]* more$" err
check "an infinite element is refused" refused 4 "is inf, expected a finite number" "$given/infinite.pt"
check "an element beyond float32 is refused" refused 4 "is 1e+300, expected a finite number" "$given/huge.pt"
check "which prediction refuses too" ends 4 "is 1e+300, expected a finite number of float32" \
    "$program" predict "$given/huge.pt" "$image" -o p.nii.gz --config a.ini
check "an expanded tensor is refused where it is used" refused 3 "1 have another shape" "$given/expanded.pt"
check "by its name" grep -q "elements of tensor 'model.*' overlap, as after expand()" err
check "and by a prediction" ends 4 "overlap, as after expand()" \
    "$program" predict "$given/expanded.pt" "$image" -o p.nii.gz --config a.ini
check "no folder is made for a refused file" ends 3 "are missing" \
    "$program" import "$given/differs.pt" -o none/deep/x.safetensors --config a.ini
check "it is not there" [ ! -e none ]
check "a pickle that calls is refused by its name" refused 4 "it names 'posix.system'" "$given/calls.pt"
check "nothing was called" [ ! -e called ]
check "a text is refused" refused 4 "it is a text file" a.ini
head -c 3000 "$given/unet.pt" >cut.pt
check "a cut file is refused" refused 4 "the end of the zip archive is missing" cut.pt
cp "$given/unet.pt" flipped.pt
# The pickle lies first; the tensors are near the middle of the file.
printf '\377' | dd of=flipped.pt bs=1 seek=5000 conv=notrunc 2>dd
check "a changed tensor is refused" refused 4 "the file is damaged" flipped.pt
check "a missing file is refused" refused 4 "cannot open 'no.pt'" no.pt
cp "$given/unet.pt" bad.pt
check "the output ends in .safetensors" ends 2 "expected a file .safetensors" \
    "$program" import bad.pt -o bad.pt --config a.ini
cp plain.safetensors same.safetensors
check "the output is not the input" ends 2 "is the file that is read" \
    "$program" import same.safetensors -o same.safetensors --config a.ini
finish
