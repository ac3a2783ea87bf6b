# The runs in tests/golden/runs, made again; read after tests/checks.sh. check_old_runs.sh compares them and
# golden/runs/make.sh stores them. Both go through the same stages:
#
#   trained     the INI from its beginning, six steps
#   predicted   a case by the stored checkpoint, segmentation and probabilities
#   continued   the stored run, four steps further
#   through     the trained run, four steps further
#
# The bits depend on the processor's features and on the versions of libraries (R4): a kind of machine. A file in
# golden/runs/values begins with a line "# KIND" for each kind that has its values; the other lines are
# "RUN STAGE VALUE...".
golden=$source/tests/golden/runs
old_runs="unet segresnet dynunet"

# make_place FOLDER: a folder with the data and the INI files.
make_place() {
    mkdir -p "$1" && cp "$golden"/*.ini "$1" &&
        "$program" data phantom -o "$1/data" --cases 4 --extent 14,13,12 --classes 3 --seed 7 -q
}

# put_back RUN: the stored folder, as a run of this place.
put_back() { mkdir -p runs && cp -r "$golden/$1" runs && chmod -R u+w "runs/$1"; }

# The keys by which a run ends at step 10.
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

# put_records RUN STAGE FILE: the numbers of each record that a run's bits decide.
put_records() {
    awk -v head="$1 $2" '{
        line = head
        while (match($0, /"(kind|step|epoch|loss|lr|grad_norm)":[^,}]*|"(dice|iou)":[{][^}]*[}]/)) {
            line = line " " substr($0, RSTART, RLENGTH)
            $0 = substr($0, RSTART + RLENGTH)
        }
        print line
    }' "$3"
}

# put_run RUN STAGE [RUNS]: marks, the last checkpoint's hashes, and records.
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

# put_prediction RUN: hashes of the volumes, whatever compressed them.
put_prediction() {
    for name in $1 $1_probabilities; do
        echo "$1 predicted $name $(gzip -dc "$name.nii.gz" | hash_of)"
    done
}

# manifest_of RUN [RUNS]: of a run's last checkpoint.
manifest_of() {
    marks=${2:-runs}/$1/checkpoints
    echo "$marks/$(cat "$marks/last")/manifest.json"
}

# stated FACT MANIFEST: what a checkpoint says that it was made with.
stated() { sed -n "s/^\"$1\":\"\(.*\)\",\$/\1/p" "$2"; }

# kind_of MANIFEST: the machine that it names; features in order of the alphabet.
kind_of() {
    features=$(stated "processor features" "$1" | tr ' ' '\n' | sort | tr '\n' ' ')
    features=${features% }
    echo "$(uname -m), $(stated libraries "$1"), features ${features:-none}"
}

# values_of KIND: the file of values, or nothing.
values_of() { grep -lxF -e "# $1" "$golden"/values/* 2>/dev/null | head -n 1; }

# on_device DEVICE: the arguments that choose it. The INI itself says cpu.
on_device() { [ "$1" = cpu ] || echo "--set distribute.devices=$1"; }
