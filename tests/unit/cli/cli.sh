#!/bin/sh
# Command line tests: exit codes, and the text on stdout and stderr.
. "${srcdir:-.}/tests/support/checks.sh"

# expect CODE STREAM PHRASE ARGUMENT...: the phrase is in that stream; errors leave stdout empty.
expect() {
    code=$1 stream=$2 phrase=$3
    shift 3
    checks=$((checks + 1))
    "$program" "$@" >"$folder/stdout" 2>"$folder/stderr"
    found=$?
    if [ "$found" -ne "$code" ]; then
        fail "pons $*: code $found, expected $code"
        cat "$folder/stderr"
    elif ! grep -qF -e "$phrase" "$folder/$stream"; then
        fail "pons $*: no '$phrase' in $stream:"
        cat "$folder/$stream"
    elif [ "$code" -ne 0 ] && [ -s "$folder/stdout" ] && [ "${1-} ${2-}" != "plugin check" ]; then
        fail "pons $*: an error wrote to stdout"
    elif [ "$code" -eq 0 ] && [ -s "$folder/stderr" ]; then
        fail "pons $*: success wrote to stderr"
        cat "$folder/stderr"
    fi
}

# silent ARGUMENT...: stdout stays empty, whatever libraries print.
silent() {
    checks=$((checks + 1))
    "$program" "$@" >"$folder/stdout" 2>"$folder/stderr" || fail "pons $*: $(cat "$folder/stderr")"
    [ -s "$folder/stdout" ] && fail "pons $*: wrote to stdout: $(head -n 3 "$folder/stdout")"
}

checks=$((checks + 1))
"$source/examples/quickstart.sh" --folder "$folder/a b" >"$folder/stdout" 2>"$folder/stderr"
[ $? -eq 2 ] && grep -q "a name holds a blank" "$folder/stderr" ||
    fail "quickstart.sh tries to build in a folder with a blank: $(cat "$folder/stderr")"
mkdir "$folder/mine" "$folder/mine/train"
checks=$((checks + 1))
"$source/examples/quickstart.sh" --folder "$folder/mine" >"$folder/stdout" 2>"$folder/stderr"
[ $? -eq 2 ] && grep -q "mine/train' was not made by this script and would be lost" "$folder/stderr" &&
    [ -d "$folder/mine/train" ] || fail "quickstart.sh takes others' folders: $(cat "$folder/stderr")"
checks=$((checks + 1))
"$source/examples/quickstart.sh" --folder >"$folder/stdout" 2>"$folder/stderr"
[ $? -eq 2 ] && grep -q "needs a folder" "$folder/stderr" ||
    fail "quickstart.sh --folder alone: $(cat "$folder/stderr")"
# The head is synthetic because --phantom asks for it, or because there is no template.
head_of() {
    sed -n '/^find_head() {$/,/^}$/p' "$source/examples/quickstart.sh" >"$folder/find_head"
    (phantom=$1 templates=$folder/no-templates pons=true && . "$folder/find_head" && find_head) 2>&1
}
head_of yes >"$folder/asked"
head_of no >"$folder/absent"
check "quickstart.sh says that a phantom was asked for" grep -q "^--phantom: this run is on a synth" "$folder/asked"
check "quickstart.sh says that there is no head" grep -q "^no template of mricron-data: this" "$folder/absent"

# Missing packages that cannot be installed make the installation fail.
mkdir "$folder/shims"
printf '%s\n' '#!/bin/sh' 'exit 1' >"$folder/shims/dpkg-query"
cp "$folder/shims/dpkg-query" "$folder/shims/sudo"
printf '%s\n' '#!/bin/sh' 'echo 1000' >"$folder/shims/id"
chmod +x "$folder/shims"/*
check "run.sh --install-only fails without rights" \
    ends 1 "cannot be installed without root: gcc" \
    env PATH="$folder/shims:$PATH" "$source/tests/run.sh" --install-only
printf '%s\n' '#!/bin/sh' 'echo "install ok installed"' >"$folder/shims/dpkg-query"
check "run.sh --install-only has nothing to do" \
    env PATH="$folder/shims:$PATH" "$source/tests/run.sh" --install-only
rm -f "$folder/out"

# Contradicting switches are refused.
for part in cudnn nccl; do
    check "configure refuses $part without cuda" \
        sh -c "cd '$folder/shims' && ! '$source/configure' -q --with-cuda=no --with-$part=yes >said 2>&1 &&
            grep -q 'error: --with-$part=yes contradicts --with-cuda=no' said && [ \$(wc -l <said) = 1 ]"
done
expect 0 stdout "Usage: pons COMMAND" --help
expect 0 stdout "Usage: pons COMMAND" -h
expect 0 stdout "pons 0." --version
expect 2 stderr "no command is given"
expect 2 stderr "unknown command 'hlep'; did you mean 'help'?" hlep
expect 2 stderr "'--set' stands before the command, expected it behind" --set train.steps=1 train a.ini
expect 2 stderr "unknown command 'plugin lst'; did you mean 'plugin list'?" plugin lst
# No command name is close to these, so that no suggestion is made.
expect 2 stderr "unknown command 'plugin make'" plugin make loss mine
expect 2 stderr "hint: pons plugin --help" plugin make loss mine
expect 2 stderr "unknown kind 'los', expected one of loss, model" plugin new los mine
expect 2 stderr "there is no template of kind 'device'" plugin new device mine
expect 2 stderr "the name 'Mine' cannot be a plugin's" plugin new loss Mine
expect 2 stderr "'while' is a word of the source" plugin new loss while
expect 2 stderr "'build' is a word of the source" plugin new loss build
expect 2 stderr "there is a loss 'dice' in" plugin new loss dice
expect 2 stderr "'$folder' exists, expected a new folder" plugin new loss mine -o "$folder"
expect 2 stderr "'pons report' takes RUN..., found 0 arguments" report
expect 2 stderr "'pons plugin' needs a command" plugin
expect 0 stdout "plugin check" plugin --help
expect 0 stdout "FILE.so" plugin check --help
expect 2 stderr "'pons plugin check' takes FILE.so, found 0 arguments" plugin check
expect 2 stderr "'pons plugin list' takes no argument, found 1 argument" plugin list too
expect 2 stderr "unknown flag '--verbos' of 'pons plugin list'; did you mean '--verbose'?" \
    plugin list --verbos
expect 2 stderr "unknown flag '-z'" plugin list -z
expect 2 stderr "--set needs a value" plugin list --set
expect 2 stderr "--debug: only 'pons train' has a short run" predict run image -o out --debug
expect 2 stderr "--color 'blue': expected auto, always or never" plugin list --color=blue
expect 2 stderr '"--labels=one:1 two:2"' evaluate --labels=one:1 two:2 --run r
expect 2 stderr 'hint: a list needs quotes: --labels "one:1 two:2 three:3"' \
    evaluate --labels one:1 two:2 three:3 --run r
expect 2 stderr 'hint: a list needs quotes: --extent "8 8 8"' data phantom --extent 8 8 8 -o d
expect 2 stderr 'hint: a list needs quotes: --set "patch.extent=16 16"' train a.ini --set patch.extent=16 16
expect 2 stderr "hint: pons train --help" train --set train.steps=1 --fresh a.ini b.ini
expect 0 stdout 'in quotes: --labels "A B C"' evaluate --help
expect 0 stdout 'in quotes: --extent "1 2 3" or 1,2,3' data phantom --help
expect 2 stderr "--quiet takes no value, found '1'" plugin list --quiet=1
expect 0 stdout "[train] - length" help train
expect 0 stdout "an integer from 1 to 65536" help train
expect 0 stdout "plugin = (not given)" help preprocess
expect 0 stdout "plugin = (must be given)" help model
expect 0 stdout "extent = (must be given)" help patch
expect 0 stdout "extent = (not given)" help window
expect 0 stdout "epochs = (this or steps must be given)" help train
expect 0 stdout "steps = (this or epochs must be given)" help train
expect 0 stdout "model unet 1" help unet
expect 0 stdout "num_res_units" help unet
expect 0 stdout "in \"double quotes\"" help data
expect 6 stderr "hint: it takes a file: pons plugin check $PONS_PLUGIN_PATH/model/unet.so" \
    plugin check unet
expect 6 stderr "hint: it takes a file, as in pons plugin check ./unit.so" plugin check unit
expect 6 stderr "there is no file 'unit.so'" plugin check unit.so
grep -q hint "$folder/stderr" && fail "a hint to check unit.so.so"
cp stage/loss/dice.so "$folder/mine.so"
expect 6 stderr "holds loss 'dice', expected the file name 'dice.so'" plugin check "$folder/mine.so"
cp tests/plugins/.libs/effect.so "$folder/other.so"
PONS_TEST_EFFECT=$folder/trace
export PONS_TEST_EFFECT
expect 6 stderr "holds schedule 'effect', expected the file name 'effect.so'" plugin check "$folder/other.so"
[ ! -e "$folder/trace" ] || fail "plugin check runs a file that it refuses"
unset PONS_TEST_EFFECT
for model in dynunet plain_unet residual_unet attention_unet meshnet highresnet fast_ddpm mlp resnet xresnet; do
    expect 0 stdout "gradients agree with finite differences" plugin check stage/model/$model.so
done
expect 0 stdout "pons plugin check - the conformance test" help plugin check
expect 2 stderr "no help on 'trian'; did you mean 'train'?" help trian
expect 0 stdout "Passes over the training cases" help train.epochs
expect 0 stdout "Passes over the training cases" help epochs
[ "$(grep -c '^\[' "$folder/stdout")" -eq 1 ] || fail "a key of one section is shown for others"
expect 0 stdout "[window]" help extent
[ "$(grep -c '^\[' "$folder/stdout")" -eq 2 ] || fail "extent is a key of [patch] and [window]"
expect 0 stdout "Outputs of metrics besides metrics.jsonl" help log.sinks
expect 0 stdout "Part of the training cases that an epoch runs over" help data.smart_share
expect 2 stderr "no help on 'train.epoch'" help train.epoch
expect 2 stderr "no help on 'epochz'; did you mean 'epochs'?" help epochz
expect 0 stdout "Passes over the training cases" help train epochs
expect 0 stdout "Steps or epochs of the warm-up" help schedule warmup_steps
expect 0 stdout "transform spacing" help preprocess.spacing
expect 0 stdout "  normalize           host          zero mean and unit deviation" help transform
expect 0 stdout "  flip                host, device  " help transform
expect 0 stdout "  elastic             host          " help augment
checks=$((checks + 1))
! "$program" help augment | grep -q '^  normalize ' || fail "help augment lists steps of [preprocess]"
expect 2 stderr "no help on 'train.epohcs'; did you mean 'train.epochs'?" help train epohcs
expect 2 stderr "no help on 'train.lr'; did you mean 'optimizer.lr'?" help train.lr
expect 0 stdout "New spacing in millimetres" help preprocess.spacing.mm
expect 0 stdout "New spacing in millimetres" help preprocess.spacing mm
expect 2 stderr "hint: pons help preprocess.spacing" help preprocess.spacing.millimetres
expect 0 stdout "sink csv" help log csv
expect 2 stderr "no help on 'data.cahce'; did you mean 'data.cache'?" help data.cahce
expect 2 stderr "hint: pons help model PLUGIN" help model.channels
expect 0 stdout "pons init [DATASET] -o FILE.ini" help init
expect 0 stdout "WEIGHTS -o OUT.safetensors --config FILE.ini" help import
expect 2 stderr "hint: pons help" help unwritten
expect 0 stdout "splits_final.json" help data.validation
expect 0 stdout "class, as in hd95.liver" help train.best
expect 6 stderr "a file is for pons plugin check" plugin show stage/loss/dice.so
expect 0 stdout "schedule" plugin list
expect 0 stdout "gradient descent with momentum" plugin list
expect 0 stdout "name     unet" plugin show model unet
expect 0 stdout "pons predict --fold" help ensemble
expect 0 stdout "pons train --resume" help resume
expect 2 stderr "no help on 'quaternions'" help quaternions
expect 0 stdout "sha256" plugin show schedule/poly
expect 6 stderr "no plugin is called 'nothing'" plugin show nothing
expect 0 stdout "schedule poly" help schedule poly
expect 6 stderr "no schedule plugin is called 'pol'; did you mean 'poly'?" help schedule pol
expect 0 stdout "factor is finite" plugin check stage/schedule/poly.so
expect 3 stderr "unknown key 'nothing' in [schedule]" \
    plugin check stage/schedule/poly.so --set schedule.nothing=1
expect 0 stdout "gradients agree with finite differences" plugin check stage/model/unet.so \
    --set "model.num_res_units=1" --set "model.dropout=0.2"
expect 0 stdout "gradient agrees with finite differences" plugin check stage/loss/dice_ce.so
expect 0 stdout "steps can be repeated and descend" plugin check stage/optimizer/novograd.so
comm=tests/plugins/.libs/comm_breaks_rule.so
expect 0 stdout "collectives of one process change nothing" plugin check $comm
expect 3 stderr "'--set comm.fault=sum': comm 'comm_breaks_rule' has no options" \
    plugin check $comm --set comm.fault=sum
expect 6 stderr "it has options, expected none for the kind 'comm', whose options no section fills" \
    plugin check tests/plugins/.libs/comm_has_options.so
faulty() {
    export COMM_FAULT="$2"
    expect 6 stderr "$1" plugin check $comm
    unset COMM_FAULT
}
faulty "all_reduce of one process: element 4999 is 9998.5, expected 4999.25" sum
faulty "all_gather of one process: element 2500 is nan, expected 4500.25" gather
faulty "all_reduce has not ended after 5 s" never
faulty "all_reduce failed and 'poll' has not said why" silent
faulty "a sum that was started after 'abort' has not failed" abort
faulty "the comm plugin: 'open' returned 7 and has not said why" open
faulty "the comm plugin: 'barrier' returned 7 and has not said why" start
asan_options=${ASAN_OPTIONS-}
for comm in stage/comm/*.so; do
    [ -f "$comm" ] || continue
    if [ "$comm" = stage/comm/nccl.so ] && [ ! -e /dev/nvidiactl ]; then
        expect 5 stderr "no NVIDIA driver" plugin check "$comm"
    else
        [ "$comm" != stage/comm/mpi.so ] || leaks=detect_leaks=0: # Open MPI keeps what it took
        ASAN_OPTIONS=${leaks-}$asan_options
        export ASAN_OPTIONS
        expect 0 stdout "an abort ends them" plugin check "$comm"
        leaks=
    fi
done
ASAN_OPTIONS=$asan_options

# Every built plugin keeps the rules of its kind, and each broken rule is named.
for file in stage/transform/*.so stage/sink/*.so stage/schedule/*.so stage/device/cpu.so \
        stage/model/segresnet.so; do
    case $file in
    */clip.so) set -- --set transform.upper=30 ;;
    */color_jitter.so) set -- --set transform.brightness=0.5 --set transform.contrast=0.5 ;;
    *) set -- ;;
    esac
    [ -f "$file" ] && expect 0 stdout "file, note, descriptor and options are in order" plugin check "$file" "$@"
done
if [ -f stage/device/cuda.so ] && [ ! -e /dev/nvidiactl ]; then
    expect 5 stderr "no driver" plugin check stage/device/cuda.so
fi
broken() {
    expect 6 stderr "$1" plugin check "tests/plugins/.libs/$2.so" --set "transform.fault=$3"
}
expect 0 stdout "its grids, positions and label ids stay true" plugin check tests/plugins/.libs/transform_breaks_rule.so
expect 0 stdout "is changed alike twice" plugin check tests/plugins/.libs/random_breaks_rule.so
broken "holds what was at another place" transform_breaks_rule affine
broken "the label has class " transform_breaks_rule label
broken "the mask has 53 voxels along i, the image 41" transform_breaks_rule mask
broken "changed otherwise the second time" transform_breaks_rule changing
broken "changed otherwise by several threads" transform_breaks_rule hasty
broken "the label has class 9" transform_breaks_rule id
broken "the box inside the image, 42 from 0 on along i, is not within its 41 voxels" transform_breaks_rule inside
broken "voxel 0 of the image is not finite" transform_breaks_rule far
broken "which only a transform with 'geometric' may" transform_moves_unsaid none
broken "'plan' writes behind the 4 bytes of its record" random_breaks_rule behind
broken "sample 0 is planned otherwise with the same draws" random_breaks_rule planned
broken "sample 0 is moved, which only a transform with 'geometric' may" random_breaks_rule moved
broken "the map has determinant 0" random_breaks_rule flat
broken "a zeroed record changes the patch" random_breaks_rule zero
broken "gives another patch the second time" random_breaks_rule changing
broken "changes the label, which only" random_breaks_rule label
broken "changes channel 0, which 'channels' leaves out" random_breaks_rule channel
broken "voxel 0 of the patch is not finite" random_breaks_rule far
broken "sample 0 is moved by other than quarters" random_breaks_rule between
broken "'displace' moves voxels, but 'plan' has not set 'displaced'" random_breaks_rule unsaid
broken "a displacement of voxel 1 is not finite" random_breaks_rule astray
broken "64 samples were neither moved nor changed" random_breaks_rule idle
expect 6 stderr "factor(991, 1000) is -0.001" plugin check tests/plugins/.libs/schedule_negative.so
expect 6 stderr "nothing is in the folder after 20 records" plugin check tests/plugins/.libs/sink_discards.so
expect 6 stderr "flip of [2, 5, 4, 6, 3] in fp32: element 0 is " plugin check tests/plugins/.libs/device_wrong_flip.so
wrong=tests/plugins/.libs/loss_wrong_gradient.so
expect 6 stderr "gradient of 'logits' at element 0 is" plugin check $wrong
expect 6 stderr "gradient of 'logits' along random signs is" plugin check $wrong --set loss.last=yes
expect 0 stdout "gradient agrees with finite differences" plugin check $wrong --set loss.honest=yes
expect 0 stdout "gradient agrees with finite differences" plugin check $wrong --set loss.honest=yes \
    --set loss.steep=yes
expect 3 stderr "[loss] honest = 'maybe': expected yes or no" \
    plugin check $wrong --set loss.honest=maybe
expect 6 stderr "No such file" plugin check "$folder/none.so"

# A plugin that ends the process fails the check, whatever its exit code is.
ends() {
    expect 6 stderr "tests/plugins/.libs/$1.so: $3" plugin check "tests/plugins/.libs/$1.so" \
        --set "${1%%_*}.fault=$2"
}
for plugin in loss_silent_failure optimizer_silent_failure model_silent_failure; do
    ends $plugin crash "it ends the process by SIGABRT"
    ends $plugin leave "it ends the process, with status 0"
done
ends optimizer_silent_failure leave-badly "the process ends with status 9 behind it"

expect 2 stderr "'--modes' measures steps alone: no '--data' with it" bench none.ini --modes --data
for flag in kernels forward no-data reference baseline=none.json; do
    expect 2 stderr "'--data' measures reading, preprocessing and patches alone: no '--${flag%%=*}'" \
        bench none.ini --data --$flag
done
expect 2 stderr "'pons data preprocess' needs --output or --cache" data preprocess none.ini
expect 2 stderr "unknown metric 'dise'" evaluate --metrics "hd95 dise" --prediction a --label b
expect 2 stderr "--spacing has 2 numbers, expected 3" evaluate --spacing 1,2 --prediction a --label b
expect 2 stderr "hint: --prediction a evaluates one" evaluate a --label b
expect 2 stderr "evaluate of two predictions needs --label" evaluate a b
expect 2 stderr "and no other flag" evaluate a b --label c --csv d
for seed in 1 2; do
    "$program" data phantom -o "$folder/seed$seed" --cases 3 --extent 24 --seed $seed 2>/dev/null
done
expect 0 stdout "1       dice                   3      1.0000 " evaluate --metrics dice \
    --label "$folder/seed1/labelsTr" "$folder/seed1/labelsTr" "$folder/seed2/labelsTr"
"$program" data phantom -o "$folder/three" --cases 1 --extent 24 --classes 3 2>/dev/null
whole=$folder/three/labelsTr/phantom_000.nii.gz
{ gunzip -c "$whole" | head -c 352; gunzip -c "$whole" | tail -c +353 | tr '\002' '\000'; } | gzip >"$folder/missed.nii.gz"
expect 0 stdout "B of 1 of 2 classes" evaluate --metrics hd95 --label "$whole" "$whole" "$folder/missed.nii.gz"
expect 0 stdout "case         class        iou      dice      hd95" evaluate --metrics "iou dice iou hd95" \
    --prediction "$folder/seed1/labelsTr" --label "$folder/seed2/labelsTr"
expect 0 stdout "" evaluate --metrics "hd dice" --csv "$folder/order.csv" \
    --prediction "$folder/seed1/labelsTr" --label "$folder/seed2/labelsTr"
[ "$(head -n 1 "$folder/order.csv")" = "case,class,hd,dice,prediction_voxels,label_voxels" ] ||
    fail "columns of $(head -n 1 "$folder/order.csv")"
expect 0 stdout '"better":0,"worse":3}' evaluate --metrics dice --json \
    --label "$folder/seed1/labelsTr" "$folder/seed1/labelsTr" "$folder/seed2/labelsTr"
expect 0 stdout "mean         all       1.0000" evaluate --metrics dice --labels "none:7 all:*" \
    --prediction "$folder/seed1/labelsTr" --label "$folder/seed1/labelsTr"
expect 0 stdout "95 % from    1" evaluate --label "$folder/seed1/labelsTr" \
    --prediction "$folder/seed2/labelsTr"
# images CODE STREAM TEXT METRICS ARGUMENT...: evaluates the phantoms as images.
images() {
    code=$1 stream=$2 text=$3 metrics=$4
    shift 4
    expect "$code" "$stream" "$text" evaluate --label "$folder/seed1/imagesTr" --metrics "$metrics" "$@"
}
images 0 stdout "mean         image     1.0000    0.0000" "ssim mae" --prediction "$folder/seed1/imagesTr"
images 0 stdout "image   mae                    3      0.0000 " "mae ssim" \
    "$folder/seed1/imagesTr" "$folder/seed2/imagesTr"
images 2 stderr "has metrics of images, such as psnr" "psnr dice" --prediction "$folder/seed2/imagesTr"
images 2 stderr "--labels is for files of labels" psnr --labels a:1 --prediction "$folder/seed2/imagesTr"
images 2 stderr "--range is for psnr and ssim" dice --range 2 --prediction "$folder/seed2/imagesTr"
mkdir "$folder/even"
{ gzip -dc "$folder/seed1/labelsTr/phantom_000.nii.gz" | head -c 352; head -c 13824 /dev/zero; } \
    >"$folder/even/phantom_000.nii"
images 4 stderr "expected a range of values" psnr --prediction "$folder/even/phantom_000.nii" \
    --label "$folder/even/phantom_000.nii"
images 4 stderr "has no label of that name" psnr --prediction "$folder/seed2/imagesTr" --label "$folder/even"
expect 2 stderr "--all is for the table, --json has every class" evaluate --all --json \
    --prediction "$folder/seed1/labelsTr" --label "$folder/seed1/labelsTr"
"$program" data phantom -o "$folder/atlas1" --cases 2 --extent 32 --classes 24 2>/dev/null
"$program" data phantom -o "$folder/atlas2" --cases 2 --extent 32 --classes 24 --seed 5 2>/dev/null
# atlas ARGUMENT...: evaluates the two phantoms of many classes
atlas() { "$program" evaluate --prediction "$folder/atlas2/labelsTr" --label "$folder/atlas1/labelsTr" "$@"; }
atlas >"$folder/brief"
atlas --all >"$folder/every"
check "a table of many classes has the mean of each case" [ "$(grep -c '^phantom' "$folder/brief")" -eq 2 ]
check "and ten classes" [ "$(grep -c '^mean  *[0-9]' "$folder/brief")" -eq 10 ]
check "--all has them all" [ "$(grep -c '^mean  *[0-9]' "$folder/every")" -gt 12 ]
check "the rows of classes are among all" sh -c "! grep '^mean  *[0-9]' '$folder/brief' | grep -Fvxf '$folder/every'"
check "worst first" sh -c "grep '^mean  *[0-9]' '$folder/brief' | awk '{ print \$3 }' | sort -nc"
expect 2 stderr "--set log.every=1: 'pons data crop' reads no INI file" \
    data crop none.nii -o cut.nii --set log.every=1
expect 0 stdout "$(printf 'optimizer\tadam\tbeta1\treal\t0.9')" help --list
expect 2 stderr "--list takes no topic, found 'train'" help train --list

# The devices of the machine, and the reason where one is unavailable.
expect 0 stdout " GiB, " devices
expect 0 stdout " thread" devices
expect 0 stdout " GiB, " doctor
expect 0 stdout "pons 0." doctor
expect 0 stdout "open at a time" doctor
expect 0 stdout "onednn     fast convolutions on the CPU: " doctor
if [ -f stage/comm/gloo.so ]; then
    expect 0 stdout "gloo       ready" doctor
fi
expect 0 stdout "shm        ready" doctor
if [ -f stage/comm/mpi.so ]; then
    expect 0 stdout "mpi        ready, Open MPI v" doctor
fi
mkdir -p "$folder/few/device"
head -c 1000 stage/device/cpu.so >"$folder/few/device/cut.so"
plugins=${PONS_PLUGIN_PATH-}
PONS_PLUGIN_PATH=$folder/few:$plugins
export PONS_PLUGIN_PATH
expect 0 stdout "(a truncated file?)" devices
expect 0 stdout ", 1 of them broken" doctor
PONS_PLUGIN_PATH=$plugins
expect 2 stderr "'pons devices' takes no argument" devices 0
expect 2 stderr "'pons doctor' takes no argument" doctor now

# An optional plugin is available, or the build reports it as left out.
"$program" data phantom -o "$folder/few/data" --cases 2 --extent 8 2>"$folder/stderr" || fail "$(cat "$folder/stderr")"
printf '%s\n' "[experiment]" "name = e" "[data]" "source = $folder/few/data" "[patch]" "extent = 8" \
    "[model]" "plugin = unet" "channels = 2" "strides =" "[loss]" "plugin = dice" "[optimizer]" "plugin = adam" \
    "[train]" "steps = 1" >"$folder/few.ini"
for part in comm/gloo comm/mpi comm/nccl device/cuda; do
    optional=${part#*/}
    "$program" doctor >"$folder/parts" 2>&1
    if [ -f "${PONS_PLUGIN_PATH%%:*}/$part.so" ]; then
        check "$optional is in this build" grep -q "^$optional  *[A-Za-z].*: yes\$" "$folder/parts"
    elif [ $part = device/cuda ]; then
        unset CUDA_VISIBLE_DEVICES # by which the suite hides GPUs
        expect 3 stderr "'cuda' is not in this build" train "$folder/few.ini" --set distribute.devices=cuda
    else
        expect 3 stderr "'$optional' is not in this build" \
            launch -n 2 -- train "$folder/few.ini" --set distribute.backend=$optional
    fi
done
if ! grep -q '^curl  *[A-Za-z].*: yes$' "$folder/parts"; then
    expect 0 stdout "Not in this build: mlflow" help log.sinks
    expect 3 stderr "'mlflow' is not in this build" train "$folder/few.ini" --set log.sinks=mlflow
fi
if grep -q '^lmdb  *[A-Za-z].*: yes$' "$folder/parts"; then
    expect 0 stdout "one of none, memory, disk, lmdb, smart, device" help data.cache
    check "lmdb is not said to be left out" expr "$(grep -c 'Not in this build' "$folder/stdout")" = 0
    "$program" data preprocess "$folder/few.ini" --cache --set data.cache=lmdb --set data.validation=none \
        --set data.cache_dir="$folder/few" >"$folder/parts" 2>&1
    check "lmdb is filled" grep -q "cache: 2 of 2 cases in" "$folder/parts"
    check "lmdb has one file" test -s "$folder/few/cases.mdb"
else
    expect 0 stdout "Not in this build: lmdb" help data.cache
    expect 3 stderr "'lmdb' is not in this build" train "$folder/few.ini" --set data.cache=lmdb
fi
if [ -f stage/comm/nccl.so ]; then
    expect 3 stderr "[distribute] backend = nccl joins GPUs, but devices = 'cpu'" \
        launch -n 2 -- train "$folder/few.ini" --set distribute.backend=nccl
fi

head -c 1000 stage/schedule/poly.so >"$folder/cut.so"
expect 6 stderr "a truncated file" plugin check "$folder/cut.so"

# No variable of a kernel library changes a bit: the vector widths are those of pons' own
# convolutions.
cat >"$folder/plain.ini" <<INI
[data]
source = phantom
validation = none
[patch]
extent = 32 32 32
[model]
plugin = unet
channels = 16 32
strides = 2
[loss]
plugin = dice
[optimizer]
plugin = sgd
lr = 0.1
[train]
steps = 2
INI
silent data phantom -o "$folder/phantom" --cases 1 --extent 32,32,32 -q
silent train "$folder/plain.ini" -q --set experiment.name=free
ONEDNN_MAX_CPU_ISA=SSE41 DNNL_MAX_CPU_ISA=SSE41 ONEDNN_VERBOSE=2 DNNL_VERBOSE=2
export ONEDNN_MAX_CPU_ISA DNNL_MAX_CPU_ISA ONEDNN_VERBOSE DNNL_VERBOSE
silent train "$folder/plain.ini" -q --set experiment.name=bound
unset ONEDNN_MAX_CPU_ISA DNNL_MAX_CPU_ISA ONEDNN_VERBOSE DNNL_VERBOSE
checks=$((checks + 1))
last=checkpoints/step-00000002/model.safetensors
cmp "$folder/runs/free/$last" "$folder/runs/bound/$last" || fail "a variable of oneDNN changed weights"

# Results that would share a name are refused before the first is computed.
mkdir -p "$folder/pair" "$folder/other"
for name in pair/a pair/a_logits other/a; do
    cp "$folder"/phantom/imagesTr/*.nii.gz "$folder/$name.nii.gz"
done
both="would overwrite each other, both are '$folder/out/a"
expect 2 stderr "${both}_logits.nii.gz'" \
    predict "$folder/runs/free" "$folder/pair" -o "$folder/out" --logits
expect 2 stderr "$both.nii.gz'" \
    predict "$folder/runs/free" "$folder/pair" "$folder/other" -o "$folder/out"
silent predict "$folder/runs/free" "$folder/pair" -o "$folder/out" -q
mkdir -p "$folder/sets/one" "$folder/sets/two"
cp "$folder/other/a.nii.gz" "$folder/sets/one/a.nii.gz"
cp "$folder/other/a.nii.gz" "$folder/sets/two/a.nii.gz"
expect 2 stderr "hint: the quoted pattern '$folder/sets/*/a.nii.gz' names results by folder" \
    predict "$folder/runs/free" "$folder/sets/one/a.nii.gz" "$folder/sets/two/a.nii.gz" -o "$folder/named"
silent predict "$folder/runs/free" "$folder/sets/*/a.nii.gz" -o "$folder/named" -q
checks=$((checks + 1))
[ -f "$folder/named/two.nii.gz" ] || fail "a pattern does not name results by folder: $(ls "$folder/named")"

# A failed write to stdout is a failure of the command.
checks=$((checks + 1))
if [ -w /dev/full ]; then
    "$program" --help >/dev/full 2>"$folder/stderr" && fail "a full disk was not noticed"
    grep -q "cannot write to the standard output" "$folder/stderr" || fail "a full disk was not named"
fi

# Plugins alone load kernel and collective libraries. libtool names the program behind its script;
# UBSan's runtime loads C++ of its own.
checks=$((checks + 1))
./libtool --mode=execute env LD_TRACE_LOADED_OBJECTS=1 "$program" | awk '{ print $1 }' >"$folder/mapped"
foreign='^lib(gomp|omp|dnnl|mpi|cuda)'
grep -q '^libubsan' "$folder/mapped" || foreign="$foreign|^libstdc\+\+"
grep -q '^libpons' "$folder/mapped" || fail "what pons maps is not seen"
grep -E "$foreign" "$folder/mapped" && fail "pons maps a library that only plugins may bring"

finish
