#!/bin/sh
# Make what tests/integration/golden/check_old_runs.sh compares with. To be run in a build folder:
#
#   srcdir=.. sh ../tests/golden/runs/make.sh runs           the run folders, from the INI files here
#   srcdir=.. sh ../tests/golden/runs/make.sh reference      values/reference: the plain kernels
#   srcdir=.. sh ../tests/golden/runs/make.sh values NAME    the cpu device of this machine, in values/NAME or in
#                                                            a file there that has the same values
#
# The run folders are version 0.1's and stay as they are: a format that changes has to read them. Values come
# from a program that is known to give the bits of 0.1. configure --enable-isa-limit and --with-onednn make
# the kinds of smaller machines.
. "${srcdir:-.}/tests/support/checks.sh"
. "$source/tests/integration/golden/old_runs.sh"
usage="expected 'runs', 'values NAME' or 'reference'"

stop() {
    echo "make.sh: $1" >&2
    exit 1
}

# A folder of this name, since resolved.ini and log.txt hold its path.
make_runs() {
    place=/tmp/pons-golden-runs
    for run in $old_runs; do
        [ ! -e "$golden/$run" ] || stop "'$golden/$run' is there; stored runs are not made again"
    done
    mkdir "$place" || stop "'$place' must be free"
    trap 'rm -rf "$folder" "$place"' EXIT
    make_place "$place" && cd "$place" || stop "no data"
    for run in $old_runs; do
        train_run $run && cp -r runs/$run "$golden" || stop "$run failed"
    done
}

# put_stages DEVICE: all values of that device. Later stages of a run go on in the place of earlier ones.
put_stages() {
    make_place "$folder/new" && make_place "$folder/old" || return 1
    for run in $old_runs; do
        # shellcheck disable=SC2046 # words
        cd "$folder/new" && train_run $run $(on_device "$1") && put_run $run trained &&
            cd "$folder/old" && put_back $run && predict_run $run $(on_device "$1") &&
            put_prediction $run && train_further $run $(on_device "$1") && put_run $run continued || return 1
    done
}

# same_file: the stored file with the values that were found, if any.
same_file() {
    for file in "$golden"/values/*; do
        sed '/^#/d' "$file" 2>/dev/null | cmp -s - "$folder/values" && echo "$file" && return
    done
}

# make_values NAME DEVICE: kinds with the same bits share a file.
make_values() {
    put_stages "$2" >"$folder/values" || stop "a stage failed"
    kind=$(kind_of "$(manifest_of unet "$folder/new/runs")")
    [ -z "$(values_of "$kind")" ] || stop "'$(values_of "$kind")' has values for '$kind'"
    mkdir -p "$golden/values"
    file=$(same_file)
    { echo "# $kind"; cat "${file:-$folder/values}"; } >"$folder/new-values"
    cp "$folder/new-values" "${file:-$golden/values/$1}" && echo "${file:-$1}: $kind"
}

case $#,${1-} in
1,runs) make_runs ;;
1,reference) make_values reference reference ;;
2,values) make_values "$2" cpu ;;
*) stop "$usage" ;;
esac
