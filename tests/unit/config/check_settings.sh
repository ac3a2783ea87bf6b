#!/bin/sh
# Settings as users write them: folders with blanks, messages that name file, line and key, and a
# resolved.ini with the chosen values.
. "${srcdir:-.}/tests/support/checks.sh"

mkdir "$folder/with blank" && cd "$folder/with blank" || exit 1
phantom ph 2 18,16,16

check "one channel is one" grep -qF "wrote 2 cases of 18 x 16 x 16 voxels, 1 channel, 2 classes" log

# ini NAME DATA...: write the settings of a run of one step.
ini() {
    printf '%s\n' "[experiment]" "name = $1" "[preprocess]" "steps = normalize" "[patch]" "extent = 16" \
        "[model]" "plugin = unet" "channels = 2 4" "strides = 2" "[loss]" "plugin = dice" \
        "[optimizer]" "plugin = adam" "lr = 0.01" "[train]" "steps = 1" "[data]" "validation = none" \
        "labels = background:0 \"left part:1\""
    shift
    printf '%s\n' "$@"
}

# ---- blanks --------------------------------------------------------------------------------------

ini blank "image = ph/imagesTr/*.nii.gz" "label = ph/labelsTr/*.nii.gz" >blank.ini
check "a folder with a blank in its name trains" "$program" train blank.ini
sed 's/= blank/= again/' runs/blank/resolved.ini >"$folder/again.ini"
check "its resolved.ini runs elsewhere" "$program" train "$folder/again.ini"
check "both are one run" cmp runs/blank/checkpoints/step-00000001/model.safetensors \
    runs/again/checkpoints/step-00000001/model.safetensors

# ---- sampling ------------------------------------------------------------------------------------

# warned COUNT SETTING...: COUNT cases cause a warning, each one once.
warned() {
    expected=$1
    shift
    "$program" train blank.ini --set experiment.name=sampled --fresh \
        --set patch.background_above=1e9 "$@" >said 2>&1
    check "$expected warnings with '$*'" \
        test $? -eq 0 -a "$(grep -c "has no background above 1e+09: its patches" said)" -eq $expected
}
warned 0
warned 2 --set patch.sampling=balanced
warned 2 --set patch.sampling=balanced --set patch.per_case=3 --set train.steps=3
warned 0 --set patch.sampling=balanced --set patch.negative=0

# ---- resolved.ini --------------------------------------------------------------------------------

ini told "source = ph" >told.ini
check "a run without any choice" "$program" train told.ini
resolved=runs/told/resolved.ini
says() {
    check "resolved.ini says '$1'" grep -qF -e "$1" $resolved
}
says "; told.ini is $(pwd -P)/told.ini"
says "name = told ; told.ini:2"
for plugin in model/unet loss/dice optimizer/adam schedule/constant device/cpu transform/normalize; do
    sum=$(sha256sum <"${PONS_PLUGIN_PATH%%:*}/$plugin.so")
    check "resolved.ini has the hash of $plugin" \
        grep -qE "^; ${plugin%/*} ${plugin#*/} [0-9.]+ sha256 ${sum%% *}$" $resolved
done
says "layout = decathlon ; default; as it was recognised"
says "activation = softmax ; default; several classes"
says "mode = single ; default; one device"
says "devices = cpu ; default; no GPU is there"
says "backend = auto ; default; one replica needs none"
check "loader threads are a number" grep -qE "^loader_threads = [1-4] ; default; one for" $resolved
# Each convolution decides on winograd for itself.
check "no other value is left open" test "$(grep '= auto ;' $resolved | grep -cv '^winograd = ')" -eq 1

JOB_COMPLETION_INDEX=3 "$program" train told.ini --set experiment.name=numbered >numbered 2>&1
check "a numbered process says that it trains alone" \
    grep -q "^JOB_COMPLETION_INDEX = '3' .* WORLD_SIZE .* this process is alone$" numbered

# ---- explain -------------------------------------------------------------------------------------

"$program" explain told.ini --kernels >table 2>said || cat said
"$program" explain --json told.ini >json 2>said || cat said
check "a small run moves something" grep -qE "[1-9][0-9.]* kB moved, [1-9][0-9.]* [kM]FLOP" table
"$program" explain told.ini >levels 2>said || cat said
check "the network is shown by level" \
    grep -q "^level of a patch  *convolutions  *channels  *parameters  *results$" levels
check "its parameters add up" test "$(awk '/ x / { n += $8 } END { print n }' levels)" = \
    "$(sed -n 's/^\([0-9]*\) parameters, .*/\1/p' levels)"
check "kernels are left to --kernels" test "$(grep -cE '^(begin|micro|reduce|update) ' levels)" -eq 0
check "no kernel is of no size" test "$(grep -cE '^(begin|micro|reduce|update) .* 0\.0' table)" -eq 0
check "every kernel has a name" test "$(grep -c '"name":""' json)" -eq 0
check "names differ" test -z "$(grep -o '"name":"[^"]*"' json | sort | uniq -d)"
check "a second one is numbered" grep -qF '#2"' json
check "the loss is named" grep -qE "map .* loss$" table
check "its gradient is marked" grep -qF "loss (backward)" table

# ---- continued runs ------------------------------------------------------------------------------

more() {
    sed -e 's/^steps = 1$/steps = '"$1"'/' -e 's/^lr = .*/lr = 1e-2/' told.ini >more.ini
    printf '%s\n' "[window]" "extent = $2" "[augment]" >>more.ini
    check "going on with a window of '$2'" "$program" train more.ini
    check "it went on" grep -q "step $1/$1" runs/told/log.txt
}
more 2 "16 16 16"
more 3 "16"
sed -e 's/ ; .*//' -e 's/^steps = 1$/steps = 4/' "$folder/with blank/runs/told/resolved.ini" >more.ini
sed -i 's/^steps = [0-9]*$/steps = 4/' more.ini
check "going on with resolved.ini" "$program" train more.ini
check "it went on" test -d runs/told/checkpoints/step-00000004
checks=$((checks + 1))
sed -e 's/^steps = 1$/steps = 5/' told.ini >more.ini
printf '%s\n' "[window]" "extent = 8" >>more.ini
if "$program" train more.ini >said 2>&1 || ! grep -qF "[window] extent is '8' but" said; then
    failures=$((failures + 1))
    echo "FAILED: another window goes on"
    cat said
fi
checks=$((checks + 1))
rm -r runs/numbered/checkpoints
if ! "$program" train told.ini --set experiment.name=numbered >said 2>&1 ||
    ! grep -qF "/runs/numbered' has no checkpoint to go on from; the training begins anew" said; then
    failures=$((failures + 1))
    echo "FAILED: a run that was killed before its first checkpoint begins anew with a line"
    cat said
fi

# ---- a plugin that --set replaces ----------------------------------------------------------------

# replaced COMMAND...: train told.ini with momentum and nesterov of sgd, but adam by --set.
sed 's/^plugin = adam/plugin = sgd\nmomentum = 0.9\nnesterov = yes/' told.ini >sgd.ini
replaced() {
    "$program" train sgd.ini --set experiment.name=adam --set optimizer.plugin=adam "$@" >said 2>&1
}
check "a plugin by --set takes the place of another" replaced
check "the other's keys are named" \
    grep -qF "[optimizer] momentum, nesterov: left out, since --set replaces the optimizer 'sgd'" said
check "resolved.ini has none of them" test "$(grep -cE '^(momentum|nesterov) ' runs/adam/resolved.ini)" -eq 0
cp runs/adam/resolved.ini first.ini
check "it goes on" replaced --set train.steps=2
check "its resolved.ini has the same values but for the steps" test "$(sed 's/ *;.*//' first.ini >a
    sed 's/ *;.*//' runs/adam/resolved.ini | diff a - | grep '^[<>]')" = "< steps = 1
> steps = 2"
check "it says where the schedule ends" grep -qF "the schedule ends at step 2, was 1" said
checks=$((checks + 1))
if replaced --set optimizer.momentum=0.5 || ! grep -qF -e "--set: unknown key 'momentum' in [optimizer]" said; then
    failures=$((failures + 1))
    echo "FAILED: a key of --set is no key of the file"
    cat said
fi
checks=$((checks + 1))
sed -i 's/^momentum/momentun/' sgd.ini
if replaced --fresh || ! grep -qF "unknown key 'momentun' in [optimizer]" said; then
    failures=$((failures + 1))
    echo "FAILED: a key that neither plugin knows"
    cat said
fi

# ---- steps and sinks that --set replaces ---------------------------------------------------------

sed 's/^steps = normalize/steps = orient normalize clip/' told.ini >steps.ini
printf '%s\n' "[preprocess.orient]" "axes = RAS" "[preprocess.clip]" "lower = 0" "[log]" "sinks = csv wandb" \
    "[log.wandb]" "project = brain" >>steps.ini
# fewer COMMAND...: train steps.ini with one of its three steps.
fewer() {
    "$program" "$@" steps.ini --set experiment.name=fewer --set preprocess.steps=normalize --set log.sinks=csv >said 2>&1
}
check "steps and sinks by --set take the place of others" fewer train
check "the sections of other steps are named" \
    grep -qF "[preprocess] sections of orient, clip: left out, since --set replaces 'steps'" said
check "those of other sinks" grep -qF "[log] sections of wandb: left out, since --set replaces 'sinks'" said
check "each once" [ "$(grep -c 'left out' said)" -eq 2 ]
check "resolved.ini has none of them" \
    test "$(grep -cE '^.(preprocess.(orient|clip)|log.wandb)' runs/fewer/resolved.ini)" -eq 0
check "other commands leave them out as well" fewer data check
check "a section of --set stays" ends 3 "unknown section 'preprocess.clip'" "$program" train steps.ini --set experiment.name=x \
    --set preprocess.steps=normalize --set preprocess.clip.lower=1 --set log.sinks=csv
sed -i 's/^.preprocess.clip./[preprocess.clib]/' steps.ini
check "a section that no list names" ends 3 "unknown section 'preprocess.clib'" "$program" train steps.ini \
    --set experiment.name=x --set preprocess.steps=normalize --set log.sinks=csv

# ---- messages ------------------------------------------------------------------------------------

# refused PHRASE SED...: train ($command) refuses the edited plain.ini with code 3 ($found), in one
# line with the phrase.
ini plain "source = ph" >plain.ini
refused() {
    phrase=$1
    shift
    checks=$((checks + 1))
    sed "$@" plain.ini >x.ini
    "$program" ${command:-train} x.ini >said 2>&1
    code=$?
    if [ $code -ne ${found:-3} ] || ! grep -qF -e "$phrase" said; then
        failures=$((failures + 1))
        echo "FAILED: $*: code $code, expected ${found:-3} and '$phrase'"
        cat said
    fi
}

refused "x.ini:6: [patch] extent: patch 15 is not divisible by 2 along i" -e 's/^extent = .*/extent = 15/'
refused "x.ini:10: [model] strides: found 2 items" -e 's/^strides = .*/strides = 2 2/'
# network TEXT NAME SETTING...: the network NAME is refused.
network() {
    text=$1 name=$2 settings=
    shift 2
    for setting; do
        settings="$settings\\n$setting"
    done
    refused "[model] $text" -e "s/^plugin = unet/plugin = $name$settings/; /^channels/d; s/^strides = 2\$//; s/^extent.*/extent = 32/"
}
network "num_groups: found 3, expected a divisor of the 4 features of level 0" dynunet "kernel_size = 3 3 3" \
    "strides = 1 2 2" "upsample_kernel_size = 2 2" "filters = 4 8 8" "norm_name = group" "num_groups = 3"
network "kernel_size: found 2 in level 1, expected an odd extent such as 3" dynunet "kernel_size = 3 2 3" \
    "strides = 1 2 2" "upsample_kernel_size = 2 2"
network "strides: found 2 in level 0, expected at most 1" dynunet "kernel_size = 3 3 3" "strides = 2 2 2" \
    "upsample_kernel_size = 2 2"
network "patch_size = '4': expected 2" swin_unetr "patch_size = 4"
network "num_groups: found 5, expected a divisor of the 24 features of level 0" swin_unetr "norm_name = group" \
    "num_groups = 5"
refused "x.ini:13: [loss] weight: found 3 numbers" -e 's/^plugin = dice$/&\nweight = 1 2 3/'
alone="x.ini:13: [loss] weight: it would change nothing: Dice counts one class here"
refused "$alone" -e 's/^plugin = dice$/&\nweight = 5\ninclude_background = no/'
refused "$alone" -e 's/^plugin = dice$/plugin = dice_ce\nweight = 5\ninclude_background = no/'
refused "x.ini:13: [loss] weight: found 1 number, expected 2" -e 's/^plugin = dice$/plugin = cross_entropy\nweight = 5/'
refused "x.ini:13: [loss] ignore_index: found 2, expected a class from 0 to 1" -e 's/^plugin = dice$/plugin = cross_entropy\nignore_index = 2/'
refused "x.ini:13: [loss] pos_weight: found 3 numbers, expected 1 or 2" -e 's/^plugin = dice$/plugin = bce\npos_weight = 1 2 3/'
refused "x.ini:13: [loss] alpha: found 0.5, expected none with softmax" -e 's/^plugin = dice$/plugin = focal\nalpha = 0.5\ninclude_background = no/'
for schedule in 'step:every: found 0 and 0 milestones, expected one of the two' 'step\nevery = 3\nmilestones = 1:every: found 3 and 1' \
    'step\nmilestones = 3,1:milestones: found 1 after 3, expected ascending numbers' \
    'step\nmilestones = 3 3:milestones: found 3 after 3, expected ascending numbers' 'exponential:gamma: found 0 with end_factor 0'; do
    refused "[schedule] ${schedule#*:}" -e "s/^\[train\]/[schedule]\nplugin = ${schedule%%:*}\n&/"
done
refused "x.ini:13: [loss] weight: found 2 numbers" -e 's/^plugin = dice$/plugin = dice_focal\nweight = 1 5\ninclude_background = no/'
check "one number is expected, said once" grep -qE "found 2 numbers, expected 1$" said
refused "x.ini:15: [optimizer] nesterov: found yes with momentum 0 and dampening 0" -e 's/^plugin = adam$/plugin = sgd\nnesterov = yes/'
refused "x.ini:18: [train] loss_scale: found 1000, expected a power of two" -e 's/^steps = 1/&\nloss_scale = 1000/'
refused "x.ini:18: [train] loss_scale_growth: found 3, expected" -e 's/^steps = 1/&\nloss_scale_growth = 3/'
refused "x.ini:2: [window] precision fp16 does not exist on a cpu" -e '1i [window]\nprecision = fp16'
refused "x.ini:13: [loss] heads has 2 numbers, expected 1" -e 's/^plugin = dice$/&\nheads = 1 2/'
refused "x.ini:18: [train] best is 'dice.liver'" -e 's/^steps = 1/&\nbest = dice.liver/'
refused "x.ini:19: [data] validation: 'validation' is 'last:9'" -e 's/^validation = .*/validation = last:9/'
refused "x.ini:19: [data] validation: 'validation' names 'zz'" -e 's/^validation = .*/validation = names:zz/'
refused "x.ini:20: [data] labels: 'labels' gives id 1 to" -e 's/^labels = .*/labels = b:0 c:1 d:1/'
refused "x.ini:1: [experiment] has no 'name', which must be given" -e '/^name = /d'
refused "x.ini: [experiment] has no 'name', which must be given" -e '/^name = /d' -e '/^\[experiment\]/d'
refused "x.ini:7: unknown section 'modle'; did you mean 'model'?" -e 's/^\[model\]/[modle]/'
refused "x.ini:8: unknown key 'plugn' in [model]; did you mean 'plugin'?" -e 's/^plugin = unet/plugn = unet/'
refused "x.ini:9: unknown key 'chanels' in [model]; did you mean 'channels'?" -e 's/^channels/chanels/'
refused "x.ini:17: unknown key 'stesp' in [train]; did you mean 'steps'?" -e 's/^steps = 1/stesp = 1/'
refused "x.ini:2: unknown key 'nmae' in [experiment]; did you mean 'name'?" -e 's/^name = /nmae = /'
refused "x.ini: [optimizer] has no 'plugin', which must be given" -e '/^plugin = adam/d' -e '/^lr = /d' \
    -e '/^\[optimizer\]/d'
refused "x.ini:17: [train] has no 'epochs'" -e 's/^steps = 1$//' -e 's/^\[train\]/\n&/'
refused "x.ini:4: [preprocess] steps: 'normalize' occurs twice" -e 's/^steps = n.*/steps = normalize normalize/'
refused "x.ini:19: [augment] steps: 'flip' occurs twice" \
    -e 's/^\[data\]/[augment]\nsteps = flip flip\n[augment.gaussian_noise]\nstd = 0.1\n&/'
refused "x.ini:19: [data] validation: 'validation' names 'phantom_000' twice" \
    -e 's/^validation = .*/validation = names:phantom_000,phantom_000/'
refused "x.ini:4: [preprocess.pad] has no 'extent'" -e 's/^steps = n.*/steps = pad/'
refused "x.ini:18: [train] precision tf32 does not exist on" -e 's/^steps = 1/&\nprecision = tf32/'
refused "x.ini:19: [distribute] devices = 'cpu:1': there is no cpu:1" \
    -e 's/^\[data\]/[distribute]\ndevices = cpu:1\n&/'
refused "x.ini:22: [data] regions: 'regions' gives 'core' the id 300, which no class has" \
    -e '$s/$/\nregions = core:300/'
found=4
refused "x.ini:21: [data] image: no file matches" \
    -e 's|^source = .*|image = ph/imagesTr/none*.nii.gz\nlabel = ph/labelsTr/*.nii.gz|'
refused "x.ini:18: [train] pretrained: " -e 's/^steps = 1/&\npretrained = nowhere/'
unset found
for command in "explain" "data check" "train"; do
    refused "x.ini:18: [train] best is 'hd9.mean', expected a metric, a point, and 'mean' or a class" \
        -e 's/^name = .*/name = told/' -e 's/^steps = 1/&\nbest = hd9.mean/'
    refused "x.ini:18: [train] best is 'hd95.left': there is no class 'left', expected hd95.mean" \
        -e 's/^name = .*/name = told/' -e 's/^steps = 1/&\nbest = hd95.left/'
    refused "x.ini:18: [train] best is 'generalized_dice.left', but generalized_dice is a metric of" \
        -e 's/^name = .*/name = told/' -e 's/^steps = 1/&\nbest = generalized_dice.left/'
    refused "x.ini:19: [predict] keep_largest: there is no class 'left'; did you mean 'left part'?" \
        -e 's/^\[data\]/[predict]\nkeep_largest = left\n&/'
done
unset command

sed 's/^steps = 1/&\nprecision = fp32\nloss_scale = 2048/' plain.ini >x.ini
check "a scale that no precision reads is said" ends 0 "loss_scale changes nothing: the precision is fp32" \
    "$program" train x.ini --set experiment.name=unscaled

sed 's/^steps = 1/&\nprecision = fp32\nloss_scaling = fast_ddpm/' plain.ini >x.ini
check "a preset of the scale" "$program" train x.ini --set experiment.name=preset
check "has its first scale" grep -q "^loss_scale = 2048 " runs/preset/resolved.ini
check "a scale that is given" "$program" train x.ini --set experiment.name=given --set train.loss_scale=512
check "wins over the preset" grep -q "^loss_scale = 512 " runs/given/resolved.ini

# Weights of classes: their inverse counts, as 'data check' counts them, with a mean of 1.
"$program" data phantom -o rare --cases 3 --extent 24 --classes 3 2>log || { cat log; exit 1; }
sed '/^labels = /d; s/^source = .*/source = rare/; s/^name = .*/name = rare/; s/^plugin = dice$/plugin = dice_ce\nclass_weights = auto/' plain.ini >rare.ini
check "class_weights = auto trains" "$program" train rare.ini
weights_are_inverse() {
    counts=$("$program" data check rare.ini --json | sed 's/"ignored":.*//' | grep -o '"voxels":[0-9]*' | cut -d: -f2)
    expected=$(echo "$counts" | awk '{ w[NR] = 1 / $1; sum += w[NR] } END { for (i = 1; i <= NR; i++) printf "%s%.6g", (i > 1 ? " " : ""), w[i] * NR / sum }')
    found=$(sed -n 's/^weight = \([^;]*\) ; .*class_weights = auto$/\1/p' runs/rare/resolved.ini)
    [ -n "$found" ] && [ "$found" = "$expected" ] || { echo "found '$found', expected '$expected'"; return 1; }
}
check "the weights are inverse counts" weights_are_inverse
losses() { sed -n 's/^{"kind":"step",.*"loss":\([^,]*\).*/\1/p' "runs/$1/metrics.jsonl"; }
check "resolved.ini has the weights" "$program" train runs/rare/resolved.ini --set experiment.name=rare_again
check "and repeats the run" [ "$(losses rare)" = "$(losses rare_again)" ]
for refusal in "bce|the loss 'bce' takes no weights of classes, expected one such as dice_ce or cross_entropy" "dice_ce\\nweight = 1 2|class_weights is auto and weight is given"; do
    found=3 refused "${refusal#*|}" -e "s/^plugin = dice\$/plugin = ${refusal%%|*}\\nclass_weights = auto/"
done
check "and those of the others alone where the background does not count" "$program" train rare.ini \
    --set loss.plugin=focal --set loss.include_background=no --set experiment.name=rare_focal
found=3 refused "class_weights is auto with regions" -e 's/^plugin = dice$/&\nclass_weights = auto/' -e 's/^\[data\]/&\nregions = all:1/'

cd / || exit 1
finish
