#!/bin/sh
# cache = device: whole runs on the cpu device have the bits of cache = memory, also when a run continues with
# the other cache. Cases that do not fit stay with the host. The memory estimate is right.
. "${srcdir:-.}/tests/support/checks.sh"
cd "$folder" || exit 1
phantom ph 4 18,16,14
cat >a.ini <<END
[experiment]
deterministic = yes
[data]
source = ph
validation = last:1
[preprocess]
steps = normalize
[augment]
steps = flip rotate90 scale_intensity shift_intensity gaussian_noise
[augment.flip]
axes = 0 1 2
probability = 0.5
[augment.rotate90]
axes = 0 2
probability = 0.5
[augment.scale_intensity]
factors = 0.2
probability = 0.5
[augment.shift_intensity]
offsets = 0.2
probability = 0.5
[augment.gaussian_noise]
std = 0.3
probability = 0.5
[patch]
extent = 16
$(small_unet novograd)
num_res_units = 1
dropout = 0.1
[train]
steps = 4
batch = 2
precision = fp32
micro_batches = 2
[distribute]
devices = cpu
END

train() { # NAME CACHE MORE...
    run=$1
    cache=$2
    shift 2
    "$program" train --fresh a.ini --set experiment.name="$run" --set data.cache="$cache" "$@"
}
last=checkpoints/step-00000004/model.safetensors
same() { cmp "runs/$1/$last" "runs/$2/$last"; }
differ() { ! same "$1" "$2"; }

# Both caches give the same bits with the options of each line.
while read -r way options; do
    check "$way" eval "train $way-memory memory $options"
    check "$way, cut by the device" eval "train $way-device device $options"
    check "has the same bits" same "$way-memory" "$way-device"
done <<'END'
plain
bf16 --set train.precision=bf16
padded --set 'patch.extent=24 20 8' --set patch.pad=edge --set patch.sampling=uniform
flat --set 'patch.extent=16 1 12'
two --set distribute.devices=cpu:0,cpu:1 --set train.micro_batches=4
ranks --set distribute.mode=ddp --set distribute.devices=cpu:0,cpu:1 --set distribute.threads=1
regions --set data.regions=all:1
END
check "another way to pad" train zero device --set 'patch.extent=24 20 8' \
    --set patch.sampling=uniform
check "gives others" differ zero padded-device

check "half of a run with one cache" train rest memory --set train.steps=2
check "the rest of it with the other" "$program" train a.ini --set experiment.name=rest \
    --set data.cache=device
check "gives the bits of a whole one" same rest plain-device

# ---- refused -------------------------------------------------------------------------------------

# Cases without room for all of them stay in the host's memory; those beyond the limit are read each time.
for options in "" "--set distribute.devices=cpu:0,cpu:1 --set train.micro_batches=4" \
    "--set distribute.mode=ddp --set distribute.devices=cpu:0,cpu:1 --set distribute.threads=1"; do
    # shellcheck disable=SC2086
    check "cases beyond the limit" ends 0 "patches are cut by the host, as with cache = memory: [data] cache" \
        train limit-device device --set data.cache_limit=8KiB $options
    # shellcheck disable=SC2086
    check "as cache = memory does" train limit-memory memory --set data.cache_limit=8KiB $options
    check "has the same bits" same limit-memory limit-device
    rm -rf runs/limit-*
done

# Measurements of steps find no room either, and go on as the training does.
refused_room="patches are cut by the host, as with cache = memory: [data] cache"
check "bench goes on beyond the limit" ends 0 "$refused_room" "$program" bench a.ini --set data.cache=device \
    --set data.cache_limit=8KiB --steps 2
check "find-rate goes on beyond the limit" ends 0 "$refused_room" "$program" find-rate a.ini \
    --set data.cache=device --set data.cache_limit=8KiB --steps 20

# ---- memory --------------------------------------------------------------------------------------

number() { # CACHE NAME
    "$program" explain --json a.ini --set data.cache="$1" --set data.loader_threads=1 |
        sed -n "s/.*\"$2\":\([0-9]*\).*/\1/p"
}
# Of 4 cases the 3 training cases are resident twice.
check "the cases that are held" test $((4 * $(number device cache))) -eq \
    $((7 * $(number memory cache)))
# Two micro-batches of two samples wait for the device. A sample of the host is 16^3 voxels of 5 bytes. A
# sample of the device is a row of 3 + 48 numbers for the image, one for the label, 5 numbers of augmentations
# (factor, offset, and three of noise) and a key of 3.
check "what waits for the device" test \
    $(($(number memory loader) - $(number device loader))) -eq \
    $((2 * 2 * (16 * 16 * 16 * 5 - 4 * (2 * 51 + 5 + 3))))

# ---- bench ---------------------------------------------------------------------------------------

steps() { "$program" bench a.ini --set data.cache=device --steps 2 --kernels --json >bench.json; }
check "a step without data and with it" steps
check "has both times" grep -q '"with_data_seconds":[0-9]' bench.json

finish
