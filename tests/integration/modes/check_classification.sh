#!/bin/sh
# task = classification: training has the same bits in every mode and after a resumption, its layouts give the same
# cases, tables and metrics agree with each other, and damaged datasets end with one line.
. "${srcdir:-.}/tests/support/checks.sh"
. "$source/tests/support/idx.sh"
. "$source/tests/tools/lacks.sh"
cd "$folder" || exit 1
expect() { checks=$((checks + 1)); ends "$@" || fail "$3 $4 $5"; }

# ---- a dataset of the layout of MNIST -------------------------------------------------------------

mkdir rows
idx_stack rows/train 48 1 4 6 5
idx_stack rows/t10k 13 2 4 6 5
cat >a.ini <<'END'
[experiment]
name = a
task = classification
deterministic = yes
[data]
source = rows
[preprocess]
steps = scale_range
[preprocess.scale_range]
from = 0 255
to = 0 1
[patch]
extent = 1 6 5
[model]
plugin = mlp
[loss]
plugin = cross_entropy
[optimizer]
plugin = adam
lr = 1e-2
[train]
epochs = 16
batch = 4
micro_batches = 2
validate_every = 16
checkpoint_every = 8
precision = fp32
[window]
batch = 4
[distribute]
devices = cpu
threads = 1
END
weights() { cat "runs/$1/checkpoints/$(cat "runs/$1/checkpoints/last")/model.safetensors"; }
metrics() { grep '"kind":"validation"' "runs/$1/metrics.jsonl" | sed 's/,"seconds":[^}]*//' | tail -1; }
same() { weights "$1" | cmp - a.weights && [ "$(metrics a)" = "$(metrics "$1")" ]; }
train() { name=$1; shift; "$program" train a.ini --set "experiment.name=$name" --set model.hidden=16 "$@"; }

check "it trains" train a
weights a >a.weights
check "every image is decided rightly" sh -c "grep -q '\"accuracy\":{\"mean\":1}' runs/a/metrics.jsonl"
check "the classes are in resolved.ini" grep -q '^labels = 0:0 1:1 2:2 3:3' runs/a/resolved.ini
check "two replicas train" train dp --set distribute.devices=cpu:0,cpu:1
check "with the same bits" same dp
check "two ranks train" "$program" launch -n 2 -- train a.ini --set experiment.name=ddp --set model.hidden=16
check "with the same bits" same ddp
check "the table of images" [ "$(head -1 runs/a/validation/cases.csv)" = \
    "case,class,accuracy,top5,probability,step,label,decision" ]
right='^t10k_[0-9]*,(mean),1,1,0[.0-9]*,[0-9]*,\([0-9]*\),\1$'
check "has a row for each" [ "$(grep -c "$right" runs/a/validation/cases.csv)" = 13 ]
check "the page has them" [ "$(grep -c '<a href="#case-' runs/a/report.html)" = 13 ]
check "eight epochs" train resumed --set train.epochs=8
check "and eight more" train resumed --set train.epochs=16
check "with the same bits" same resumed
check "loader threads train" train threads --set data.loader_threads=0
check "with the same bits" same threads
check "weights of the classes" train weighed --set loss.class_weights=auto --set loss.label_smoothing=0.1 \
    --set train.epochs=1
check "are those of equal classes" grep -q '^weight = 1 1 1 1' runs/weighed/resolved.ini
check "binary entropy trains" train bce --set loss.plugin=bce --set train.epochs=2
mkdir packed
for file in rows/*; do gzip -nc "$file" >"packed/${file#rows/}.gz"; done
check "compressed files train" train packed --set data.source=packed
check "with the same bits" same packed

# ---- predict and evaluate ------------------------------------------------------------------------

predict() { out=$1; shift; "$program" predict runs/a "$@" -o "$out.csv"; }
check "the images for tests" predict tests rows
check "are the rows of a table" [ "$(wc -l <tests.csv)" -eq 14 ]
check "with a column for each class" [ "$(head -1 tests.csv)" = "file,class,0,1,2,3" ]
check "of a single file" predict file rows/t10k-images-idx3-ubyte
check "it is the same table" cmp tests.csv file.csv
check "two devices" predict two rows --set distribute.devices=cpu:0,cpu:1
check "make the same table" cmp tests.csv two.csv
# ranks: two processes that share the images.
ranks() {
    export WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 20000))
    RANK=1 LOCAL_RANK=1 "$program" predict runs/a rows -o ranks.csv &
    RANK=0 LOCAL_RANK=0 "$program" predict runs/a rows -o ranks.csv && wait $!
    code=$?
    unset WORLD_SIZE LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
    return $code
}
check "two ranks" ranks
check "make the same table" cmp tests.csv ranks.csv
check "an ensemble" "$program" predict runs/a,runs/dp rows -o both.csv
check "of equal networks" cmp tests.csv both.csv
"$program" evaluate --run runs/a --csv cases.csv >table 2>/dev/null || fail "no evaluation"
check "evaluate prints the accuracy" grep -qx 'accuracy           1.0000' table
check "and the matrix" grep -Eqx '0 +4 +0 +0 +0' table
check "a class has a column of its own for each metric" grep -Eqx '0 +1\.0000 +1\.0000' table
"$program" evaluate --run runs/a --metrics "auc accuracy" >table 2>/dev/null || fail "no evaluation of two metrics"
check "metrics have the order of the call" [ "$(sed -n '2s/ .*//p; 3s/ .*//p' table | tr '\n' ' ')" = "auc accuracy " ]
cut -d, -f3- cases.csv | sed 1d >decided
cut -d, -f2- tests.csv | sed 1d >predicted
check "its table has the decisions" cmp decided predicted
check "JSON" sh -c "'$program' evaluate --run runs/a --json >evaluated.json"
check "has the matrix" grep -qF '"confusion":[[4,0,0,0],[0,3,0,0],[0,0,3,0],[0,0,0,3]]' evaluated.json
check "folders of the table are made" "$program" predict runs/a rows -o made/here/tests.csv
check "which is the same" cmp tests.csv made/here/tests.csv
echo kept >kept.csv
cp a.ini one.nii
cp a.ini two.nii
expect 4 "2 of 2 cases could not be predicted" "$program" predict runs/a one.nii two.nii -o kept.csv
check "a table without a row replaces none" grep -qx kept kept.csv
expect 2 "expected a file .csv" "$program" predict runs/a rows -o x.nii.gz
expect 2 "are for volumes" "$program" predict runs/a rows -o x.csv --logits
expect 2 "--no-mirror has no effect" "$program" predict runs/a rows -o x.csv --no-mirror
expect 2 "task = classification does not measure" "$program" evaluate --run runs/a --metrics dice
expect 2 "--tolerance is for surfaces of labels" "$program" evaluate --run runs/a --tolerance 1
expect 2 "--spacing is for surfaces of labels" "$program" evaluate --run runs/a --spacing 1,1,1
expect 2 "--labels is for files" "$program" evaluate --run runs/a --labels one:1
expect 3 "task = classification does not measure" train x --set train.best=dice.mean
"$program" data check a.ini >table || fail "the data has a problem"
check "the check counts the images of each class" grep -Eqx '3 +15 +24.5902%  3' table

if (cd "$OLDPWD" && lacks libpng); then
    echo "SKIPPED: patches of a classification are shown: needs libpng"
else
    check "patches are shown" "$program" data show a.ini -o shown --patches 4
    check "with their classes" grep -Eq '^patches.png, band 1 .*: train_0[0-9]* \(class [0-3]\),' shown/captions.txt
    check "images are shown" "$program" data show a.ini train_00005 -o shown
    check "with their class" grep -q '^train_00005.png (class 1): rows' shown/captions.txt
    check "without outlines" sh -c '! grep outlines shown/captions.txt'
fi

# ---- folders and tables --------------------------------------------------------------------------

"$program" data phantom -o heads --cases 6 --extent 6,5,4 --channels 1 2>/dev/null || fail "no phantom"
for n in 0 1 2 3 4 5; do
    class=$([ $((n % 2)) -eq 0 ] && echo even || echo 'odd one') part=$([ "$n" -lt 4 ] && echo train || echo val)
    mkdir -p "classes/$part/$class" "plain/$class"
    cp heads/imagesTr/phantom_00$n.nii.gz "classes/$part/$class/"
    cp heads/imagesTr/phantom_00$n.nii.gz "plain/$class/"
done
# table SCRIPT: the same cases as a table, with the classes that sed makes.
table() {
    echo image,label,split
    for file in classes/*/*/*; do
        part=${file#classes/} class=${file#classes/*/}
        echo "$file,$(echo "${class%/*}" | sed "$1"),${part%%/*}"
    done
}
table '' >cases.csv
table 's/odd one/10/; s/even/9/' >numbers.csv
volumes() {
    name=$1
    shift
    "$program" train a.ini --set "experiment.name=$name" --set 'patch.extent=6 5 4' --set train.epochs=2 \
        --set train.batch=1 --set train.micro_batches=1 --set train.validate_every=1 "$@"
}
check "folders of volumes train" volumes folders --set data.source=classes
check "with the classes' names" grep -q '^labels = even:0 "odd one:1"' runs/folders/resolved.ini
check "a table trains" volumes table --set data.source=cases.csv
check "with the same classes" grep -q '^labels = even:0 "odd one:1"' runs/table/resolved.ini
check "one without a validation list" volumes plain --set data.source=plain --set data.validation=fold:0/3
check "classes may be numbers" volumes numbers --set data.source=numbers.csv
check "by which they are ordered" grep -q '^labels = 9:9 10:10' runs/numbers/resolved.ini
check "a folder is predicted" "$program" predict runs/folders classes/val/even -o even.csv
check "with a row" [ "$(wc -l <even.csv)" -eq 2 ]
twice=$(ls classes/val/even/* | head -n 1)
expect 0 "1 image is given twice, and has a row for each" "$program" predict runs/folders "$twice" classes/val/even -o \
    twice.csv
check "a dataset of folders is predicted" "$program" predict runs/folders plain -o plain.csv
check "with all rows" [ "$(wc -l <plain.csv)" -eq 7 ]
check "a pattern is predicted" "$program" predict runs/folders 'plain/*/phantom_00*.nii.gz' -o pattern.csv
check "it is the same table" sh -c "sort plain.csv >y; sort pattern.csv | cmp - y"

# scores TEXT: what evaluate prints of the run 'folders' on the dataset in folder x has this line.
scores() { "$program" evaluate --run runs/folders --set "data.source=$folder/x" >table 2>said && grep -Eqx "$1" table; }
cp -r classes x; rm -r "x/val/odd one"
check "a class without images" scores 'odd one +- +-'
check "a matrix numbers classes with long names" grep -Eqx ' +1 even +[01] +[01]' table
check "and says so" grep -qx 'confusion: classes in rows, decisions in columns, numbered as the rows' table
rm -r x
mkdir x
cp -r classes/train x/train
mv x/train/even x/train/größen
mv "x/train/odd one" x/train/odd
check "letters of two bytes train" volumes letters --set data.source=x
"$program" evaluate --run runs/letters >table 2>said || cat said
check "are not cut in the matrix" grep -qx '       größen    odd' table
rm -r x
mkdir -p x/train/a_b x/train/a
cp heads/imagesTr/phantom_000.nii.gz x/train/a_b/0.nii.gz
cp heads/imagesTr/phantom_001.nii.gz x/train/a/b_0.nii.gz
cp heads/imagesTr/phantom_002.nii.gz x/train/a/1.nii.gz
gunzip -c heads/imagesTr/phantom_003.nii.gz >x/train/a/1.nii
check "equal names in two classes" volumes names --set data.source=x --set data.validation=none \
    --set train.validate_every=0
"$program" data check a.ini --json --set data.source=x >ids.json 2>said || cat said
for id in a_b=0.nii.gz a=b_0.nii.gz a=1.nii a=1.nii.gz; do
    check "the id $id" grep -qF "\"train_$id\"" ids.json
done
mkdir pair
cp x/train/a/1.nii x/train/a/1.nii.gz pair
check "files that differ by their endings" "$program" predict runs/folders pair -o pair.csv
check "are rows of their own" [ "$(sed '1d; s/,.*//' pair.csv | tr '\n' ' ')" = "pair/1.nii pair/1.nii.gz " ]
mkdir -p x/train/a/deep/er
cp heads/imagesTr/phantom_004.nii.gz x/train/a/deep/er/2.nii.gz
cp heads/imagesTr/phantom_005.nii.gz x/train/a/deep/
touch x/train/a/deep/w.webp x/train/a_b/Thumbs.db x/train/a/.hidden
expect 0 "x/train/a/deep/w.webp' and 1 more file are left out: their endings are those of no image" \
    "$program" data check a.ini --json --set data.source=x
for id in a_deep_er_2 a_deep_phantom_005; do
    check "the id $id of a file in a folder of its class" grep -qF "\"train_$id\"" out
done
ln -s . x/train/a/circle
expect 4 "is more than 16 folders below its class: links that form a circle?" \
    "$program" data check a.ini --set data.source=x
rm -r x
cp -r classes x
"$program" data phantom -o larger --cases 1 --extent 8,5,4 --channels 1 2>/dev/null || fail "no phantom"
cp larger/imagesTr/phantom_000.nii.gz x/val/even/large.nii.gz
expect 0 "images have different extents, as 'train_even_phantom_000' with 6 x 5 x 4 voxels and 'val_even_large'" \
    "$program" data check a.ini --set data.source=x
"$program" data check a.ini --set data.source=x --set 'preprocess.steps=resize scale_range' \
    --set 'preprocess.resize.extent=6 5 4' >table 2>&1 || cat table
check "unless a step changes them" sh -c "grep -q 'odd one' table && ! grep extents table"
for cache in memory none; do
    expect 4 "case 'val_even_large', '$folder/x/val/even/large.nii.gz': the image has 8 x 5 x 4 voxels" \
        volumes large --fresh --set data.source=x --set data.cache=$cache
    check "before a step is trained" sh -c "! grep -qs '\"step\"' runs/large/metrics.jsonl"
done
check "unless a step for validation changes it" volumes large --fresh --set data.source=x \
    --set 'preprocess.steps=scale_range resize' --set 'preprocess.resize.extent=6 5 4' \
    --set preprocess.resize.cases=validation
cp larger/imagesTr/phantom_000.nii.gz x/train/even/large.nii.gz
check "images of two extents are resized" volumes resized --set data.source=x --set train.epochs=1 \
    --set 'preprocess.steps=scale_range resize' --set 'preprocess.resize.extent=6 5 4'
cp "$folder/said" table
"$program" predict runs/resized larger/imagesTr/phantom_000.nii.gz -o resized.csv >>table 2>&1 || cat table
check "and no step 'spacing' is asked for" sh -c "test -s resized.csv && ! grep -e spacings -e \"'spacing'\" table"
rm -r x
# A thousand classes, of which every tenth has an image for validation.
names=$(seq -f 'n%05.0f' 1000) tenth=$(seq -f 'n%05.0f' 10 10 1000)
# shellcheck disable=SC2046,SC2086 # lists of names
mkdir -p $(printf 'many/train/%s ' $names) $(printf 'many/val/%s ' $tenth)
# shellcheck disable=SC2046,SC2086
tee $(printf 'many/train/%s/a.nii.gz ' $names) $(printf 'many/val/%s/b.nii.gz ' $tenth) \
    <heads/imagesTr/phantom_000.nii.gz >/dev/null
check "a thousand classes train" volumes many --set data.source=many --set train.epochs=1 --set train.batch=250 \
    --set loss.class_weights=auto --set window.batch=50
check "with a weight for each" grep -q '^weight = .*1 1 1' runs/many/resolved.ini
check "are recorded by their means" \
    grep -q '"balanced_accuracy":{"mean":[0-9.e-]*},"auc":{"mean":[0-9.e-]*},"cases":100,' runs/many/metrics.jsonl
check "are predicted" "$program" predict runs/many many/val/n00500 -o many.csv
check "with a column for each" [ "$(head -n 1 many.csv | tr , '\n' | wc -l)" -eq 1002 ]
check "are evaluated" sh -c "'$program' evaluate --run runs/many >table 2>said"
check "in a table of the worst" grep -qx 'the worst of 1000 classes; --all prints every one' table
check "with mistakes in place of a matrix" grep -Eqx ' +1 n00010 taken for n[0-9]{5}' table
check "on few lines" [ "$(wc -l <table)" -lt 40 ]
check "or of all, without a matrix" sh -c "'$program' evaluate --run runs/many --all >table 2>said && \
    [ \$(grep -c '^n[0-9]' table) = 1000 ] && ! grep confusion table"
"$program" evaluate --run runs/many --json >many.json 2>said || cat said
check "in JSON with the matrix" [ "$(sed 's/.*"confusion"//' many.json | tr '[' '\n' | wc -l)" -eq 1002 ]
"$program" data check a.ini --set data.source=many >table 2>said || cat said
check "a check lists some" grep -qx 'and 900 others, which --json lists' table
rm -r many
check "a cross-validation" volumes folds --set data.source=plain --folds 2
"$program" evaluate --run runs/folds --json >folds.json 2>said || cat said
check "scores each image once" [ "$(grep -o '"case":' folds.json | wc -l)" -eq 6 ]
expect 3 "is held out by fold 0 and fold 1, expected one" "$program" evaluate --run runs/folds \
    --set data.validation=fold:0/2

# ---- damaged datasets ----------------------------------------------------------------------------

# damaged TEXT: the dataset in folder x is refused by one line.
damaged() {
    expect 4 "$1" "$program" train a.ini --set experiment.name=x --set data.source=x
    check "by one line" [ "$(wc -l <"$folder/out")" -eq 1 ]
    rm -r x
}
copy() { cp -r rows x; }
images=x/train-images-idx3-ubyte labels=x/train-labels-idx1-ubyte
copy; head -c 1455 rows/train-images-idx3-ubyte >$images
damaged "train-images-idx3-ubyte': it has 1455 bytes, expected 1456 as its header says"
copy; head -c 9 rows/train-images-idx3-ubyte >$images
damaged "it ends after 9 bytes, expected a header of 16"
copy; printf '\0\0\10\1\0\0\0\1\0' >$images
damaged "magic number 0x00000801, expected 0x00000803, an IDX file of images"
copy; printf '\0\0\10\3\0\0\0\60\177\377\377\377\0\0\0\5' >$images
damaged "2147483647 rows, expected 1 to 16384"
copy; printf '\0\0\10\3\177\377\377\377\0\0\100\0\0\0\100\0' | gzip -n >$images.gz; rm $images
damaged "in a compressed file of"
copy; head -c 20 rows/train-labels-idx1-ubyte >$labels
damaged "it has 20 bytes, expected 56"
copy; cp rows/t10k-labels-idx1-ubyte $labels
damaged "has 13 labels, expected 48, one for each image"
copy; rm $labels
damaged "has no file 'train-labels-idx1-ubyte' or .gz"
copy; cp $images x/train-old-images-idx3-ubyte
damaged "are both images of 'train', expected one file"
copy; gzip -nc $images >$images.gz; gzip -nc $labels >$labels.gz
check "a file beside its .gz is read once" ends 0 '' "$program" data check a.ini --set data.source=x
rm -r x
expect 4 "rows/train-images-idx3-ubyte' tells the class of no image" "$program" train a.ini --set experiment.name=x \
    --set data.source=rows/train-images-idx3-ubyte --set data.validation=none
copy; cp $labels x/train-old-labels-idx1-ubyte
damaged "are both labels of 'train', expected one file"
copy; { printf '\0\0\10\3\4\0\0\0\0\0\0\1\0\0\0\1'; head -c 67108864 /dev/zero; } | gzip -1n >$images.gz
rm $images; mv $images.gz x/t10k-images-idx3-ubyte; cp rows/train-images-idx3-ubyte $images
damaged "has 67108864 images beside 48 others, expected at most 67108864 in all"
copy; gzip -n $images; head -c 400 $images.gz >y; mv y $images.gz
damaged "gzip"
cp -r classes x; mkdir x/train/neither
damaged "class folder '$folder/x/train/neither' has no image"
cp -r classes x; mv x/val/even x/val/other
damaged "has the class 'other', expected 'even', 'odd one'"
cp -r classes x; mkdir x/val/0; cp heads/imagesTr/phantom_000.nii.gz x/val/0/
expect 4 "has the class '0', expected 'even', 'odd one'" "$program" evaluate --run runs/folders \
    --set "data.source=$folder/x"
damaged "has the class '0', expected 'even', 'odd one'"
mkdir -p x/val; cp -r classes/train x/train; cp -r classes/val/even x/val/0; cp -r classes/val/odd* x/val/1
expect 4 "has the class '0', expected 'even', 'odd one'" "$program" evaluate --run runs/folders \
    --set "data.source=$folder/x"
rm -r x
check "numbers are ids of labels" volumes ids --set data.source=numbers.csv --set 'data.labels=even:9 "odd one:10"'
expect 3 "'labels' has 'ignore', which is for voxels" "$program" train a.ini --set experiment.name=x \
    --set 'data.labels=cat:0 dog:1 ignore:2'
sed '/,val/s/,even/,evn/' cases.csv >wrong.csv
expect 4 "wrong.csv' row 6, column 'label' has the class 'evn', expected 'even', 'odd one'" \
    "$program" train a.ini --set experiment.name=x --set data.source=wrong.csv
sed '3s/,even/,blue/' cases.csv >wrong.csv
expect 4 "wrong.csv' row 3, column 'label' has the class 'blue', expected 'even', 'odd one'" \
    "$program" train a.ini --set experiment.name=x --set data.source=wrong.csv --set 'data.labels=even:0 "odd one:1"'
expect 4 "the image has 1 x 6 x 5 voxels after [preprocess], expected 1 x 5 x 5" \
    "$program" train a.ini --set experiment.name=small --set 'patch.extent=1 5 5'
mkdir dots; idx_stack dots/train 8 1 2 1 1
expect 3 "[train] cutmix cuts a box out of an image, which has one voxel" "$program" train a.ini \
    --set experiment.name=x --set data.source=dots --set data.validation=none --set train.validate_every=0 \
    --set 'patch.extent=1 1 1' --set train.cutmix=1
expect 3 "layout 'globs' has no class of each image" "$program" train a.ini --set data.source= \
    --set 'data.image=heads/imagesTr/*.nii.gz'
expect 3 "task = classification has one class for a whole image" "$program" train a.ini \
    --set predict.keep_largest=0
expect 6 "model 'unet' gives" "$program" train a.ini --set experiment.name=x --set model.plugin=unet \
    --set 'model.channels=4 8' --set model.strides=1
finish
