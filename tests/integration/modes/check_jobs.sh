#!/bin/sh
# Each job of examples/ on made-up data in its layout: explained at its own size, then trained with --debug on
# patches of 32 voxels by one process and by two ranks, and what its checkpoint predicts. brain.ini is the quickstart's,
# deep.ini and head_t1.ini are those of check_deep.sh.
. "${srcdir:-.}/tests/support/checks.sh"
. "$source/tests/support/idx.sh"
. "$source/tests/tools/lacks.sh"
reads_pictures=yes
lacks libpng && reads_pictures=no
cd "$folder" || exit 1
cp "$source"/examples/*.ini .

# decathlon NAME CASES CHANNELS CLASSES: a dataset folder.
decathlon() {
    "$program" data phantom -o "$1" --cases "$2" --extent 44,40,36 --channels "$3" --classes "$4" 2>log ||
        { cat log; exit 1; }
}
decathlon Task09_Spleen 11 1 2
decathlon Task01_BrainTumour 6 4 4
decathlon phantom 8 1 3
{
    echo features,labels
    for image in phantom/imagesTr/*.nii.gz; do
        echo "$image,phantom/labelsTr/${image##*/}"
    done
} >brains.csv

# A head stands for each of four modalities.
for n in 0 1 2 3 4; do
    case=BraTS/BraTS-GLI-0000$n-000
    mkdir -p $case
    for modality in t1n t1c t2w t2f; do
        cp phantom/imagesTr/phantom_00$n.nii.gz "$case/${case##*/}-$modality.nii.gz"
    done
    cp phantom/labelsTr/phantom_00$n.nii.gz "$case/${case##*/}-seg.nii.gz"
done

mkdir MNIST
idx_stack MNIST/train 40 1 10 28 28
idx_stack MNIST/t10k 12 2 10 28 28

# predicts NAME IMAGE: what the checkpoint of NAME makes of IMAGE has its grid.
predicts() {
    # shellcheck disable=SC2086 # an image and flags
    "$program" predict -q "runs/$1-debug" $2 -o "out/$1.nii.gz" && dimensions "out/$1.nii.gz" 44 40 36
}

# dimensions FILE I J K: the header's extents, little-endian 16-bit integers from byte 42 on.
dimensions() {
    # shellcheck disable=SC2046 # three numbers
    set -- "$@" $(gzip -dc "$1" | od -A n -t d2 -j 42 -N 6 --endian=little)
    [ "$2 $3 $4" = "$5 $6 $7" ]
}

small="--set patch.extent=32 --set window.extent=32 --set distribute.timeout_s=$(patient 100)"

# trains JOB [SETTING...]: explain the job as it is, and train it.
trains() {
    job=$1
    shift
    check "$job is explained as it is" "$program" explain "$job.ini"
    # shellcheck disable=SC2086 # words of settings
    check "$job trains" "$program" train -q "$job.ini" --debug $small "$@" \
        --set experiment.name="$job"
}

# job NAME IMAGE [SETTING...]: explain, train, predict, and train on two ranks.
job() {
    job=$1 image=$2
    shift 2
    trains "$job" "$@"
    check "$job predicts" predicts "$job" "$image"
    # shellcheck disable=SC2086
    check "$job trains on two ranks" "$program" launch -n 2 -- train -q "$job.ini" --debug $small "$@" \
        --set experiment.name="$job-two"
    check "$job predicts from two ranks" predicts "$job-two" "$image"
}

spleen=Task09_Spleen/imagesTr/phantom_000.nii.gz
tumour=Task01_BrainTumour/imagesTr/phantom_000.nii.gz
head=phantom/imagesTr/phantom_000.nii.gz
job brats $tumour
job brats_ddp $tumour
job datasets_speed $head
synthesis="--set model.ch=8 --set preprocess.resize.extent=32"
# shellcheck disable=SC2086 # words of settings
job fast_ddpm "BraTS/BraTS-GLI-00000-000 --target t1c" $synthesis
# The presets include it, and have other extents and micro-batches.
for extent in 64 128 256; do
    # shellcheck disable=SC2086
    trains fast_ddpm_$extent $synthesis --set train.micro_batches=2
done
for preset in 128_two large local production; do
    check "fast_ddpm_$preset is explained as it is" "$program" explain fast_ddpm_$preset.ini
done
job nobrainer_brain $head
job nobrainer_demo $head
job smartcache_ddp $head
job spleen $spleen
job spleen_fast $spleen

# classified NAME: the checkpoint of NAME has a class for each image of a test list.
classified() {
    "$program" predict -q "runs/$1-debug" MNIST -o "out/$1.csv" && [ "$(wc -l <"out/$1.csv")" = 13 ]
}
check "mnist_mlp trains" "$program" train -q mnist_mlp.ini --debug
check "mnist_mlp predicts" classified mnist_mlp
check "mnist_mlp_ddp trains on two ranks" "$program" launch -n 2 -- train -q mnist_mlp_ddp.ini --debug \
    --set distribute.timeout_s="$(patient 100)"
check "mnist_mlp_ddp predicts from two ranks" classified mnist_mlp_ddp

# pictures FOLDER CLASS...: two pictures of each class for training and two for validation, of two extents.
pictures() {
    place=$1
    shift
    for class; do
        mkdir -p "$place/train/$class" "$place/val/$class"
        cp "$source/tests/golden/pictures/rgb.png" "$place/train/$class/small.png"
        cp shown/phantom_000.png "$place/train/$class/large.png"
        cp shown/phantom_001.png "$place/val/$class/large.png"
        cp "$source/tests/golden/pictures/interlaced.png" "$place/val/$class/small.png"
    done
}

# named NAME FOLDER CLASS...: the table of NAME has a row for each picture, a column for each class, and shares of 1.
named() {
    "$program" predict -q "runs/$1-debug" "$2"/val/*/* -o "out/$1.csv" || return
    shift 2
    columns=$(printf ",%s" "$@")
    [ "$(head -n 1 "out/$job.csv")" = "file,class$columns" ] &&
        awk -F, -v classes=$# 'NR > 1 { sum = 0; for (c = 0; c < classes; c++) sum += $(NF - c)
                                        bad += sum < 0.999 || sum > 1.001 }
                               END { exit bad || NR != 2 * classes + 1 }' "out/$job.csv"
}

precision=
# picture_job NAME FOLDER CLASS... -- [SETTING...]: explain, train, predict, and train on two ranks.
picture_job() {
    job=$1 place=$2
    shift 2
    classes=
    while [ "$1" != -- ]; do
        classes="$classes $1"
        shift
    done
    shift
    # shellcheck disable=SC2086 # a flag and its value
    check "$job is explained as it is" "$program" explain "$job.ini" $precision
    # shellcheck disable=SC2086
    check "$job trains" "$program" train -q "$job.ini" --debug $precision "$@"
    # shellcheck disable=SC2086 # words of classes
    check "$job predicts" named "$job" "$place" $classes
    # shellcheck disable=SC2086
    check "$job trains on two ranks" "$program" launch -n 2 -- train -q "$job.ini" --debug $precision "$@" \
        --set experiment.name="$job-two" --set distribute.timeout_s="$(patient 100)"
    job=$job-two
    # shellcheck disable=SC2086
    check "$job predicts" named "$job" "$place" $classes
}

if [ $reads_pictures = no ]; then
    echo "SKIPPED: jobs on pictures: needs libpng"
else
    printf '[data]\nsource = phantom\n' >heads.ini
    "$program" data show -q heads.ini phantom_000 phantom_001 -o shown >log 2>&1 || { cat log; exit 1; }
    pictures imagenet n01440764 n01443537 n01484850
    pictures imagewoof2-320 n02086240 n02087394
    picture_job imagefolder_resnet50 imagenet n01440764 n01443537 n01484850 -- --set patch.extent="1 32 32" \
        --set preprocess.resize.extent=36 --set preprocess.center_crop.extent="0 32 32" --set model.depth=10 \
        --set train.batch=2 --set train.micro_batches=2
    # No processor computes in fp16; the file as it is says so.
    unchanged() { "$program" explain "$1" >log 2>&1 || grep -q 'precision fp16 does not exist on a cpu' log; }
    check "imagewoof_xresnet50 is read as it is" unchanged imagewoof_xresnet50.ini
    precision="--set train.precision=bf16"
    picture_job imagewoof_xresnet50 imagewoof2-320 n02086240 n02087394 -- --set patch.extent="1 32 32" \
        --set preprocess.resize.extent="1 36 36" --set preprocess.center_crop.extent="0 32 32" \
        --set model.depth=18 --set train.batch=2
    rm heads.ini
fi

# Slides of 1,000 x 1,200 pixels, with a box of tumour in each, and lists of four positions with nine labels each.
slides() {
    mkdir -p training/images
    for n in 1 2 3; do
        "$build/tests/support/data/make_slide" training/images/tumor_00$n.tif 1000 1200 256 3 \
            40,50,900,1000,dc78be 100,$((n * 100)),400,400,5a328c || exit 1
    done
    awk 'BEGIN {
        for (n = 1; n <= 3; n++)
            for (x = 420; x <= 720; x += 100) {
                row = "tumor_00" n "," x ",500"
                for (k = 0; k < 9; k++)
                    row = row "," (k % 3 < 2 && int(k / 3) == n % 3)
                print row >(n < 3 ? "training.csv" : "validation.csv")
            }
    }'
}

# scored NAME: the checkpoint of NAME has a class for each patch of the validation list.
scored() {
    "$program" evaluate -q --run "runs/$1-debug" --csv "out/$1.csv" && [ "$(wc -l <"out/$1.csv")" -ge 37 ]
}
job=camelyon_resnet18
# learned COMMAND...: the job's file with patches of 32 x 32.
learned() {
    "$@" -q $job.ini --debug --set data.slide_patch=32 --set "patch.extent=1 32 32" --set "window.extent=1 32 32" \
        --set model.pool=1 --set train.batch=4 --set distribute.timeout_s="$(patient 100)"
}
if "$program" doctor 2>/dev/null | grep -q '^openslide.*: yes'; then
    slides
    check "$job is explained as it is" "$program" explain $job.ini
    check "$job trains" learned "$program" train
    check "$job has the parameters of the guide" grep -q ' 11177025 parameters' runs/$job-debug/log.txt
    check "$job is scored" scored $job
    if "$program" doctor 2>/dev/null | grep -q '^libtiff.*: yes'; then
        check "$job predicts a slide" "$program" predict -q runs/$job-debug training/images/tumor_003.tif \
            -o out/$job.tiff --stride 128
        check "$job has a map" test -s out/$job.tiff
    fi
    sed -i "s/^name = .*/name = $job-two/" $job.ini
    check "$job trains on two ranks" learned "$program" launch -n 2 -- train
    check "$job is scored from two ranks" scored $job-two
else
    echo "SKIPPED: $job: needs openslide"
fi

# A file of another name would be a job that this test does not run.
known="brain brats brats_ddp camelyon_resnet18 datasets_speed deep fast_ddpm fast_ddpm_64 fast_ddpm_128 fast_ddpm_256 \
fast_ddpm_128_two fast_ddpm_large fast_ddpm_local fast_ddpm_production \
head_t1 imagefolder_resnet50 imagewoof_xresnet50 mnist_mlp mnist_mlp_ddp nobrainer_brain nobrainer_demo \
smartcache_ddp spleen spleen_fast"
for file in *.ini; do
    case " $known " in
    *" ${file%.ini} "*) ;;
    *) fail "examples/$file is not run" ;;
    esac
done
finish
