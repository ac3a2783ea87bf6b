#!/bin/sh
# task = synthesis: training by diffusion has the same bits in every mode and after a resumption,
# and pons predict makes the modality that is missing.
. "${srcdir:-.}/tests/support/checks.sh"
cd "$folder" || exit 1
"$program" data phantom -o heads --cases 5 --extent 20,18,22 --channels 3 >/dev/null || fail "no phantom"
cat >a.ini <<'END'
[experiment]
name = a
task = synthesis
[data]
source = heads
validation = last:2
[preprocess]
steps = scale_percentiles
[preprocess.scale_percentiles]
from = 1 99
to = -1 1
clip = yes
channel_wise = yes
above = 0
[patch]
extent = 16
[model]
plugin = fast_ddpm
ch = 4
ch_mult = 1 2
num_res_blocks = 1
[loss]
plugin = mse
[optimizer]
plugin = adam
lr = 1e-2
[train]
steps = 4
batch = 2
micro_batches = 2
validate_steps = 4
checkpoint_every = 1
ema_decay = 0.9
precision = fp32
[diffusion]
schedule = uniform_3d
betas = cosine
[distribute]
devices = cpu
threads = 1
END
# expect CODE TEXT ARGUMENT...: the program ends with CODE and says TEXT.
expect() {
    code=$1 text=$2
    shift 2
    checks=$((checks + 1))
    "$program" "$@" >stdout 2>stderr
    found=$?
    [ "$found" -eq "$code" ] || fail "pons $*: ends with $found, expected $code"
    grep -qF -- "$text" stderr || fail "pons $*: says '$(cat stderr)', expected '$text'"
}
metrics() { sed -n 's/,"seconds":[^}]*//; s/^{"kind":"validation",.*"psnr"/psnr/p' "runs/$1/metrics.jsonl"; }
# same RUN: its losses and its validation are those of run a.
same() {
    [ "$(losses a)" = "$(losses "$1")" ] && [ "$(metrics a)" = "$(metrics "$1")" ]
}
train() { name=$1; shift; "$program" train a.ini --set "experiment.name=$name" "$@"; }

check "it trains" train a
check "with four losses" [ "$(losses a | wc -l)" -eq 4 ]
check "and a validation" [ -n "$(metrics a)" ]
check "channels of [data] name the modalities" train named --set "data.channels=T1 T2 PD" --set train.steps=1
check "which the run's file tells" grep -q "^modalities = T1 T2 PD  *; .*the dataset's" runs/named/resolved.ini
check "two replicas train" train dp --set distribute.devices=cpu:0,cpu:1
check "with the same bits" same dp
check "two ranks train" "$program" launch -n 2 -- train a.ini --set experiment.name=ddp
check "with the same bits" same ddp
check "the page has the cases" grep -q "the modality to be made" runs/a/report.html
check "two steps" train resumed --set train.steps=2
check "and two more" train resumed --set train.steps=4
check "have the same losses" [ "$(losses a)" = "$(losses resumed)" ]
check "another seed trains" train seed --set experiment.seed=1
check "with other draws" sh -c "! [ '$(losses a)' = '$(losses seed)' ]"

# ---- predict and evaluate ------------------------------------------------------------------------

image=heads/imagesTr/phantom_004.nii.gz
predict() { out=$1; shift; "$program" predict runs/a "$@" -o "$out.nii.gz"; }
check "a modality is made" predict one $image --target contrast1
check "again" predict again $image --target contrast1
check "with the same bits" cmp one.nii.gz again.nii.gz
check "another one" predict other $image --target contrast0
check "is another image" sh -c '! cmp -s one.nii.gz other.nii.gz'
check "with fresh noise" predict eta $image --target contrast1 --set diffusion.eta=1
check "it is another image" sh -c '! cmp -s one.nii.gz eta.nii.gz'
expect 2 "hint: --target NAME makes one of contrast0 contrast1 contrast2" predict runs/a $image -o x.nii.gz
expect 4 "cannot read 'nofolder': No such file or directory" predict runs/a nofolder -o x.nii.gz
expect 2 "expected one of contrast0 contrast1 contrast2" predict runs/a $image --target t9 -o x.nii.gz
expect 2 "are for segmentation" predict runs/a $image --target contrast1 --logits -o x.nii.gz

# ---- one target ----------------------------------------------------------------------------------

check "one modality as target trains" train target --set diffusion.targets=contrast1
check "with other losses" sh -c "! [ '$(losses a)' = '$(losses target)' ]"
check "it is the one that is measured" sh -c "echo '$(metrics target)' | grep -q '\"contrast1\":' &&
    ! echo '$(metrics target)' | grep -q '\"contrast[02]\":-*[0-9]'"
check "and made unasked" "$program" predict runs/target $image -o unasked.nii.gz
check "or by its name" "$program" predict runs/target $image --target contrast1 -o by_name.nii.gz
check "with the same bits" cmp unasked.nii.gz by_name.nii.gz
expect 2 "--target 'contrast0': the network makes no such modality, expected one of contrast1" \
    predict runs/target $image --target contrast0 -o x.nii.gz
check "all as targets are none" train every --set "diffusion.targets=contrast0 contrast1 contrast2"
check "with the same bits" same every

# One file a modality, each with the same voxels as all: the target's own file is not read.
"$program" data phantom -o single --cases 2 --extent 20,18,22 --channels 1 >/dev/null || fail "no phantom"
mkdir case
for k in 0 1 2; do cp single/imagesTr/phantom_00$((k % 2)).nii.gz case/head-contrast$k.nii.gz; done
check "of three files" predict three case --target contrast1
cp single/imagesTr/phantom_000.nii.gz case/head-contrast1.nii.gz
check "with another file of the target" predict three_again case --target contrast1
check "it is the same image" cmp three.nii.gz three_again.nii.gz
rm case/head-contrast1.nii.gz
check "without that file" predict two case
check "it is the same image" cmp three.nii.gz two.nii.gz
check "of a list of files" predict list case/head-contrast2.nii.gz,case/head-contrast0.nii.gz
check "it is the same image" cmp three.nii.gz list.nii.gz
expect 4 "has no file of contrast1, expected all modalities but 'contrast0'" \
    predict runs/a case --target contrast0 -o x.nii.gz
expect 4 "has no file of contrast0, expected all modalities but 'contrast1'" \
    predict runs/target case/head-contrast2.nii.gz -o x.nii.gz
expect 4 "has no file of contrast0 contrast1, expected all modalities but 'contrast2'" \
    predict runs/a case/head-contrast2.nii.gz --target contrast2 -o x.nii.gz
expect 4 "has no file of contrast1, expected all modalities but one of contrast0 contrast2" \
    predict runs/a case -o x.nii.gz --set "diffusion.targets=contrast0 contrast2"

# Cases of a dataset, each without the file of its target; the file of one case is asked for.
mkdir -p raw/imagesTs
cp case/head-contrast0.nii.gz raw/imagesTs/head_0000.nii.gz
cp case/head-contrast2.nii.gz raw/imagesTs/head_0002.nii.gz
cp single/imagesTr/phantom_001.nii.gz raw/imagesTs/other_0001.nii.gz
cp single/imagesTr/phantom_000.nii.gz raw/imagesTs/other_0002.nii.gz
cat >raw/dataset.json <<'END'
{ "channel_names": { "0": "contrast0", "1": "contrast1", "2": "contrast2" },
  "labels": { "background": 0, "inside": 1 }, "numTraining": 0, "file_ending": ".nii.gz" }
END
check "cases of a dataset lack one file each" "$program" predict runs/a raw --split test -o absent
check "the same image" cmp three.nii.gz absent/head.nii.gz
check "the other case lacks another one" [ -s absent/other.nii.gz ]
check "patterns find them, too" "$program" predict runs/a \
    "raw/imagesTs/*_0000.nii.gz,raw/imagesTs/*_0001.nii.gz,raw/imagesTs/*_0002.nii.gz" -o found/
check "the same images" cmp absent/other.nii.gz found/other.nii.gz
expect 4 "case 'other' has no file of contrast0, expected all modalities but 'contrast1'" \
    predict runs/a raw --split test --target contrast1 -o x/
check "two devices predict two cases" "$program" predict runs/a $image case/ --target contrast1 -o both \
    --set distribute.devices=cpu:0,cpu:1
check "the same images" cmp three.nii.gz both/head.nii.gz
check "in any order" cmp one.nii.gz both/phantom_004.nii.gz

"$program" evaluate --run runs/a --json >evaluated.json
check "the training has a PSNR" [ -n "$(metrics a | grep -o '"contrast[0-9]":-*[0-9]')" ]
for value in $(metrics a | sed 's/"ssim".*//' | grep -o '"contrast[0-9]":-*[0-9][^,}]*' | sed 's/.*://'); do
    check "evaluate has the training's PSNR" grep -qF "\"psnr\":{\"mean\":$value" evaluated.json
done
two_ranks() {
    port=$((20000 + ($$ * 7 + 3) % 10000))
    for rank in 0 1; do
        RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
            "$program" evaluate --run runs/a --json >"ranks.$rank" &
    done
    wait $! && wait
}
check "two ranks evaluate" two_ranks
check "with the same values" cmp evaluated.json ranks.0
check "which one of them prints" [ ! -s ranks.1 ]
expect 2 "task = synthesis does not measure" evaluate --run runs/a --metrics dice
expect 2 "task = synthesis does not measure" evaluate --run runs/a --metrics "dice iou hd hd95 asd nsd"

# The PSNR of an image and itself is infinite.
itself() { "$program" evaluate --label one.nii.gz --metrics "psnr mae" "$@" >itself; }
says() { grep -qF -- "$1" "${2:-itself}" || { cat "${2:-itself}"; return 1; }; }
check "an image is compared with itself" itself --prediction one.nii.gz --csv itself.csv
check "the table has the infinite PSNR" grep -qE '^mean +image +inf +0.0000$' itself
check "and the CSV file" says "one,image,inf,0," itself.csv
check "as JSON" itself --prediction one.nii.gz --json
check "it is a text" says '"mean":{"psnr":"inf","mae":0}'
check "two infinite ones" itself one.nii.gz one.nii.gz
check "differ by nothing" grep -qE '^image +psnr +1 +inf +inf +0.0000 ' itself
check "an infinite one and another" itself one.nii.gz other.nii.gz --json
check "differ by infinity" says '"difference":"-inf"'

# ---- presets -------------------------------------------------------------------------------------

"$program" data phantom -o four --cases 3 --extent 16 --channels 4 >/dev/null || fail "no phantom"
preset() {
    "$program" explain "$source/examples/$1.ini" --json --set data.source="$folder/four" --set data.layout=auto \
        --set distribute.devices=cpu --set train.precision=bf16 >"$1.json"
}
for file in fast_ddpm fast_ddpm_64 fast_ddpm_128 fast_ddpm_256; do
    check "$file.ini is explained" preset $file
    check "with the guide's network" grep -q '"parameter_count":39731649' $file.json
done

# ---- refused options -----------------------------------------------------------------------------

refused() { text=$1; shift; expect 3 "$text" train a.ini --set experiment.name=x "$@"; }
sed '/^\[diffusion\]/,/^betas/d' a.ini >labels.ini
expect 3 "the task has no input 'timestep', which the model reads" train labels.ini \
    --set experiment.task=segmentation --set experiment.name=x
sed '/^\[model\]/,/^num_res_blocks/d' a.ini >unet.ini
printf '%s\n' "[model]" "plugin = unet" "channels = 4 8" "strides = 2" >>unet.ini
expect 3 "unet.ini:37: [model] plugin: model 'unet' does not read the input 'timestep', expected one for task = synthesis" \
    train unet.ini --set experiment.name=x
refused "section [diffusion] is for task = synthesis" --set experiment.task=segmentation
refused "[diffusion] steps is 65, with" --set diffusion.steps=65
refused "[train] best is 'dice.mean', which task = synthesis does not measure" --set train.best=dice.mean
refused "takes uniform or whole, since there are no labels" --set patch.sampling=balanced
refused "[data] labels: task = synthesis reads no labels" --set "data.labels=background:0 a:1"
refused "[diffusion] modalities: found 2 names, expected 3" --set "diffusion.modalities=a b"
refused "[diffusion] targets: found 't1', expected some of contrast0 contrast1 contrast2" --set diffusion.targets=t1
refused "[diffusion] targets: found 'contrast1' twice" --set "diffusion.targets=contrast1 contrast1"
refused "[train] best is 'psnr.contrast0', a modality that is not among [diffusion] targets" \
    --set diffusion.targets=contrast1 --set train.best=psnr.contrast0
refused "--set: [diffusion] beta_start: found 0.001 with betas = cosine" --set diffusion.beta_start=1e-3
refused "--set: [diffusion] beta_start: found 0.5, expected at most beta_end, 0.02" --set diffusion.betas=linear \
    --set diffusion.beta_start=0.5
refused "--set: [diffusion] beta_end: found 1e-05, expected at least beta_start, 0.0001" --set diffusion.betas=linear \
    --set diffusion.beta_end=1e-5
refused "expected at most timesteps, 5" --set diffusion.timesteps=5
finish
