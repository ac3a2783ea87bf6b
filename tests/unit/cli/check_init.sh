#!/bin/sh
# pons init: an INI file that trains as it stands for each planner, the order of axes, the limit of memory, --set, and
# refusals that leave nothing behind.
. "${srcdir:-.}/tests/support/checks.sh"
cd "$folder" || exit 1
golden=$source/tests/golden/nnunet/fingerprint

# plans NAME ARGUMENT...: write NAME.ini; standard error stays empty. The table is in NAME.out.
plans() {
    name=$1
    shift
    "$program" init "$@" -o "$name.ini" >"$name.out" 2>"$name.err" && [ ! -s "$name.err" ] && return 0
    cat "$name.err"
    return 1
}

# trains NAME: two steps of NAME.ini, and the check of its data. No parameter is reported as untrained: the plan
# gives some outputs the weight 0.
trains() {
    "$program" data check "$1.ini" && "$program" train "$1.ini" --set train.epochs= --set train.steps=2 \
        --set train.validate_steps=0 --set train.validate_every=0 --set distribute.devices=cpu >train.log 2>&1 &&
        ! grep -F 'no path from the loss' train.log && return 0
    cat train.log
    return 1
}

# has NAME LINE...: the lines stand in NAME.ini; what is behind ' ;' does not count.
has() {
    file=$1.ini
    shift
    for line in "$@"; do
        sed 's/ *;.*//' "$file" | grep -qxF -e "$line" || { echo "no '$line'"; cat "$file"; return 1; }
    done
}

# refused CODE TEXT ARGUMENT...: nothing is written, and standard output stays empty.
refused() {
    code=$1 text=$2
    shift 2
    "$program" init "$@" >out 2>err
    [ $? -eq "$code" ] && grep -qF -e "$text" err && [ ! -s out ] && [ ! -e bad.ini ] && return 0
    cat err out
    return 1
}

phantom ph 6 40,36,32
for like in nnunet resenc_m resenc_l resenc_xl monai; do
    check "a plan like $like is written" plans $like ph --like $like
    check "a plan like $like trains" trains $like
done
check "the default is nnunet" plans default ph
sed '/^name =/d; /^; Forecast/d' nnunet.ini >left
sed '/^name =/d; /^; Forecast/d' default.ini >right
check "two plans of a dataset are equal" cmp left right
check "the options of nnU-Net are written" has nnunet 'plugin = plain_unet' 'plugin = sgd' 'momentum = 0.99' \
    'plugin = poly' 'plugin = nnunet' 'batch_dice = no' 'batch = 2' 'method = nnunet' 'steps = crop_foreground normalize spacing' 'select = nonzero' \
    'scheme = zscore' 'use_mask_for_norm = yes'
check "windows and labels are nnU-Net's" has nnunet 'mode = nnunet' 'resample = logits' 'separate_slices = auto'
check "MONAI's are its own" has monai 'mode = gaussian' 'overlap = 0.25'
check "a run of the plan is exported as a folder of nnU-Net" "$program" export runs/nnunet --nnunet exported
check "a third of the patches is foreground" has nnunet 'foreground_share = 0.33' 'far_end = beyond'
check "the transforms of nnU-Net are its profile" has nnunet 'profile = nnunet' 'axes = 0 1 2'
resolves() { grep -A9 -F "[augment.$2]" "runs/$1/resolved.ini" | grep -qE "$3" || { cat "runs/$1/resolved.ini"; return 1; }; }
check "its steps are resolved" resolves nnunet gamma_inverted '^invert_image = yes .*profile nnunet'
check "no step has options of its own but the flip" [ "$(grep -c '^\[augment\.' nnunet.ini)" -eq 1 ]
check "the weights of nnU-Net's outputs are written" has nnunet 'heads = 0.666667 0.333333 0'
check "a residual plan has nnU-Net's residual encoder" has resenc_m 'plugin = residual_unet' 'n_blocks_per_stage = 1 3 4 6'
check "a plan like monai has MONAI's network" has monai 'plugin = unet' 'num_res_units = 2' 'plugin = dice_ce'
check "the table has intensities" grep -q '^0 *contrast0 .* z-score$' nnunet.out
check "the table has classes" grep -qE '^brain +6 ' nnunet.out
check "the forecast is in the file" grep -qE '^; Forecast .* of .*memory' nnunet.ini

# Regions: the loss of each planner takes them.
regions() {
    plans "regions_$1" four --like "$1" --set "data.labels=background:0 white:1 grey:2 lesion:3" \
        --set "data.regions=whole:1,2,3 core:2,3" && grep -qE '^whole +3 ' "regions_$1.out" && trains "regions_$1"
}
"$program" data phantom -o four --cases 3 --extent 40,36,32 --classes 4 2>log || cat log
for like in nnunet monai; do
    check "regions are planned like $like and trained on" regions $like
done
printf 'image,label\nfour/imagesTr/phantom_000.nii.gz,four/labelsTr/phantom_000.nii.gz\n' >one.csv
entry() {
    printf '{"image":"four/imagesTr/phantom_00%s.nii.gz","label":"four/labelsTr/phantom_00%s.nii.gz","fold":%s}' \
        "$1" "$1" "$2"
}
printf '{"training":[%s,%s,%s],"labels":{"0":"b","1":"w","2":"g","3":"l"}}\n' "$(entry 0 1)" "$(entry 1 0)" \
    "$(entry 2 1)" >folds.json
check "a list with folds is planned" plans own folds.json
check "its folds are the split" has own 'validation = own'
check "the held-out case is that of the list" ends 0 "1 for validation: phantom_001" "$program" data check own.ini
raw_folder() { # FOLDER CASES
    mkdir -p "$1/imagesTr" "$1/labelsTr"
    for n in $(seq 0 $(($2 - 1))); do
        cp four/labelsTr/phantom_00$((n % 3)).nii.gz "$1/labelsTr/phantom_00$n.nii.gz"
        cp four/imagesTr/phantom_00$((n % 3)).nii.gz "$1/imagesTr/phantom_00${n}_0000.nii.gz"
    done
    echo '{"channel_names":{"0":"CT"},"labels":{"background":0,"w":1,"g":2,"l":3},"numTraining":'"$2"',
        "file_ending":".nii.gz"}' >"$1/dataset.json"
}
raw_folder raw/Dataset008_Y 5
check "a dataset of nnU-Net without folds is planned" plans nndrawn raw/Dataset008_Y
check "by those that nnU-Net draws" has nndrawn 'validation = nnunet'
check "the held-out case is nnU-Net's" ends 0 "1 for validation: phantom_000" "$program" data check nndrawn.ini
raw_folder raw/Dataset009_Z 3
rm raw/Dataset009_Z/labelsTr/phantom_001.nii.gz
check "a case without a label is named" refused 4 "case 'phantom_001'" raw/Dataset009_Z -o bad.ini
rm raw/Dataset009_Z/labelsTr/phantom_002.nii.gz
check "of two the number is said" refused 4 "2 problems, the first: case 'phantom_001'" raw/Dataset009_Z -o bad.ini
check "a hint names what lists both" grep -q "^hint: pons data check .*Dataset009_Z lists them all$" err
check "which takes the dataset" ends 4 "case 'phantom_002'" "$program" data check raw/Dataset009_Z
raw_folder raw/Dataset007_X 3
echo '[{"train":["phantom_000","phantom_002"],"val":["phantom_001"]}]' >raw/Dataset007_X/splits_final.json
check "a dataset of nnU-Net with folds is planned" plans nnsplit raw/Dataset007_X
check "by its folds" has nnsplit 'validation = own'

# A case of 264 x 264 x 264 bytes is so large that nnU-Net would train a low resolution, and its Dice is a batch's.
mkdir -p wide/imagesTr wide/labelsTr
gunzip -c ph/imagesTr/phantom_000.nii.gz | head -c 352 >head
printf '\003\000\010\001\010\001\010\001\001\000' | dd of=head bs=1 seek=40 conv=notrunc 2>dd
printf '\002\000\010\000' | dd of=head bs=1 seek=70 conv=notrunc 2>dd
{ cat head; head -c 18399744 /dev/zero | tr '\0' '\1'; } >wide/imagesTr/a_0000.nii
{ cat head; head -c 9199872 /dev/zero; printf '\1'; head -c 9199871 /dev/zero; } >wide/labelsTr/a.nii
for kind in imagesTr/b_0000 labelsTr/b; do
    ln -s "$(echo "${kind#*/}" | tr b a).nii" "wide/$kind.nii"
done
echo '{"channel_names":{"0":"noNorm"},"labels":{"background":0,"w":1},"numTraining":2,"file_ending":".nii"}' \
    >wide/dataset.json
check "large cases are planned" plans wide wide
check "with a note on the low resolution" grep -q '^note .* train a second network first$' wide.out
check "and nnU-Net's Dice of a batch" has wide 'batch_dice = yes'

check "missing labels are not blamed on --set" refused 3 "error: [data] labels: 'labels' is not given" \
    one.csv -o bad.ini
check "a wrong value of --set is" refused 3 "error: --set: [data] validation: " \
    ph -o bad.ini --set data.validation=last:x

# A class 'ignore' is no class of the plan: neither of its table nor of the network.
ignoring() {
    plans with four --set "data.labels=background:0 white:1 grey:2 ignore:3" &&
        plans without four --set "data.labels=background:0 white:1 grey:2,3" &&
        ! grep -q ignore with.out && grep -qE '^grey +3 ' with.out || return 1
    for name in with without; do
        sed -n '/^\[model\]/,/^\[/p; /^extent = /p; /^batch = /p' $name.ini >$name.plan
        "$program" explain $name.ini --json | sed -n '1s/.*\("parameters":[0-9]*\).*/\1/p' >>$name.plan
    done
    grep parameters with.plan && cmp with.plan without.plan
}
check "a class 'ignore' is no class of the plan" ignoring
check "a plan with ignored voxels trains" trains with

# The patch and the levels of a CT whose slices are along k, with the intensities of its foreground.
mkdir ct
cp -r "$golden/Dataset101_TinyCT/imagesTr" "$golden/Dataset101_TinyCT/labelsTr" ct
cases=
for i in 0 1 2; do
    cases="$cases${cases:+,}{\"image\":\"imagesTr/case_${i}_0000.nii.gz\",\"label\":\"labelsTr/case_$i.nii.gz\"}"
done
printf '{"modality":{"0":"CT"},"labels":{"0":"background","1":"a","2":"b"},"training":[%s]}\n' "$cases" >ct/dataset.json
check "a CT is planned" plans ct ct
check "axes are those of the files" has ct 'mm = 0.99 0.88 3.3' 'extent = 24 24 12' 'kernel_sizes = 3,3,1 3 3' \
    'strides = 1 2,2,1 2'
check "a CT is clipped and normalised by its foreground" has ct 'steps = crop_foreground normalize_ct spacing' 'scheme = ct' \
    'lower = -50' 'upper = 254' 'plugin = normalize'
check "the plan of a CT trains" trains ct

# The profile would rotate this patch within planes along j; nnU-Net rotates it about all axes.
phantom narrow 3 64,16,48
check "a narrow volume is planned" plans narrow narrow
check "what the profile takes for planes is written" has narrow 'profile = nnunet' 'rotate_range = 0.5235988' \
    'scale_range = -0.3 0.4 -0.3 0.4 -0.3 0.4' '[augment.low_resolution]'
check "its plan trains" trains narrow

phantom flat 3 48,40,1
check "single slices are planned" plans flat flat
check "single slices get a 2D network" has flat 'batch_dice = yes' 'extent = 40 40 1' 'axes = 0 1' \
    'strides = 1 2,2,1 2,2,1 2,2,1'
check "the plan of single slices trains" trains flat
check "slices turn within" resolves flat rotate '^rotate_range = 0 0 3.14159'

# peak NAME: bytes that 'pons explain' predicts.
peak() { "$program" explain "$1.ini" --json | sed -n '1s/.*"peak":\([0-9]*\),.*/\1/p'; }
check "a limit is kept" plans small ph --memory 100MiB
check "the forecast is that of pons explain" [ "$(peak small)" -le 110000000 ]
check "the limit makes the patch smaller" [ "$(grep -c 'extent = 40 40 32' small.ini)" -eq 0 ]
check "a smaller patch trains" trains small

# packs M: calls that pack weights for a whole step of M micro-batches.
packs() { "$program" explain default.ini --kernels --set train.micro_batches="$1" | grep -c '^begin  *pack '; }
check "one micro-batch keeps no packed weights" [ "$(packs 1)" -eq 0 ]
check "several share them" [ "$(packs 2)" -gt 0 ]

# The forecast in NAME.ini is that of 'pons explain', and within 15 % of the memory that a training with a validation
# takes: PEAK_RELATIVE of tolerance.h. Small networks decide this: the pages of libraries are most of their memory.
in_band() {
    "$program" train "$1.ini" --fresh --set train.epochs= --set train.steps=3 --set train.validate_every=0 \
        --set train.validate_steps=2 --set distribute.devices=cpu || return 1
    told=$(peak "$1")
    [ "$told" -gt 10000000 ] || return 1
    found=$(sed -n 's/.*"step":3,.*"memory":\([0-9]*\)[,}].*/\1/p' "runs/$1/metrics.jsonl")
    header=$(sed -n 's/^; Forecast of the training.s memory: \([0-9.]*\) MB of .*/\1/p' "$1.ini")
    echo "forecast $header MB, pons explain $told, measured $found"
    awk -v told="$told" -v found="$found" -v header="$header" 'BEGIN {
        exit !(found < 1.15 * told && found > 0.85 * told && 1e6 * header < 1.15 * told && 1e6 * header > 0.85 * told)
    }'
}
if grep -q '^CFLAGS = .*-fsanitize' "$build/Makefile"; then
    echo "SKIPPED: the memory of trainings: needs no sanitizer"
else
    for name in default small monai; do
        check "the forecast of $name is near the memory that is measured" in_band $name
    done
fi
check "the largest patch fits a large limit" plans large ph --memory 100GiB
check "--set wins and is written" plans set ph --set data.validation=none --set distribute.devices=cpu
check "the values of --set are in the file" has set 'validation = none' 'devices = cpu' '[distribute]'
check "a folder is made for the file" "$program" init ph -o deep/er/x.ini
check "a file in another folder finds its dataset" trains deep/er/x
cp -r ph 'p h ;x'
check "a dataset's path may hold ' ;'" plans quoted 'p h ;x'
check "it is read back" "$program" data check quoted.ini

check "the length of the training is told" grep -qF "250000 steps; --set train.steps=N trains fewer" quoted.out
check "epochs are told" grep -qF "300 epochs; --set train.epochs=N trains fewer" monai.out

# run_of FILE NAME: the plan of FILE.ini has a run of this name, and is read as it stands.
run_of() { plans "$1" ph && has "$1" "name = $2" && "$program" config "$1.ini" >out 2>&1 || { cat out; return 1; }; }
check "a name of other letters is kept" run_of köpf köpf
check "blanks become lines" run_of "my two heads" my_two_heads
check "so does a dot in front" run_of .hidden _hidden
check "a section begins once" [ -z "$(grep '^\[' nnunet.ini | sort | uniq -d)" ]
sed 's/^; mirror = /mirror = /' nnunet.ini >mirrored.ini
mirrors() { "$program" config mirrored.ini | grep -q '^mirror = 0 1 2 ; mirrored.ini'; }
check "the line of the flips may be uncommented" mirrors
silent() { "$program" init ph -q -o quiet.ini >out 2>&1 && [ ! -s out ] && [ -s quiet.ini ]; }
check "-q prints nothing" silent
for n in 0 1 2 3 4 5; do
    mkdir -p loose/$n
    cp ph/imagesTr/phantom_00$n.nii.gz loose/$n/ct.nii.gz
    cp ph/labelsTr/phantom_00$n.nii.gz loose/$n/seg.nii.gz
done
# by_patterns NAME ARGUMENT...: a plan of files that patterns name.
by_patterns() {
    name=$1
    shift
    plans "$name" --set data.image='loose/*/ct.nii.gz' --set data.label='loose/*/seg.nii.gz' \
        --set data.labels='background:0 all:*' "$@"
}
check "patterns stand for a dataset" by_patterns loose
check "their layout is told" grep -qF "layout: globs, by '$PWD/loose/*/ct.nii.gz'" loose.out
check "the file has them" has loose 'image = loose/*/ct.nii.gz' 'label = loose/*/seg.nii.gz' 'scheme = zscore'
check "the plan of patterns trains" trains loose
check "a name makes a channel CT" by_patterns deep/loose --set data.channels=CT
check "its windows are planned" has deep/loose 'channels = CT' 'scheme = ct'
check "patterns are found from another folder" "$program" data check deep/loose.ini
check "blanks around a key are none of it" "$program" init --set 'data.image = loose/*/ct.nii.gz' \
    --set 'data.label = loose/*/seg.nii.gz' --set data.labels='background:0 all:*' -o blanks.ini
check "its file is that without" has blanks 'image = loose/*/ct.nii.gz' 'label = loose/*/seg.nii.gz'
check "each key once" [ "$(grep -c '^image' blanks.ini)" = 1 ]
cp -r loose torn && head -c 600 loose/3/ct.nii.gz >torn/3/ct.nii.gz
check "a damaged file of patterns is named" refused 4 "torn/3/ct.nii.gz" -o bad.ini \
    --set data.image='torn/*/ct.nii.gz' --set data.label='torn/*/seg.nii.gz' --set data.labels='background:0 all:*'
check "names and channels agree" refused 3 "channels has 2 names, expected 1" ph -o bad.ini --set data.channels='CT MR'
check "a dataset or patterns" refused 2 "are both given" ph -o bad.ini --set data.image='loose/*/ct.nii.gz'
check "neither is usage" refused 2 "init needs DATASET" -o bad.ini
check "a folder of loose files tells the command" refused 4 "/loose/*/ct.nii.gz' --set data.label='" loose -o bad.ini
cp -r loose "l o"
check "one with blanks too" refused 4 "l o/*/ct.nii.gz\"' --set data.label='" "l o" -o bad.ini
pasted() {
    eval "set -- $(sed -n 's/^hint: .*: pons //; s/FILE.ini$/pasted.ini/p' err)" &&
        "$program" "$@" --set data.labels='background:0 all:*' && "$program" data check pasted.ini
}
check "its command may be pasted" pasted

cp nnunet.ini kept.ini
check "a file is not overwritten" refused 2 "hint: --force replaces it" ph -o kept.ini
check "it stays as it was" cmp nnunet.ini kept.ini
check "--force overwrites" "$program" init ph -o kept.ini --force
check "a folder is refused" refused 2 "'ph' is a folder" ph -o ph
check "a dataset in place of an INI file is told" ends 3 "hint: pons init ph -o FILE.ini plans one for a dataset" \
    "$program" train ph
check "a missing dataset is data" refused 4 "cannot find the dataset 'none'" none -o bad.ini
check "a folder without a dataset is data" refused 4 "no dataset.json" deep -o bad.ini
check "an unknown planner is usage" refused 2 "expected one of nnunet" ph -o bad.ini --like unet
check "an unknown key is configuration" refused 3 "did you mean 'plugin'" ph -o bad.ini --set model.plugim=x
check "wrong labels are configuration" refused 3 "labels" ph -o bad.ini --set data.labels=b:0
check "too little memory is named" refused 5 "expected at most 10.5 MB (--memory)" ph -o bad.ini --memory 10MiB
head -c 300 ph/imagesTr/phantom_003.nii.gz >cut
cp cut ph/imagesTr/phantom_003.nii.gz
check "a wrong key is found before the cases are read" refused 3 "did you mean 'plugin'" ph -o bad.ini \
    --set model.plugim=x
check "a step that the plan may lack is no wrong key" refused 4 "case 'phantom_003'" ph -o bad.ini \
    --set preprocess.crop_foreground.margin=1
check "a damaged case is named" refused 4 "case 'phantom_003'" ph -o bad.ini
check "a hint names what finds others" grep -qxF "hint: pons data check ph lists all problems" err
check "which reads the dataset" ends 4 "1 error" "$program" data check ph
check "its list is a dataset too" refused 4 "pons data check ph/dataset.json lists all problems" \
    ph/dataset.json -o bad.ini
check "by both commands" ends 4 "1 error" "$program" data check ph/dataset.json
check "--help lists the planners" ends 0 "resenc_xl" "$program" init --help

on_fakes() { plans fakes flat && grep -q 'of the device' fakes.ini; }
if [ ! -f "$build/stage/device/cuda.so" ]; then
    echo "SKIPPED: a GPU's memory bounds the plan: needs cuda"
elif given faults "a GPU's memory bounds the plan"; then
    check "a GPU's memory bounds the plan" on_cards on_fakes
fi
finish
