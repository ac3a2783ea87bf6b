#!/bin/sh
# pons predict --uncertainty --passes: entropy and variance over passes with the network's dropout.
. "${srcdir:-.}/tests/support/checks.sh"
cd "$folder" || exit 1
phantom heads 4 24,24,24
cat >a.ini <<END
[experiment]
name = a
[data]
source = heads
validation = last:1
$(small_training)
dropout = 0.3
[train]
steps = 6
precision = fp32
[window]
batch = 2
END
image=heads/imagesTr/phantom_000.nii.gz
predict() { out=$1; shift; "$program" predict runs/a $image -o "$out.nii.gz" "$@"; }
same() { cmp "$1_entropy.nii.gz" "$2_entropy.nii.gz" && cmp "$1_variance.nii.gz" "$2_variance.nii.gz"; }
# numbers FILE: its floats, one a line
numbers() { gzip -dc "$1" | tail -c +353 | od -A n -v -t f4 -w4; }

check "a network with dropout is trained" "$program" train a.ini
check "it predicts" predict plain --probabilities
check "eight passes" predict u --uncertainty --passes 8
check "the segmentation is the same" cmp plain.nii.gz u.nii.gz
check "the passes differ" sh -c "gzip -dc u_variance.nii.gz | tail -c +353 | od -A n -v -t f4 -w4 |
    awk '\$1 > 1e-4 { n++ } END { exit !(n > 100) }'"
check "again" predict again --uncertainty --passes 8
check "the draws are the same" same u again
check "with two threads" predict threads --uncertainty --passes 8 --set distribute.threads=2
check "the draws are the same" same u threads
check "on two devices" predict two --uncertainty --passes 8 --set distribute.devices=cpu:0,cpu:1
check "the draws are the same" same u two
check "among other cases" "$program" predict runs/a heads/imagesTr/phantom_001.nii.gz $image -o all --uncertainty \
    --passes 8
check "the draws are the same" same u all/phantom_000
check "other passes" predict four --uncertainty --passes 4
check "are other samples" sh -c '! cmp -s u_variance.nii.gz four_variance.nii.gz'
check "one pass has no variance" predict one --uncertainty --passes 1
numbers one_variance.nii.gz >one.txt
check "in any voxel" awk '$1 != 0 { exit 1 }' one.txt

# A dropout that never drops: the entropy is that of the probabilities.
check "a tiny dropout" predict tiny --uncertainty --passes 3 --set model.dropout=1e-12
numbers tiny_entropy.nii.gz >entropy.txt
classes=$(($(gzip -dc plain_probabilities.nii.gz | tail -c +353 | wc -c) / $(gzip -dc tiny_entropy.nii.gz | tail -c +353 | wc -c)))
numbers plain_probabilities.nii.gz | awk -v n="$(wc -l <entropy.txt)" -v classes="$classes" '
    { i = (NR - 1) % n; if ($1 > 0) h[i] -= $1 * log($1) }
    END { for (i = 0; i < n; i++) print h[i] }' | paste entropy.txt - >both.txt
check "has the entropy of the network" awk '{ d = $1 - $2; if (d > 1e-4 || d < -1e-4) exit 1 } END { exit NR < 1000 }' both.txt

check "a network without dropout is refused" ends 3 "model 'unet' has no dropout" predict none --uncertainty --passes 3 \
    --set model.dropout=0
check "and leaves no file" [ ! -e none.nii.gz ]
check "passes are for the uncertainty" ends 2 "--passes is for --uncertainty" predict none --passes 3
check "and for one network" ends 2 "--passes samples the dropout of one network, found 2" \
    "$program" predict runs/a,runs/a $image -o none.nii.gz --uncertainty --passes 3
finish
