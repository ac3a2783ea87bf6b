#!/bin/sh
# Runs of version 0.1 (tests/golden/runs): their checkpoints load, predict and go on to the bits that 0.1 gives,
# and their INI files train to these. tests/old_runs.sh has the stages.
#
# The reference kernels give the same bits on every processor: their values hold wherever the libraries are the same.
# The cpu device has values for some kinds of machines. On any other kind, three checks remain: losses near those of
# the reference kernels, a resolved.ini that trains to the bits of its INI, and a stored run that goes on like a
# trained one wherever both have the same checkpoint.
. "${srcdir:-.}/tests/checks.sh"
. "$source/tests/old_runs.sh"

# ---- the stages ----------------------------------------------------------------------------------

# follow RUN DEVICE: values in $folder/DEVICE/RUN; those of 'through' in RUN.through.
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
        check "$1 of 0.1 predicts on $2" predict_run $1 $on || return
        put_prediction $1 >>"$place/$1"
        check "$1 of 0.1 is continued on $2" train_further $1 $on || return
        put_run $1 continued >>"$place/$1"
    }
}

# ---- comparisons ---------------------------------------------------------------------------------

# same_values STAGE EXPECTED FOUND RUN: the first line that differs says which file or step it is.
same_values() {
    grep "^$4 $1 " "$2" >"$folder/expected" && grep "^$4 $1 " "$3" >"$folder/found" &&
        diff "$folder/expected" "$folder/found"
}

# without STAGE FILE: lines of that stage, without its name.
without() { sed -n "s/^\([a-z]*\) $1 /\1 /p" "$2"; }

# A run that has the stored run's checkpoint goes on like it.
same_way() {
    put_run "$1" trained "$golden" >"$folder/stored"
    same_values trained "$folder/stored" "$2/$1" "$1" >/dev/null || return 0
    without continued "$2/$1" >"$folder/expected"
    without through "$2/$1.through" | diff "$folder/expected" -
}

# loss_of RUN STAGE STEP FILE
loss_of() { sed -n "s/^$1 $2 \"kind\":\"step\" \"step\":$3 .*\"loss\":\([^ ]*\) .*/\1/p" "$4"; }

# The first step from the initial and from the stored weights. Kernels round apart by less than a value in bf16
# rounds, 2^-8; in later steps the differences grow.
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
    [ -n "$values" ] || echo "SKIPPED: bits of $1 on $2: no values for '$kind'"
    check "$1 of 0.1 goes on like a run with its checkpoint" same_way "$1" "$place"
    check "$1 has losses like those of the reference kernels" near "$1" "$place/$1"
}

# ---- a resolved.ini ------------------------------------------------------------------------------

# resolved RUN: the stored one, in a folder of its own, trains to what the INI does.
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

# A constant of the optimizer that is off by its last digit is found: the values could not be so by chance.
cd "$folder/reference/new" || exit 1
train_run unet --fresh --set distribute.devices=reference --set optimizer.beta2=0.9990001 2>"$folder/said"
put_run unet trained >"$folder/other"
differs() { ! same_values trained "$folder/reference/unet" "$folder/other" unet; }
check "another constant is found out" differs
finish
