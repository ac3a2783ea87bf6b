#!/bin/sh
# The redrawn lines of a terminal: a training's block, the line of commands that read cases, and where none belongs.
. "${srcdir:-.}/tests/support/checks.sh"

if ! command -v script >/dev/null; then
    echo "SKIPPED: check_live: needs script"
    exit 77
fi
cd "$folder" || exit 1
phantom ph 3 16,16,16
{
    printf '%s\n' "[experiment]" "name = run" "[data]" "source = ph" "validation = last:1" "[preprocess]" \
        "steps = normalize" "[patch]" "extent = 8" "[log]" "report = no" "[train]" "steps = 3000" "validate_steps = 1500" \
        "checkpoint_every = 3000"
    small_unet
} >e.ini # a second or so, in which several blocks are drawn

# on_terminal NAME COMMAND: the bytes that a terminal receives are in file NAME.
on_terminal() { TERM=${term:-xterm} script -qefc "$2" "$1" >/dev/null </dev/null; }
# escapes FILE TEST: whether the number of escape characters in a file that is not empty is -eq or -gt 0.
escapes() { [ -s "$1" ] && [ "$(tr -cd '\033' <"$1" | wc -c)" "$2" 0 ]; }

check "a training on a terminal" on_terminal live "$program train e.ini --color never"
check "its block has the place in the run" grep -q 'step  \[.* left, [0-9]* of 3000' live
check "its block is there before the first step ends" grep -q 'step 1 of 3000 running' live
check "an erased block leaves the lines" grep -q "validation after step 3000: dice.mean" live
check "the block is erased before the last line" [ "$(tr '\033' '\n' <live | tail -n 6 | grep -c '^\[[JK]done: ')" = 1 ]
check "log.txt has no control characters" escapes runs/run/log.txt -eq
plainly() { "$program" train e.ini --set experiment.name=plain >lines 2>&1; }
check "another drawing, the same bits" plainly
check "lines alone elsewhere" escapes lines -eq
losses run >a
losses plain >b
check "every step has numbers" [ "$(wc -l <a)" = 3000 ]
check "the numbers are equal" cmp a b
term=dumb
check "a terminal without control sequences" on_terminal dumb "$program train e.ini --fresh --set train.steps=1"
check "it receives none" escapes dumb -eq
check "its lines are there" grep -q "done: " dumb
check "the length of one step" grep -q "1 step took " dumb
check "the next commands are told" grep -q "hint: pons report .*/runs/run; pons predict .*/runs/run IMAGE -o OUT" dumb
term=xterm
check "a quiet training" on_terminal quiet "$program train e.ini --fresh -q --set train.steps=4"
check "it draws nothing" escapes quiet -eq

# stopped: Ctrl-C after some steps and validations of a training in a narrow window, whose block goes as it ends.
cat >interrupt.sh <<END
stty cols 40
"$program" train e.ini --set experiment.name=stop --set train.steps=2000000 --set train.validate_steps=1 &
tries=$(($(patient 60) * 20))
until grep -A 1 'validating: ' stop | grep -q 'dice.mean [0-9.]*, best [0-9.]*' || [ \$((tries -= 1)) -lt 0 ]; do
    sleep 0.05
done
kill -INT \$!
wait \$!
END
stopped() {
    on_terminal stop "sh interrupt.sh"
    tr '\033' '\n' <stop | grep -q "^\[Jinterrupted after step"
}
check "a training is interrupted" stopped
check "a validation has its cases and time, the last one and the best below" \
    sh -c "grep -A 1 'validating: [01] of 1 case, 0:[0-9]* so far' stop | grep -q 'dice.mean [0-9.]*, best [0-9.]*'"
check "a narrow window has the values" grep -q "samples/s, [0-9]* % waiting" stop
check "log.txt dates it like other lines" \
    grep -qE '^[0-9]{4}-[0-9-]{5} [0-9:]{8} interrupted after step' runs/stop/log.txt
# waiting FILE TEXT: wait until a file has the text.
waiting() { for _ in $(seq $(($(patient 20) * 20))); do grep -q "$2" "$1" && return; sleep 0.05; done; return 1; }
# within: Ctrl-C within a step of a minute, and again when the block tells it.
within() {
    mkdir -p plugins/schedule && cp "$build/tests/plugins/.libs/slow_step.so" plugins/schedule || return
    echo "PONS_PLUGIN_PATH=\$PWD/plugins:$PONS_PLUGIN_PATH exec $program train e.ini --fresh --set train.steps=2 \
        --set schedule.plugin=slow_step --set schedule.seconds=60 --set data.validation=fold:1/3" >slow.sh
    TERM=xterm script -qefc "sh slow.sh & echo \$! >slow.pid; wait" slow >/dev/null </dev/null &
    waiting slow "step 1 of 2 running" && kill -INT "$(cat slow.pid)" &&
        waiting slow "stopping after this step; Ctrl-C again to stop at once"
    told=$?
    kill -INT "$(cat slow.pid)"
    wait $!
    return $told
}
check "an interruption is told within a step" within
check "a fold has its number" grep -q 'epoch \[.*, fold 1 of folds 0 to 2' slow
check "memory is that of the process before the first step, too" grep -q 'memory [1-9][0-9.]* [MG]B' slow
check "which is given up" [ -z "$(losses run)" ]

# paused: Ctrl-Z erases the block of a training, which is there again after 'fg'.
cat >pause.sh <<END
set -m
sh resume.sh &
sh -c 'echo \$\$ >pid; exec "$program" train e.ini --fresh --set train.steps=2000000'
echo "a line of the shell"
fg %2
END
cat >resume.sh <<'END'
tries=$TRIES
until grep -q 'samples/s' paused || [ $((tries -= 1)) -lt 0 ]; do sleep 0.05; done
kill -TSTP "$(cat pid)"
until sed '1,/a line of the shell/d' paused | grep -q 'samples/s' || [ $((tries -= 1)) -lt 0 ]; do sleep 0.05; done
kill -INT "$(cat pid)"
[ $tries -ge 0 ] || kill -KILL "$(cat pid)"
END
check "a training is stopped and goes on" \
    env TRIES=$(($(patient 60) * 20)) TERM=xterm timeout "$(patient 90)" script -qfc "sh pause.sh" paused </dev/null
before() { tr '\033' '\n' <paused | sed '/a line of the shell/q' | grep '^\[' | tail -n 1 | grep -q '^\[J'; }
check "its block is erased before the shell's line" before
check "the training ends by Ctrl-C later" grep -q "interrupted after step" paused

check "data check on a terminal" on_terminal checked "$program data check e.ini"
check "it shows its case" grep -q 'checking case 1 of 3, 0 %' checked
check "predict on a terminal" on_terminal predicted \
    "$program predict runs/run ph/imagesTr/phantom_000.nii.gz -o out.nii.gz"
check "it shows its case" grep -q 'predicting case 1 of 1, .* voxels/s' predicted
check "evaluate on a terminal" on_terminal evaluated "$program evaluate --run runs/run"
check "it shows its case" grep -q 'evaluating case 1 of 1' evaluated
. "$source/tests/support/idx.sh"
mkdir rows
idx_stack rows/train 8 1 4 6 5
idx_stack rows/t10k 5 2 4 6 5
printf '%s\n' "[experiment]" "name = images" "task = classification" "[data]" "source = rows" "[patch]" \
    "extent = 1 6 5" "[model]" "plugin = mlp" "[loss]" "plugin = cross_entropy" "[optimizer]" \
    "plugin = sgd" "lr = 0.1" "[log]" "report = no" "[train]" "steps = 1" >c.ini
check "a classification" "$program" train c.ini
check "evaluate of images on a terminal" on_terminal decided "$program evaluate --run runs/images"
check "it shows its image" grep -q 'evaluating case [1-5] of 5' decided
check "preprocess on a terminal" on_terminal written "$program data preprocess e.ini -o written.d"
check "it shows its case" grep -q 'preprocessing case [1-3] of 3' written
check "phantom on a terminal" on_terminal made "$program data phantom -o made.d --cases 3 --extent 16"
check "it shows its case" grep -q 'making case [1-3] of 3, .* left' made
check "init on a terminal" on_terminal planned "$program init ph -o planned.ini"
check "it shows its case" grep -q 'reading case [1-3] of 3' planned
check "init on a terminal, its output elsewhere" on_terminal planned "$program init ph -o quiet.ini >/dev/null"
erased() { tr '\033' '\n' <planned | grep '^\[' | tail -n 1 | grep -q '^\[J'; }
check "the line of its cases is erased" erased
colours() { env "$@" "$program" config runs/run 2>told; escapes told "$escaped"; }
escaped=-gt
check "CLICOLOR_FORCE colours a file" colours NO_COLOR= CLICOLOR_FORCE=1
escaped=-eq
check "not as 0" colours NO_COLOR= CLICOLOR_FORCE=0
check "NO_COLOR wins" colours NO_COLOR=1 CLICOLOR_FORCE=1
check "a run's folder leads to its file" grep -qx 'hint: the run.s is runs/run/resolved.ini' told
finish
