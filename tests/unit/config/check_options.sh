#!/bin/sh
# Every option has an effect. For each line of options/table and options/flags the program runs with
# two values, and the line's observable must differ. Two runs with the first value must agree. 'pons
# help --list' lists the options; an option without a line is a failure.
#
#   tests/unit/config/check_options.sh [PATTERN]     only the lines that match, without that list
. "${srcdir:-.}/tests/support/checks.sh"
here=$source/tests/unit/config/options
pattern=${1-}

trim() {
    value=$1
    value=${value#"${value%%[! ]*}"}
    value=${value%"${value##*[! ]}"}
}

# ---- observables of a run -----------------------------------------------------------------------

steps() { sed -n 's/^{"kind":"step",.*"'"$1"'":\([^,]*\).*/\1/p' runs/run/metrics.jsonl; }
newest() { cat "runs/run/checkpoints/last"; }
# Remove everything that the clock and the system's libraries change.
steady() {
    sed 's/[0-9.]* s\([ ,)]\|$\)/T s\1/g; s/"peak":[0-9]*/"peak":P/; s/"libraries":[0-9]*/"libraries":P/
         s/^\(peak\|libraries\) .*/\1/'
}
bytes() { find "$@" -type f | sort | xargs cksum; }
names() { find . -type f ! -name 'std*' ! -name '*.ini' | sort; }
# Print entity, project and name of a run's record for Weights & Biases, without its settings, which have them as well.
offline_names() {
    LC_ALL=C tr '\022\032' '<>' <"$1" | LC_ALL=C tr -c 'a-zA-Z<>' ' ' | grep -o '< [a-z]*> [a-z]*B [a-z]*'
}
predict() {
    set -- "$@" --logits --probabilities
    cp -R "$folder/trained/runs" . && "$program" predict runs/run heads/imagesTr/phantom_001.nii.gz \
        -o out.nii.gz "$@"
}
# Continue a run with another file of its schedule, which has one more byte at its end.
resumed() {
    "$program" train base.ini "$@" || return
    file=$("$program" plugin list | awk '$1 == "schedule" && $2 == "constant" { print $NF }')
    mkdir -p plugins/schedule && cp "$file" plugins/schedule/ && echo >>plugins/schedule/constant.so
    PONS_PLUGIN_PATH=$(pwd)/plugins${PONS_PLUGIN_PATH:+:$PONS_PLUGIN_PATH} \
        "$program" train base.ini "$@" --set train.epochs=3
}
# Hundredths of a second of CPU time of a process.
work() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"; }
# Send TERM in the middle of a step that takes seconds, after some of its work.
interrupted() {
    "$program" train base.ini "$@" 2>lines &
    while ! grep -qs '"kind":"step"' runs/run/metrics.jsonl && kill -0 $!; do sleep 0.02; done
    before=$(work $!)
    while kill -0 $! && [ "$(work $!)" -lt $((before + 10)) ]; do sleep 0.02; done
    kill -TERM $!
    wait $!
}

# One of two ranks waits for the other.
missing() {
    RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=1 "$program" train base.ini "$@"
    [ $? != 0 ]
}

# Run the program that an observable needs, in a folder of its own: KIND SET...
execute() {
    kind=$1
    shift
    case $kind in
    train) "$program" train base.ini "$@" ;;
    predict) predict "$@" ;;
    interrupted) interrupted "$@" ;;
    resumed) resumed "$@" ;;
    missing) missing "$@" ;;
    explain) "$program" explain base.ini --json "$@" ;;
    schedule) "$program" explain base.ini --schedule "$@" ;;
    preprocess) "$program" data preprocess base.ini -o cases "$@" ;;
    check) "$program" data check base.ini "$@" ;;
    esac
}

kind_of() {
    case $1 in
    explain | schedule | preprocess | check | interrupted | resumed | missing) echo "$1" ;;
    winograd) echo explain ;;
    labels | logits | probabilities | tables) echo predict ;;
    *) echo train ;;
    esac
}

# Print the observable in the folder of its run.
observe() {
    case $1 in
    losses) steps loss ;;
    rates) steps lr ;;
    scales) steps loss_scale ;;
    norms) steps grad_norm ;;
    validation) sed -n '/"kind":"validation"/s/,"seconds":[^}]*//p' runs/run/metrics.jsonl ;;
    weights) cksum <"runs/run/checkpoints/$(newest)/model.safetensors" ;;
    best) cat runs/run/checkpoints/best ;;
    tracker) cat runs/run/mlflow.json ;;
    images) LC_ALL=C grep -a -o 'case/[a-z0-9_]*' "$(ls runs/run/events.*)" | sort -u | wc -l ;;
    offline) offline_names "$(ls runs/run/wandb/*/*.wandb)" ;;
    checkpoints) ls runs/run/checkpoints ;;
    files) names ;;
    log) sed 's/^[0-9-]* [0-9:]* //; s/[0-9.]* s /T s /g; s/\(run folder\|done\|layout:\|hint: pons report\).*//' runs/run/log.txt ;;
    labels) cksum <out.nii.gz ;;
    logits) cksum <out_logits.nii.gz ;;
    probabilities) cksum <out_probabilities.nii.gz ;;
    tables) ls out.* ;;
    preprocess) bytes cases ;;
    explain) steady <stdout ;;
    winograd) grep -c '"implementation":"winograd"' stdout ;;
    schedule | check) cat stdout ;;
    interrupted) sed -n 's/.*\(interrupted after\|was given up\).*/\1/p' lines ;;
    missing) sed -n 's/^error: .*\(within [0-9.]* s\).*/\1/p' stderr ;;
    exit | refused | resumed) cat code; [ "$(cat code)" = 0 ] || grep '^error' stderr ;;
    *) echo "no observable '$1'" >&2; return 1 ;;
    esac
}

# run_once RUN KIND SET...: a run that has a folder is not repeated.
run_once() {
    run=$1
    shift
    [ ! -e "$run/code" ] || return 0
    mkdir -p "$run"
    cp "$here"/*.ini "$here/splits_final.json" "$here"/*.csv "$run/"
    ln -s "$folder/heads" "$folder/single" "$folder/second" "$folder/classes" "$folder/colours" \
        "$folder/classes.tif" "$folder/trained.safetensors" "$run/"
    case "$*" in
    *model.plugin=unet*) ;;
    *model.plugin=*) sed '/^channels\|^strides/d' "$here/base.ini" >"$run/base.ini" ;;
    esac
    case "$*" in
    *distribute.devices=cuda*) where=on_cards ;;
    *) where= ;;
    esac
    (cd "$run" && $where execute "$@" >stdout 2>stderr; echo $? >code)
}

# ---- tables -------------------------------------------------------------------------------------

# Turn $2, as "a.b=1; c.d=2 3", into lines of --set values; $1 replaces 'section.key=value'.
sets_of() {
    printf '%s\n' "$1" | sed '/^$/d'
    printf '%s\n' "$2" | tr ';' '\n' | sed 's/^ *//; s/ *$//; /^$/d'
}

# Run with the sets of file $2 and leave the observable $1 in $3; $4 tells repetitions apart.
show() {
    kind=$(kind_of "$1")
    run=$folder/$kind-$(cksum <"$2" | tr ' ' '-')-$4
    set -- "$1" "$2" "$3"
    observable=$1 sets=$2 result=$3
    set --
    while IFS= read -r line; do
        set -- "$@" --set "$line"
    done <"$sets"
    run_once "$run" "$kind" "$@"
    (cd "$run" && observe "$observable") >"$result" 2>"$result.problem"
    case $observable in
    exit | refused | resumed | interrupted) ;;
    *) [ "$(cat "$run/code")" = 0 ] || echo "the program failed" >>"$result.problem" ;;
    esac
}

judge() {
    name=$1 observable=$2
    if [ -s "$folder/base.problem" ] || [ -s "$folder/other.problem" ]; then
        fail "$name: $(cat "$folder/base.problem" "$folder/other.problem") ($(head -n 1 "$run/stderr"))"
    elif [ ! -s "$folder/base" ] && [ ! -s "$folder/other" ]; then
        fail "$name: nothing is seen of '$observable'"
    elif ! cmp -s "$folder/base" "$folder/again"; then
        fail "$name: two runs with one value differ in '$observable'"
    elif cmp -s "$folder/base" "$folder/other"; then
        fail "$name: another value leaves '$observable' as it is"
    elif [ "$observable" = refused ] && { ! grep -qx 0 "$folder/base" || ! grep -qx 3 "$folder/other" ||
            ! grep -q 'not in this build' "$folder/other"; }; then
        fail "$name: expected to be refused with 3: $(cat "$folder/base" "$folder/other")"
    fi
}

# Turn "optimizer.adam beta1" into the key for --set and the settings that choose the plugin.
locate() {
    case $1 in
    preprocess.NAME | augment.NAME) path=$1 chosen= ;;
    preprocess.* | augment.*) path=$1 chosen=${1%%.*}.steps=${1#*.} ;;
    log.*) path=$1 chosen=log.sinks=${1#*.} ;;
    *.*) path=${1%%.*} chosen=${1%%.*}.plugin=${1#*.} ;;
    *) path=$1 chosen= ;;
    esac
}

check_option() {
    place=${1%% *} key=${1##* } base=$2 other=$3 observable=$4 extra=$5
    locate "$place"
    for value in base other; do
        given=$base
        [ $value = base ] || given=$other
        case $given in
        -) given= ;;
        '""') given=$path.$key= ;;
        *) given=$path.$key=$given ;;
        esac
        sets_of "$given" "$chosen; $extra" >"$folder/sets.$value"
    done
    show "$observable" "$folder/sets.base" "$folder/base" 1
    show "$observable" "$folder/sets.base" "$folder/again" 2
    show "$observable" "$folder/sets.other" "$folder/other" 1
    if [ "$observable" = missing ] && grep -q 'nothing can join' "$run/stderr"; then
        return
    fi
    if [ "$observable" != refused ] && grep -q "'cuda' is not in this build" "$run/stderr"; then
        return
    fi
    if grep -q "need OpenSlide, which is not in this build" "$run/stderr" "$folder/base"; then
        echo "SKIPPED: $place $key: needs openslide"
        return
    fi
    if grep -q "cache = 'lmdb': 'lmdb' is not in this build" "$run/stderr"; then
        echo "SKIPPED: $place $key = lmdb: needs lmdb"
        return
    fi
    if grep -q "'mlflow' is not in this build" "$run/stderr"; then
        echo "SKIPPED: $place $key: needs curl"
        return
    fi
    if [ "$observable" = images ] && [ "$(cat "$folder/base")" = 0 ]; then
        echo "SKIPPED: $place $key: needs libpng"
        return
    fi
    if [ "$observable" = winograd ] && [ "$(cat "$folder/base")" = 0 ]; then
        echo "SKIPPED: [device] winograd: needs winograd by itself" # this processor takes none
        return
    fi
    judge "$place $key" "$observable"
}

# The words of a command line in a folder that holds a trained run.
run_words() {
    run=$1 words=$2
    rm -rf "$run"
    mkdir -p "$run"
    cp "$here"/*.ini "$here"/*.json "$run/"
    cp -R "$folder/trained/runs" "$run/"
    ln -s "$folder/heads" "$folder/single" "$run/"
    (cd "$run" && eval "set -- $words" && "$program" "$@" >stdout 2>stderr; echo $? >code)
}

observe_words() {
    case $1 in
    stdout | stderr) steady <"$1" ;;
    count) wc -l <stdout ;;
    measured) tr '{' '\n' <stdout | sed -n 's/.*"all":\[\(.*\)\].*/\1/p' | tr ',' '\n' | wc -l ;;
    kernels) grep -o '"kernels":\[\|"name":"[^"]*"' stdout; true ;;
    predicted) # hundreds of seconds of a step on 512 devices
        sed -n 's/.*"devices":512,"ring":{"step_seconds":\([0-9.e+]*\).*/\1/p' stdout |
            awk '{ print int($1 / 100) }' ;;
    modes) grep -o '"mode":"[a-z]*"' stdout ;;
    program | before) grep -o "\"$1\":[^,]*" stdout; true ;;
    exit | refused) cat code; [ "$(cat code)" = 0 ] || grep '^error' stderr ;;
    files) names ;;
    bytes:*) cksum <"${1#bytes:}" ;;
    steps) grep -c '"kind":"step"' runs/*/metrics.jsonl ;;
    *) echo "no observable '$1'" >&2; return 1 ;;
    esac
}

check_flag() {
    observable=$4 part=$5
    for round in base again other; do
        words=$2
        [ $round != other ] || words=$3
        run_words "$folder/flag" "$words"
        (cd "$folder/flag" && observe_words "$observable") >"$folder/$round" 2>"$folder/$round.problem"
    done
    if [ -n "$part" ] && grep -qx 3 "$folder/flag/code" &&
        grep -q "needs $part, which is not in this build" "$folder/flag/stderr"; then
        return
    fi
    run=$folder/flag
    judge "pons $1" "$observable"
}

# each TABLE FUNCTION: call FUNCTION for each line of fields between bars that matches the pattern.
each() {
    while IFS='|' read -r name base other observable extra; do
        case $name in
        '' | '#'*) continue ;;
        esac
        trim "$name"; name=$value
        trim "$base"; base=$value
        trim "$other"; other=$value
        trim "$observable"; observable=$value
        trim "$extra"; extra=$value
        case "$name | $extra" in
        *"$pattern"*) ;;
        *) continue ;;
        esac
        checks=$((checks + 1))
        $2 "$name" "$base" "$other" "$observable" "$extra"
    done <"$here/$1"
}

# Report options of the program without a line, and lines without an option.
check_cover() {
    "$program" help --list >"$folder/list" || fail "pons help --list"
    awk -F'\t' '{ gsub("_", "-", $3); sub("^pons *", "", $1)
                  print "flag", ($1 == "" ? "" : $1 " ") "--" $3 }' \
        >"$folder/program" <<END
$(grep '^pons' "$folder/list")
END
    awk -F'\t' '!/^pons/ { if ($2 != "-") sub(/\.NAME$/, "", $1)
                  print "option", $1 ($2 == "-" ? "" : "." $2) " " $3 }' "$folder/list" \
        >>"$folder/program"
    sed -n 's/^\([^#|]*[^ #|]\) *|.*/option \1/p' "$here/table" >"$folder/covered"
    sed -n 's/^\([^#|]*[^ #|]\) *|.*/flag \1/p' "$here/flags" >>"$folder/covered"
    [ -f "$build/stage/sink/mlflow.so" ] || sed -i '/^option log.mlflow /d' "$folder/covered"
    for list in program covered; do
        sort -u "$folder/$list" >"$folder/$list.sorted"
    done
    checks=$((checks + 2))
    comm -23 "$folder/program.sorted" "$folder/covered.sorted" >"$folder/missing"
    comm -13 "$folder/program.sorted" "$folder/covered.sorted" >"$folder/unknown"
    [ ! -s "$folder/missing" ] || fail "options without a line:
$(cat "$folder/missing")"
    [ ! -s "$folder/unknown" ] || fail "lines without an option:
$(cat "$folder/unknown")"
}

# ---- the whole check ----------------------------------------------------------------------------

"$program" data phantom -o "$folder/heads" --cases 4 --extent 18,16,20 --channels 2 --classes 3 \
    --seed 1 >"$folder/phantom.log" 2>&1 || { cat "$folder/phantom.log"; exit 1; }
"$program" data phantom -o "$folder/colours" --cases 3 --extent 18,16,20 --channels 3 --classes 3 \
    --seed 3 >"$folder/phantom.log" 2>&1 || { cat "$folder/phantom.log"; exit 1; }
for seed in 1 2; do
    name=single
    [ $seed = 1 ] || name=second
    "$program" data phantom -o "$folder/$name" --cases 3 --extent 18,16,20 --classes 3 --seed $seed \
        >"$folder/phantom.log" 2>&1 || { cat "$folder/phantom.log"; exit 1; }
done
mkdir -p "$folder/classes/odd" "$folder/classes/even"
for n in 0 1 2; do
    cp "$folder/single/imagesTr/phantom_00$n.nii.gz" "$folder/classes/$([ $n = 1 ] && echo odd || echo even)"
done
"$build/tests/support/data/make_slide" "$folder/classes.tif" 96 128 32 2 8,8,64,96,dc78be 8,8,32,48,5a328c || exit 1
mkdir "$folder/trained"
(cd "$folder/trained" && cp "$here/base.ini" . && ln -s ../heads heads &&
    "$program" train base.ini) >"$folder/trained.log" 2>&1 || { cat "$folder/trained.log"; exit 1; }
cp -R "$folder/trained/runs/run" "$folder/trained/runs/damaged"
echo nothing >"$folder/trained/runs/damaged/checkpoints/best"
cp "$folder/trained/runs/run/checkpoints/$(cat "$folder/trained/runs/run/checkpoints/last")/model.safetensors" \
    "$folder/trained.safetensors"
each table check_option
each flags check_flag
[ -n "$pattern" ] || check_cover

finish
