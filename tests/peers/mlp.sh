#!/bin/sh
# An epoch of the perceptron of PyTorch's tutorial on scikit-learn's digits (1,438 images of 8 x 8, batches of 64),
# beside PyTorch: both programs in turn, one thread each, fp32, medians of processor seconds, since shared machines
# stretch wall time.
#
#   tests/peers/mlp.sh PONS [ROUNDS [FOLDER]]      needs: pip install torch torchvision scikit-learn; GNU time
#
# An epoch of pons is the difference of two runs, of 10 and 110 epochs, over 100. PyTorch reads as the tutorial does
# (loader) and from tensors in memory (tensors).
. "$(dirname "$0")/rounds.sh"

rounds=${2:-3}
whole ROUNDS "$rounds"
keep "${3:-}"
export OMP_WAIT_POLICY=passive
[ -d "$folder/digits" ] || python3 "$here/digits.py" "$folder/digits"
cp "$here/../../examples/mnist_mlp.ini" "$folder/mlp.ini"

# train EPOCHS: processor seconds of a training.
train() {
    (cd "$folder" && command time -f '%U %S' -o cost "$pons" train -q mlp.ini --fresh --set data.source=digits \
        --set 'patch.extent=1 8 8' --set train.batch=64 --set train.epochs="$1" --set train.validate_every=0 \
        --set train.checkpoint_every=0 --set data.validation=none --set train.precision=fp32 \
        --set distribute.devices=cpu --set distribute.threads=1 --set log.sinks= >log 2>&1) ||
        refuse "$(tail -n 1 "$folder/log")"
    awk '{ print $1 + $2 }' "$folder/cost"
}

for _ in $(seq "$rounds"); do
    echo "$(train 110) $(train 10)" | awk '{ print ($1 - $2) / 100 }' >>"$folder/pons"
    for way in loader tensors; do
        python3 "$here/mlp.py" "$folder/digits" $way 20 | awk '$1 == "seconds" { print $2 }' >>"$folder/$way"
    done
done
for what in pons loader tensors; do
    median <"$folder/$what" | awk -v what=$what '{ printf "%-8s %.4f s an epoch\n", what, $1 }'
done
