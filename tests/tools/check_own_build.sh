#!/bin/sh
# Scripts that build pons in a folder of their own (tests/tools/own_build.sh): their refusals, with one line and
# before any build, and the folder to which a relative path belongs.
. "${srcdir:-.}/tests/support/checks.sh"
cd "$folder" || exit 1

# refused SCRIPT TEXT ARGUMENT...: with one line, which names the script.
refused() {
    name=tests/$1
    said="$name: $2"
    shift 2
    ends 2 "$said" "$source/$name" "$@" && [ "$(wc -l <"$folder/out")" = 1 ]
}
for script in run tools/thread tools/onednn_3 tools/debian; do
    check "$script: no value" refused $script.sh "'--build' without a value" --build
    check "$script: no folder" refused $script.sh "'--build' without a folder" --build ''
    check "$script: a flag that it has not" refused $script.sh "unknown argument '--bild'" --bild x
    check "$script: words behind" refused $script.sh "unknown argument 'y'" --build x y
done
for flag in configure without; do
    check "run: no value of $flag" refused run.sh "'--$flag' without a value" --$flag
done

# builds_in FOLDER ARGUMENT...: a script called from here would build in FOLDER.
builds_in() {
    expected=$1
    shift
    # shellcheck disable=SC2016 # the other shell's
    found=$(sh -c '. "$(dirname "$0")/own_build.sh"; build=default; read_build "$@"; echo "$build"' \
        "$source/tests/tools/thread.sh" "$@")
    [ "$found" = "$expected" ] && return 0
    echo "'$found', expected '$expected'"
    return 1
}
check "a folder here" builds_in "$(pwd)/a/b" --build a/b
check "a folder anywhere" builds_in /a/b --build /a/b
check "none" builds_in default
finish
