#!/bin/sh
# nnU-Net's recipe beside nnU-Net's own trainer: the INI file of 'pons init' on a raw nnU-Net folder, and nnUNetTrainer,
# train for as many steps on the same six blocks of a head, and nnU-Net's trainer gives the pseudo Dice of both on the
# other two. Both programs in turn.
#
#   tests/peers/nnunet_train.sh PONS [STEPS [FOLDER]]      needs: pip install nnunetv2 nibabel safetensors; GNU time
#
# The dataset is the head of Debian's mricron-data with its atlas. Seconds are processor time, user and system, since
# machines are shared: of pons that of the whole program, of nnU-Net that of the training steps alone, without imports,
# preprocessing and validation. What is measured stays in FOLDER, and the same command goes on where it was interrupted;
# a FOLDER is for one PATCH.
# STEPS is a multiple of ten, an epoch of nnU-Net's here. Environment:
#   SEEDS     default: 0 1 2
#   PATCH     edge of the patch of both; default: 32. plan: patch and widths are those of the plans
#   FEATURES  widths of the four stages; default: 16 32 64 128
#   PRECISION of pons, fp32 or auto; default: fp32, which nnU-Net has on processors
#   THREADS   of each program; default: 2. On a busy machine 1: threads that wait for others use the processor
#   FAR_END   beyond, nnU-Net's: patches on foreground go on beyond the volume; inside: those of both stay in it;
#             default: beyond
#   RUNNER    a command put before each training, to keep the machine quiet
. "$(dirname "$0")/rounds.sh"

steps=${2:-150}
whole STEPS "$steps"
[ $((steps % 10)) = 0 ] || refuse "'$steps' of STEPS, expected a multiple of 10"
seeds=${SEEDS:-0 1 2}
patch=${PATCH:-32}
[ "$patch" = plan ] || whole PATCH "$patch"
features=${FEATURES:-16 32 64 128}
precision=$(chosen PRECISION "${PRECISION:-fp32}" fp32 auto)
threads=${THREADS:-2}
whole THREADS "$threads"
far_end=$(chosen FAR_END "${FAR_END:-beyond}" beyond inside)
keep "${3:-}"
# Threads of PyTorch sleep while they wait: spinning would count as processor time.
export OMP_WAIT_POLICY=passive
cd "$folder"

# peer WORDS...: nnU-Net's side; the lines that it is asked for.
peer() {
    # shellcheck disable=SC2086
    $runner python3 "$here/nnunet_train.py" . "$@" >said 2>>log || { tail -n 5 log >&2; exit 1; }
    grep -E '^(\{"|seconds|dice)' said
}

# ours SEED: seconds of a training of pons.
ours() {
    rm -rf "runs/seed-$1"
    set -- "$1" --set train.steps="$steps" --set experiment.seed="$1" --set experiment.name="seed-$1" \
        --set train.precision="$precision" --set distribute.threads="$threads" --set train.validate_steps=0 \
        --set train.validate_every=0 --set train.checkpoint_every=0 --set patch.far_end="$far_end"
    [ "$patch" = plan ] ||
        set -- "$@" --set patch.extent="$patch" --set window.extent="$patch" --set model.features_per_stage="$features"
    shift
    # shellcheck disable=SC2086
    command time -f '%U %S' -o cost $runner "$pons" train -q head.ini "$@" >&2
    awk '{ printf "%.1f\n", $1 + $2 }' cost
}

# measured FILE SEED SECONDS WEIGHTS: adds a line "SEED SECONDS DICE DICE-OF-CLASS..." to FILE.
measured() {
    dice=$(peer score "$4")
    echo "$2 ${3#seconds } ${dice#dice }" >>"$1"
    echo "$1, seed $(tail -n 1 "$1")" >&2
}

# The plans as both programs make them.
[ -d raw ] || python3 "$here/nnunet_train.py" . data
[ -e plan ] || {
    "$pons" init raw/Dataset001_Head -o head.ini >&2
    # shellcheck disable=SC2046,SC2086 # words
    peer plan $([ "$patch" = plan ] || echo "$patch" $features) >found
    mv found plan
}
cat plan >&2
grep -E '^(extent|batch|strides|kernel_sizes|features_per_stage) = ' head.ini >&2
last=step-$(printf %08d "$steps")
own=pons-$precision-$threads-$steps-$far_end
other=nnunet-$threads-$steps-$far_end
for seed in $seeds; do
    has_round "$own" "$seed" || {
        seconds=$(ours "$seed")
        measured "$own" "$seed" "$seconds" "runs/seed-$seed/checkpoints/$last/model.safetensors"
    }
    has_round "$other" "$seed" || {
        seconds=$(peer train "$seed" "$steps" "$threads" "$far_end")
        measured "$other" "$seed" "$seconds" "nnunet-$seed.pt"
    }
done

# summary FILE: mean, least and largest pseudo Dice, and the median of the seconds.
summary() {
    awk '{ print $2 }' "$1" | median >seconds
    awk -v s="$(cat seconds)" '{ d = $3; sum += d; low = NR == 1 || d < low ? d : low; high = d > high ? d : high }
        END { printf "%.4f %.4f %.4f %.1f\n", sum / NR, low, high, s }' "$1"
}

echo "$(summary "$own") $(summary "$other")" | awk -v n="$steps" '{
    printf "%d steps: pons %.1f s, pseudo Dice %.3f (%.3f to %.3f); ", n, $4, $1, $2, $3
    printf "nnU-Net %.1f s, %.3f (%.3f to %.3f); %.2f of its time\n", $8, $5, $6, $7, $4 / $8
}'
