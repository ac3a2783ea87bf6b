#!/bin/sh
# [augment] profile: the bits of a run depend on neither loader threads nor replicas nor ranks, and resolved.ini
# trains to the same bits. Steps that interpolate are refused where devices cut the patches. The memory estimate
# knows what steps need.
. "${srcdir:-.}/tests/support/checks.sh"
cd "$folder" || exit 1
phantom ph 4 30,28,20
cat >a.ini <<END
[experiment]
deterministic = yes
[data]
source = ph
validation = last:1
loader_threads = 0
[preprocess]
steps = normalize
[patch]
extent = 16
[augment]
profile = heavy
[augment.elastic]
probability = 0.7
magnitude_range = 50 100
sigma_range = 1 4
[augment.channel_dropout]
[augment.flip]
axes = 0 1 2
$(small_unet novograd)
[train]
steps = 6
batch = 2
precision = fp32
micro_batches = 2
[distribute]
devices = cpu
threads = 1
END

train() { # NAME MORE...
    run=$1
    shift
    "$program" train --fresh "$@" --set experiment.name="$run"
}
last=checkpoints/step-00000006/model.safetensors
same() { cmp "runs/$1/$last" "runs/$2/$last"; }
differ() { ! same "$1" "$2"; }

check "one thread" train alone a.ini
check "loader threads" train threads a.ini --set data.loader_threads=3
check "have its bits" same alone threads
check "two replicas" train replicas a.ini --set distribute.devices=cpu:0,cpu:1 --set distribute.mode=dp
check "have its bits" same alone replicas
check "the resolved file" train resolved runs/alone/resolved.ini --set train.accumulate=2
check "has its bits" same alone resolved
check "another profile" train light a.ini --set augment.profile=light --set augment.elastic.probability=0
check "has others" differ alone light
if [ -f "${PONS_PLUGIN_PATH%%:*}/comm/gloo.so" ]; then
    check "two ranks" "$program" launch -n 2 -- train --fresh a.ini --set experiment.name=ranks \
        --set distribute.mode=ddp --set distribute.backend=gloo
    check "have its bits" same alone ranks
fi
ends 3 "[augment] 'rotate': transform 'affine' works on the host only" \
    "$program" train --fresh a.ini --set experiment.name=d --set data.cache=device

# The estimate of memory has two floats per voxel for steps that need a second place, six for displacements.
sed '/^\[augment/,/^\[loss/{/^\[loss/!d}' a.ini >b.ini
bytes() {
    "$program" explain b.ini --set experiment.name=e --json "$@" | sed -n 's/.*"loader": *\([0-9]*\).*/\1/p'
}
more() { [ $(($(bytes --set augment.steps="$1") - $(bytes))) = "$2" ]; }
check "no memory for a turn" more rotate90 0
check "memory for a smoothed patch" more gaussian_smooth $((2 * 4 * 16 * 16 * 16))
check "memory for displacements" more elastic $((6 * 4 * 16 * 16 * 16))

finish
