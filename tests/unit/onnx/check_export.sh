#!/bin/sh
# pons export: the operators, shapes and metadata of a model for each kind of network, the extents that it frees, and
# what it refuses. tests/peers/onnx_logits.py compares the values with those of onnxruntime.
. "${srcdir:-.}/tests/support/checks.sh"
. "$source/tests/support/idx.sh"
. "$source/tests/tools/lacks.sh"
if lacks onnx; then
    echo "SKIPPED: check_export: needs onnx"
    exit 77
fi
list=$build/tests/unit/onnx/onnx_list
cd "$folder" || exit 1

phantom data 2 16,16,16

# run NAME LINES: a run of one step, of a network with the lines of [model].
run() {
    cat >"$1.ini" <<END
[experiment]
name = $1
[data]
source = ${3:-data}
validation = none
[preprocess]
steps = normalize
[patch]
extent = ${4:-16}
[train]
steps = 1
[loss]
plugin = dice_ce
[optimizer]
plugin = sgd
lr = 1e-2
[model]
$2
END
    "$program" train "$1.ini" -q >log 2>&1 || { cat log; exit 1; }
}

# exported NAME FLAGS: the lines of its model in the file NAME.txt.
exported() {
    name=$1
    shift
    "$program" export "runs/$name" -o "$name.onnx" "$@" >told 2>&1 &&
        "$list" "$name.onnx" "runs/$name/checkpoints/step-00000001/model.safetensors" >"$name.txt" && return 0
    cat told "$name.txt"
    return 1
}
has() { grep -qxF -e "$2" "$1.txt" || { cat "$1.txt"; return 1; }; }
lacks_line() { ! grep -q -e "$2" "$1.txt"; }

run unet 'plugin = unet
channels = 4 8
strides = 2
num_res_units = 1'
check 'a unet is exported' exported unet
check 'the opset' has unet 'opset 17'
check 'free extents of the input' has unet 'input image 1 [N,1,D,H,W]'
check 'and of the logits' has unet 'output logits 1 [N,2,D,H,W]'
check 'its convolutions' has unet 'node Conv 5'
check 'its transposed convolution' has unet 'node ConvTranspose 1'
check 'norms are one operator' has unet 'node InstanceNormalization 3'
check 'slopes of channels are PRelu' has unet 'node PRelu 3'
check 'biases are part of convolutions' has unet 'node Add 3'
check 'the stride of a level' has unet 'attribute Conv strides 2,2,2 2'
check 'the others have none' has unet 'attribute Conv strides 1,1,1 3'
check 'padding on both sides' has unet 'attribute Conv pads 1,1,1,1,1,1 4'
check 'a level is doubled' has unet 'attribute ConvTranspose strides 2,2,2 1'
check 'to the extent of the level above' has unet 'attribute ConvTranspose output_padding 1,1,1 1'
check 'eps of the norms' has unet 'attribute InstanceNormalization epsilon 1e-05 3'
check 'levels are joined by channels' has unet 'attribute Concat axis 1 1'
check 'its weights are those of the checkpoint' has unet 'equal 15'
check 'no arithmetic of norms is left' lacks_line unet 'node ReduceMean'
check 'no layout is converted' lacks_line unet 'node Transpose'
check 'preprocessing is told' has unet 'metadata preprocess.steps normalize'
check 'classes are told' has unet 'metadata classes background,brain'
check 'and their ids' has unet 'metadata data.labels background:0 brain:1'
check 'without a name of channels' lacks_line unet 'metadata channels'
check 'extents are told' grep -q 'N any, D multiples of 2' told
check 'fixed extents' exported unet --fixed
check 'are those of the window' has unet 'input image 1 [1,1,16,16,16]'
check 'probabilities' exported unet --probabilities
check 'have a name of their own' has unet 'output probabilities 1 [N,2,D,H,W]'
check 'and a softmax' has unet 'node Softmax 1'
check 'over the classes' has unet 'attribute Softmax axis 1 1'

run segresnet 'plugin = segresnet
init_filters = 8
blocks_down = 1 1
blocks_up = 1'
check 'a segresnet is exported' exported segresnet
check 'groups are channels of instance norms' lacks_line segresnet 'node ReduceMean'
check 'it interpolates' has segresnet 'node Resize 1'
check 'linearly' has segresnet 'attribute Resize mode linear 1'
check 'between centres of voxels' has segresnet 'attribute Resize coordinate_transformation_mode half_pixel 1'

run basicunet 'plugin = basicunet
features = 4 4 4 4 4 4' data 32
check 'a basicunet is exported' exported basicunet
check 'it pads extents that the window has not' grep -q 'D multiples of 16 from 32' told

"$program" data phantom -o flat --cases 2 --extent 16,16,1 2>log || { cat log; exit 1; }
run flat 'plugin = unet
channels = 4 8
strides = 2
norm = batch
act = relu' flat '16 16 1'
check 'a 2D network is exported' exported flat
check 'it has no D' has flat 'input image 1 [N,1,H,W]'
check 'its batch norms' has flat 'node BatchNormalization 2'
check 'its activations' has flat 'node Relu 2'

# Shortcuts of shape 'a' take every other voxel, whose number is no multiple of the extent for most steps.
mkdir digits
idx_stack digits/train 16 3 10 32 32
idx_stack digits/t10k 8 5 10 32 32
cat >resnet.ini <<'END'
[experiment]
name = resnet
task = classification
[data]
source = digits
[patch]
extent = 1 32 32
[window]
batch = 2
[loss]
plugin = cross_entropy
[optimizer]
plugin = sgd
lr = 1e-2
[model]
plugin = resnet
block_inplanes = 4 4 8 8
layers = 1 1 1 1
shortcut_type = a
[train]
steps = 1
batch = 4
END
"$program" train -q resnet.ini >log 2>&1 || { cat log; exit 1; }
check 'a classifier is exported' exported resnet
check 'it has a row for each image' has resnet 'output logits 1 [N,10]'
check 'steps that are not checked are not free' grep -q 'H multiples of 32 from 64, W multiples of 32 from 64' told
check 'the extent of the window is below' grep -q "the window's 1 x 32 x 32 is smaller.*--fixed writes that" told

# ---- what is refused -----------------------------------------------------------------------------
check 'a missing run' ends 3 "no run, checkpoint or weights file 'runs/none'" "$program" export runs/none -o x.onnx
check 'a missing output' ends 2 'output' "$program" export runs/unet
check 'a file of another kind' ends 2 "'--output' is 'unet.ini', expected a file that ends in .onnx" \
    "$program" export runs/unet -o unet.ini
check 'which stays' grep -q 'plugin = unet' unet.ini
mkdir taken.onnx
check 'a folder in its place' ends 1 "'taken.onnx'" "$program" export runs/unet -o taken.onnx
check 'nothing is left of it' [ "$(ls taken.onnx)" = "" ]
finish
