#!/bin/sh
# cache = smart: whole runs have the same bits with any number of threads, devices and ranks, and when they are
# interrupted or killed. Windows that differ are refused. A case that is damaged meanwhile ends the run with 4. Memory
# is that of the window.
. "${srcdir:-.}/tests/support/checks.sh"
cd "$folder" || exit 1
phantom ph 13 24,20,18
cat >a.ini <<INI
[experiment]
deterministic = yes
[data]
source = ph
validation = last:2
cache = smart
smart_share = 0.5
smart_replace = 0.3
[preprocess]
steps = normalize
[augment]
steps = flip
[augment.flip]
axes = 0 1 2
[patch]
extent = 16
$(small_unet)
[train]
epochs = 10
batch = 1
precision = fp32
micro_batches = 2
validate_every = 3
keep = 40
[distribute]
devices = cpu
threads = 1
INI

train() { # NAME MORE...
    run=$1
    shift
    "$program" train a.ini --set experiment.name="$run" "$@"
}
# 10 epochs of 6 of 11 cases are 30 steps.
last=checkpoints/step-00000030/model.safetensors
same() { cmp "runs/$1/$last" "runs/one/$last"; }
differ() { ! cmp "runs/$1/$2" "runs/one/$last"; }

check "one process trains" train one
line="6 of 11 training cases are in the cache, 2 of them are replaced each epoch"
check "the log tells the window" grep -qF "$line" runs/one/log.txt
check "explain tells it too" ends 0 "epoch       $line" "$program" explain a.ini
check "an epoch has the cases of the window" ends 0 "steps       30 of 2 micro-batches" "$program" explain a.ini

while read -r way options; do
    check "$way" eval "train $way $options"
    check "has the same bits" same "$way"
done <<'END2'
here --set data.loader_threads=0
threads --set data.loader_threads=3
unkept --set data.cache_limit=1
partly --set data.cache_limit=60KiB
two --set distribute.devices=cpu:0,cpu:1
ranks --set distribute.mode=ddp --set distribute.devices=cpu:0,cpu:1
few --set distribute.mode=ddp --set distribute.devices=cpu:0,cpu:1 --set data.cache_limit=60KiB
END2
# A part of the list for each micro-batch; two nodes have a rank each.
parts="in parts of 3 for each micro-batch of a step"
check "parts are told" ends 0 "$parts" "$program" explain a.ini --set data.cache_share=rank
check "parts" train parted --set data.cache_share=rank
check "have other bits" differ parted $last
nodes() {
    port=$((20000 + ($$ * 7 + 1) % 10000))
    for rank in 0 1; do
        RANK=$rank WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
            "$program" train a.ini --set data.cache_share=rank --set experiment.name=nodes "$@" &
    done
    wait $! && wait
}
check "parts on two devices" train parted-two --set data.cache_share=rank --set distribute.devices=cpu:0,cpu:1
check "parts of two ranks" train parted-ranks --set data.cache_share=rank --set distribute.mode=ddp \
    --set distribute.devices=cpu:0,cpu:1
for run in parted-two parted-ranks; do
    check "have the same bits" cmp runs/$run/$last runs/parted/$last
done
if nodes 2>&1 | grep -q 'nothing can join'; then
    echo "SKIPPED: parts of two nodes: needs gloo"
else
    check "parts of two nodes have the same bits" cmp runs/nodes/$last runs/parted/$last
fi
check "parts need a smart cache" ends 3 "cache_share = rank needs cache = smart" \
    train none --set data.cache_share=rank --set data.cache=memory
check "too few cases for the parts" ends 3 "the 16 micro-batches of a step, but there are 11" \
    train none --set data.cache_share=rank --set train.micro_batches=16
check "another window" train other --set data.smart_replace=0.5
check "has others" differ other $last

# Commands that read each case once have a cache without a window.
if "$program" data show a.ini -o shown 2>&1 | grep -q 'needs libpng'; then
    echo "SKIPPED: patches of a smart cache are shown: needs libpng"
else
    check "patches are shown" "$program" data show a.ini -o again
fi
check "data are timed" "$program" bench a.ini --data
check "a step is timed" "$program" bench a.ini
check "debug takes four cases" ends 0 "2 of 4 training cases are in the cache" train small --debug

# ---- a run goes on --------------------------------------------------------------------------------

# cut NAME SIGNAL MORE...: send the signal after a checkpoint of the fourth epoch or a later one.
cut() {
    run=$1
    signal=$2
    shift 2
    "$program" train a.ini --set experiment.name="$run" "$@" >told 2>&1 &
    while [ ! -e "runs/$run/checkpoints/step-00000012" ] && kill -0 $! 2>/dev/null; do :; done
    kill -"$signal" $! 2>/dev/null
    wait $!
    [ ! -e "runs/$run/$last" ] || echo "it was done before the signal" >>told
    return 0
}
for signal in TERM KILL; do
    check "ended by $signal" cut "cut$signal" $signal
    check "it goes on" train "cut$signal"
    check "with the same bits" same "cut$signal"
done
check "steps of another run" train parts --set train.epochs=4
check "go on as two ranks" train parts --set distribute.mode=ddp --set distribute.devices=cpu:0,cpu:1
check "with the same bits" same parts

refused="an epoch has 6 of 11 cases, and 3 are replaced, but the run to be continued has 6, and 2"
check "another replacement is refused" ends 3 "$refused" train one --set data.smart_replace=0.4
refused="an epoch has 11 of 11 cases, and 0 are replaced, but the run to be continued has 6, and 2"
check "another cache is refused" ends 3 "$refused" train one --set data.cache=memory
check "all cases are those of another cache" train all --set data.cache=memory --set train.epochs=2
check "which may go on" train all --set data.smart_share=1 --set train.epochs=3
check "no replacement is refused" ends 3 "smart_replace = 0 leaves 5 of 11 training cases unused" \
    train none --set data.smart_replace=0
# Rank 1 has another cache, and all cases.
unequal() {
    port=$((20000 + ($$ * 7) % 10000))
    cache=smart
    for rank in 0 1; do
        RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
            "$program" train a.ini --set experiment.name=unequal --set data.cache=$cache &
        cache=memory
    done
    wait $!
}
check "ranks with different windows are refused" ends 3 "the processes differ in the cases of an epoch" unequal
wait

# ---- a case that is damaged meanwhile -------------------------------------------------------------

# The cases after the first window and its replacements are cut as soon as the run has taken a step.
damage() {
    cp -R ph damaged
    "$program" train a.ini --fresh --set experiment.name=damaged --set data.source=damaged \
        --set train.epochs=1000 "$@" >told 2>&1 &
    while ! grep -qs '"kind":"step"' runs/damaged/metrics.jsonl && kill -0 $! 2>/dev/null; do :; done
    truncate -s 500 damaged/imagesTr/*_009.nii.gz
    wait $!
    code=$?
    rm -rf damaged
    [ $code = 4 ]
}
one_line() {
    [ "$(grep -c '^error' told)" = 1 ] && grep -q "^error: .*phantom_009" told && return
    cat told
    return 1
}
check "a damaged case ends the run with 4" damage
check "one line names it" one_line
check "also in the training thread" damage --set data.loader_threads=0
check "one line names it there" one_line
check "and on two devices" damage --set distribute.devices=cpu:0,cpu:1
check "one line names it on them" one_line
check "a rank ends with 4" damage --set distribute.mode=ddp --set distribute.devices=cpu:0,cpu:1
check "and its case is named" grep -q "phantom_009" told

# ---- memory ---------------------------------------------------------------------------------------

# Cases of 6 MB: 18 with the memory cache, 3 with the smart one, which reads others while it trains.
phantom big 18 128,128,128
peak() {
    "$program" train a.ini --fresh --set experiment.name=peak --set data.source=big --set data.validation=none \
        --set train.epochs=6 --set preprocess.steps= "$@" >told 2>&1 &
    most=0
    while kill -0 $! 2>/dev/null; do
        now=$(awk '/^VmHWM/ { print $2 }' "/proc/$!/status" 2>/dev/null)
        [ "${now:-0}" -le "$most" ] || most=$now
    done
    wait $! && echo "$most"
}
smart=$(peak --set data.smart_share=0.12 --set data.smart_replace=0.5) || fail "a run with large cases"
memory=$(peak --set data.cache=memory) || fail "a run with large cases in memory"
bytes() {
    "$program" explain a.ini --json --set data.source=big --set data.validation=none --set preprocess.steps= "$@" |
        sed -n 's/.*"cache":\([0-9]*\),.*/\1/p'
}
three=$(bytes --set data.smart_share=0.12 --set data.smart_replace=0.5)
all=$(bytes --set data.cache=memory)
check "the estimate is that of three cases" [ "$all" = $((6 * three)) ]
check "the memory is less by most of fifteen cases ($smart and $memory KiB)" \
    [ $(((memory - smart) * 1024)) -gt $(((all - three) * 3 / 4)) ]

finish
