#!/bin/sh
# Loader, loops over slabs, trainer, replicas and store under ThreadSanitizer, with one kernel thread (gcc's OpenMP
# runtime is not instrumented). The last line is 'N passed, N failed'.
#
#   tests/tools/thread.sh [--build FOLDER]
. "$(dirname "$0")/own_build.sh"
build=$source/build-thread
read_build "$@"

# try CODE COMMAND...: the command ends with CODE, and ThreadSanitizer reports nothing.
try() {
    code=$1
    shift
    "$@" >said 2>&1
    found=$?
    if [ "$found" -eq "$code" ] && ! grep -q 'ThreadSanitizer' said; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $*: code $found, expected $code"
        cat said
    fi
}

enter_build
"$source/configure" -q --enable-sanitizers=thread CFLAGS="-O1 -g" || stop "configure failed"
tests="tests/unit/data/check_loader tests/unit/data/check_epoch_order tests/unit/data/check_augment
    tests/unit/data/check_golden_augment
    tests/unit/cluster/check_local_comm tests/unit/cluster/check_store tests/unit/base/check_parallel
    tests/unit/data/check_parallel_slabs tests/unit/data/check_smart_cache"
# shellcheck disable=SC2086 # a list of words
{ make -j"$(nproc)" && make $tests; } >make.log 2>&1 || { tail make.log; stop "make failed"; }
PONS_PLUGIN_PATH=$build/stage
TSAN_OPTIONS="exitcode=66 ${TSAN_OPTIONS-}"
export PONS_PLUGIN_PATH TSAN_OPTIONS
for test in $tests; do
    srcdir=$source try 0 "$test"
done

if [ -f stage/comm/gloo.so ]; then
    tests="tests/unit/cluster/check_gloo tests/unit/cluster/check_group"
    # shellcheck disable=SC2086 # a list of words
    make $tests >>make.log 2>&1 || stop "make failed"
    TSAN_OPTIONS="$TSAN_OPTIONS suppressions=$source/tests/tools/thread.suppressions"
    for test in $tests; do
        TSAN_OPTIONS="$TSAN_OPTIONS atexit_sleep_ms=0" try 0 "$test"
    done
fi

if [ -f stage/comm/nccl.so ]; then
    tests="tests/unit/cluster/check_nccl tests/unit/cluster/check_group_nccl"
    # shellcheck disable=SC2086 # a list of words
    make $tests >>make.log 2>&1 || stop "make failed"
    # The watchdog ends a process without a join of the aborting thread.
    for test in $tests; do
        TSAN_OPTIONS="$TSAN_OPTIONS atexit_sleep_ms=0 report_thread_leaks=0" try 0 "$test"
    done
fi

folder=$(mktemp -d "${TMPDIR:-/tmp}/pons-thread-XXXXXX") || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
pons=$build/pons
try 0 "$pons" data phantom -o ph --cases 4 --extent 24,20,18
cat >a.ini <<'END'
[experiment]
name = a
[data]
source = ph
validation = last:1
[patch]
extent = 16
per_case = 2
sampling = balanced
[augment]
steps = flip rotate90 scale_intensity shift_intensity gaussian_noise
[augment.flip]
axes = 0 1 2
[augment.scale_intensity]
factors = 0.1
[augment.shift_intensity]
offsets = 0.1
[model]
plugin = unet
channels = 4 8
strides = 2
norm = batch
dropout = 0.2
[loss]
plugin = dice_ce
[optimizer]
plugin = adam
lr = 0.01
[train]
steps = 12
accumulate = 2
ema_decay = 0.9
[distribute]
threads = 1
END
for precision in fp32 bf16; do
    for loaders in 0 1 4; do
        set -- --set experiment.name=$precision-$loaders --set train.precision=$precision \
            --set data.loader_threads=$loaders
        try 0 "$pons" train a.ini "$@"
        try 0 "$pons" train a.ini "$@" --set train.steps=18
    done
done
# All random steps, and steps of [preprocess] that loop over slabs.
sed '/^\[augment/,/^offsets/d' a.ini >heavy.ini
for loaders in 0 4; do
    try 0 "$pons" train heavy.ini --set experiment.name=heavy-$loaders --set data.loader_threads=$loaders \
        --set augment.profile=heavy --set "preprocess.steps=crop_foreground normalize spacing" \
        --set preprocess.normalize.scheme=zscore --set preprocess.normalize.use_mask_for_norm=yes \
        --set preprocess.spacing.mm=0.9 --set preprocess.spacing.method=nnunet
done
# Replicas of one process, which split the steps and the cases of a validation.
for share in "cpu:0,cpu:1 3" "cpu:0,1,2 2"; do
    set -- --set experiment.name=shared --set distribute.devices="${share% *}" \
        --set train.accumulate="${share#* }" --set train.clip_norm=0.5
    try 0 "$pons" train a.ini "$@"
    try 0 "$pons" train a.ini "$@" --set train.steps=18
done
# Cases that are replaced while loaders read others.
set -- --set experiment.name=smart --set data.cache=smart --set data.smart_share=0.3 --set data.smart_replace=1
try 0 "$pons" train a.ini "$@" --set data.loader_threads=2
try 0 "$pons" train a.ini "$@" --fresh --set distribute.devices=cpu:0,cpu:1
try 0 "$pons" predict runs/fp32-4 ph/imagesTr/phantom_000.nii.gz -o out.nii.gz
try 0 "$pons" evaluate --prediction out.nii.gz --label ph/labelsTr/phantom_000.nii.gz
# Devices that split windows, beside threads that read ahead and write.
for devices in cpu cpu:0,cpu:1 cpu:0,1,2; do
    try 0 "$pons" predict runs/fp32-4,runs/bf16-4 ph/imagesTr -o outs --logits \
        --set distribute.devices=$devices --set window.mirror=1 --set window.batch=2
    try 0 "$pons" evaluate --run runs/fp32-4 --json --set distribute.devices=$devices
done
# Fake GPUs, whose kernels are compiled while cases are read; either may fail.
if [ -f "$build/stage/device/cuda.so" ]; then
    make -C "$build" tests/fake/libcuda.la tests/fake/libnvrtc.la >>"$build/make.log" 2>&1 ||
        stop "make failed"
    cp -r ph cut
    head -c 300 ph/imagesTr/phantom_002.nii.gz >cut/imagesTr/phantom_002.nii.gz
    # The run finds no cached kernels.
    set -- env XDG_CACHE_HOME=/dev/null LD_LIBRARY_PATH="$build/tests/fake/.libs" "$pons" train a.ini \
        --set distribute.devices=cuda:0,1 --set train.precision=fp32 --set train.steps=4 \
        --set experiment.name=cards
    try 4 "$@" --set data.source=cut
    try 5 env FAKE_CC=/bin/false "$@"
    try 0 "$@" --set device.cache_dir=kernels
    try 0 "$@" --set device.cache_dir=kernels --fresh
fi
# timeout ends the run with a signal, which the thread of signals handles.
try 75 timeout --preserve-status -s TERM 3 "$pons" train a.ini --set experiment.name=long \
    --set train.steps=100000 --set data.loader_threads=4
try 75 timeout --preserve-status -s INT 3 "$pons" train a.ini --set experiment.name=long \
    --set train.steps=100000 --set data.loader_threads=4

finish
