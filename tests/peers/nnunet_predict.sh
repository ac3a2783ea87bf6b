#!/bin/sh
# Prediction with a trained folder of nnU-Net on the processor, without mirroring, beside nnUNetv2_predict: a CT that is
# 512 x 512 x 200 voxels of 0.8 x 0.8 x 1.5 mm on the network's grid, and the plan that nnU-Net's planner makes for such
# CT. Both programs in turn, one thread each, medians of processor seconds, since shared machines stretch wall time.
#
#   tests/peers/nnunet_predict.sh PONS [ROUNDS [FOLDER]]      needs: pip install nnunetv2 nibabel; taskset, GNU time
#
# The whole case takes hours of PyTorch, so both are put together of parts: of the peer start, preprocessing, one of
# its 150 windows, its sums, and export; of pons one window with start and end, one more window, and the time that a
# thin network of the same plan takes for the large case beside a small one. Memory is likewise; the peer's is that of
# its largest process. PARTS: whole (as above), small (12 windows by nnUNetv2_predict itself), classes (memory of 100
# classes and what -v foretells).
. "$(dirname "$0")/rounds.sh"

rounds=${2:-1}
whole ROUNDS "$rounds"
parts=$(chosen PARTS "${PARTS:-}" whole small classes)
keep "${3:-}"
export CUDA_VISIBLE_DEVICES="" OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
[ -d "$folder/model_thin_100" ] || python3 "$here/nnunet_predict.py" "$folder" make >"$folder/log" 2>&1

# timed NAME COMMAND...: adds processor seconds and peak MiB of the command to the file NAME.
timed() {
    name=$1
    shift
    command time -f '%U %S %M' -o "$folder/cost" taskset -c 0 "$@" >"$folder/log" 2>&1
    awk '{ print $1 + $2, $3 / 1024 }' "$folder/cost" >>"$folder/cost.$name"
}

# own MODEL SCAN PRECISION
own() {
    timed "$1.$2.$3" "$pons" predict -v "$folder/$1"/*fullres "$folder/$2/scan_0000.nii.gz" --no-mirror \
        -o "$folder/own.nii.gz" --set distribute.threads=1 --set window.precision="$3"
}

peer() {
    taskset -c 0 python3 "$here/nnunet_predict.py" "$folder" "$1" 2>"$folder/log" |
        awk '$1 == "figures" { print $2, $3 }' >>"$folder/cost.$1"
}

whole_peer() {
    (
        export nnUNet_raw="$folder/raw" nnUNet_preprocessed="$folder/preprocessed" nnUNet_results="$folder/results"
        mkdir -p "$folder/results/Dataset903_Window"
        ln -sfn "$folder"/model/*fullres "$folder/results/Dataset903_Window"
        timed peer nnUNetv2_predict -i "$folder/small" -o "$folder/peer" -d 903 -c 3d_fullres -f 0 -device cpu \
            --disable_tta -npp 1 -nps 1 --disable_progress_bar
    )
}

# of NAME COLUMN: the median; 1: seconds, 2: MiB.
of() { cut -d ' ' -f "$2" "$folder/cost.$1" | median; }

rm -f "$folder"/cost.*
round=0
while [ "$round" -lt "$rounds" ]; do
    own model small fp32
    own model small bf16
    for part in $parts; do
        case $part in
        classes)
            own model_thin_100 small fp32
            grep -o 'memory about [0-9.]* GB' "$folder/log" >"$folder/foretold"
            ;;
        small) whole_peer ;;
        whole)
            for precision in fp32 bf16; do
                own model one $precision
                for scan in one small large; do
                    own model_thin $scan $precision
                done
            done
            for step in import prepare window sums export; do
                peer $step
            done
            ;;
        esac
    done
    round=$((round + 1))
done
for precision in fp32 bf16; do
    for part in $parts; do
        [ "$part" != classes ] || continue
        if [ "$part" = small ]; then
            echo "$(of model.small.$precision 1) $(of model.small.$precision 2) $(of peer 1) $(of peer 2)"
        else
            for column in 1 2; do
                for name in one small; do
                    of model.$name.$precision $column
                done
                for name in one small large; do
                    of model_thin.$name.$precision $column
                done
                for name in import prepare window sums export; do
                    of $name $column
                done
            done | tr '\n' ' ' | awk '{
                rest = $5 - $3 - 149 * ($4 - $3) / 11
                own = $1 + 149 * ($2 - $1) / 11 + rest
                peer = $6 + $7 + 150 * ($8 + $9) + $10
                most = $17 > $20 ? $17 : $20
                most = $18 + $19 - $16 > most ? $18 + $19 - $16 : most
                print own, $11 + $15 - $13, peer, most }'
        fi | awk -v precision=$precision -v part="$part" '{
            printf "%s, %s: pons %.1f s, %.0f MiB; peer %.1f s, %.0f MiB; ratio %.1f, memory %.2f\n",
                part, precision, $1, $2, $3, $4, $3 / $1, $2 / $4 }'
    done
done
case $parts in
*classes*) echo "100 classes: $(of model_thin_100.small.fp32 2) MiB, $(cat "$folder/foretold")" ;;
esac
