#!/bin/sh
# [train] mixup and cutmix: the same bits in every mode and after a resumption, with labels of
# voxels, regions and voxels that do not count.
. "${srcdir:-.}/tests/support/checks.sh"
cd "$folder" || exit 1
"$program" data phantom -o heads --cases 5 --extent 20,18,22 --classes 3 >/dev/null || fail "no phantom"
cat >a.ini <<END
[experiment]
name = a
[data]
source = heads
validation = none
$(small_training)
[train]
steps = 4
batch = 2
micro_batches = 2
mixup = 0.4
cutmix = 1
checkpoint_every = 1
precision = fp32
END
train() { name=$1; shift; "$program" train a.ini --set "experiment.name=$name" "$@"; }
same() { [ "$(losses a)" = "$(losses "$1")" ] && cmp "$(weights a)" "$(weights "$1")"; }
weights() { echo "runs/$1/checkpoints/$(cat "runs/$1/checkpoints/last")/model.safetensors"; }
other() { ! [ "$(losses a)" = "$(losses "$1")" ]; }

check "it trains" train a
check "with four losses" [ "$(losses a | wc -l)" -eq 4 ]
check "two replicas train" train dp --set distribute.devices=cpu:0,cpu:1
check "with the same bits" same dp
if [ -f "$PONS_PLUGIN_PATH/comm/gloo.so" ]; then
    check "two ranks train" "$program" launch -n 2 -- train a.ini --set experiment.name=ddp
    check "with the same bits" same ddp
else
    echo "SKIPPED: check_mixing.sh: needs gloo"
fi
check "two steps" train resumed --set train.steps=2
check "and two more" train resumed --set train.steps=4
check "have the same bits" same resumed
check "another seed trains" train seed --set experiment.seed=1
check "with other shares" other seed
check "mixup alone trains" train mixup --set train.cutmix=0
check "with other losses" other mixup
check "cutmix alone trains" train cutmix --set train.mixup=0
check "with other losses" other cutmix
check "regions train" train regions --set "data.regions=all:1,2 second:2" --set loss.plugin=dice
check "a label that does not count trains" train ignored --set "data.labels=background:0 one:1 ignore:2"
check "padding that does not count trains" train padding --set patch.count_padding=no --set patch.extent=24
finish
