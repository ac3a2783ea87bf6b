# Stages of the runs in tests/golden/runs. Scripts read this file after tests/support/checks.sh.
# check_old_runs.sh compares the runs, and golden/runs/make.sh stores them:
#
#   trained     the INI from its beginning, six steps
#   predicted   a case by the stored checkpoint, segmentation and probabilities
#   continued   the stored run, four steps further
#   through     the trained run, four steps further
#
# The bits depend on the kind of machine: the processor's features and the versions of libraries (R4). A file
# in golden/runs/values begins with a line "# KIND" for each kind that has its values. The other lines are
# "RUN STAGE VALUE...".
golden=$source/tests/golden/runs
old_runs="unet segresnet dynunet"

# make_place FOLDER: a folder with the data and the INI files.
make_place() {
    mkdir -p "$1" && cp "$golden"/*.ini "$1" &&
        "$program" data phantom -o "$1/data" --cases 4 --extent 14,13,12 --classes 3 --seed 7 -q
}

# put_back RUN: a copy of the stored run among the runs of this folder.
put_back() { mkdir -p runs && cp -r "$golden/$1" runs && chmod -R u+w "runs/$1"; }

# further RUN: the option with which the run ends at step 10.
further() {
    case $1 in
    segresnet) echo train.epochs=7 ;;
    *) echo train.steps=10 ;;
    esac
}

# train_run, train_further, predict_run RUN [ARGUMENT...]
train_run() {
    ini=$1.ini
    shift
    "$program" train "$ini" -q "$@"
}
train_further() { train_run "$@" --set "$(further "$1")"; }
predict_run() {
    run=$1
    shift
    "$program" predict "runs/$run" data/imagesTr/phantom_001.nii.gz -o "$run.nii.gz" \
        --probabilities -q "$@"
}

hash_of() { sha256sum | cut -c 1-64; }

# put_records RUN STAGE FILE: the numbers of each record that depend on a run's bits. Validations of 0.1 have no loss.
put_records() {
    awk -v head="$1 $2" '{
        line = head
        if (/"kind":"validation"/)
            sub(/"loss":[^,}]*,/, "")
        while (match($0, /"(kind|step|epoch|loss|lr|grad_norm)":[^,}]*|"(dice|iou)":[{][^}]*[}]/)) {
            line = line " " substr($0, RSTART, RLENGTH)
            $0 = substr($0, RSTART + RLENGTH)
        }
        print line
    }' "$3"
}

# put_run RUN STAGE [RUNS]: 'last' and 'best', the hashes of the last checkpoint, and records.
put_run() {
    marks=${3:-runs}/$1/checkpoints
    for mark in last best; do
        [ ! -e "$marks/$mark" ] || echo "$1 $2 $mark $(cat "$marks/$mark")"
    done
    for name in model optimizer ema; do
        file=$marks/$(cat "$marks/last")/$name.safetensors
        [ ! -e "$file" ] || echo "$1 $2 $name $(hash_of <"$file")"
    done
    put_records "$1" "$2" "${3:-runs}/$1/metrics.jsonl"
}

# put_prediction RUN: hashes of the uncompressed volumes.
put_prediction() {
    for name in $1 $1_probabilities; do
        echo "$1 predicted $name $(gzip -dc "$name.nii.gz" | hash_of)"
    done
}

# manifest_of RUN [RUNS]: the manifest of a run's last checkpoint.
manifest_of() {
    marks=${2:-runs}/$1/checkpoints
    echo "$marks/$(cat "$marks/last")/manifest.json"
}

# stated FACT MANIFEST: a fact about the machine, as the checkpoint states it.
stated() { sed -n "s/^\"$1\":\"\(.*\)\",\$/\1/p" "$2"; }

# kind_of MANIFEST: the kind of machine that it states; features are in alphabetical order.
kind_of() {
    features=$(stated "processor features" "$1" | tr ' ' '\n' | sort | tr '\n' ' ')
    features=${features% }
    echo "$(uname -m), $(stated libraries "$1"), features ${features:-none}"
}

# values_of KIND: the file of values, or nothing.
values_of() { grep -lxF -e "# $1" "$golden"/values/* 2>/dev/null | head -n 1; }

# on_device DEVICE: arguments that select it. The INI itself says cpu.
on_device() { [ "$1" = cpu ] || echo "--set distribute.devices=$1"; }
