#!/bin/sh
# Runs of version 0.1 (tests/golden/runs). Their checkpoints load, predict and continue to the bits of 0.1,
# and their INI files train to the same bits. The stages are in old_runs.sh.
#
# The reference kernels give the same bits on every processor. Their values are valid with any libraries of
# the same versions. The cpu device has values for some kinds of machines. On any other kind, three checks
# remain: losses near those of the reference kernels, a resolved.ini that trains to the bits of its INI, and a
# stored run that continues like a trained one if both have the same checkpoint.
. "${srcdir:-.}/tests/support/checks.sh"
. "$source/tests/integration/golden/old_runs.sh"

# ---- the stages ----------------------------------------------------------------------------------

# direct_floats RUN: arguments for the convolutions of 0.1, which has no Winograd kernels in fp32.
direct_floats() { [ "$1" = dynunet ] || echo "--set device.winograd=no"; }

# follow RUN DEVICE: values in $folder/DEVICE/RUN; those of stage 'through' in RUN.through.
follow() {
    place=$folder/$2
    on=$(on_device "$2")
    # shellcheck disable=SC2086 # words
    {
        cd "$place/new" || exit 1
        check "$1 trains on $2" train_run $1 $on || return
        put_run $1 trained >"$place/$1"
        check "$1 trains further on $2" train_further $1 $on || return
        put_run $1 through >"$place/$1.through"
        cd "$place/old" && put_back $1 || exit 1
        check "$1 of 0.1 predicts on $2" predict_run $1 $on $(direct_floats "$1") || return
        put_prediction $1 >>"$place/$1"
        check "$1 of 0.1 is continued on $2" train_further $1 $on || return
        check "$1 of 0.1 has the same cases on $2" [ "$(grep -c "has changed" runs/$1/log.txt)" = 0 ]
        put_run $1 continued >>"$place/$1"
    }
}

# ---- comparisons ---------------------------------------------------------------------------------

# same_values STAGE EXPECTED FOUND RUN: the first different line names the file or the step.
same_values() {
    grep "^$4 $1 " "$2" >"$folder/expected" && grep "^$4 $1 " "$3" >"$folder/found" &&
        diff "$folder/expected" "$folder/found"
}

# without STAGE FILE: lines of that stage, without its name.
without() { sed -n "s/^\([a-z]*\) $1 /\1 /p" "$2"; }

# A run with the checkpoint of the stored run continues like the stored run.
same_way() {
    put_run "$1" trained "$golden" >"$folder/stored"
    same_values trained "$folder/stored" "$2/$1" "$1" >/dev/null || return 0
    without continued "$2/$1" >"$folder/expected"
    without through "$2/$1.through" | diff "$folder/expected" -
}

# loss_of RUN STAGE STEP FILE
loss_of() { sed -n "s/^$1 $2 \"kind\":\"step\" \"step\":$3 .*\"loss\":\([^ ]*\) .*/\1/p" "$4"; }

# Losses of the first step from the initial and from the stored weights. Kernels differ by less than the
# rounding of bf16, 2^-8. In later steps the differences grow.
near() {
    for at in "trained 1" "continued 7"; do
        # shellcheck disable=SC2086 # words
        echo "$at $(loss_of $1 $at "$golden/values/reference") $(loss_of $1 $at "$2")"
    done >"$folder/losses"
    cat "$folder/losses"
    awk 'NF != 4 || !($3 > 0) || ($3 - $4) ^ 2 > ($3 / 256) ^ 2 { exit 1 }' "$folder/losses"
}

# compare RUN DEVICE
compare() {
    place=$folder/$2
    manifest=$(manifest_of "$1" "$place/new/runs")
    check "$1 says what it was made with on $2" \
        [ "$(grep -cE '^"(libraries|processor features)":"' "$manifest")" = 2 ]
    kind=$(kind_of "$manifest")
    values=$(values_of "$kind")
    for stage in ${values:+trained predicted continued}; do
        check "$1 is $stage as by 0.1 on $2, '$(basename "$values")'" \
            same_values $stage "$values" "$place/$1" "$1"
    done
    if [ "$kind" = "$(kind_of "$(manifest_of "$1" "$golden")")" ]; then
        put_run "$1" trained "$golden" >"$folder/stored"
        check "$1 trains to the stored checkpoint" same_values trained "$folder/stored" "$place/$1" "$1"
    fi
    [ -n "$values" ] || echo "SKIPPED: bits of $1 on $2: needs values for '$kind'"
    check "$1 of 0.1 goes on like a run with its checkpoint" same_way "$1" "$place"
    check "$1 has losses like those of the reference kernels" near "$1" "$place/$1"
}

# ---- a resolved.ini ------------------------------------------------------------------------------

# resolved RUN: the stored resolved.ini, in a folder of its own, trains to the bits of the INI.
resolved() {
    place=$folder/resolved
    mkdir "$place/$1" && cd "$place/$1" || exit 1
    sed "s|/tmp/pons-golden-runs|$place|g; s|^output = .*|output = runs|" "$golden/$1/resolved.ini" >"$1.ini"
    check "resolved.ini of $1 trains" train_run "$1" || return
    put_run "$1" trained >"$place/found"
    check "resolved.ini of $1 trains as its INI" same_values trained "$folder/cpu/$1" "$place/found" "$1"
}

# ---- the check -----------------------------------------------------------------------------------

for device in cpu reference; do
    check "data for $device" make_place "$folder/$device/new"
    check "data for $device, once more" make_place "$folder/$device/old"
    for run in $old_runs; do
        follow $run $device && compare $run $device
    done
done
check "data for resolved.ini" make_place "$folder/resolved"
for run in $old_runs; do
    resolved $run
done

# An option that is younger than the run has its default there.
cd "$folder/reference/old" || exit 1
check "a run of 0.1 was made with the default of a younger option" \
    ends 3 "[preprocess.spacing] method is 'nnunet' but the run to be continued has 'monai'" \
    train_further dynunet --set distribute.devices=reference --set preprocess.spacing.method=nnunet

# The control: a constant of the optimizer that differs in its last digit changes the values.
cd "$folder/reference/new" || exit 1
train_run unet --fresh --set distribute.devices=reference --set optimizer.beta2=0.9990001 2>"$folder/said"
put_run unet trained >"$folder/other"
differs() { ! same_values trained "$folder/reference/unet" "$folder/other" unet; }
check "another constant is found out" differs
finish
