#!/bin/sh
# The whole program on the cuda device, with the libraries of tests/fake or on a real GPU. A run has the
# losses of the cpu device. One GPU that is listed twice, and a process for each GPU, have the losses of a
# single one. A prediction is that of the cpu device. Each fault ends in one line.
. "${srcdir:-.}/tests/support/checks.sh"

# faulty NAME=VALUE ARGUMENT...: the program on GPUs with that variable in its environment.
faulty() (
    export "$1"
    shift
    cuda "$@"
)

losses() { sed -n 's/^{"kind":"step",.*"loss":\([^,]*\).*/\1/p' "runs/$1/metrics.jsonl"; }

# Losses of two runs: as many, and equal up to the relative tolerance.
near() {
    losses "$1" >"$folder/a"
    losses "$2" >"$folder/b"
    paste "$folder/a" "$folder/b" | awk -v t="$3" '
        { d = $1 - $2; if (d < 0) d = -d; if (NF != 2 || !(d <= t * $1)) { print; bad = 1 } }
        END { exit bad || NR < 4 }'
}

cd "$folder" || exit 1
phantom ph 4 18,16,16
ini() {
    printf '%s\n' "[experiment]" "name = $1" "deterministic = yes" "[data]" "source = ph" \
        "validation = last:1" "[preprocess]" "steps = normalize" "[augment]" "steps = flip" \
        "[augment.flip]" "axes = 0 1 2" "[patch]" "extent = 16" "[model]" "plugin = unet" \
        "channels = 4 8" "strides = 2" "num_res_units = 1" "dropout = 0.1" "[loss]" \
        "plugin = dice_ce" "[optimizer]" \
        "plugin = novograd" "lr = 0.01" "[train]" "steps = 4" "precision = fp32" "clip_norm = 1" \
        "ema_decay = 0.5" "micro_batches = 2" "[device]" "cache_dir = $folder/kernels" "[distribute]"
    shift
    printf '%s\n' "$@"
}
ini cpu "devices = cpu" >cpu.ini
ini one "devices = cuda:0" >one.ini
ini two "devices = cuda:0,0" >two.ini
ini apart "devices = cuda:0,1" >apart.ini

last=checkpoints/step-00000004/model.safetensors
check "a run on the cpu" "$program" train cpu.ini
check "a run on a card" cuda train one.ini
# Made-up GPUs use the exp, log and sqrt of this processor. Those of a real GPU differ in the last bits, and
# its libraries sum in another order. Four steps amplify both.
agreement=1e-5
[ -n "$cards" ] || agreement=1e-4
check "its losses are those of the cpu" near cpu one $agreement
check "a run on one card listed twice" cuda train two.ini
check "gives the bits of one" cmp runs/one/$last runs/two/$last
check "the same run again" cuda train one.ini --set experiment.name=again
check "gives the same bits" cmp runs/one/$last runs/again/$last
only two check "a run on two cards" cuda train apart.ini
check "a prediction on a card" cuda predict runs/one ph/imagesTr/phantom_001.nii.gz \
    -o card.nii.gz --set distribute.devices=cuda:0
check "a prediction on the cpu" "$program" predict runs/one ph/imagesTr/phantom_001.nii.gz \
    -o cpu.nii.gz --set distribute.devices=cpu
# On a real GPU logits agree to about 1e-4. A voxel may be of either class where two logits are as close.
# Made-up GPUs use the functions of this processor.
one_segmentation() {
    [ -z "$cards" ] || { cmp "$1" "$2"; return; }
    gzip -dc "$1" >left && gzip -dc "$2" >right && test "$(wc -c <left)" = "$(wc -c <right)" &&
        test "$(($(cmp -l left right | wc -l) * 1000))" -le "$(wc -c <left)"
}
check "both are one segmentation" one_segmentation card.nii.gz cpu.nii.gz
check "every kernel is explained" cuda explain one.ini
few_launches() { cuda explain "$1" | grep -q '^launches  *[1-6] a step'; }
check "a step is few launches" few_launches one.ini
# Libraries with threads and handlers of their own remain loaded until the process ends.
stay() (
    LD_DEBUG=files LD_DEBUG_OUTPUT=$folder/loader
    export LD_DEBUG LD_DEBUG_OUTPUT
    cuda devices
    unset LD_DEBUG
    grep -qh 'calling init.*libnvrtc\.so' "$folder"/loader.* &&
        ! grep -h 'lib\(cuda\|nvrtc\|nvidia-ml\)\.so.*destroying link map' "$folder"/loader.*
)
check "the driver, its compiler and its sensors are not unloaded" stay
only two check "also where it is summed over cards" few_launches apart.ini

# ---- patches that the GPU extracts ---------------------------------------------------------------

varied() { # COMMAND... NAME CACHE: with all that may change a patch
    "$@" --set augment.steps="flip rotate90 scale_intensity shift_intensity gaussian_noise" \
        --set augment.rotate90.probability=0.5 --set augment.scale_intensity.factors=0.2 \
        --set augment.scale_intensity.probability=0.5 --set augment.shift_intensity.offsets=0.2 \
        --set augment.shift_intensity.probability=0.5 --set augment.gaussian_noise.probability=0.5
}
check "patches that the host cuts" varied cuda train one.ini --set experiment.name=given
check "patches that the card cuts" varied cuda train one.ini --set experiment.name=cut \
    --set data.cache=device
check "give the same bits" cmp runs/given/$last runs/cut/$last
compiled_patches() { cuda explain one.ini --kernels --set data.cache=device | grep -q 'patch  *nvrtc .*image$'; }
check "by kernels that NVRTC compiled" compiled_patches
check "on one card listed twice" varied cuda train two.ini --set experiment.name=cut-two \
    --set data.cache=device
check "the same bits again" cmp runs/cut/$last runs/cut-two/$last
phantom large 2 64,48,48
only faults check "cases for which the card has no room" ends 5 \
    "cache = device: 1 training case takes 0.000445 GB, found no room for" \
    faulty FAKE_CUDA_MOST=400000 train one.ini --set data.source=large --set data.cache=device \
    --set experiment.name=large
only faults check "where the host has" ends 0 "" faulty FAKE_CUDA_MOST=400000 train one.ini \
    --set data.source=large --set experiment.name=large

# ---- windows that the GPU accumulates ------------------------------------------------------------

card=$(list_cards | sed -n '1s/^[^ ]*  *\([^:]*\):.*/\1/p')
check "the card has a name" test -n "$card"
# windows OUT DEVICES ARGUMENT...: logits of all cases, and the messages, in folder OUT.
windows() {
    out=$1
    devices=$2
    shift 2
    mkdir -p "$out"
    cuda predict "runs/$network" "$images/imagesTr" -v -o "$out" --logits --set distribute.devices="$devices" \
        --set window.overlap=0.5 --set window.mode=gaussian --set window.batch=3 "$@" 2>"$out/said"
}
adds() { [ "$(grep -c "windows: '$card' accumulates them in [0-9.e-]* GB" "$1/said")" = "$2" ]; }
hosts() { grep -q "^windows: sums of [0-9.e-]* GB do not fit beside the network in the $2 GB of \
'made-up card 0'; the host accumulates them\$" "$1/said"; }
same_windows() { diff -r -x said "$1" "$2" && ls "$1"/*_logits.nii.gz >/dev/null; }
check "a network for one plane" cuda train one.ini --set experiment.name=flat \
    --set 'patch.extent=16 1 12' --set distribute.devices=cpu
images=ph
while read -r network way options; do
    # shellcheck disable=SC2086 # words
    {
        check "$way: predictions whose windows the card adds up" windows "$way-card" cuda:0 $options
        check "all of them" adds "$way-card" 4
        check "of two cards the host does" windows "$way-two" cuda:0,0 $options
        check "which says nothing of it" adds "$way-two" 0
        check "the same bytes" same_windows "$way-card" "$way-two"
    }
done <<'END'
one plain
one small --set window.extent=8 --set window.batch=1
one large --set window.extent=20 --set window.padding_mode=reflect
one bf16 --set train.precision=bf16
flat flat
flat mirrored-flat --set window.mirror=0
END
network=one
check "mirrored in all ways" windows mirrored-card cuda:0 --set window.extent=8 --set 'window.mirror=0 1 2'
check "all of them" adds mirrored-card 4
check "of two cards" windows mirrored-two cuda:0,0 --set window.extent=8 --set 'window.mirror=0 1 2'
check "the same bytes" same_windows mirrored-card mirrored-two
flips() { # OUT ARGUMENT...
    out=$1
    shift
    cuda predict runs/one ph/imagesTr/phantom_001.nii.gz -o "$out.nii.gz" --set distribute.devices=cuda:0 \
        --set window.extent=8 --set 'window.mirror=0 1' "$@"
}
check "a mirrored prediction" flips plain
check "its uncertainty, each flip by itself" flips uncertain --uncertainty
check "the same segmentation" cmp plain.nii.gz uncertain.nii.gz
check "both files" [ -s uncertain_entropy.nii.gz -a -s uncertain_variance.nii.gz ]
explained() { cuda explain one.ini --set distribute.devices="$1" | grep -q "^sums  *[0-9.]* kB of a \
case's windows, which '$card' adds up\$"; }
hosted() { ! explained "$@"; }
check "a forecast of the card's sums" explained cuda:0
check "of two cards there are none" hosted cuda:0,0
# Sums of 16 x 96 x 64 voxels, two classes: 786 kB.
phantom wide 1 18,96,64
images=wide
small() (
    export "$1"
    windows "$2" cuda:0 --set window.batch=1
)
if given faults "sums for which the card has no room"; then
    check "sums that are too large by what is known" small FAKE_CUDA_MEMORY=900000 forecast
    check "are left to the host" hosts forecast 0.0009
    check "so are those that the card refuses" small FAKE_CUDA_MOST=700000 refused
    check "by its own word" hosts refused 4.29
    check "those that fit are the card's" small FAKE_CUDA_MEMORY=2000000 held
    check "which says so" adds held 1
    check "the same bytes from all of them" same_windows held forecast
    check "and the last" same_windows held refused
    mkdir -p fitting/imagesTr
    cp ph/imagesTr/phantom_001.nii.gz fitting/imagesTr/a.nii.gz
    cp wide/imagesTr/phantom_000.nii.gz fitting/imagesTr/b.nii.gz
    images=fitting
    check "a case of the card, then one of the host" small FAKE_CUDA_MOST=700000 second
    check "the card has the first" adds second 1
    check "the host the second" hosts second 4.29
    check "the second is as by itself" cmp second/b_logits.nii.gz held/phantom_000_logits.nii.gz
fi

# ---- channels in multiples of 8: convolutions of cuDNN -------------------------------------------

if given cudnn "channels in eights by the library"; then
    by() { grep -o "\"kind\":\"convolution[a-z_]*\",\"name\":\"[^\"]*\",\"implementation\":\"$1\"" \
        "$folder/kernels.json" | wc -l; }
    eights() { "$@" --set "model.channels=8 16" --set experiment.name="$run"; }
    cuda explain --json one.ini --set "model.channels=8 16" >"$folder/kernels.json"
    check "are the library's" test "$(by cudnn)" -ge 6
    check "but for those of the image and the classes" test "$(by nvrtc)" -gt 3
    run=eight-cpu
    check "a run of them on the cpu" eights "$program" train cpu.ini
    run=eight
    check "and on a card" eights cuda train one.ini
    check "with the losses of the cpu" near eight-cpu eight $agreement
    only faults check "a plan that does not run" ends 5 "cuDNN says 5000 (a kernel of the library ended)" \
        faulty FAKE_CUDNN=run=20 train one.ini \
        --set "model.channels=8 16" --set experiment.name=eight-again
    only faults check "no library that starts" ends 0 "" faulty FAKE_CUDNN=start train one.ini \
        --set "model.channels=8 16" --set experiment.name=eight-own
    only faults check "has the same losses" near eight eight-own 1e-5
fi

# ---- sensors of the GPUs -------------------------------------------------------------------------

# sensors NAME: devices.csv of that run is as expected, except for the times.
sensors() { sed 's/^[0-9.]*,//' "runs/$1/devices.csv" | diff - "$folder/expected"; }

heads=time,step,replica,device,utilisation,memory_used,memory_total,memory_ratio,power,temperature
heads=$heads,engine_active,tensor_active,pcie_sent,pcie_received
first=0,00000000:0E:00.0,0.51,1073741824,4294967296,0.25,123.456,41,0.5,0.25,1000,2000
second=1,00000000:0F:00.0,0.52,2147483648,4294967296,0.5,,42,0.625,,1001,2001
watched="--set log.device_every=2 --set experiment.name=watched"
# Values that a single GPU can have: ratios of at most 1, less memory used than the total, no temperature
# below 0.
sensible() {
    awk -F, -v heads="$heads" '
        NR == 1 { bad = $0 != heads }
        NR > 1 { bad = bad || NF != 14 || $2 != 2 * (NR - 1) || $3 != 0 || $5 < 0 || $5 > 1 }
        NR > 1 { bad = bad || $6 <= 0 || $6 > $7 || $8 <= 0 || $8 > 1 }
        NR > 1 { bad = bad || ($9 != "" && $9 <= 0) || $10 <= 0 || $10 > 120 }
        END { exit bad || NR != 3 }' "runs/$1/devices.csv" || { cat "runs/$1/devices.csv"; return 1; }
}
# shellcheck disable=SC2086 # words
check "a run with an eye on its card" cuda train one.ini $watched --set experiment.name=seen
check "has a line every second step" sensible seen
printf '%s\n' "$heads" "2,$first" "2,$second" "4,$first" "4,$second" >"$folder/expected"
if given faults "numbers of sensors"; then
    # shellcheck disable=SC2086 # words
    check "a run with an eye on its cards" cuda train apart.ini $watched
    check "has a line for each card every second step" sensors watched
    # shellcheck disable=SC2086
    check "a run that ends early" cuda train --fresh apart.ini $watched --set train.steps=3
    # shellcheck disable=SC2086
    check "and goes on" cuda train apart.ini $watched
    check "has each line once" sensors watched
fi
# shellcheck disable=SC2086
only faults check "a card without sensors ends no training" ends 0 "NVML says 'GPU is lost': devices.csv ends" \
    faulty FAKE_NVML=lost train --fresh one.ini $watched
# shellcheck disable=SC2086
only faults check "a guest that may not read the power" faulty FAKE_NVML=guest train --fresh one.ini $watched \
    --set experiment.name=guest
no_power() { awk -F, 'NR > 1 && ($9 != "" || $10 == "") { exit 1 } END { exit NR != 3 }' runs/guest/devices.csv; }
only faults check "has all else" no_power
no_fields() {
    awk -F, 'NR > 1 && ($10 == "" || $11 $12 $13 $14 != "") { exit 1 } END { exit NR != 3 }' runs/bare/devices.csv
}
# shellcheck disable=SC2086
only faults check "a machine without DCGM's engine" faulty FAKE_DCGM=none train --fresh one.ini $watched \
    --set experiment.name=bare
only faults check "has what NVML says" no_fields
# shellcheck disable=SC2086
check "nor does a device that has none" ends 0 "device 'cpu' has no sensors: devices.csv ends" \
    "$program" train --fresh cpu.ini $watched

# ---- fp16 and tf32 -------------------------------------------------------------------------------
# Both round operands to 11 bits: 2^-11 in each of a dozen layers, averaged over many voxels.

short() { # PRECISION NAME INI MORE...
    to=$1
    run=$2
    ini=$3
    shift 3
    cuda train "$ini" --set "model.channels=8 16" --set train.precision="$to" \
        --set experiment.name="$run" "$@"
}
far() { ! near "$1" "$2" 1e-7; }
state=checkpoints/step-00000004/trainer.safetensors
number() { # RUN NAME: of its last checkpoint
    file=runs/$1/$state
    size=$(($(od -An -t u8 -N 8 "$file")))
    at=$(tail -c +9 "$file" | head -c $size |
         sed -n "s/.*\"$2\":{[^}]*\"data_offsets\":\[\([0-9]*\),.*/\1/p")
    echo $(($(od -An -t d8 -j $((8 + size + at)) -N 8 "$file")))
}
narrow=5e-3
check "fp32 beside them" short fp32 full one.ini
check "tf32" short tf32 tf32 one.ini
check "has losses near those of fp32" near full tf32 $narrow
only cudnn check "and others" far full tf32
check "fp16" short fp16 half one.ini
check "has losses near those of fp32" near full half $narrow
check "and others" far full half
check "fp16 on one card listed twice" short fp16 half-two two.ini
check "gives the bits of one" cmp runs/half/$last runs/half-two/$last
check "half of a run in fp16" short fp16 rest one.ini --set train.steps=2
check "the rest of it" short fp16 rest one.ini
check "gives the bits of a whole one" cmp runs/half/$last runs/rest/$last
check "the scale and its steps are saved" test "$(number half scale) $(number half sound)" = "16 4"
check "and read" test "$(number rest scale) $(number rest sound)" = "16 4"
for precision in full:fp32 tf32:tf32 half:fp16 whole:bf16; do
    run=${precision%:*}
    [ -e "runs/$run" ] || check "${precision#*:}" short "${precision#*:}" "$run" one.ini
    check "${precision#*:} once more" short "${precision#*:}" "$run-again" one.ini
    check "gives the same bits" cmp "runs/${precision%:*}/$last" "runs/${precision%:*}-again/$last"
done
check "a cpu has no fp16" ends 3 "precision fp16 does not exist on a cpu" "$program" train cpu.ini \
    --fresh --set train.precision=fp16
check "nor tf32" ends 3 "precision tf32 does not exist on a cpu" "$program" train cpu.ini --fresh \
    --set train.precision=tf32

check "every kind of request" cuda plugin check "$PONS_PLUGIN_PATH/device/cuda.so"

# ---- ranges of a profiler ------------------------------------------------------------------------

ranges=$folder/ranges
# begun NAME COLOR: a range of that name and colour; ended: each range has one end.
begun() { grep -qxF -e "$1$(printf '\t')#ff$2" "$ranges"; }
ended() {
    awk '$0 == "." { depth-- } $0 != "." { depth++ } depth < 0 { exit 1 } END { exit depth != 0 }' \
        "$ranges"
}
check "a run under a profiler" on_cards env FAKE_NVTX="$ranges" \
    NVTX_INJECTION64_PATH="$fakes/libnvtx.so" "$program" train --fresh one.ini
for name in start:8c564b loading:d62728 forward:2ca02c backward:1f77b4 update:9467bd validation:17becf \
    checkpoint:7f7f7f report:bcbd22 unet:98df8a dice_ce:ffbb78 novograd:c5b0d5 normalize:ff9896 flip:ff9896 \
    micro-batch:c7c7c7; do
    check "has a range '${name%:*}' of its colour" begun "${name%:*}" "${name#*:}"
done
cuda explain --json one.ini | sed -n 's/.*"section":"micro".*"name":"\([^"#]*\)[^"]*".*/\1/p' |
    sort -u >"$folder/names"
check "and one for every kernel" sh -c "test -s '$folder/names' && while read -r name; do
    cut -f1 '$ranges' | grep -qxF -e \"\$name\" || exit 1; done <'$folder/names'"
check "that all end" ended
check "a profile" cuda train --fresh one.ini --profile --set experiment.name=profiled
check "has times by the card's clock" grep -q '"kind":"convolution",.*"gpu_ns":[1-9]' runs/profiled/profile.json
check "and a row for the card" grep -qF '"name":"device of replica 0"' runs/profiled/trace.json
check "of a run with the same bits" cmp runs/again/$last runs/profiled/$last
time_kernels() { cuda bench one.ini --kernels --json --steps 2 >"$folder/times.json"; }
check "each kernel's time" time_kernels
check "beside what the card can reach" grep -q \
    '"limits":{"copy_bytes_per_second":[1-9][0-9.e+]*,"fp32_flop_per_second":[1-9][0-9.e+]*,' "$folder/times.json"
only faults check "by its clocks" grep -qF '"limits":{"copy_bytes_per_second":2.56e+11,'\
'"fp32_flop_per_second":1.024e+12,"bf16_flop_per_second":1.6384e+13,'\
'"fp16_flop_per_second":1.6384e+13,"tf32_flop_per_second":8.192e+12,"differ":0}' "$folder/times.json"
# clocked KHZ FP32 DIFFER SHARE: with those clocks after the kernels the larger limits count. The list has the
# difference. A warning names it if SHARE is given.
clocked() {
    faulty FAKE_CUDA_CLOCK="$1" bench one.ini --kernels --json --no-data --steps 1 >"$folder/clocked.json" \
        2>"$folder/warned" || return 1
    grep -q "\"fp32_flop_per_second\":$2,.*\"differ\":$3}" "$folder/clocked.json" || return 1
    grep -q "^warning: what the device reached before the kernels and after them differs by ${4:-[0-9]*} %: " \
        "$folder/warned"
    test $? -eq "$([ -n "$4" ]; echo $?)"
}
only faults check "a card that was slowed down is told" clocked 500000 1.024e+12 1 100
only faults check "and one that was faster" clocked 1600000 1.6384e+12 0.6 60
only faults check "and one that is nearly the same is not" clocked 800000 1.024e+12 0.25 ""
check "on the card and on the host" grep -q \
    '"all":{"kernels":[1-9][0-9]*,"cpu_ns":[1-9][0-9.e+]*,"gpu_ns":[1-9][0-9.e+]*}' \
    "$folder/times.json"

# of_limit PRECISION: a convolution's limit is the larger one of two times: bytes at the rate of a copy, and
# operations at the rate of that precision. The rate of fp32 would give another limit.
of_limit() {
    awk -v precision="$1" '
        function field(name) { return match($0, "\"" name "\":[^,}]*")                               \
            ? substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3) + 0 : -1 }
        /"limits"/ {
            copy = field("copy_bytes_per_second"); rate = field(precision "_flop_per_second")
            fp32 = field("fp32_flop_per_second")
        }
        /"kind":"convolution",.*"of_limit"/ {
            least = field("bytes") / copy > field("flop") / rate ? field("bytes") / copy : field("flop") / rate
            differs += field("flop") / fp32 > least
            found = field("of_limit") * field("seconds") / field("calls")
            if (!((found / least - 1) ^ 2 < 1e-12)) bad++
        }
        END { exit bad || !differs }' "$folder/$1.json"
}
for precision in tf32 bf16 fp16; do
    time_products() { cuda bench one.ini --kernels --json --steps 2 --set "train.precision=$precision" \
        --set "model.channels=16 32" >"$folder/$precision.json"; }
    check "times of kernels in $precision" time_products
    check "beside its own limit" of_limit $precision
done

# ---- GPUs of several processes and of one, joined by NCCL ----------------------------------------

if given nccl "cards joined by nccl" && given two "cards joined by nccl"; then
    ini ddp "mode = ddp" "devices = cuda:0,1" "backend = nccl" "bucket = 4KiB" >ddp.ini
    check "a process for each card" cuda train ddp.ini
    check "gives the bits of one" cmp runs/one/$last runs/ddp/$last
    check "sums on the cards" cuda train ddp.ini --set experiment.name=quick \
        --set experiment.deterministic=no
    check "give the losses of one" near one quick 1e-5
    check "patches that each card cuts" cuda train ddp.ini \
        --set experiment.name=ddp-cut --set data.cache=device
    check "give the bits of one again" cmp runs/one/$last runs/ddp-cut/$last
    # shellcheck disable=SC2086 # words
    check "with an eye on all cards" cuda train --fresh ddp.ini $watched
    only faults check "lines of all processes" sensors watched
    joined="--set model.norm=batch --set distribute.sync_batchnorm=yes --set loss.sync=yes"
    # shellcheck disable=SC2086 # words
    check "sums inside the network, on the host" cuda train apart.ini $joined \
        --set experiment.name=near
    # shellcheck disable=SC2086
    check "sums inside the network, on the cards" cuda train ddp.ini $joined \
        --set experiment.name=far --set experiment.deterministic=no
    check "are the same ones" near near far 1e-5
    ini joint "mode = dp" "devices = cuda:0,1" "bucket = 4KiB" >joint.ini
    sed -i s/^deterministic.*/deterministic=no/ joint.ini
    check "two cards of one process" cuda train joint.ini
    check "are joined by nccl" grep -q " mode dp: .*, joined by nccl$" runs/joint/log.txt
    check "which is told" grep -q "^; comm nccl .* sha256 " runs/joint/resolved.ini
    check "and give the losses of one" near one joint 1e-5
    check "as they do where each cuts its patches" cuda train joint.ini \
        --set experiment.name=joint-cut --set data.cache=device
    check "joined by nccl too" grep -q " mode dp: .*, joined by nccl$" runs/joint-cut/log.txt
    check "to the same losses" near one joint-cut 1e-5
    # shellcheck disable=SC2086
    check "sums inside the network" cuda train joint.ini $joined \
        --set experiment.name=joint-near
    check "are the same ones" near near joint-near 1e-5
    # One GPU listed twice, deterministic sums and a named backend do not use NCCL between replicas.
    for other in distribute.devices=cuda:0,0 experiment.deterministic=yes distribute.backend=gloo; do
        check "with $other" cuda train --fresh joint.ini --set "$other"
        check "the host adds up" sh -c '! grep -q "joined by" runs/joint/log.txt'
        check "to the same losses" near one joint 1e-5
    done
    only faults check "without a library that will do" ends 0 \
        "the host sums up over the GPUs: NCCL 2.10.3 is too old" \
        faulty FAKE_NCCL=version=21003 train --fresh joint.ini
    only faults check "the losses are the same" near one joint 1e-5
    only faults check "which is an error where it is named" ends 5 "NCCL 2.10.3 is too old" faulty \
        FAKE_NCCL=version=21003 train --fresh joint.ini --set distribute.backend=nccl
    # The deadline covers the timeout, and 5 s for a process whose peers are gone. The rest is
    # for the start.
    deadline=$(patient 30)
    while IFS='|' read -r words code line; do
        for ini in ddp joint; do
            only faults check "nccl, $ini: $words" ends "$code" "$line" timeout -k 1 $deadline \
                env -u CUDA_VISIBLE_DEVICES FAKE_NCCL="$words" LD_LIBRARY_PATH="$cards" \
                "$program" train --fresh $ini.ini \
                --set distribute.timeout_s=5
        done
    done <<'END'
init-never|7|NCCL has not joined the 2 processes within 5 s
init-error|7|joining the processes by NCCL failed: unhandled system error
init-memory|5|joining the processes by NCCL failed: unhandled cuda error
error=20|7|a collective failed: unhandled system error
lost=20|7|remote process exited or there was a network error
error=20 abort-hangs|7|a collective failed: unhandled system error
error=20 only=1 mute|7|a collective failed: unhandled system error
END
    only faults check "nccl: nor does a measurement hang" ends 7 "a collective failed: unhandled system error" \
        timeout -k 1 $deadline env -u CUDA_VISIBLE_DEVICES FAKE_NCCL="error=20 abort-hangs" \
        LD_LIBRARY_PATH="$cards" "$program" \
        bench joint.ini
fi

# ---- errors --------------------------------------------------------------------------------------

ini other "devices = cuda:63" >far.ini
check "a card that is not there" ends 5 "there is no cuda:63, this machine has $(list_cards | wc -l) device" \
    cuda train far.ini
only faults check "a launch that fails" ends 5 \
    "launch a kernel on device 'cuda:0': unspecified launch failure" \
    faulty FAKE_CUDA_FAIL=launch:40 train --fresh one.ini
only faults check "a copy that fails" ends 5 "copy memory on device 'cuda:0': invalid argument" \
    faulty FAKE_CUDA_FAIL=copy:40 train --fresh one.ini
only faults check "memory that ends" ends 5 "on device 'cuda:0': out of memory" \
    faulty FAKE_CUDA_FAIL=allocate:9 train --fresh one.ini
if ! ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1 '; then
    only faults check "no driver" ends 5 "cannot open device 'cuda': no driver" \
        env -u CUDA_VISIBLE_DEVICES "$program" train --fresh one.ini
fi

# ---- kernels are compiled while cases are read ---------------------------------------------------

# beside ARGUMENT...: the compiler waits until a case has been read, and the case waits until the compiler
# starts.
beside() (
    mkdir -p "$folder/plugins/transform"
    cp "$build/tests/plugins/.libs/held.so" "$folder/plugins/transform/"
    export PONS_PLUGIN_PATH="$folder/plugins:$PONS_PLUGIN_PATH" FAKE_NVRTC_BEGUN="$folder/begun" \
        FAKE_NVRTC="beside=$folder/cases/*.case"
    cuda "$@" --set data.cache=disk --set data.cache_dir="$folder/cases" \
        --set preprocess.steps="normalize held" --set preprocess.held.until="$folder/begun"
)
only faults check "cases are read while kernels are compiled" beside train apart.ini \
    --set experiment.name=beside --set device.cache_dir="$folder/beside"
only faults check "which gives the same bits" cmp runs/two/$last runs/beside/$last
only faults check "kernels that do not compile" ends 5 "cannot compile kernels for sm_90" \
    faulty FAKE_CC=/bin/false train --fresh one.ini --set device.cache_dir="$folder/failed"
cp -r ph bad
head -c 300 ph/imagesTr/phantom_002.nii.gz >bad/imagesTr/phantom_002.nii.gz
check "a case that is cut" ends 4 "phantom_002.nii.gz" cuda train --fresh one.ini \
    --set "data.source=$folder/bad" --set experiment.name=bad --set device.cache_dir="$folder/cut"
stopped() {
    env -u CUDA_VISIBLE_DEVICES FAKE_NVRTC="beside=$folder/never" LD_LIBRARY_PATH="$cards" \
    "$program" train --fresh \
        one.ini --set train.grace_s=0 --set experiment.name=stopped \
        --set device.cache_dir="$folder/stop" 2>"$folder/stopped" &
    running=$!
    for _ in $(seq 600); do
        grep -q "to train on" "$folder/stopped" && break
        sleep 0.1
    done
    kill "$running"
    wait "$running"
    ends 75 "interrupted" sh -c "cat '$folder/stopped'; exit $?"
}
only faults check "a run that is stopped while the compiler runs" stopped

# ---- the list of devices -------------------------------------------------------------------------

check "a card's address" eval \
    'list_cards | head -n 1 | grep ": [0-9a-fA-F]*:[0-9a-fA-F]\{2\}:[0-9a-fA-F]\{2\}\.[0-7], "'
check "the versions of its libraries" eval \
    'list_cards | head -n 1 | grep "driver [0-9.]*, NVRTC [0-9.]*, .*cuDNN.*, .*cuBLASLt"'
only faults check "by their own words" eval 'list_cards | head -n 1 | grep ": 00000000:0E:00\.0, " &&
    list_cards | head -n 1 | grep "driver 13\.0, NVRTC 13\.0, .*, cuBLASLt 13\.0\.2\$"'

# toolkits DRIVER ARGUMENT...: a machine whose driver is of that version, with NVRTC and cuBLASLt of three
# versions of CUDA.
toolkits() (
    unset CUDA_VISIBLE_DEVICES
    export FAKE_CUDA_VERSION="$1" LD_LIBRARY_PATH="$folder/toolkits:$cards"
    shift
    mkdir -p "$folder/toolkits"
    for library in libnvrtc.so libcublasLt.so; do
        for cuda in 11.2 12 13; do
            cp "$cards/$library.13" "$folder/toolkits/$library.$cuda"
        done
    done
    "$program" "$@"
)
takes() { toolkits "$1" devices | grep "^cuda:0 .* NVRTC $2\.0, .*, cuBLASLt $3\.0\.2\$"; }
only faults check "the driver's own toolkit" takes 13000 13 13
only faults check "not a newer one" takes 12040 12 12
only faults check "one for each where it has none" takes 11080 11 12
# An older CUDA may compile for an architecture that CUDA 13 does not support.
volta() { # ARGUMENT...: on a driver of CUDA 13
    (export FAKE_CUDA_SM=70 && toolkits 13000 "$@")
}
only faults check "an older one that knows the card" eval \
    'volta devices | grep "^cuda:0 .* driver 13\.0, NVRTC 12\.0, .*, cuBLASLt 12\.0\.2\$"'
only faults check "by whose kernels it computes" volta train --fresh one.ini --set "device.cache_dir=$folder/volta"
unknown() { faulty FAKE_CUDA_SM="$1" train --fresh one.ini; }
only faults check "a card that is too old for all of them" ends 5 "cannot open device 'cuda:0': nothing here compiles for its sm_70: \
NVRTC 13.0 for sm_75 80 86 87 88 89 90 100 103 110 120 121" unknown 70
only faults check "what would help" grep -qx "hint: install the NVRTC of an older CUDA, too" "$folder/out"
mixed() { faulty FAKE_CUDA_SM=70,90 devices >"$folder/mixed"; }
only faults check "a list of that card and another one" mixed
only faults check "says of the first why it is not there" grep -q "^cuda  *cannot open device 'cuda:0': nothing here" \
    "$folder/mixed"
only faults check "and has the second" grep -q "^cuda:1  *made-up card 1" "$folder/mixed"
behind() { [ "$(grep -c "^cuda" "$folder/mixed")" = 2 ]; }
only faults check "and none that is not there" behind
# An architecture that is newer than the compiler.
newer() { # ARGUMENT...
    faulty FAKE_CUDA_SM=130 "$@"
}
only faults check "a card that is too new" eval \
    'newer devices | grep "^cuda:0 .* driver 13\.0, NVRTC 13\.0 by PTX of compute_121, "'
only faults check "computes by the PTX of an older one" newer train --fresh one.ini --set "device.cache_dir=$folder/ptx"
only faults check "the same bits" cmp runs/one/$last runs/two/$last
# The driver is older than the CUDA of the newest compiler.
newer_by_older() (
    export FAKE_CUDA_SM=130
    toolkits 12040 devices | grep "^cuda:0 .* NVRTC 12\.0 by PTX of compute_120, "
)
only faults check "also by that of an older compiler" newer_by_older
only faults check "PTX that a driver does not translate" ends 5 "they are PTX of compute_121, by NVRTC 13.0" \
    env -u CUDA_VISIBLE_DEVICES FAKE_CUDA_FAIL=load:1 FAKE_CUDA_SM=130 LD_LIBRARY_PATH="$cards" \
    "$program" train --fresh one.ini \
    --set "device.cache_dir=$folder/untranslated"
only faults check "what would help" grep -qx "hint: install an NVRTC that knows sm_130, too, or a newer driver" "$folder/out"
only faults check "and of a later CUDA than the driver it is not tried" ends 5 "nothing here compiles for its sm_130" \
    env -u CUDA_VISIBLE_DEVICES FAKE_CUDA_VERSION=12040 FAKE_CUDA_SM=130 LD_LIBRARY_PATH="$cards" \
    "$program" train --fresh one.ini
only faults check "what would help" grep -qx "hint: install the NVRTC of a newer CUDA, too" "$folder/out"
only faults check "whose kernels it takes" toolkits 12040 train --fresh one.ini --set "device.cache_dir=$folder/12"
only faults check "kernels of a newer one" ends 5 \
    "cannot load kernels on device 'cuda:0': device kernel image is invalid (CUDA_ERROR_INVALID_IMAGE); they are \
compiled by NVRTC 13.0, the driver is of CUDA 12" faulty FAKE_CUDA_VERSION=12040 train --fresh one.ini \
    --set "device.cache_dir=$folder/newer"
only faults check "what would help" grep -qx "hint: install the NVRTC of CUDA 12, too, or a newer driver" "$folder/out"
# without LIBRARY: the messages of a machine with all made-up libraries but that one.
without() (
    mkdir -p "$folder/without"
    ln -sf "$cards"/*.so.* "$folder/without/"
    rm -f "$folder/without/$1".so.*
    LD_LIBRARY_PATH=$folder/without "$program" doctor
)
nothing_lacks() { ! cuda doctor | grep "no NVML"; }
only faults check "a card that lacks nothing" nothing_lacks
only faults check "a library of sensors that is missing" eval \
    'without libnvidia-ml | grep "^cuda:0 .*, no NVML (cannot read the sensors of card "'
only faults check "sensors that do not answer" eval \
    'faulty FAKE_NVML=lost doctor | grep "no NVML (cannot read the utilisation of card 00000000:0E:00.0: NVML says"'
if given nccl "NCCL's version"; then
    cuda doctor >"$folder/doctor"
    check "NCCL's version" grep -q "^nccl  *ready, NCCL 2\.[0-9]*\.[0-9]*\$" "$folder/doctor"
fi

# ---- compiled kernels are cached -----------------------------------------------------------------

check "kernels are kept" cuda train --fresh one.ini --set "device.cache_dir=$folder/kept"
kept=$(ls "$folder/kept" | wc -l)
check "those of training and of prediction in one file" test "$kept" -eq 1
cuda_wider() { cuda "$@" --set "model.channels=4 12"; }
# uncompiled COMMAND...: with a compiler that always fails.
uncompiled() {
    FAKE_CC=/bin/false
    export FAKE_CC
    "$@" train --fresh one.ini --set "device.cache_dir=$folder/kept"
    status=$?
    unset FAKE_CC
    return $status
}
only faults check "and read again without a compiler" uncompiled cuda
only faults check "but not for a card of another architecture" ends 5 "cannot compile kernels for sm_80" \
    uncompiled faulty FAKE_CUDA_SM=80
only faults check "nor instead of another compiler's" ends 5 "cannot compile kernels for sm_90" \
    uncompiled toolkits 12040
only faults check "nor for another network" ends 5 "cannot compile kernels for sm_90" \
    uncompiled cuda_wider
for file in "$folder"/kept/*; do
    head -c 300 "$file" >"$folder/short" && mv "$folder/short" "$file"
done
check "a file that was cut is passed over" cuda train --fresh one.ini \
    --set "device.cache_dir=$folder/kept"
only faults check "and made again" faulty FAKE_CC=/bin/false train --fresh one.ini \
    --set "device.cache_dir=$folder/kept"

# Without a named folder kernels are in the user's cache folder, in the first of these that is a path.
at_home() ( # FAKE_CC CACHE HOME
    export FAKE_CC="$1" XDG_CACHE_HOME="$2" HOME="$3"
    cuda train --fresh one.ini --set device.cache_dir=
)
while read -r place cache home; do
    check "kernels are kept in $place" at_home cc "${cache#-}" "$home"
    check "as files" sh -c "ls '$folder/$place'/*.cubin"
    only faults check "and found there" at_home /bin/false "${cache#-}" "$home"
done <<END
cache/pons/kernels $folder/cache $folder
home/.cache/pons/kernels - $folder/home
other/.cache/pons/kernels relative $folder/other
END

finish
