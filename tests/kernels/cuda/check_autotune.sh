#!/bin/sh
# [device] autotune in all phases of a run. The first replica chooses the fastest engine once. The other
# replicas, the continued run and its predictions take the same engine. A damaged file is refused, and the
# file of another library is ignored. Candidates of a device are tested in check_dnn. Only made-up GPUs have a
# known fastest engine.
. "${srcdir:-.}/tests/support/checks.sh"

# slow TIMES COMMAND...: on made-up GPUs whose engines take those times; on real GPUs times are as they are.
slow() (
    [ -z "$cards" ] || export FAKE_CUDNN="$1"
    shift
    on_cards "$@"
)

says() { grep -qF -e "$2" "runs/$1/log.txt"; }
# chosen RUN CHOICE: every entry of the run is that choice.
chosen() {
    sed -n 's/.*:{"choice":"\([^"]*\) within [0-9]*".*/\1/p' "runs/$1/autotune.json" | sort -u >"$folder/found"
    echo "$2" | diff - "$folder/found"
}

cd "$folder" || exit 1
"$program" data phantom -o ph --cases 3 --extent 8,8,8 2>log || { cat log; exit 1; }
ini() {
    printf '%s\n' "[experiment]" "name = $1" "[data]" "source = ph" "validation = last:1" \
        "[preprocess]" "steps = normalize" "[patch]" "extent = 8" "[model]" "plugin = unet" \
        "channels = 8 16" "strides = 2" "[loss]" "plugin = dice_ce" "[optimizer]" "plugin = sgd" \
        "lr = 0.01" "[train]" "steps = 4" "precision = fp32" "micro_batches = 2" "[window]" \
        "extent = 8" "batch = 1" "[device]" "autotune = yes" "cache_dir = $folder/kernels" \
        "[distribute]"
    shift
    printf '%s\n' "$@"
}
ini one "devices = cuda:0" >one.ini
last=checkpoints/step-00000004/model.safetensors
plain="takes-35=20000 takes-58=20000 knob-58=20000 takes-30=10"
wide="takes-35=20000 takes-58=20000 knob-58=10 takes-30=20000"

# ---- runs without autotuning ---------------------------------------------------------------------

check "a cpu has nothing to choose from" ends 0 "autotune = yes changes nothing: the device has no" \
    "$program" train one.ini --set distribute.devices=cpu --set experiment.name=cpu
check "equal bits leave no choice to time" ends 0 "autotune = yes changes nothing: with deterministic" \
    slow "$plain" "$program" train one.ini --set experiment.deterministic=yes \
    --set experiment.name=equal
check "nothing is kept then" test ! -e runs/cpu/autotune.json -a ! -e runs/equal/autotune.json
given cudnn "kernels to choose from" || { finish; exit; }

# ---- one GPU -------------------------------------------------------------------------------------

check "a run that chooses" slow "$plain" "$program" train one.ini
only faults check "takes the fastest" chosen one "engine 30"
check "says so" says one "kinds of kernels timed in"
only faults check "another card, or another day" slow "$wide" "$program" train one.ini --set experiment.name=wide
only faults check "takes another" chosen wide "engine 58, knobs 2=2"
check "no time, no choice" slow "$plain" "$program" train one.ini --set experiment.name=never \
    --set device.autotune=no
check "and no file" test ! -e runs/never/autotune.json
# With 'other', engines that the library's order or other times would choose do not run.
other="takes-30=90000 refuses-35 refuses-58"
measures() { slow "$1" "$program" bench one.ini --steps 2 --no-data --set experiment.name="$2"; }
check "a measurement chooses too" ends 0 " 0 taken from the run's" measures "$plain" new
check "and writes nothing" test ! -e runs/new
check "one of a run that has chosen" ends 0 "autotune: 0 kinds of kernels timed" measures "$wide" one
only faults check "takes the run's" measures "$other" one
explains() { slow "$plain" "$program" explain one.ini >out 2>&1 && ! grep -q timed out; }
check "an explanation does not" explains

# ---- a continued run -----------------------------------------------------------------------------

check "half of a run" slow "$plain" "$program" train one.ini --set experiment.name=half \
    --set train.steps=2
cp runs/half/autotune.json before.json
cp -r runs/half runs/cut
cp -r runs/half runs/damaged
cp -r runs/half runs/other
check "goes on where others are faster" slow "$wide" "$program" train one.ini \
    --set experiment.name=half
check "with what it has" cmp before.json runs/half/autotune.json
check "and says so" says half "autotune: 0 kinds of kernels timed"
only faults check "to the bits of a whole one" cmp runs/one/$last runs/half/$last
check "another run goes on from it" slow "$wide" "$program" train one.ini \
    --set experiment.name=heir --set train.steps=5 --resume runs/half
check "with the same" cmp before.json runs/heir/autotune.json
only faults check "less room than it had" slow "$wide" "$program" train one.ini --set experiment.name=wide \
    --set train.steps=5 --set device.workspace_limit=2000
only faults check "is another choice" sh -c '! grep -q "knobs 2=2" runs/wide/autotune.json'

only faults check "which is kept as of that room" grep -q '"choice":"engine [0-9]* within 2000"' runs/wide/autotune.json
only faults check "more room" slow "$wide" "$program" train one.ini --set experiment.name=wide \
    --set train.steps=6 --set device.workspace_limit=1073741824
only faults check "is a choice again" chosen wide "engine 58, knobs 2=2"

sed 's/"engine [0-9]*/"engine 999/' before.json >runs/damaged/autotune.json
check "a choice that was changed" ends 4 "runs/damaged/autotune.json' is damaged: its text has sha256" \
    slow "$plain" "$program" train one.ini --set experiment.name=damaged
head -c 300 before.json >runs/cut/autotune.json
check "a file that was cut" ends 4 "runs/cut/autotune.json' is incomplete" slow "$plain" "$program" \
    train one.ini --set experiment.name=cut
only faults check "with another library" ends 0 "the choices are not used" slow "version=92000 $wide" "$program" train \
    one.ini --set experiment.name=other
only faults check "it is chosen again" chosen other "engine 58, knobs 2=2"
rm runs/cut/autotune.json
check "a run that has no choices yet" slow "$plain" "$program" train one.ini --set experiment.name=cut
only faults check "makes them" chosen cut "engine 30"
check "a finished run" slow "$wide" "$program" train one.ini
only faults check "is left as it is" chosen one "engine 30"
mkdir -p runs/strange
echo mine >runs/strange/autotune.json
check "somebody else's file of the name" slow "$plain" "$program" train one.ini \
    --set experiment.name=strange
check "is kept" grep -qx mine runs/strange.1/autotune.json

# ---- predictions ---------------------------------------------------------------------------------

# predicts TIMES RUN ARGUMENT...
predicts() {
    times=$1
    run=$2
    shift 2
    slow "$times" "$program" predict "$run" ph/imagesTr/phantom_001.nii.gz -o p.nii.gz "$@"
}
none="autotune: 0 kinds of kernels timed"
some="autotune: 1 kind of kernels timed"
cp runs/one/autotune.json before.json
check "a prediction times nothing that the run has" ends 0 "$none" predicts "$wide" runs/one
only faults check "and takes that" predicts "$other" runs/one
only faults check "which the library would not" ends 5 "does not run" predicts "$other" runs/one \
    --set device.autotune=no
check "so does one by a checkpoint" ends 0 "$none" predicts "$wide" runs/one/checkpoints/step-00000004
check "an evaluation" ends 0 "$none" slow "$wide" "$program" evaluate --run runs/one
check "nothing was added" cmp before.json runs/one/autotune.json
# Entries are added before the first window, where the library's first engine does not run either.
only faults check "what could not be timed" ends 5 "1 of them could not be timed" predicts \
    "refuses-30 refuses-35 refuses-58" runs/one --set window.batch=4
only faults check "is no choice of the run" cmp before.json runs/one/autotune.json
check "another batch of windows" ends 0 "$some" predicts "$wide" runs/one --set window.batch=2
# added RUN: one entry is new, and the existing ones are unchanged.
added() {
    grep '"choice"' before.json | sed 's/,$//' >kept
    [ "$(grep -c '"choice"' "runs/$1/autotune.json")" -gt "$(wc -l <kept)" ] &&
        sed 's/,$//' "runs/$1/autotune.json" | grep -vFx -f kept >new && [ "$(grep -c '"choice"' new)" = 1 ]
}
check "is added to the run's" added one
check "and not timed again" ends 0 "$none" predicts "$plain" runs/one --set window.batch=2
check "a run that has chosen nothing" ends 0 "$some" predicts "$plain" runs/never \
    --set device.autotune=yes
only faults check "keeps what its prediction chooses" chosen never "engine 30"
check "networks of two runs" ends 0 "$none" predicts "$wide" runs/one,runs/never \
    --set device.autotune=yes
check "a processor says nothing of it" sh -c '! "$@" 2>&1 | grep autotune' sh "$program" predict runs/one \
    ph/imagesTr/phantom_001.nii.gz -o p.nii.gz --set distribute.devices=cpu

# meets RUN COMMAND...: a prediction wants to add an entry to the run, whose folder is locked. COMMAND runs
# before the lock is released. The prediction's messages are in 'met'. It waits for the lock for a second.
meets() {
    run=$1
    shift
    rm -f pid
    exec 9<"runs/$run"
    flock 9
    (
        exec 9<&-
        slow "$plain" sh -c 'echo $$ >pid; exec "$@"' sh "$program" predict "runs/$run" \
            ph/imagesTr/phantom_001.nii.gz -o p.nii.gz --set window.batch=3 >met 2>&1
    ) &
    waiting=$!
    until ls -l "/proc/$(cat pid 2>no)/fd" 2>no | grep -q "/runs/$run\$" || ! kill -0 $waiting 2>no; do
        sleep 0.01
    done
    "$@"
    exec 9<&-
    wait $waiting
}
# meets, repeated when a busy machine lets the second pass.
meets_in_time() {
    for round in 1 2 3 4 5; do
        meets "$@" || return
        grep -q "another process is training" met || return 0
    done
    return 1
}
cp -r runs/one runs/more
cp -r runs/one runs/met
check "a prediction adds a choice" ends 0 "$some" predicts "$plain" runs/more --set window.batch=5
cp runs/more/autotune.json before.json
check "to what another has read before" meets_in_time met cp before.json runs/met/autotune.json
check "which keeps it, and adds its own" added met
cp runs/met/autotune.json before.json
cp runs/one/autotune.json runs/met/autotune.json
check "one that another has timed by now" meets_in_time met cp before.json runs/met/autotune.json
check "stands as it was added" cmp before.json runs/met/autotune.json
cp -r runs/one runs/retired
cp runs/one/autotune.json before.json
retires() { mv runs/retired runs/retired.1 && cp -r runs/one runs/retired; }
check "a run that another one takes the place of" meets retired retires
check "is not there any more" grep -q -e "not kept: 'runs/retired' is another run's by now" \
    -e "not kept: another process is training in 'runs/retired'" met
check "and the other is left alone" cmp before.json runs/retired/autotune.json

cp runs/one/autotune.json before.json
alone="autotune: the new choices are not kept:"
check "weights without a run" ends 0 "$alone weights without a run" predicts "$plain" \
    runs/one/$last --config runs/one/resolved.ini
check "a run that is being trained" ends 0 "$alone another process is training in 'runs/one'" \
    slow "$plain" flock runs/one "$program" predict runs/one ph/imagesTr/phantom_001.nii.gz -o p.nii.gz \
    --set window.batch=3
only faults check "another library's" ends 0 "$alone 'runs/one' has those of another GPU or library" \
    predicts "version=92000 $wide" runs/one
check "leave the run's as they are" cmp before.json runs/one/autotune.json
check "a prediction of a run whose choices were changed" ends 4 \
    "runs/damaged/autotune.json' is damaged: its text has sha256" predicts "$plain" runs/damaged

# ---- several replicas ----------------------------------------------------------------------------

if ! given nccl "several replicas" || ! given faults "several replicas"; then
    finish
    exit
fi
# rank RANK TIMES ARGUMENT...
rank() {
    number=$1
    times=$2
    shift 2
    RANK=$number LOCAL_RANK=$number WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 \
        MASTER_PORT=$port slow "$times" "$program" $what --set distribute.timeout_s=60 "$@"
}
# both TIMES ARGUMENT...: for rank 0 engine 30 is the fastest; rank 1 has those times and arguments.
what="train ddp.ini"
port=$((20000 + $$ % 10000))
both() {
    port=$((port + 1))
    rank 0 "$plain" >"$folder/first" 2>&1 &
    running=$!
    rank 1 "$@" >"$folder/second" 2>&1
    second=$?
    wait $running
    first=$?
    [ $first = 0 ] && [ $second = 0 ] && return 0
    cat "$folder/first" "$folder/second"
    return 1
}
ini ddp "devices = cuda:0,1" >ddp.ini
# Rank 1 can only take the choice of rank 0: the engine of its own choice does not run there.
FAKE_CUDA_NAME="made-up card"
export FAKE_CUDA_NAME
check "two processes" both "$other"
check "take what the first has chosen" chosen ddp "engine 30"
what="predict runs/ddp ph/imagesTr -o ddp --set window.batch=2"
cp runs/ddp/autotune.json before.json
check "two that predict" both "$other"
check "one of them adds to the run's" added ddp
what="train ddp.ini"
differ() {
    both "$other" --set device.autotune=no
    grep -qF "differ in [device] autotune" "$folder/first"
}
check "both or none" differ
check "two cards of one process" slow "$plain" "$program" train ddp.ini --set experiment.name=dp
check "take what the first has chosen" chosen dp "engine 30"
unset FAKE_CUDA_NAME
check "two kinds of cards of one process" ends 0 \
    "kernels are timed with 'made-up card 0', but a replica has 'made-up card 1' and does not use the choices" \
    slow "$plain" "$program" train ddp.ini --set experiment.name=mixed
mv runs/ddp runs/alike
check "two kinds of cards" both "$plain"
check "the second takes the library's order" grep -qF \
    "timed with 'made-up card 0', not with 'made-up card 1': the choices are not used" "$folder/second"
finish
