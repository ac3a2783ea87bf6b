#!/bin/sh
# pons find-rate: the sweep of a file, its numbers with two replicas, its picture, and what it leaves alone.
. "${srcdir:-.}/tests/support/checks.sh"

cd "$folder" || exit 1
phantom ph 4 32,28,24
printf '%s\n' "[experiment]" "name = run" "deterministic = yes" "[data]" "source = ph" "validation = none" \
    "[preprocess]" "steps = normalize" "[patch]" "extent = 16" "[model]" "plugin = unet" "channels = 4 8" \
    "strides = 2" "[loss]" "plugin = dice_ce" "[optimizer]" "plugin = adam" "[train]" "steps = 1" \
    "precision = fp32" "accumulate = 2" >e.ini

# sweep FILE ARGUMENT...: the object of a sweep without a picture of the default name.
sweep() {
    out=$1
    shift
    "$program" find-rate e.ini --json "$@" >"$out" 2>log || { cat log; return 1; }
}
# list KEY FILE: the numbers of a list, one a line.
list() { tr -d '\n' <"$2" | sed "s/.*\"$1\":\\[\\([^]]*\\)\\].*/\\1/" | tr ',' '\n'; }
same_losses() { [ "$(list losses "$1")" = "$(list losses "$2")" ]; }

check "a sweep" sweep first
check "it has three suggestions" grep -qE '^\{"suggestion":\{"valley":[0-9.e-]+,"steep":[0-9.e-]+,"minimum":[0-9.e-]+\},' first
check "rates rise from the first" [ "$(list rates first | head -1)" = 1e-07 ]
check "the second rate is 10^(8/100) times that" [ "$(list rates first | sed -n 2p)" = 1.20226443e-07 ]
check "losses and smoothed losses belong to the rates" [ "$(list rates first | wc -l) $(list rates first | wc -l)" = \
    "$(list losses first | wc -l) $(list smooth first | wc -l)" ]
check "a sweep repeats" sweep again
check "its numbers are equal" cmp first again
check "a thread more or less" sweep threads --set distribute.threads=1
check "changes no bit" same_losses first threads
check "two replicas" sweep dp --set distribute.devices=cpu:0,cpu:1 --set train.accumulate=1
check "change no bit" same_losses first dp
ranks() {
    "$program" launch -n 2 -- find-rate e.ini --json --set train.accumulate=1 >ddp 2>log || { cat log; return 1; }
}
check "two ranks" ranks
check "change no bit, and one of them prints" cmp dp ddp
check "another start" sweep short --start 1e-3 --end 1 --steps 30
check "is the first rate" [ "$(list rates short | head -1)" = 0.001 ]
first_loss() {
    "$program" train e.ini --set optimizer.lr=1e-7 --set experiment.name=one -q 2>log || { cat log; return 1; }
    loss=$(sed -n 's/^{"kind":"step",.*"loss":\([^,]*\).*/\1/p' runs/one/metrics.jsonl)
    [ "$loss" = "$(list losses first | head -1)" ] || { echo "$loss, $(list losses first | head -1)"; return 1; }
}
check "the first loss is that of a training" first_loss
rm -rf runs

pretrained() {
    "$program" train e.ini --set train.steps=20 --set optimizer.lr=1e-2 -q 2>log || { cat log; return 1; }
    weights=runs/run/checkpoints/$(cat runs/run/checkpoints/last)/model.safetensors
    sweep trained --set train.pretrained="$weights" || return
    awk -v a="$(list losses trained | head -1)" -v b="$(list losses first | head -1)" 'BEGIN { exit !(a < 0.9 * b) }'
}
check "a sweep begins with pretrained weights" pretrained
find runs -type f -exec cksum {} + | sort >before
check "a sweep beside a run" sweep beside
find runs -type f -exec cksum {} + | sort >after
check "leaves the run as it is" cmp before after

check "a table" ends 0 "valley" "$program" find-rate e.ini --steps 30
if "$program" doctor | grep -q '^libpng  .*: yes$'; then
    check "the picture has the file's name" ends 0 "picture: 'e_rate.png'" "$program" find-rate e.ini
    check "it is a PNG" [ "$(head -c 4 e_rate.png | tail -c 3)" = PNG ]
    check "a picture of another name" ends 0 "picture: 'deep/er.png'" "$program" find-rate e.ini -o deep/er.png
    check "is there" [ -s deep/er.png ]
else
    check "no picture is said" ends 0 "no picture is drawn" "$program" find-rate e.ini
    check "a picture is refused" ends 3 "'--output' needs libpng" "$program" find-rate e.ini -o a.png
fi

check "an end below the start is usage" ends 2 "--end is 1e-08, expected more than --start" "$program" find-rate e.ini --end 1e-8
mkdir pictures
check "a folder is no picture" ends 2 "'--output' is 'pictures', a folder" "$program" find-rate e.ini -o pictures
check "a missing file is usage" ends 2 "FILE.ini" "$program" find-rate
check "a wrong key is configuration" ends 3 "did you mean 'plugin'" "$program" find-rate e.ini --set loss.plugim=x
check "a start that diverges has no suggestion" ends 1 "hint: a smaller --start" "$program" find-rate e.ini \
    --set optimizer.plugin=sgd --start 1e6 --end 1e9
check "a missing dataset is data" ends 4 "none" "$program" find-rate e.ini --set data.source=none
cd / || exit 1
finish
