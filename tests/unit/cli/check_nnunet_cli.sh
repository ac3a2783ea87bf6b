#!/bin/sh
# A raw folder of nnU-Net in the installed program: checked, trained on, predicted and scored. Voxels of the label
# 'ignore' count in no loss and in no metric.
. "${srcdir:-.}/tests/support/checks.sh"
cd "$folder" || exit 1

# expect CODE PHRASE COMMAND...: the command exits with CODE and prints PHRASE; 'said' gets its output.
expect() {
    code=$1 phrase=$2
    shift 2
    checks=$((checks + 1))
    "$@" >said 2>&1
    found=$?
    [ "$found" -eq "$code" ] && grep -qF -e "$phrase" said && return
    fail "code $found, expected $code and '$phrase': $*"
    cat said
}
losses() { grep '"kind":"step"' "runs/$1/metrics.jsonl" | sed 's/.*"loss":\([^,]*\),.*/\1/'; }

# Two channels are two phantoms of one geometry.
for channel in 0 1; do
    "$program" data phantom -o ph$channel --cases 3 --extent 20,18,16 --classes 4 --seed $channel 2>log ||
        { cat log; exit 1; }
done
mkdir -p raw/imagesTr raw/labelsTr raw/imagesTs || exit 1
for n in 0 1 2; do
    cp ph0/labelsTr/phantom_00$n.nii.gz raw/labelsTr/head_$n.nii.gz
    for channel in 0 1; do
        cp ph$channel/imagesTr/phantom_00$n.nii.gz raw/imagesTr/head_${n}_000$channel.nii.gz
    done
done
cp raw/imagesTr/head_[01]_* raw/imagesTs
# json LABELS [MORE]
json() {
    printf '{"channel_names":{"0":"T1","1":"T2"},"labels":{%s},"numTraining":3,"file_ending":".nii.gz"%s}\n' "$1" \
        "${2:-}" >raw/dataset.json
}
printf '%s\n' '[experiment]' 'name = a' '[data]' 'source = raw' 'validation = last:1' '[patch]' 'extent = 16' \
    'sampling = balanced' '[model]' 'plugin = unet' 'channels = 2 4' 'strides = 2' '[loss]' 'plugin = dice_ce' \
    '[optimizer]' 'plugin = adam' 'lr = 0.01' '[train]' 'steps = 2' >a.ini
train() {
    name=$1
    shift
    expect 0 "done: " "$program" train a.ini --set "experiment.name=$name" "$@"
}

# Classes.
json '"background":0,"white":1,"grey":2,"lesion":3'
expect 0 "0 errors, 0 warnings" "$program" data check a.ini
expect 0 "layout: nnunet, by " "$program" data check a.ini
expect 0 "2 channels: T1 T2" "$program" data check a.ini
train classes
expect 0 "" "$program" predict runs/classes raw/imagesTs -o out
checks=$((checks + 1))
[ "$(echo out/*)" = "out/head_0.nii.gz out/head_1.nii.gz" ] || fail "predictions: $(echo out/*)"
for split in test auto all; do
    expect 0 "layout: nnunet, by " "$program" predict runs/classes raw -o $split --split $split
    checks=$((checks + 1))
    [ "$(cd $split && echo *)" = "head_0.nii.gz head_1.nii.gz$([ $split = all ] && echo ' head_2.nii.gz')" ] ||
        fail "predictions of the dataset, --split $split: $(echo $split/*)"
done
expect 0 "2 other cases" "$program" data check a.ini
mv raw/imagesTs/head_1_0001.nii.gz beside.nii.gz
expect 4 "expected 'raw/imagesTs/head_1_0001.nii.gz' beside it" "$program" predict runs/classes raw -o none
mv beside.nii.gz raw/imagesTs/head_1_0001.nii.gz

# Regions: a run folder is sufficient for a prediction.
json '"background":0,"whole":[1,2,3],"core":[2,3]' ',"regions_class_order":[1,2]'
expect 0 "whole                              1991   11.5220%        3  1-3" "$program" data check a.ini
train regions --set loss.plugin=dice
mv raw/dataset.json kept.json
expect 0 "" "$program" predict runs/regions raw/imagesTs -o regions
expect 0 "" "$program" predict runs/regions raw/imagesTs -o maps --label-map
# bytes FOLDER VALUES: the voxels of the first case's last channel that have none of VALUES.
bytes() { gzip -dc "$(ls "$1"/*.nii.gz | head -n 1)" | tail -c 5760 | tr -d "$2" | wc -c; }
checks=$((checks + 1))
core=$(bytes regions '\000')
[ "$(bytes maps '\000\001')" -eq "$core" ] && [ "$core" -gt 0 ] && [ "$(bytes maps '\000\001\002')" -eq 0 ] ||
    fail "a map of regions: $core voxels of 'core', $(bytes maps '\000\001') of its id"
expect 3 "--label-map: region 'whole' has no id above 0 that no later region has" "$program" predict runs/regions \
    raw/imagesTs -o none --label-map --set "data.regions=whole:2,3 core:2,3"
mv kept.json raw/dataset.json

# The label 'ignore': one loss in every cache, another one than with a class of its ids.
json '"background":0,"white":1,"grey":2,"ignore":3'
expect 0 "(ignored)" "$program" data check a.ini
train ignore
checks=$((checks + 1))
[ "$(losses ignore | wc -l)" -eq 2 ] && [ "$(losses ignore)" != "$(losses classes)" ] ||
    fail "losses with ids ignored: $(losses ignore)"
for cache in none disk device; do
    train $cache --set data.cache=$cache
    checks=$((checks + 1))
    [ "$(losses ignore)" = "$(losses $cache)" ] || fail "losses with cache = $cache: $(losses $cache)"
done
train counted --set patch.extent=24
for cache in memory device; do
    train padded-$cache --set patch.extent=24 --set patch.count_padding=no --set data.cache=$cache
done
checks=$((checks + 1))
[ "$(losses padded-device)" = "$(losses padded-memory)" ] && [ "$(losses counted)" != "$(losses padded-device)" ] ||
    fail "losses without padding: $(losses padded-memory), on the device $(losses padded-device)"
expect 0 "grey" "$program" evaluate --run runs/ignore
checks=$((checks + 1))
grep -q lesion said && fail "an ignored id is scored: $(cat said)"
expect 0 "" "$program" predict runs/ignore raw/imagesTs -o ignored
expect 0 "" "$program" train a.ini --set experiment.name=ignore --set train.steps=3

# The loss is 0 if all voxels are ignored, for classes and for regions.
cp -r raw/labelsTr sound
for n in 0 1 2; do
    "$program" data crop sound/head_$n.nii.gz -o raw/labelsTr/head_$n.nii.gz --above -1 --start 0,0,0 \
        --extent 20,18,16 2>log || { cat log; exit 1; }
done
json '"background":0,"ignore":1,"white":2'
for loss in bce cross_entropy dice dice_ce dice_focal focal generalized_dice l1 mse tversky; do
    train zero-$loss --set loss.plugin=$loss --set data.validation=none --set patch.sampling=uniform
    checks=$((checks + 1))
    losses zero-$loss | grep -qvx '0\|0\.0*' && fail "loss of ignored voxels: $(losses zero-$loss)"
done
json '"background":0,"all":[2,3],"core":3,"ignore":1' ',"regions_class_order":[2,3]'
train zero-regions --set loss.plugin=dice --set data.validation=none --set patch.sampling=uniform
checks=$((checks + 1))
losses zero-regions | grep -qvx '0\|0\.0*' && fail "loss of ignored regions: $(losses zero-regions)"

# Scores of files: a prediction that is wrong in ignored voxels alone is right.
"$program" data crop sound/head_0.nii.gz -o above.nii.gz --above 0 --start 0,0,0 --extent 20,18,16 2>log
for labels in 'white:1 ignore:2,3' 'white:1'; do
    expect 0 '"dice":' "$program" evaluate --json --prediction above.nii.gz --label sound/head_0.nii.gz \
        --labels "$labels" --metrics 'dice hd'
    checks=$((checks + 1))
    wrong=1
    grep -q '"white":{"dice":1,"hd":0,' said && wrong=0
    [ $wrong = "$(case $labels in *ignore*) echo 0 ;; *) echo 1 ;; esac)" ] || fail "scores with $labels: $(cat said)"
done
finish
