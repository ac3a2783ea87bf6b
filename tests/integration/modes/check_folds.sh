#!/bin/sh
# Cross-validation: the folds of one run are trained one after the other, by several commands or by ranks, and go on
# after a kill.
. "${srcdir:-.}/tests/support/checks.sh"
cd "$folder" || exit 1
phantom heads 4 20,20,20
cat >a.ini <<END
[experiment]
name = a
deterministic = yes
[data]
source = heads
validation = last:1
cache = disk
$(small_training)
[train]
steps = 4
precision = fp32
[window]
batch = 2
END

train() { "$program" train a.ini "$@"; }
weights() { cat "runs/$1/fold_$2/checkpoints/$(cat "runs/$1/fold_$2/checkpoints/last")/model.safetensors" | cksum; }
same_fold() { [ "$(weights "$1" "$3")" = "$(weights "$2" "$3")" ]; }
same_folds() { same_fold "$1" "$2" 0 && same_fold "$1" "$2" 1; }
key() { sed -n "s/^$3 = \([^;]*[^; ]\) *;.*/\1/p" "runs/$1/fold_$2/resolved.ini"; }

# ---- training -----------------------------------------------------------------------------------

check "two folds are trained by one command" train --folds 2
for fold in 0 1; do
    check "fold $fold has its rule of validation" [ "$(key a $fold validation)" = "fold:$fold/2" ]
    for mark in best last; do
        check "fold $fold has the mark $mark" [ -s runs/a/fold_$fold/checkpoints/$mark ]
    done
    check "fold $fold has metrics" grep -q '"kind":"validation"' runs/a/fold_$fold/metrics.jsonl
done
check "folds differ" sh -c '! cmp -s runs/a/fold_0/checkpoints/step-00000004/model.safetensors \
    runs/a/fold_1/checkpoints/step-00000004/model.safetensors'
check "folds share one cache" sh -c "[ -d runs/.cache ] && [ ! -e runs/a/.cache ] &&
    grep -q '4 of 4 cases in .*, 4 of them from before' runs/a/fold_1/log.txt"
check "folds of the dataset are not those of the command" ends 0 "the folds divide all cases anew" \
    train --folds 2 --fold 0 --set data.validation=own --set experiment.name=own
check "nor are those of nnU-Net, which are five" ends 0 "validation = nnunet is not used; --folds 5 takes" \
    train --folds 2 --fold 0 --set data.validation=nnunet --set experiment.name=two
check "two folds keep their cases in memory" train --folds 2 --set experiment.name=kept --set data.cache=memory
check "the second fold has those of the first" \
    grep -q 'cache: 4 of 4 cases in memory, 4 of them from before' runs/kept/fold_1/log.txt
check "the folds are the same" same_folds a kept
check "finished folds are not trained again" ends 0 "'$folder/runs/a/fold_1' is finished" train --folds 2
check "a fold's resolved.ini runs again as it is" \
    ends 0 "is finished" "$program" train runs/a/fold_1/resolved.ini
check "a bare name leads to the folder" ends 3 "hint: a run is named by its folder, runs/a" \
    "$program" predict a heads/imagesTr/phantom_000.nii.gz -o none.nii.gz
check "in a line of its own" grep -qx "hint: a run is named by its folder, runs/a" "$folder/out"
check "a file with fold:K/N names the number of folds" train --fold 1 \
    --set data.validation=fold:0/2 --set experiment.name=b
check "a fold alone is the one of all folds" same_fold a b 1
check "a fold alone trains no other" [ ! -e runs/b/fold_0 ]
check "the other fold joins it" train --folds 2 --fold 0 --set experiment.name=b
check "folds of two commands are those of one" same_folds a b
phantom five 5 20,20,20
check "folds of nnU-Net are those that it draws" train --folds 5 --set data.source=five --set data.validation=nnunet \
    --set train.steps=1 --set experiment.name=drawn
check "they are taken in silence" sh -c "! grep -q 'not used' runs/drawn/fold_0/log.txt"
check "fold 1 has its number" [ "$(key drawn 1 validation) $(key drawn 1 fold)" = "nnunet 1" ]
held_out() { "$program" evaluate --run runs/drawn --json >drawn.json &&
    [ "$(tr ',{' '\n\n' <drawn.json | sed -n 's/.*"case": *"phantom_00\(.\)".*/\1/p' | tr -d '\n')" = 04312 ] && return
    cat drawn.json; return 1; }
check "each holds out nnU-Net's case" held_out
check "one device for each rank" train --folds 2 --set experiment.name=ddp --set distribute.mode=ddp \
    --set distribute.devices=cpu:0,cpu:1
check "each fold had two ranks" [ "$(grep -l '2 replicas of 1 thread' runs/ddp/fold_?/log.txt | wc -l)" = 2 ]
check "a launcher starts ranks for each fold" "$program" launch -n 2 -- train a.ini --folds 2 \
    --set experiment.name=launched
check "a launcher's folds are those of mode ddp" same_folds ddp launched
check "folds of --debug lie beside the run" train --folds 2 --debug
check "folds of --debug are complete" [ -s runs/a-debug/fold_1/checkpoints/last ]

# A kill -9 in the first or in the second fold, which the same command continues.
kill_in() { # FOLD
    name=killed$1
    "$program" train a.ini --folds 2 --set experiment.name="$name" --set train.steps=40 \
        --set train.checkpoint_every=1 >lines 2>&1 &
    pid=$!
    while kill -0 $pid 2>lines && [ ! -s "runs/$name/fold_$1/checkpoints/last" ]; do sleep 0.01; done
    kill -9 $pid 2>lines || return 1
    wait $pid 2>lines
    [ ! -s "runs/$name/fold_$1/checkpoints/step-00000040/manifest.json" ] || return 1
    "$program" train a.ini --folds 2 --set experiment.name="$name" --set train.steps=40 \
        --set train.checkpoint_every=1
}
check "an uninterrupted run" train --folds 2 --set experiment.name=whole --set train.steps=40 \
    --set train.checkpoint_every=1
for fold in 0 1; do
    check "a command that is killed in fold $fold goes on" kill_in $fold
    check "folds after a kill in fold $fold have the same bits" same_folds whole killed$fold
done

# ---- refusals -----------------------------------------------------------------------------------

check "a fold beyond the last" ends 2 "--fold 2 of 2 folds: expected 0 to 1" train --folds 2 --fold 2
check "one fold" ends 2 "--folds" train --folds 1
check "more folds than cases" ends 3 "'fold:0/5' but there are 4 cases" train --folds 5 --set experiment.name=many
check "--resume beside folds" ends 2 "--resume names one checkpoint" train --folds 2 --resume runs/a/fold_0
check "a run in the folder of folds" ends 3 "holds the folds of a cross-validation" train
check "a run in the folder of folds, anew" ends 3 "holds the folds of a cross-validation" train --fresh
check "a page of folds" ends 4 "pons evaluate --run runs/a the scores of all" "$program" report runs/a
check "a plain run" train --set experiment.name=plain
check "folds in the folder of a run" ends 3 "holds a run without folds" train --folds 2 --set experiment.name=plain
check "ranks of another launcher train one fold" ends 2 "expected --fold K" env RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 \
    LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=1 "$program" train a.ini --folds 2 --set experiment.name=other
finish
