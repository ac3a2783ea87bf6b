#!/bin/sh
# Settings as a user writes them: folders with blanks, messages that name the file, line and key, and
# a resolved.ini that says what was chosen. Prints what Check prints, so that both are counted alike.
set -u
build=$(pwd)
program=$(realpath "${PONS:-./pons}")
PONS_PLUGIN_PATH=${PONS_PLUGIN_PATH:-$build/stage}
export PONS_PLUGIN_PATH
folder=$(mktemp -d "${TMPDIR:-/tmp}/pons-settings-XXXXXX") || exit 1
trap 'rm -rf "$folder"' EXIT
checks=0
failures=0

# check NAME COMMAND...: the command succeeds.
check() {
    name=$1
    shift
    checks=$((checks + 1))
    "$@" >"$folder/said" 2>&1 && return 0
    failures=$((failures + 1))
    echo "FAILED: $name: $*"
    cat "$folder/said"
    return 1
}

mkdir "$folder/with blank" && cd "$folder/with blank" || exit 1
"$program" data phantom -o ph --cases 2 --extent 18,16,16 2>log || { cat log; exit 1; }

# ini NAME DATA...: a run of one step.
ini() {
    printf '%s\n' "[experiment]" "name = $1" "[preprocess]" "steps = normalize" "[patch]" "extent = 16" \
        "[model]" "plugin = unet" "channels = 2 4" "strides = 2" "[loss]" "plugin = dice" \
        "[optimizer]" "plugin = adam" "lr = 0.01" "[train]" "steps = 1" "[data]" "validation = none" \
        "labels = background:0 \"left part:1\""
    shift
    printf '%s\n' "$@"
}

# ---- blanks --------------------------------------------------------------------------------------

ini blank "image = ph/imagesTr/*.nii.gz" "label = ph/labelsTr/*.nii.gz" >blank.ini
check "a folder with a blank in its name trains" "$program" train blank.ini
sed 's/= blank/= again/' runs/blank/resolved.ini >"$folder/again.ini"
check "its resolved.ini runs elsewhere" "$program" train "$folder/again.ini"
check "both are one run" cmp runs/blank/checkpoints/step-00000001/model.safetensors \
    runs/again/checkpoints/step-00000001/model.safetensors

# ---- messages ------------------------------------------------------------------------------------

# refused PHRASE SED...: plain.ini after the edits is refused with code 3, in one line with the phrase.
ini plain "source = ph" >plain.ini
refused() {
    phrase=$1
    shift
    checks=$((checks + 1))
    sed "$@" plain.ini >x.ini
    "$program" train x.ini >said 2>&1
    code=$?
    if [ $code -ne 3 ] || ! grep -qF -e "$phrase" said; then
        failures=$((failures + 1))
        echo "FAILED: $*: code $code, expected 3 and '$phrase'"
        cat said
    fi
}

refused "x.ini:6: [patch] extent: patch 15 is not divisible by 2 along i" -e 's/^extent = .*/extent = 15/'
refused "x.ini:10: [model] strides: 'model.strides' has 2 items" -e 's/^strides = .*/strides = 2 2/'
refused "x.ini:13: [loss] weight: 'loss.weight' has 3 numbers" -e 's/^plugin = dice$/&\nweight = 1 2 3/'
refused "x.ini:13: [loss] heads has 2 numbers, expected 1" -e 's/^plugin = dice$/&\nheads = 1 2/'
refused "x.ini:18: [train] best is 'dice.liver'" -e 's/^steps = 1/&\nbest = dice.liver/'
refused "x.ini:19: [data] validation: 'validation' is 'last:9'" -e 's/^validation = .*/validation = last:9/'
refused "x.ini:19: [data] validation: 'validation' names 'zz'" -e 's/^validation = .*/validation = names:zz/'
refused "x.ini:20: [data] labels: 'labels' gives id 1 to" -e 's/^labels = .*/labels = b:0 c:1 d:1/'
refused "x.ini:1: [experiment] has no 'name', which must be given" -e '/^name = /d'
refused "x.ini: [experiment] has no 'name', which must be given" -e '/^name = /d' -e '/^\[experiment\]/d'
refused "x.ini: [optimizer] has no 'plugin', which must be given" -e '/^plugin = adam/d' -e '/^lr = /d' \
    -e '/^\[optimizer\]/d'
refused "x.ini:17: [train] has no 'epochs'" -e 's/^steps = 1$//' -e 's/^\[train\]/\n&/'
refused "x.ini:4: [preprocess] steps: 'normalize' occurs twice" -e 's/^steps = n.*/steps = normalize normalize/'
refused "x.ini:19: [augment] steps: 'flip' occurs twice" \
    -e 's/^\[data\]/[augment]\nsteps = flip flip\n[augment.gaussian_noise]\nstd = 0.1\n&/'

cd / || exit 1
echo "100%: Checks: $checks, Failures: $failures, Errors: 0"
[ "$failures" -eq 0 ]
