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

cd / || exit 1
echo "100%: Checks: $checks, Failures: $failures, Errors: 0"
[ "$failures" -eq 0 ]
