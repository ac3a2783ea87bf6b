#!/bin/sh
# The scripts that measure beside other programs refuse unknown words before they make anything. A misread word would
# appear in the table under a name that was not measured.
. "${srcdir:-.}/tests/support/checks.sh"
peers=$source/tests/peers
TMPDIR=$folder/made
export TMPDIR
mkdir "$TMPDIR"

# refused SCRIPT TEXT [WORD=VALUE] [-- ARGUMENT...]: ends with 2 and one line that contains TEXT, and makes nothing.
refused() {
    script=$1
    text=$2
    shift 2
    word=
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        word=$1
        shift
    done
    [ $# -eq 0 ] || shift
    checks=$((checks + 1))
    env ${word:+"$word"} "$peers/$script.sh" "$@" >"$folder/said" 2>&1
    status=$?
    [ "$status" -eq 2 ] && [ "$(wc -l <"$folder/said")" -eq 1 ] && grep -qF -e "$text" "$folder/said" &&
        [ -z "$(ls "$TMPDIR")" ] || {
        fail "$script $word $*: ended with $status, expected 2, one line with '$text' and nothing made"
        cat "$folder/said"
    }
}

for script in "$peers"/*.sh; do
    script=$(basename "$script" .sh)
    [ "$script" != rounds ] || continue
    refused $script "usage: tests/peers/$script.sh PONS"
    refused $script "usage: tests/peers/$script.sh PONS" -- --help
    refused $script "no program '$folder/none'" -- "$folder/none"
done
refused step "'foo' of WAYS" WAYS=foo -- "$program" 1
refused step "'foo' of WAYS" "WAYS=eager foo" -- "$program" 1
refused step "'spleen' of ROWS" ROWS=spleen -- "$program" 1
refused step "'*' of ROWS" 'ROWS=*' -- "$program" 1
refused step "'graphs_last' of WAYS is for rows on a card" WAYS=graphs_last -- "$program" 1
refused step "'two' of STEPS" STEPS=two -- "$program" 1
refused step "'0' of ROUNDS" -- "$program" 0
refused ddp "'tf32' of PRECISIONS" PRECISIONS=tf32 -- "$program" 1
refused ddp "'monai' of SIDES" SIDES=monai -- "$program" 1
refused ddp "'x' of ROUNDS" -- "$program" x
refused cases "'0' of COUNT" -- "$program" 0
refused data "'-1' of ROUNDS" -- "$program" -1
refused prep "'two' of ROUNDS" -- "$program" two
refused augment "'0' of ROUNDS" -- "$program" 0
refused colours "'0' of ROUNDS" -- "$program" 0
refused mlp "'0' of ROUNDS" -- "$program" 0
refused sampling "'x' of EXTENT" -- "$program" x
refused slides "'0' of ROUNDS" -- "$program" 0
refused wait "'x' of STEPS" -- "$program" x
refused wait "'more' of PROFILES" PROFILES=more -- "$program" 9
refused wait "'fp16' of PRECISIONS" PRECISIONS=fp16 -- "$program" 9
refused brain "'torch' of SIDES" SIDES=torch -- "$program"
refused brain "'x' of STEPS" "STEPS=20 x" -- "$program"
refused scaling "'thread' of PARTS" PARTS=thread -- "$program"
refused scaling "'fp16' of PRECISION" -- "$program" fp16
refused scaling "one PRECISION" -- "$program" "bf16 fp32"
refused scaling "'5x' of ROUNDS" -- "$program" bf16 5x
refused files "no FOLDER" -- "$program"
refused nnunet_train "'outside' of FAR_END" FAR_END=outside -- "$program" 10

# Each file that the documents name is read, and its network is made.
check "files.sh makes files" "$peers/files.sh" "$program" "$folder/networks"
documented=$(grep -o 'FOLDER/[a-z]*\.ini' "$source/docs/performance.md" | sed 's/.*\///; s/\.ini//')
# shellcheck disable=SC2086 # words
for file in $(printf '%s\n' spleen fast segresnet dynunet $documented | sort -u); do
    check "$file.ini is a network" "$program" explain -q "$folder/networks/$file.ini" --set distribute.threads=1
done
check "fast.ini is the larger one" grep -q '^channels = 32 64 128 256 512$' "$folder/networks/fast.ini"

if python3 -c 'import sys, torch, monai; sys.exit(torch.cuda.is_available())' 2>/dev/null; then
    check "a step on a card that is not there" ends 1 "step.py: PyTorch finds no CUDA device" \
        python3 "$peers/step.py" --device cuda
    check "is one line" test "$(wc -l <"$folder/out")" = 1
fi
finish
