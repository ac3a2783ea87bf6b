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
