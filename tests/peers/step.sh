#!/bin/sh
# Training steps and a forward pass beside PyTorch + MONAI, two threads each: both programs in turn, medians
# over rounds. PyTorch counts with the best of eager and compiled, contiguous and channels_last.
#
#   tests/peers/step.sh PONS [ROUNDS [FOLDER]]      needs: pip install torch monai einops dynamic-network-architectures
#
# Rows that end in _card are of an NVIDIA card: PyTorch with autocast, timed by the card's events; memory is the
# card's, PyTorch's as its allocator says, of pons as it has planned.
#
# The table is printed to the standard output, progress to the standard error. What has been measured is kept in
# FOLDER, beside what files.sh makes: the same command goes on where it was interrupted. In round 1 every way of
# PyTorch's is tried; later ones try those within 15 % of the best. Environment:
#   ROWS      names of rows; default: all of them that need no card
#   WAYS      of eager, eager_last, compiled, compiled_last, on a card graphs_last too; default: all of them
#   STEPS     of PyTorch in a measurement, after one that warms up; default: 3; on a card ten times as many
#   CLOCK     wall, or processor: processor time of all threads, for a machine that others use; default: wall
#   RUNNER    a command put before each measurement, to keep the machine quiet
. "$(dirname "$0")/rounds.sh"

rounds=${2:-5}
whole ROUNDS "$rounds"
plain="spleen_fp32 spleen_bf16 fast_bf16 forward_bf16 segresnet_bf16 dynunet_bf16 vnet_fp32 vnet_bf16 \
attention_fp32 attention_bf16 residual_fp32 residual_bf16 fast_ddpm_fp32 fast_ddpm_bf16 basicunet_fp32 basicunet_bf16 \
swin_unetr_fp32 swin_unetr_bf16 resnet50_fp32 resnet50_bf16 xresnet50_fp32 xresnet50_bf16 resnet18_fp32 resnet18_bf16"
# shellcheck disable=SC2086 # words
rows=$(chosen ROWS "${ROWS:-$plain}" $plain spleen_card nnunet_card)
ways=$(chosen WAYS "${WAYS:-}" eager eager_last compiled compiled_last graphs_last)
clock=$(chosen CLOCK "${CLOCK:-wall}" wall processor)
steps=${STEPS:-3}
whole STEPS "$steps"
# ways_of ROW: of those that were asked for.
ways_of() {
    for w in $ways; do
        case $w:$1 in
        graphs*:*_card) echo "$w" ;;
        graphs*) ;;
        *) echo "$w" ;;
        esac
    done
}

for r in $rows; do
    [ -n "$(ways_of "$r")" ] || refuse "'$ways' of WAYS is for rows on a card, not for $r"
done
keep "${3:-}"
export TORCHINDUCTOR_CACHE_DIR="$folder/compiled"
# Threads of PyTorch sleep while they wait: spinning would count as processor time.
[ "$clock" = wall ] || export OMP_WAIT_POLICY=passive

# The steps of networks: the row without its precision, which is also the INI file's name; the title; PyTorch's words.
steps_of_networks() {
    cat <<END
spleen | spleen U-Net step, 2 x 96^3 | --model unet_spleen
fast | fast U-Net (32..512) step, 2 x 96^3 | --model unet_fast
segresnet | SegResNet step, BraTS, 1 x 112^3 | --model segresnet_brats --loss dice --batch 1 --patch 112
dynunet | DynUNet step, shape of nnU-Net, 1 x 96^3 | --model dynunet_nnunet --batch 1
vnet | VNet step, 1 x 64^3 | --model vnet --batch 1 --patch 64
attention | AttentionUnet step, 1 x 64^3 | --model attention_unet --batch 1 --patch 64
residual | ResidualEncoderUNet step, 1 x 64^3 | --model residual_unet --batch 1 --patch 64
fast_ddpm | Fast-DDPM step, 1 x 64^3 | --model fast_ddpm --batch 1 --patch 64
basicunet | BasicUNet step, 2 x 64^3 | --model basicunet --batch 2 --patch 64
swin_unetr | SwinUNETR step, 1 x 64^3 | --model swin_unetr --batch 1 --patch 64
resnet50 | ResNet50 step, 32 x 224^2 | --model resnet50 --batch 32 --patch 224 --optimizer sgd
xresnet50 | xresnet50 step, 32 x 160^2 | --model xresnet50 --batch 32 --patch 160 --optimizer sgd
resnet18 | ResNet18 step, 2 x 64^3 | --model resnet18 --batch 2 --patch 64 --optimizer sgd
END
}

# row NAME: sets the title, PyTorch's words, and the file and the words of pons.
row() {
    case $1 in
    *_card)
        precision=bf16
        times=10
        on='--device cuda'
        device="--set distribute.devices=cuda:0 --set device.cache_dir=$folder/kernels" ;;
    *)
        precision=${1##*_}
        times=1
        on='--threads 2'
        device='--set distribute.threads=2' ;;
    esac
    file=spleen
    case $1 in
    forward_bf16) title="spleen U-Net forward, 4 windows of 96^3, $precision"
        torch='--model unet_spleen --forward --batch 4'
        ours='--forward --set window.batch=4' ;;
    spleen_card) title="spleen U-Net step, 8 x 96^3, $precision, on a card"
        torch='--model unet_spleen --batch 8'
        ours='--set train.batch=8' ;;
    nnunet_card) title="DynUNet step, shape of nnU-Net, 2 x 128^3, $precision, on a card"
        torch='--model dynunet_nnunet --batch 2 --patch 128'
        file=dynunet; ours='--set train.batch=2 --set patch.extent=128' ;;
    *)
        file=${1%_*}
        words=$(steps_of_networks | sed -n "s/^$file | //p")
        title="${words% | *}, $precision"
        torch=${words#* | }
        ours= ;;
    esac
    torch="$torch --precision $precision"
    ours="$ours --set train.precision=$precision"
}

way() {
    case $1 in
    eager) echo '--layout contiguous' ;;
    eager_last) echo '--layout channels_last' ;;
    compiled) echo '--layout contiguous --compile' ;;
    compiled_last) echo '--layout channels_last --compile' ;;
    graphs_last) echo '--layout channels_last --graphs' ;;
    esac
}

# peak ROW: bytes that pons takes, of the process; on a card of its memory, as foretold.
peak() {
    case $1 in
    *_card)
        # shellcheck disable=SC2086
        "$pons" explain "$folder/$file.ini" --json $device $ours 2>"$folder/log" | head -n 1 |
            sed 's/.*"arena":\([0-9]*\),"parameters":\([0-9]*\),"scratch":\([0-9]*\),.*/\1 \2 \3/' |
            awk '{ printf "%.0f", $1 + $2 + $3 }' ;;
    *) sed 's/.*"peak":\([0-9]*\),.*/\1/' "$folder/json" ;;
    esac
}

# seconds WALL PROCESSOR: of the JSON of a measurement, the number that CLOCK asks for.
seconds() {
    case $clock in
    wall) sed "s/.*\"$1\": *\([^,]*\),.*/\1/" "$folder/json" ;;
    *) sed "s/.*\"$2\": *\([^,]*\),.*/\1/" "$folder/json" ;;
    esac
}

# column FILE NUMBER: the median of that column.
column() { awk -v c="$2" '{ print $c }' "$1" | median; }

# Each measurement is a line "ROUND SECONDS MIB" of $folder/ROW.WHO.
measure_pons() {
    to=$folder/$1.pons
    has_round "$to" "$2" && return
    row "$1"
    # shellcheck disable=SC2086
    $runner "$pons" bench "$folder/$file.ini" --json --no-data --warm-up $((2 * times)) \
        --steps $((5 * times)) $device $ours >"$folder/json" 2>"$folder/log" || { cat "$folder/log" >&2; exit 1; }
    seconds=$(seconds median processor_seconds)
    echo "$2 $seconds $(peak "$1")" | awk '{ print $1, $2, $3 / 1048576 }' >>"$to"
    echo "$1, round $2: pons $seconds s" >&2
}

measure_torch() {
    to=$folder/$1.$3
    has_round "$to" "$2" && return
    row "$1"
    # The first time a compiled network takes minutes to be made; the cache serves the measurement.
    case $3 in
    compiled* | graphs*) [ -e "$to.made" ] || {
        echo "$1: PyTorch $3 is being compiled" >&2
        # shellcheck disable=SC2046,SC2086
        python3 "$here/step.py" $torch $(way "$3") $on --steps 1 >"$to.made" 2>"$to.log" || true
    } ;;
    esac
    # shellcheck disable=SC2046,SC2086
    if $runner python3 "$here/step.py" $torch $(way "$3") $on --warmup $times --steps $((steps * times)) \
        >"$folder/json" 2>"$to.log"; then
        seconds=$(seconds median processor)
        peak=$(sed 's/.*"peak_mib": \([0-9]*\),.*/\1/' "$folder/json")
    else
        seconds=inf peak=inf
        tail -n 1 "$to.log" >&2
    fi
    echo "$2 $seconds $peak" >>"$to"
    echo "$1, round $2: PyTorch $3 $seconds s" >&2
}

# The ways that are worth another round.
near_best() {
    for w in $(ways_of "$1"); do
        echo "$(column "$folder/$1.$w" 2) $w"
    done | sort -g | awk 'NR == 1 { best = $1 } $1 != "inf" && $1 <= 1.15 * best { print $2 }'
}

report_row() {
    row "$1"
    best=$(for w in $(ways_of "$1"); do
        [ ! -e "$folder/$1.$w" ] || echo "$(column "$folder/$1.$w" 2) $w"
    done | sort -g | head -n 1)
    winner=${best#* }
    echo "${best%% *} $(column "$folder/$1.$winner" 3) $(column "$folder/$1.pons" 2) $(column "$folder/$1.pons" 3)" |
        awk -v title="$title" -v way="$winner" -v row="$1" '{
            printf "| %s | %.4g s (%s) | %.4g s | %.2f | %.0f MiB | %.0f MiB | %.2f | `ROWS=%s tests/peers/step.sh PONS` |\n",
                title, $1, way, $3, $1 / $3, $2, $4, $4 / $2, row }'
}

networks

round=1
while [ "$round" -le "$rounds" ]; do
    for r in $rows; do
        measure_pons "$r" "$round"
        chosen=$(ways_of "$r")
        [ "$round" -eq 1 ] || chosen=$(near_best "$r")
        for w in $chosen; do
            measure_torch "$r" "$round" "$w"
        done
    done
    round=$((round + 1))
done

# Of rows on a card its name, else the processor's.
case $rows in
*_card*) machine=$("$pons" devices | sed -n 's/^cuda:0  *\([^:]*\):.*/\1/p') ;;
*) machine="$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), 2 threads" ;;
esac
echo "$machine;" \
    "$(python3 -c 'import torch, monai; print("PyTorch", torch.__version__, "MONAI", monai.__version__)' 2>"$folder/log");" \
    "medians of $rounds rounds, $clock time"
echo
echo '| what | PyTorch + MONAI (its best way) | pons | ratio | its peak memory | peak of pons | ratio | command |'
echo '| --- | --- | --- | --- | --- | --- | --- | --- |'
for r in $rows; do
    report_row "$r"
done
