#!/bin/sh
# Devices of a run. 'auto' and 'cuda' are every GPU in one process, and one GPU for each of several ranks. Too
# few GPUs are exit 5, and no other device computes. bench --modes counts GPUs. Records of steps hold each
# GPU's memory.
. "${srcdir:-.}/tests/support/checks.sh"
cd "$folder" || exit 1
phantom ph 3 16,16,16
cat >a.ini <<END
[experiment]
name = run
[data]
source = ph
validation = none
[patch]
extent = 8 8 8
$(small_unet)
[train]
steps = 2
[distribute]
timeout_s = 60
[device]
cache_dir = kernels
END

# gpus COUNT COMMAND...: on a machine with COUNT made-up GPUs.
gpus() (
    FAKE_CUDA=$1
    export FAKE_CUDA
    shift
    cuda "$@"
)

# trained NAME GPUS DEVICES MODE [ARGUMENT...]: a run of that name succeeds with those devices and that mode.
trained() {
    run=$1 found=$2 devices=$3 mode=$4
    shift 4
    gpus "$found" train a.ini --set experiment.name="$run" "$@" && resolved "$run" "$devices" "$mode"
}

resolved() {
    grep -q "^devices = $2\( ;\|$\)" "runs/$1/resolved.ini" && grep -q "^mode = $3\( ;\|$\)" "runs/$1/resolved.ini" ||
        { grep -E '^(devices|mode) =' "runs/$1/resolved.ini"; return 1; }
}

# compared COUNT: the last two rows of 'bench --modes' are dp and ddp with COUNT replicas.
compared() {
    gpus "$1" bench a.ini --modes --steps 1 --warm-up 1 >modes || return 1
    cat modes
    [ "$(tail -n 2 modes | awk '{ print $1, $2 }' | tr '\n' ' ')" = "dp $1 ddp $1 " ]
}

none() { "$program" train a.ini --set experiment.name=none && resolved none cpu single; }
check "without a GPU auto is the cpu" none
check "and it is said" grep -q ' devices cpu: no GPU is there$' runs/none/log.txt

if given faults "which GPUs a run takes"; then
    check "auto is the only GPU" trained one 1 cuda:0 single
    check "auto is every GPU" trained two 2 cuda:0,1 dp
    check "which ones is said" grep -q ' devices cuda:0,1: every GPU that is there$' runs/two/log.txt
    check "a single one with mode = single" trained single 2 cuda:0 single --set distribute.mode=single
    check "cuda is every GPU" gpus 2 train a.ini --set experiment.name=all --set distribute.devices=cuda
    check "of both, each has its memory in the records" grep -q \
        '"device_memory":{"0":[1-9][0-9]*,"1":[1-9][0-9]*}}' runs/all/metrics.jsonl
    check "a run in fp16" trained half 1 cuda:0 single --set train.precision=fp16
    check "has the scale of its loss" grep -q '"loss_scale":65536,' runs/half/metrics.jsonl
    if given nccl "ranks on GPUs"; then
        check "ddp starts a rank for each GPU" trained ddp 2 cuda ddp --set distribute.mode=ddp
        check "which it says" grep -q ' devices cuda: a GPU for each rank$' runs/ddp/log.txt
        check "and so does launch" ends 0 '2 ranks: [distribute] devices = cuda:0,1' \
            gpus 2 launch -- train a.ini --set experiment.name=launched
        check "of which each has its memory in the records" grep -q \
            '"device_memory":{"0":[1-9][0-9]*,"1":[1-9][0-9]*}}' runs/launched/metrics.jsonl
        check "too many ranks do not start" ends 5 '3 ranks, but this machine has 2 GPUs' \
            gpus 2 launch -n 3 -- train a.ini --set experiment.name=many
        for count in 2 4 8; do
            check "modes of $count GPUs are compared" compared $count
        done
    fi
    check "a number that is not there" ends 5 'there is no cuda:2, this machine has 2 devices' \
        gpus 2 train a.ini --set experiment.name=far --set distribute.devices=cuda:0,1,2
    check "a run of two GPUs, on a machine with one" ends 5 "hint: --set distribute.devices=auto" \
        gpus 1 predict runs/two ph/imagesTr/phantom_001.nii.gz -o p.nii.gz
    check "on one without" ends 5 "hint: --set distribute.devices=auto" \
        gpus none predict runs/two ph/imagesTr/phantom_001.nii.gz -o p.nii.gz
    check "as the hint says" gpus none predict runs/two ph/imagesTr/phantom_001.nii.gz -o p.nii.gz \
        --set distribute.devices=auto
    check "no GPU where one is asked for" ends 5 "no CUDA-capable device" \
        gpus none train a.ini --set experiment.name=far --set distribute.devices=cuda
    hidden() { CUDA_VISIBLE_DEVICES=$1 gpus 2 train a.ini --set experiment.name="hidden${1:-}"; }
    check "one that CUDA_VISIBLE_DEVICES lists and the driver lacks" ends 5 \
        "CUDA_VISIBLE_DEVICES = '0,1,2' lists 3 GPUs, the driver finds 2" hidden 0,1,2
    check "none of them leaves a run" test ! -e runs/far -a ! -e runs/many -a ! -e runs/hidden0,1,2
    check "hidden GPUs are not there" hidden -1
    check "then auto is the cpu" resolved hidden-1 cpu single
fi
finish
