#!/bin/sh
# The processor time of a sampling beside that of its forward passes: the network of Fast-DDPM's guide makes a modality
# of one case by ten steps, with one window of the whole image and one thread.
#
#   tests/peers/sampling.sh PONS [EXTENT [FOLDER]]
#
# Seconds of a forward pass as bench measures it, of pons predict with ten and with two steps; then, as shares of a
# forward pass, a step (an eighth of the difference) and a tenth of the whole program, which also reads the weights.
. "$(dirname "$0")/rounds.sh"

extent=${2:-128}
whole EXTENT "$extent"
keep "${3:-}"
[ -e "$folder/image-$extent" ] ||
    "$pons" data phantom -o "$folder/image-$extent" --cases 1 --extent "$extent" --channels 4 >&2
sed "s/^source = .*/source = image-$extent/; s/^extent = .*/extent = 16/; s/^steps = 5/steps = 1/" \
    "$here/fast_ddpm.ini" >"$folder/sampling.ini"
cd "$folder"
set -- --set window.extent="$extent" --set window.batch=1 --set distribute.threads=1
[ -e runs/peers/checkpoints/last ] || "$pons" train -q sampling.ini --fresh >&2 || refuse "no network"

# processor COMMAND...: user and system seconds of a command.
processor() {
    { LC_ALL=C bash -c 'TIMEFORMAT="%U %S"; time "$@" >&2' timed "$@"; } 2>&1 | awk 'END { print $1 + $2 }'
}
sample() {
    steps=$1
    shift
    processor "$pons" predict -q runs/peers "image-$extent/imagesTr/phantom_000.nii.gz" --target contrast1 \
        -o "made-$steps.nii.gz" --set diffusion.steps="$steps" "$@"
}
forward=$("$pons" bench sampling.ini --forward --no-data --json --warm-up 1 --steps 3 "$@" |
    sed 's/.*"processor_seconds":\([0-9.]*\).*/\1/')
ten=$(sample 10 "$@")
two=$(sample 2 "$@")
[ -e made-10.nii.gz ] && [ -e made-2.nii.gz ] || refuse "no image was made"
echo "$forward $ten $two" | awk -v n="$extent" '{
    printf "%d^3: forward %.3f s, ten steps %.3f s, two steps %.3f s; a step %.3f of a forward pass, the program %.3f\n",
        n, $1, $2, $3, ($2 - $3) / 8 / $1, $2 / 10 / $1 }'
