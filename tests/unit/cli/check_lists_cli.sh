#!/bin/sh
# Lists of cases through the program: a datalist and tables are checked, trained on and predicted with. The
# recorded settings give the same run again, and a wrong list leaves no file.
. "${srcdir:-.}/tests/support/checks.sh"
cd "$folder" || exit 1

"$program" data phantom -o ph --cases 4 --extent 18,16,16 2>/dev/null || exit 1
cat >a.ini <<'INI'
[experiment]
name = run
[data]
labels = background:0 brain:1
[patch]
extent = 16
[model]
plugin = unet
channels = 2 4
strides = 2
[loss]
plugin = dice
[optimizer]
plugin = adam
lr = 0.01
[train]
epochs = 1
INI

# entry NUMBER MORE: an entry of a datalist. row NUMBER: two cells of a table.
entry() {
    printf '{"image": "ph/imagesTr/phantom_00%s.nii.gz", "label": "ph/labelsTr/phantom_00%s.nii.gz"%s}' "$1" "$1" "$2"
}
row() { printf 'ph/imagesTr/phantom_00%s.nii.gz,ph/labelsTr/phantom_00%s.nii.gz' "$1" "$1"; }
printf '{"training": [%s, %s, %s, %s], "testing": [{"image": "x.nii"}]}\n' "$(entry 0 ', "fold": 0')" \
    "$(entry 1 ', "fold": 1')" "$(entry 2 ', "fold": 0')" "$(entry 3 '')" >folds.json
printf 'features,labels\r\n%s\r\n%s\r\n%s\r\n' "$(row 0)" "$(row 1)" "$(row 2)" >train.csv
printf 'image_t1\timage_t2\tlabel\tsplit\n' >channels.tsv
for n in 0 1 2; do
    split=train
    [ $n != 1 ] || split=val
    printf 'ph/imagesTr/phantom_00%s.nii.gz\tph/imagesTr/phantom_003.nii.gz\tph/labelsTr/phantom_00%s.nii.gz\t%s\n' \
        $n $n $split >>channels.tsv
done
printf 'phantom_002\n' >held.txt

# says CODE PHRASE COMMAND...: the exit code and a phrase of the output.
says() {
    code=$1 phrase=$2
    shift 2
    checks=$((checks + 1))
    "$program" "$@" >said 2>&1
    found=$?
    [ $found -eq "$code" ] && grep -qF -e "$phrase" said ||
        fail "$*: code $found, expected $code, '$phrase': $(cat said)"
}
losses() { sed -n 's/^{"kind":"step",.*"loss":\([^,]*\).*/\1/p' "runs/$1/metrics.jsonl"; }

says 0 "layout: datalist, by '$(pwd)/folds.json'" data check a.ini --set data.source=folds.json
says 0 "4 cases, 2 for training, 2 for validation: phantom_000 phantom_002" data check a.ini \
    --set data.source=folds.json
says 0 "1 other case" data check a.ini --set data.source=folds.json
says 0 "3 for training, 1 for validation: phantom_001" data check a.ini --set data.source=folds.json --set data.fold=1
says 0 "layout: csv, by '$(pwd)/train.csv'" data check a.ini --set data.source=train.csv
says 0 "2 for training, 1 for validation: phantom_002" data check a.ini --set data.source=train.csv \
    --set data.validation=file:held.txt
says 4 "2 channels: t1 t2" data check a.ini --set data.source=channels.tsv
says 4 "is also a file of case 'phantom_000'" data check a.ini --set data.source=channels.tsv
says 0 "layout: datalist, by '$(pwd)/folds.json'" data check folds.json --set 'data.labels=background:0 brain:1'
says 0 "layout: csv, by '$(pwd)/train.csv'" data check train.csv --set 'data.labels=background:0 brain:1'
says 0 "layout: decathlon, by '$(pwd)/ph/dataset.json'" data check ph/dataset.json
says 4 "cannot find the dataset '$(pwd)/none.csv'" data check none.csv
says 0 "pons data check FILE.ini | FOLDER | LIST.json | TABLE.csv" help data check
for list in folds.json train.csv channels.tsv; do
    says 0 "layout: " train a.ini --set data.source=$list --set experiment.name=$list
    says 0 "phantom_003" predict runs/$list -o "$list.nii.gz" "$([ $list = channels.tsv ] &&
        echo ph/imagesTr/phantom_003.nii.gz,ph/imagesTr/phantom_000.nii.gz || echo ph/imagesTr/phantom_003.nii.gz)"
    cp runs/$list/resolved.ini again.ini
    says 0 "as given, of" train again.ini --set experiment.name=again-$list
    checks=$((checks + 1))
    [ -n "$(losses $list)" ] && [ "$(losses $list)" = "$(losses again-$list)" ] ||
        fail "$list: the recorded settings give other losses"
done

# Cases for tests need no label; other cases come from folders and patterns too.
printf '{"training": [%s], "testing": ["ph/imagesTr/phantom_001.nii.gz", {"image": "ph/imagesTr/phantom_002.nii.gz"}]}\n' \
    "$(entry 0 '')" >tests.json
printf 'image,label,split\n%s,train\nph/imagesTr/phantom_003.nii.gz,,test\n' "$(row 0)" >tests.csv
mkdir -p patients/a patients/b
cp ph/imagesTr/phantom_000.nii.gz patients/a/t1.nii.gz
cp ph/imagesTr/phantom_001.nii.gz patients/b/t1.nii.gz
printf '{"training": [%s], "validation": []}\n' "$(entry 0 '')" >valid.json
# predicts FOLDER NAMES WORD...: the files that a prediction leaves.
predicts() {
    folder_of=$1 names=$2
    shift 2
    says 0 "$folder_of/" predict runs/train.csv "$@" -o "$folder_of"
    checks=$((checks + 1))
    found=$(cd "$folder_of" && echo *)
    [ "$found" = "$names" ] || fail "$*: left '$found', expected '$names'"
}
predicts tests_json "phantom_001.nii.gz phantom_002.nii.gz" tests.json
predicts all_json "phantom_000.nii.gz" tests.json --split all
predicts tests_csv "phantom_003.nii.gz" tests.csv --split test
predicts all_csv "phantom_000.nii.gz" tests.csv --split all
predicts pattern "a.nii.gz b.nii.gz" 'patients/*/t1.nii.gz'
predicts root "phantom_000.nii.gz phantom_001.nii.gz phantom_002.nii.gz phantom_003.nii.gz" ph
checks=$((checks + 1))
cmp -s tests_csv/phantom_003.nii.gz train.csv.nii.gz || fail "a case of a table is another than its file"
mkdir -p msd/imagesTs && cp -r ph/imagesTr ph/labelsTr msd && cp ph/imagesTr/phantom_003.nii.gz msd/imagesTs
msd() {
    printf '{"modality": {"0": "CT"}, "training": [%s, %s], "test": [%s]}\n' "$(entry 0 '')" "$(entry 2 '')" "$1" |
        sed 's/ph\///g' >msd/dataset.json
}
msd '"./imagesTs/phantom_003.nii.gz", "./imagesTr/._hidden.nii.gz", {"image": "imagesTr/phantom_001.nii.gz"}'
predicts tests_msd "phantom_001.nii.gz phantom_003.nii.gz" msd
predicts split_msd "phantom_001.nii.gz phantom_003.nii.gz" msd --split test
predicts all_msd "phantom_000.nii.gz phantom_002.nii.gz" msd --split all
says 2 "--split has no effect, found images and no dataset" predict runs/train.csv ph/imagesTr -o none --split all
says 4 "'ph/dataset.json': 'test' is empty, expected a list of cases" predict runs/train.csv ph -o none --split test
msd 3
says 4 "'msd/dataset.json': 'test[0]' is a number, expected a path" predict runs/train.csv msd -o none
says 3 "layout 'globs' has no cases for tests, expected decathlon, nnunet, datalist, csv, idx or folders" predict runs/train.csv \
    'patients/*/t1.nii.gz' -o none --split test
says 4 "'testing' is missing, expected a list of cases" predict runs/train.csv valid.json -o none --split test
says 4 "no file matches 'patients/*/t2.nii.gz'" predict runs/train.csv 'patients/*/t2.nii.gz' -o none
cp patients/a/t1.nii.gz patients/a/t2.nii.gz
says 4 "found 'patients/b/t1.nii.gz', expected 'patients/b/t2.nii.gz' beside it" predict runs/train.csv \
    'patients/*/t1.nii.gz,patients/*/t2.nii.gz' -o none
checks=$((checks + 1))
[ ! -e none ] || fail "a refused prediction wrote files"

# A wrong list is refused before a file is written.
mkdir two && cp folds.json train.csv two
printf 'image,label\n%s\n%s\n' "$(row 0)" "$(row 7)" >bad.csv
ls runs >before
says 4 "'$(pwd)/bad.csv' row 3, column 'image': cannot find '" train a.ini --set data.source=bad.csv \
    --set experiment.name=bad
says 3 "datalist by '$(pwd)/two/folds.json' and csv by '$(pwd)/two/train.csv', expected one" train a.ini \
    --set data.source=two --set experiment.name=bad
says 4 "no .csv or .tsv with a column 'image'" train a.ini --set data.source=ph/imagesTr --set experiment.name=bad
says 3 "'fold' is 7, but '$(pwd)/folds.json' has no case of it" train a.ini --set data.source=folds.json \
    --set data.fold=7 --set experiment.name=bad
checks=$((checks + 1))
ls runs | cmp -s before - || fail "a refused command has written: $(ls runs)"
finish
