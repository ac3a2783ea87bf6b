#!/bin/sh
# Pictures as cases: a table of PNG files trains a 2D network, predicts on their grid and is evaluated against a picture.
. "${srcdir:-.}/tests/support/checks.sh"
. "$source/tests/tools/lacks.sh"
if lacks libpng; then
    echo "SKIPPED: check_picture_runs: needs libpng"
    exit 77
fi
cd "$folder" || exit 1
pictures=$source/tests/golden/pictures
for name in rgb interlaced rgba grey; do
    cp "$pictures/$name.png" "$name.png"
    cp "$pictures/palette2.png" "ids_$name.png"
done
cat >list.csv <<'END'
image,label,case,split
rgb.png,ids_rgb.png,a,train
interlaced.png,ids_interlaced.png,b,train
grey.png,ids_grey.png,c,train
rgba.png,ids_rgba.png,d,val
END
cat >a.ini <<END
[experiment]
name = a
deterministic = yes
[data]
source = list.csv
labels = background:0 low:1 high:2
[preprocess]
steps = scale_range
[preprocess.scale_range]
from = 0 255
to = 0 1
[augment]
steps = flip rotate90 zoom
[augment.flip]
axes = 1 2
[augment.rotate90]
axes = 1 2
[augment.zoom]
probability = 0.5
[patch]
extent = 1 16 16
per_case = 2
$(small_unet)
[train]
steps = 6
validate_steps = 3
precision = fp32
[log]
sinks = csv
[distribute]
devices = cpu
threads = 1
END

run() { "$program" "$@"; }
same_weights() { cmp "runs/$1/checkpoints/step-00000006/model.safetensors" \
                     "runs/$2/checkpoints/step-00000006/model.safetensors"; }

check 'the cases are sound' ends 0 '3 channels' run data check a.ini
check 'a run trains on pictures' run train a.ini
check 'all caches and threads give the same weights' run train a.ini --set experiment.name=b --set data.cache=disk \
    --set data.cache_dir=cache --set data.loader_threads=3 --set distribute.threads=2
check 'the weights are the same' same_weights a b
check 'a picture is predicted' run predict runs/a rgba.png -o d.nii.gz
check 'the prediction is evaluated against a picture' run evaluate --prediction d.nii.gz --label ids_rgba.png
"$program" evaluate --prediction ids_rgba.png --label ids_rgba.png --metrics dice >table 2>said || cat said
check 'the indices of a palette are its classes' test "$(grep -c '^ids_rgba  *[1-9][0-9]*  *1.0000' table)" -ge 2
mkdir in
cp rgb.png grey.png in
check 'a folder of pictures is predicted, a grey one with three channels' run predict runs/a in -o predicted
check 'each has a file' test -f predicted/rgb.nii.gz -a -f predicted/grey.nii.gz
check 'predictions are NIfTI' ends 2 "expected a file .nii or .nii.gz" run predict runs/a rgba.png -o d.png

head -c 700 rgb.png >cut.png
sed 's/^rgb.png/cut.png/' list.csv >cut.csv
check 'a truncated picture is named' ends 4 "cut.png': it ends too early" run data check a.ini --set data.source=cut.csv
check 'training refuses it, too' ends 4 "cut.png': it ends too early" run train a.ini --set experiment.name=c \
    --set data.source=cut.csv
sed 's/ids_rgb.png/rgba.png/' list.csv >coloured.csv
check 'colours are no labels' ends 4 "has 3 channels, expected 1" run data check a.ini --set data.source=coloured.csv
cat >globs.ini <<'END'
[data]
image = in/*.png
label = labels/*.png
labels = background:0 low:1 high:2
END
mkdir labels
cp ids_rgb.png labels/rgb.png
cp ids_grey.png labels/grey.png
check 'patterns name pictures' ends 0 '' run data check globs.ini
finish
