#!/bin/sh
# The entries of two reports, of attacks and of a first day of use, each reproduced through the program:
# damaged run folders, foreign geometry, closed descriptors, unauthenticated peers, plugins of other users. An
# entry has a letter and a number: 'check_reports.sh A1' runs that entry alone. PONS names another program,
# for example an installed one.
. "${srcdir:-.}/tests/support/checks.sh"

# ---- a small finished run ------------------------------------------------------------------------

mkdir "$folder/origin" && cd "$folder/origin" || exit 1
phantom data 5 20,20,20
cat >e.ini <<END
[experiment]
name = run
[data]
source = data
validation = last:1
[patch]
extent = 16 16 16
$(small_unet)
[train]
steps = 40
batch = 2
ema_decay = 0.9
validate_every = 5
checkpoint_every = 5
[log]
every = 1
[distribute]
threads = 1
END
check "a small run" "$program" train e.ini -q || exit 1

# enter ENTRY: work in a folder of its own, with copies of data, e.ini and runs/run.
enter() {
    cp -r "$folder/origin" "$folder/$1" && cd "$folder/$1" || exit 1
}

# ---- A: data loss --------------------------------------------------------------------------------

A1() {
    enter A1
    devices=time,step,replica,device,utilisation,memory_used,memory_total,memory_ratio,power,temperature
    devices=$devices,engine_active,tensor_active,pcie_sent,pcie_received
    printf '%s\n1,1,\n1,nonsense\n1,40,\n1,41,\n' $devices >runs/run/devices.csv
    sed -i '1s/^{/X/; 20s/$/x/' runs/run/metrics.jsonl
    sed -i '5s/,/,9/' runs/run/metrics.csv
    grep -c '^step,' runs/run/metrics.csv >before
    check "A1 damaged records are named at the next start" ends 0 \
        "metrics.jsonl': 2 lines are no records, the first is line 1; they are kept in" \
        "$program" train e.ini -q --set train.steps=42 --set log.device_every=1
    check "A1 all others are still there" \
        [ "$(grep -c '^{"kind":"step"' runs/run/metrics.jsonl)" = 40 ]
    check "A1 the damaged lines are aside" [ "$(wc -l <runs/run/metrics.jsonl.damaged)" = 2 ]
    check "A1 a step that is damaged in metrics.csv cuts nothing" \
        [ "$(grep -c '^step,' runs/run/metrics.csv)" -gt "$(cat before)" ]
    check "A1 nor in devices.csv" [ "$(head -n 4 runs/run/devices.csv | tail -n 1)" = 1,40, ]
    check "A1 what comes behind the checkpoint is cut" [ "$(grep -c '^1,41,$' runs/run/devices.csv)" = 0 ]
    rm runs/run/metrics.jsonl.damaged
    sed -i '0,/"step":7,/s//"step":7007,/' runs/run/metrics.jsonl
    check "A1 a step that is damaged to a higher one is named" ends 0 \
        "has a step beyond that of a later line; it is kept in" "$program" train e.ini -q --set train.steps=43
    check "A1 and its line is aside" grep -q '"step":7007,' runs/run/metrics.jsonl.damaged
    check "A1 no line beside it" [ "$(grep -c '^{"kind":"step"' runs/run/metrics.jsonl)" = 40 ]
    check "A1 undamaged tables are not set aside" sh -c '! ls runs/run/*.csv.damaged'
    steps=43
    for file in metrics devices; do
        header=$(head -n 1 runs/run/$file.csv)
        sed -i 1d runs/run/$file.csv
        cp runs/run/$file.csv before.csv
        echo older >runs/run/$file.csv.damaged
        check "A1 a $file.csv without its header is named" ends 0 \
            "$file.csv' does not begin with the line '$header': it is now '$PWD/runs/run/$file.csv.damaged.2'" \
            "$program" train e.ini -q --set train.steps=$((steps += 1)) --set log.device_every=1
        check "A1 it is aside as it was" cmp before.csv runs/run/$file.csv.damaged.2
        check "A1 what was aside before stays" grep -qx older runs/run/$file.csv.damaged
        check "A1 a new one has the header" [ "$(head -n 1 runs/run/$file.csv)" = "$header" ]
    done
}

A2() {
    enter A2
    without_streams() { ( exec 0<&- 1>&- 2>&-; "$program" "$@" ); }
    no_foreign_line() { ! grep -v '^{"kind":' runs/run/metrics.jsonl; }
    check "A2 a run trains without standard streams" without_streams train e.ini --set train.steps=42
    check "A2 metrics.jsonl has none of the terminal's lines" no_foreign_line
    check "A2 a closed stream of output is still a failure" ends 1 "standard output" \
        sh -c '"$0" plugin list >&-' "$program"
}

A3() {
    enter A3
    "$program" train e.ini -q --set train.steps=1000000 >said 2>&1 &
    pid=$!
    for i in $(seq 200); do
        [ "$(cat runs/run/checkpoints/last)" = step-00000040 ] || break
        sleep 0.05
    done
    mv runs/run runs/elsewhere
    wait $pid
    check "A3 a run whose folder is gone ends with 1" [ $? = 1 ]
    check "A3 and says so" grep -q "runs/run' is gone: somebody has removed or renamed it\|cannot .*runs/run/" said
    check "A3 it makes no other folder" [ ! -e runs/run ]
    cp -r "$folder/origin/runs/run" runs/
    mkdir away
    for left in nothing 'an empty folder'; do
        steps=$(sed -n 's/.*"step":\([0-9]*\),.*/\1/p' runs/run/metrics.jsonl | tail -n 1)
        "$program" train e.ini -q --set train.steps=1000000 >said 2>&1 &
        pid=$!
        until_said runs/run/metrics.jsonl "\"step\":$((steps + 60)),"
        mv runs/run/checkpoints away
        [ "$left" = nothing ] || mkdir -p runs/run/checkpoints
        until_said runs/run/log.txt 'earlier checkpoints'
        kill $pid
        wait $pid
        check "A3 a run whose checkpoints leave $left goes on" [ $? = 75 ]
        check "A3 it warns where they leave $left" grep -q "earlier checkpoints in '.*/checkpoints' are gone" said
        check "A3 it saves where they leave $left" "$program" predict runs/run data/imagesTr/phantom_001.nii.gz \
            -o a.nii.gz --any
        rm -r away/*
    done
    lose_files
    remove_while_saving
}

# train_on: the run continues without an end from step 40, in the background, until step 60 is recorded.
train_on() {
    rm -rf runs/run
    cp -r "$folder/origin/runs/run" runs/
    timeout "$(patient 30)" "$program" train e.ini -q --set train.steps=1000000 >said 2>&1 &
    pid=$!
    until_said runs/run/metrics.jsonl '"step":60,'
}

# Part of A3: files of a run are removed, edited and renamed during training.
lose_files() {
    for file in log.txt metrics.jsonl resolved.ini; do
        train_on
        last=$(sed 's/step-0*//' runs/run/checkpoints/last)
        rm runs/run/$file
        wait $pid
        check "A3 a run whose $file is gone ends with 1" [ $? = 1 ]
        check "A3 and says that $file is" grep -q "runs/run/$file' is gone: somebody has removed files" said
        check "A3 its last steps are saved without $file" \
            [ "$(sed 's/step-0*//' runs/run/checkpoints/last)" -gt "$last" ]
        check "A3 it goes on without $file" "$program" train e.ini -q --set train.validate_every=0 \
            --set train.steps=$(($(sed 's/step-0*//' runs/run/checkpoints/last) + 1))
        check "A3 then there is a $file" [ -s runs/run/$file ]
    done
    train_on
    mv runs/run/log.txt runs/run/log.txt.1
    sed -i '1s/^/; mine\n/' runs/run/resolved.ini
    await_save
    await_save
    kill $pid
    wait $pid
    check "A3 a log.txt that was renamed and a resolved.ini that was edited end no run" [ $? = 75 ]
    check "A3 what is logged then is in the renamed one" grep -q interrupted runs/run/log.txt.1
}

# await_save: wait until the run in the background has saved again, or for ten seconds.
await_save() {
    last=$(cat runs/run/checkpoints/last)
    for i in $(seq 200); do
        [ "$(cat runs/run/checkpoints/last)" = "$last" ] || break
        sleep 0.05
    done
}

# Part of A3: 'rm -r' may lose against a save, and leave a folder with only a checkpoint.
remove_while_saving() {
    others=
    for i in $(seq 10); do
        train_on
        rm -rf runs/run 2>/dev/null
        wait $pid
        code=$?
        [ $code = 1 ] || others="$others $code"
    done
    check "A3 a run whose folder is being removed ends with 1 each time" [ "$others" = "" ]
}

# ---- B: wrong results without a message ----------------------------------------------------------

B1() {
    enter B1
    image=data/imagesTr/phantom_001.nii.gz
    again="--set experiment.name=n --set preprocess.steps=normalize --set preprocess.normalize.nonzero=yes"
    "$program" train e.ini -q --set train.steps=5 $again
    cp -r runs/n whole
    check "B1 the manifest holds the sha256 of resolved.ini" \
        grep -q "\"resolved.ini\":\"$(sha256sum <runs/n/resolved.ini | cut -c 1-64)\"" \
        runs/n/checkpoints/step-00000005/manifest.json
    sed -n '/^nonzero/q;p' whole/resolved.ini >runs/n/resolved.ini
    check "B1 a resolved.ini that was cut is refused" ends 4 \
        "resolved.ini' is not as the run wrote it" "$program" predict runs/n $image -o b.nii.gz
    check "B1 also by evaluate" ends 4 "is not as the run wrote it" "$program" evaluate --run runs/n
    sed 's/^keep_largest =/& brain/' whole/resolved.ini >runs/n/resolved.ini
    check "B1 and one that was edited, with a hint" ends 4 "hint: put it back as it was; --set changes a value" \
        "$program" predict runs/n/checkpoints/step-00000005 $image -o b.nii.gz
    cp runs/run/resolved.ini runs/n
    check "B1 and that of another run" ends 4 "was made with 'normalize'" \
        "$program" predict runs/n $image -o b.nii.gz
    check "B1 a run that goes on says that it was changed" ends 0 "is not as the run wrote it" \
        sh -c "cp whole/resolved.ini runs/n; echo >>runs/n/resolved.ini
            $program train e.ini -q --set train.steps=6 $again"
    check "B1 with other free options" "$program" train e.ini -q --set train.steps=8 $again \
        --set predict.keep_largest=brain --set train.validate_every=0 --set train.checkpoint_every=0
    cp runs/n/resolved.ini whole
    check "B1 as one that is as it was written says nothing" unwarned \
        "$program" train e.ini $again --set train.steps=8
    check "B1 by --resume neither" unwarned \
        "$program" train e.ini $again --set train.steps=9 --set experiment.name=m --resume runs/n
    sed -i 's/^keep_largest =/& brain/' runs/n/resolved.ini
    check "B1 a finished run says that it was changed" ends 0 "is not as the run wrote it" \
        "$program" train e.ini -q --set train.steps=8 $again
    check "B1 and so does a run that --resume goes on from" ends 0 \
        "/runs/n/resolved.ini' is not as the run wrote it" "$program" train e.ini -q $again \
        --set train.steps=9 --set experiment.name=o --resume runs/n
    check "B1 also by a checkpoint" ends 0 "/runs/n/resolved.ini' is not as the run wrote it" \
        "$program" train e.ini -q $again --set train.steps=9 --set experiment.name=p \
        --resume "runs/n/checkpoints/$(cat runs/n/checkpoints/last)"
    cp whole/resolved.ini runs/n
    check "B1 the checkpoints from before still predict" \
        "$program" predict runs/n/checkpoints/step-00000006 $image -o b.nii.gz
    strangers_resolved
    rm runs/run/resolved.ini
    check "B1 a missing one comes with a hint" ends 3 \
        "hint: put it back, or pons predict --config FILE.ini" "$program" predict runs/run $image -o b.nii.gz
    check "B1 also for evaluate" ends 3 "hint: put it back" "$program" evaluate --run runs/run
    check "B1 as the hint says" "$program" predict runs/run --config e.ini $image -o b.nii.gz \
        --set 'data.labels=background:0 brain:1'
    check "B1 and --set chooses another value" "$program" predict runs/n $image -o b.nii.gz --set window.overlap=0.5
}

# Part of B1: the file of a run that differs only in options that a run may change.
strangers_resolved() {
    "$program" train e.ini -q --set train.steps=5 $again --set experiment.name=like --set predict.keep_largest=brain
    cp runs/like/resolved.ini runs/n
    check "B1 another run's file is refused whose values differ in free options alone" \
        ends 4 "runs/n/resolved.ini' is another run's file: run " "$program" predict runs/n $image -o b.nii.gz
    check "B1 also by evaluate" ends 4 "is another run's file" "$program" evaluate --run runs/n
    check "B1 with a way out" "$program" predict runs/n $image -o b.nii.gz --config runs/like/resolved.ini
    check "B1 the run says so when it goes on" ends 0 "is another run's file: run" \
        "$program" train e.ini -q --set train.steps=10 $again
    check "B1 and has its own again" "$program" predict runs/n $image -o b.nii.gz
    cp -r runs/n runs/copied
    check "B1 a copy of a run that goes on is the same run" "$program" train e.ini -q $again \
        --set experiment.name=copied --set train.steps=12 --set predict.keep_largest=brain --set train.validate_every=0
    check "B1 for its older checkpoints" \
        "$program" predict runs/copied/checkpoints/step-00000010 $image -o b.nii.gz
    cp whole/resolved.ini runs/n
}

# poke FILE OFFSET BYTES: overwrite bytes.
poke() {
    printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>"$folder/said"
}

# scores LABELS...: evaluate three.nii.gz against two.nii.gz.
scores() {
    "$program" evaluate --prediction three.nii.gz --label two.nii.gz "$@"
}

B2() {
    enter B2
    mv data/labelsTr/phantom_000.nii.gz two.nii.gz
    "$program" data phantom -o more --cases 1 --extent 20,20,20 --classes 3 2>log || cat log
    mv more/labelsTr/phantom_000.nii.gz three.nii.gz
    check "B2 an id of the prediction alone is a class" ends 0 'false alarms 1' scores
    check "B2 what no class lists" ends 0 'not counted, since --labels does not list it: id 2 (' \
        scores --labels one:1
    check "B2 as JSON" ends 0 '"unlisted":{"2":' scores --labels one:1 --json
    check "B2 nothing is left out" ends 0 '"unlisted":{}' scores --labels "one:1 two:2" --json
    check "B2 voxels of a class" ends 0 '"voxels":{"prediction":' scores --json
    gzip -dc two.nii.gz >below.nii
    poke below.nii 70 '\0\1'
    poke below.nii 352 '\377'
    for labels in '' '--labels=one:1'; do
        check "B2 a prediction below 0 $labels" ends 4 "'below.nii' holds id -1, expected 0" \
            "$program" evaluate --prediction below.nii --label two.nii.gz $labels
        check "B2 a label below 0 $labels" ends 4 "'below.nii' holds id -1, expected 0" \
            "$program" evaluate --prediction two.nii.gz --label below.nii $labels
    done
}

B3() {
    enter B3
    gzip -dc data/imagesTr/phantom_000.nii.gz >turned.nii
    cp turned.nii units.nii
    check "B3 the image as it was" ends 0 '' "$program" predict runs/run turned.nii -o out.nii
    poke turned.nii 254 '\0\0'
    poke turned.nii 256 '\0\0\240\100\0\0\240\100\0\0\240\100'
    check "B3 a quaternion of 5 5 5" ends 4 'squares add up to 75' \
        "$program" predict runs/run turned.nii -o out.nii
    for unit in 4 5 6 7; do
        poke units.nii 123 "\\$unit"
        check "B3 unit $unit" ends 4 "whose unit of space is $unit" \
            "$program" predict runs/run units.nii -o out.nii
    done
}

B4() {
    enter B4
    cp -r runs/run whole
    best=runs/run/checkpoints/$(cat runs/run/checkpoints/best)
    predict="$program predict runs/run data/imagesTr/phantom_001.nii.gz -o b.nii.gz"
    printf x | dd of=$best/ema.safetensors bs=1 seek=5000 conv=notrunc 2>dd
    check "B4 a best checkpoint that is damaged is refused" ends 4 "ema.safetensors' is damaged" $predict
    check "B4 with a hint" ends 4 "hint: --any takes another checkpoint of the run" $predict
    check "B4 --any takes another" ends 0 "ema.safetensors' is damaged" $predict --any
    check "B4 evaluate refuses it as well" ends 4 "--any" "$program" evaluate --run runs/run
    check "B4 and takes another on demand" ends 0 "is damaged" "$program" evaluate --run runs/run --any
    rm -r runs/run
    mv whole runs/run
    "$program" train e.ini -q --set train.steps=46 --set train.validate_every=0
    echo nonsense >runs/run/checkpoints/best
    check "B4 a mark that names none is refused" ends 4 "best' names no checkpoint" $predict
    for line in nonsense step-00000045 '' '\0'; do
        printf "step-00000046\n$line\n" >runs/run/checkpoints/best
        check "B4 nor is a mark with '$line' behind its line" ends 4 "best' names no checkpoint, expected one line" \
            $predict
    done
    for end in '' '\n' '\r\n'; do
        printf "step-00000046$end" >runs/run/checkpoints/best
        check "B4 one that ends with '$end' is" $predict
    done
    printf 'step-00000046\nnonsense\n' >runs/run/checkpoints/last
    check "B4 one at 'last' is named" ends 0 "last' names no checkpoint, expected one line" \
        "$program" train e.ini -q --set train.steps=47 --set train.validate_every=0
    check "B4 and written anew" [ "$(cat runs/run/checkpoints/last)" = step-00000047 ]
    echo nonsense >runs/run/checkpoints/best
    check "B4 then none is removed" ends 0 "no old checkpoint is removed" \
        "$program" train e.ini -q --set train.steps=49 --set train.validate_every=0
    rm runs/run/checkpoints/best
    check "B4 without a mark the newest is taken" $predict
}

# two_ranks FIRST SECOND COMMAND...: run the command on two ranks, each with a last argument of its own. The
# output is that of the second rank. The result is the exit code of both, if it is the same.
two_ranks() (
    first=$1
    second=$2
    shift 2
    export OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE="$folder"
    OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_RANK=0 "$@" "$first" >rank_0 2>&1 &
    OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_LOCAL_RANK=1 "$@" "$second"
    code=$?
    wait $!
    both=$?
    [ $both = $code ] || { cat rank_0 && echo "rank 0 ended with $both"; return 1; }
    return $code
)

B5() {
    enter B5
    cp -r data other
    file=other/imagesTr/phantom_002.nii
    gunzip "$file.gz"
    printf x | dd of="$file" bs=1 seek=9000 conv=notrunc 2>dd && gzip "$file"
    said="in case 'phantom_002': its files on rank 1 do not hold what they hold on rank 0"
    check "B5 ranks with another voxel in one case do not train" ends 4 "$said" \
        two_ranks data.source=data data.source=other "$program" train e.ini -q --fresh --set
    cp "$file.gz" .
    check "B5 nor do they share the windows of a case" ends 4 "$said" \
        two_ranks data/imagesTr/phantom_002.nii.gz phantom_002.nii.gz \
        "$program" predict -q -o out.nii.gz runs/run
    check "B5 nor predict different ones" ends 3 "the processes differ in case 1" \
        two_ranks data/imagesTr/phantom_001.nii.gz data/imagesTr/phantom_002.nii.gz \
        "$program" predict -q -o out.nii.gz runs/run
}

# ---- C: security ---------------------------------------------------------------------------------

# Plugins are loaded only from folders of root and of the user, up to the root of the file system.
C1() {
    enter C1
    mkdir -p open/loss bad && cp "$build/stage/loss/dice.so" bad/
    cp "$build/stage/loss/dice_ce.so" open/loss/ && printf x >>open/loss/dice_ce.so
    path="$PWD/open:$PONS_PLUGIN_PATH"
    check "C1 a plugin that hides another is named" ends 0 \
        "dice_ce is '$(realpath open/loss/dice_ce.so)', which hides '" \
        env PONS_PLUGIN_PATH="$path" "$program" explain e.ini
    check "C1 the list says so" ends 0 "  hides " env PONS_PLUGIN_PATH="$path" "$program" plugin list
    chmod 1777 open
    check "C1 sticky folder with a folder of ours" ends 0 "" \
        env PONS_PLUGIN_PATH="$path" "$program" plugin show loss/dice_ce
    chmod 0777 open
    check "C1 folder above that all may write" ends 6 "lets everybody replace it" \
        env PONS_PLUGIN_PATH="$path" "$program" train e.ini -q
    chmod 0755 open
    [ "$(id -u)" = 0 ] || { echo "SKIPPED: C1 files of another user: needs root"; return; }
    chown 54321 open/loss/dice_ce.so
    check "C1 file of another user" ends 6 "it belongs to user 54321" \
        env PONS_PLUGIN_PATH="$path" "$program" train e.ini -q
    chown 54321 open/loss
    check "C1 file and folder of another user" ends 6 "it belongs to user 54321" \
        env PONS_PLUGIN_PATH="$path" "$program" train e.ini -q
    chown 0 open/loss/dice_ce.so open/loss && chown 54321 open
    check "C1 folder above of another user" ends 6 "/open' belongs to user 54321" \
        env PONS_PLUGIN_PATH="$path" "$program" train e.ini -q
}

C2() {
    module=$build/tests/plugins/.libs/stranger.so
    [ -f "$module" ] || return 0
    enter C2
    check "C2 strangers who come first to every port neither end a start nor join it" \
        env LD_PRELOAD="$module" ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0" \
        "$program" launch -n 2 -- train e.ini -q --set train.steps=2 --set experiment.name=ranks
    check "C2 a pipe that nobody reads does not end a rank" signal_rank PIPE --fresh \
        --set train.steps=1000 --set train.validate_every=1000 --set train.checkpoint_every=1000
}

C3() {
    enter C3
    for file in log.txt metrics.jsonl metrics.csv devices.csv; do
        rm -rf runs/run && cp -r "$folder/origin/runs/run" runs/
        ln -sf "$PWD/elsewhere" "runs/run/$file"
        check "C3 $file is not written through a link" ends 1 "$file': it is a link" \
            "$program" train e.ini -q --set train.steps=41 --set log.device_every=1
    done
    rm -rf runs/run && cp -r "$folder/origin/runs/run" runs/
    check "C3 nothing was made elsewhere" test ! -e elsewhere
    echo kept >elsewhere
    ln -sf "$PWD/elsewhere" runs/run/resolved.ini
    check "C3 a link at resolved.ini is replaced" "$program" train e.ini -q --set train.steps=41
    check "C3 what it pointed at is as it was" grep -qx kept elsewhere
}

# ---- D: crashes ----------------------------------------------------------------------------------

# flip FILE BYTE BIT: invert that bit.
flip() {
    was=$(od -An -tu1 -j "$2" -N 1 "$1")
    # shellcheck disable=SC2059 # the format is the byte
    printf "\\$(printf %03o $((was ^ 1 << $3)))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>dd
}

# refused_or_fine COMMAND...: any message, but neither a crash nor an error of the machine.
refused_or_fine() {
    "$@" >"$folder/out" 2>&1
    found=$?
    [ $found = 0 ] || [ $found = 6 ] && return 0
    echo "code $found, expected 0 or 6"
    cat "$folder/out"
    return 1
}

# Damaged plugins are refused. tests/unit/plugin/check_plugin flips every bit of one.
D1() {
    enter D1
    mkdir -p bad/loss && file=bad/loss/dice_ce.so
    path="$PWD/bad:$PONS_PLUGIN_PATH"
    for command in "train e.ini -q" "explain e.ini" "plugin show loss/dice_ce" "plugin check $file"; do
        cp "$build/stage/loss/dice_ce.so" bad/loss/ && flip "$file" $((0x42)) 2
        # shellcheck disable=SC2086 # words
        check "D1 $command with a flipped bit" ends 6 "dice_ce.so'" \
            env PONS_PLUGIN_PATH="$path" "$program" $command
    done
    cp "$build/tests/plugins/.libs/loss_silent_failure.so" bad/loss/
    for command in "train e.ini -q" "explain e.ini" "launch -n 2 -- train e.ini -q"; do
        # shellcheck disable=SC2086 # words
        check "D1 $command with one that crashes while it is loaded" ends 6 "ends the process by SIGABRT" \
            env PONS_PLUGIN_PATH="$path" PONS_TEST_CRASH=1 "$program" $command --set loss.plugin=loss_silent_failure
    done
    for byte in 40 81 184 272 336 872 1040 2440 2448 2456 2825 2937 3660 15888 15896; do
        cp "$build/stage/loss/dice_ce.so" bad/loss/ && flip "$file" $byte $((byte % 7))
        check "D1 bit $((byte % 7)) of byte $byte" refused_or_fine \
            env PONS_PLUGIN_PATH="$path" "$program" plugin show loss/dice_ce
    done
    # A bit of each pointer and number of the descriptor and its options.
    place=$(readelf -SW "$build/stage/loss/dice_ce.so" | awk '{ for (i = 1; i <= NF; i++)
        if ($i == ".data.rel.ro") print $(i + 3), $(i + 4) }')
    begin=$((0x${place% *})) size=$((0x${place#* }))
    check "D1 the options of a plugin have a place" test $size -gt 64
    for word in $(seq 0 8 $((size - 8))); do
        cp "$build/stage/loss/dice_ce.so" bad/loss/ && flip "$file" $((begin + word + 5)) 3
        check "D1 bit 3 of byte $((begin + word + 5))" refused_or_fine \
            env PONS_PLUGIN_PATH="$path" "$program" plugin show loss/dice_ce
    done
}

D2() {
    enter D2
    disk="--set experiment.name=n --set data.cache=disk --set train.validate_every=0"
    "$program" train e.ini -q $disk --set train.steps=1000000 >said 2>&1 &
    pid=$!
    for i in $(seq 200); do
        [ ! -e runs/n/checkpoints/last ] || break
        sleep 0.05
    done
    truncate -s 9000 runs/.cache/*.case
    wait $pid
    check "D2 a cache file that is cut while it is in use ends the run with 4" [ $? = 4 ]
    check "D2 with the case" grep -q "^error: case 'phantom_00.': its file in the cache was cut" said
    check "D2 the next start makes it again" "$program" train e.ini -q $disk --fresh --set train.steps=2
}

D3() {
    enter D3
    mkdir runs/run/checkpoints/step-99999999999999999999
    check "D3 a number that no step has is no checkpoint" ends 0 "is finished (step 40)" "$program" train e.ini
    echo step-99999999999999999999 >runs/run/checkpoints/best
    check "D3 nor as a mark" ends 4 "best' names no checkpoint" \
        "$program" predict runs/run data/imagesTr/phantom_001.nii.gz -o b.nii.gz
}

D4() {
    enter D4
    bare=$program # without libtool's script before it, which has limits of its own
    libraries=$(dirname "$program")/.libs
    [ ! -x "$libraries/pons" ] || bare=$libraries/pons
    export LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    # The environment lies on the stack, too, and that of a long "make check" fills most of 32 KiB.
    for size in 32 64 256; do
        check "D4 a stack of $size KiB" ends 5 "the stack is limited to $size KiB" \
            env -i PATH="$PATH" LD_LIBRARY_PATH="$LD_LIBRARY_PATH" \
            sh -c 'ulimit -s $0; exec "$@"' $size "$bare" train e.ini -q --set train.steps=41
    done
    check "D4 a stack of 1 MiB does" sh -c 'ulimit -s 1024; exec "$@"' sh "$bare" train e.ini -q \
        --set train.steps=41
    # Limits on processes do not apply to root, and count all processes of a user.
    if [ "$(id -u)" -eq 0 ] && command -v prlimit >/dev/null &&
        setpriv --reuid 54321 --clear-groups "$bare" --version >/dev/null 2>&1; then
        chmod 755 "$folder" && chmod -R a+rwX .
        # LeakSanitizer needs a thread of its own at the end.
        limited() { ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" prlimit --nproc="$1" \
            setpriv --reuid 54321 --clear-groups "$bare" train e.ini -q \
            --set experiment.name=u"$1" --set train.steps=2 --set distribute.threads=4; }
        for limit in 1 2 3 4; do
            check "D4 no more than $limit threads" ends 5 "Resource temporarily unavailable" limited $limit
        done
        check "D4 what is short is not memory" ends 5 "hint: ulimit -u allows more" limited 1
        check "D4 threads enough" limited 40
        launched() { prlimit --nproc="$1" setpriv --reuid 54322 --clear-groups "$bare" launch -n 2 -- \
            train e.ini -q --set experiment.name=l"$1" --set train.steps=2; }
        for limit in 3 4 5 6; do
            check "D4 two ranks of $limit processes" ends 5 "Resource temporarily unavailable" launched $limit
        done
    else
        echo "SKIPPED: D4 threads: needs root and a program that others can start"
    fi
    "$program" train e.ini -q --set experiment.name=even --set train.steps=2 --set preprocess.steps=spacing \
        --set preprocess.spacing.mm=1
    check "D3 spacing far below that of the files" ends 4 "voxels along axis 0, expected at most 2147483647" \
        "$program" train e.ini -q --set experiment.name=n --set preprocess.steps=spacing \
        --set "preprocess.spacing.mm=1e-300 1 1"
    gzip -dc data/imagesTr/phantom_001.nii.gz >wide.nii
    for at in 80 280; do
        printf '\312\362\111\161' | dd of=wide.nii bs=1 seek=$at conv=notrunc 2>/dev/null
    done
    check "D3 a file's spacing far above" ends 4 "voxels along axis 0, expected at most 2147483647" \
        "$program" predict runs/even wide.nii -o o.nii.gz
}

# ---- E: hangs and costs --------------------------------------------------------------------------

# within SECONDS COMMAND...: limit the processor time.
within() { ( ulimit -t "$1"; shift; "$@" ); }

E1() {
    enter E1
    mkdir many
    i=0
    while [ $i -lt 5000 ]; do
        : >many/$i.nii
        i=$((i + 1))
    done
    check "E1 thousands of images cost no square of their number" \
        within 6 ends 4 "5000 of 5000 cases could not be predicted" "$program" predict runs/run many -o out -q
    check "E1 an image is still not replaced by a result" ends 2 "would replace an image" \
        "$program" predict runs/run data/imagesTr data/labelsTr -o data/labelsTr
}

E2() {
    enter E2
    for file in log.txt metrics.jsonl metrics.csv devices.csv resolved.ini; do
        rm -rf runs/run && cp -r "$folder/origin/runs/run" runs/ && rm -f "runs/run/$file"
        mkfifo "runs/run/$file"
        check "E2 a FIFO as $file is refused" ends 1 "$file': it is a special file" \
            timeout 20 "$program" train e.ini -q --set train.steps=41 --set log.device_every=1
    done
    rm -rf runs/run && cp -r "$folder/origin/runs/run" runs/
    mkdir runs/new && mkfifo runs/new/metrics.jsonl
    check "E2 a FIFO in a new run's folder is not waited for" \
        timeout 20 "$program" train e.ini -q --set experiment.name=new
    mkfifo out.nii.gz
    check "E2 a FIFO as predict's output is refused" ends 1 "it is a special file" timeout 20 \
        "$program" predict runs/run data/imagesTr/phantom_001.nii.gz -o out.nii.gz
}

E3() {
    enter E3
    awk 'BEGIN { for (i = 0; i < 60000; i++) printf "[s%d]\n", i }' >sections.ini
    awk 'BEGIN { for (i = 0; i < 30000; i++) printf "[s%d]\nkey = 1\n", i }' >both.ini
    awk 'BEGIN { print "[data]"; for (i = 0; i < 60000; i++) printf "k%d = 1\n", i }' >keys.ini
    awk 'BEGIN { print "include = keys.ini\n[data]"; for (i = 0; i < 60000; i++) printf "k%d = 2\n", i }' >over.ini
    for file in sections both keys over; do
        check "E3 $file in one INI file" within 3 ends 3 "$file.ini:" "$program" train $file.ini
    done
    awk 'BEGIN {
        for (i = 0; i < 200000; i++)
            printf("%s\"t%d\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}", (i ? "," : "{"), i)
        printf("}")
    }' >header
    size=$(wc -c <header)
    for shift in 0 8 16 24; do
        printf "\\$(printf %03o $((size >> shift & 255)))"
    done >tensors.safetensors
    printf '\000\000\000\000' | cat - header >>tensors.safetensors
    check "E3 tensors without elements in one header" within 5 ends 3 "is missing, expected shape" \
        "$program" predict tensors.safetensors data/imagesTr/phantom_001.nii.gz -o o.nii.gz \
        --config runs/run/resolved.ini
}

# A plugin that never returns is ended, and the message names its function.
E4() {
    enter E4
    check "E4 an operation that does not end" ends 6 "'build' of loss loss_silent_failure does not end within 1 s" \
        timeout 60 "$program" plugin check "$build/tests/plugins/.libs/loss_silent_failure.so" \
        --set loss.fault=stay --timeout 1
    mkfifo pipe
    check "E4 loading that does not end" ends 6 "its loading does not end within 1 s" \
        env PONS_TEST_EFFECT="$PWD/pipe" timeout 60 "$program" plugin check \
        "$build/tests/plugins/.libs/effect.so" --timeout 1
}

# ---- F: refusals that stop a healthy run ---------------------------------------------------------

F1() {
    enter F1
    for name in step-1 step-0 'step- 5' step-+7 step--0000001 step-000000041 step-mine.part; do
        mkdir "runs/run/checkpoints/$name"
    done
    check "F1 folders whose names are nearly those of checkpoints stop nothing" \
        "$program" train e.ini -q --set train.steps=46
    check "F1 and are left alone" [ "$(ls -d runs/run/checkpoints/step-* | wc -l)" = 9 ]
}

F2() {
    enter F2
    old=runs/run/checkpoints/step-00000030
    mkdir -p $old/.nfs1/held
    check "F2 a checkpoint that cannot be removed is told" ends 0 \
        "cannot remove '$PWD/$old.old.part': Directory not empty" "$program" train e.ini -q --set train.steps=46 \
        --set train.validate_every=0
    echo mine >runs/run/checkpoints/step-00000046/notes.txt
    check "F2 one that holds somebody's file is left" ends 0 "it holds 'notes.txt', which is of no checkpoint" \
        "$program" train e.ini -q --set train.steps=61 --set train.validate_every=0
    check "F2 with the file" [ -e runs/run/checkpoints/step-00000046/notes.txt ]
    rm -r runs/run/checkpoints/step-00000046
    mkdir runs/run/checkpoints/step-00000062
    echo mine >runs/run/checkpoints/step-00000062/notes.txt
    echo mine >runs/run/checkpoints/step-00000063
    check "F2 a folder in the place of a checkpoint is set aside, which is told" ends 0 "step-00000062.aside' lay" \
        "$program" train e.ini -q --set train.steps=62
    check "F2 with its file" [ "$(cat runs/run/checkpoints/step-00000062.aside/notes.txt)" = mine ]
    check "F2 and so is a file" "$program" train e.ini -q --set train.steps=63
    check "F2 with its text" [ "$(cat runs/run/checkpoints/step-00000063.aside)" = mine ]
    for mark in best last; do
        mv runs/run/checkpoints/$mark kept && mkdir runs/run/checkpoints/$mark
        check "F2 a folder in the place of '$mark' is refused before the run goes on" ends 1 \
            "/$mark' is a folder, expected a file" "$program" train e.ini -q --set train.steps=70
        rmdir runs/run/checkpoints/$mark && mv kept runs/run/checkpoints/$mark
    done
    check "F2 the checkpoints are in their places" [ "$(cat runs/run/checkpoints/last)" = step-00000063 ]
    rm -r runs/run && cp -r "$folder/origin/runs/run" runs/
    for step in 35 60 70 80; do
        cp -r runs/run/checkpoints/step-00000040 runs/run/checkpoints/step-000000$step
    done
    check "F2 a copy in the place of a checkpoint is set aside, which is told" ends 0 "step-00000060.aside' lay" \
        "$program" train e.ini -q --set train.steps=60 --set train.validate_every=0
    check "F2 copies take no place among the newest checkpoints, and are left alone" \
        [ "$(cd runs/run/checkpoints && printf '%s ' step-*)" = \
            "$(printf 'step-000000%s ' 35 40 50 60 60.aside 70 80)" ]
    truncate -s 5 runs/run/checkpoints/step-00000060/model.safetensors
    check "F2 so the one before a damaged one is there" ends 0 "step-00000060/model.safetensors' has 5 bytes" \
        "$program" train e.ini -q --set train.steps=61 --set train.validate_every=0
    check "F2 and is taken" [ "$(sed -n 's|.* step \([0-9]*\)/61 .*|\1|p' runs/run/log.txt | head -n 1)" = 51 ]
}

F3() {
    enter F3
    mv runs/run/checkpoints/step-00000040 runs/run/checkpoints/step-00000099
    check "F3 a checkpoint under the name of another step is not taken" ends 0 \
        "step-00000099' holds step 40, expected the step of its name; trying another" "$program" train e.ini -q
    check "F3 the run comes to its end" [ "$(cat runs/run/checkpoints/last)" = step-00000040 ]
    check "F3 and is finished then" ends 0 "is finished (step 40)" "$program" train e.ini
    check "F3 nor does predict take it" ends 4 "holds step 40" "$program" predict \
        runs/run/checkpoints/step-00000099/ data/imagesTr/phantom_001.nii.gz -o b.nii.gz
}

# ---- G: messages ---------------------------------------------------------------------------------

G1() {
    enter G1
    one_line() { [ "$(wc -l <out)" -eq "$1" ] && ! grep -q '^hint:* forged' out; }
    forged=$(printf 'x\nhint: forged\033[2J')
    cp e.ini "$forged.ini"
    echo nonsense >>"$forged.ini"
    "$program" train "$forged.ini" -q >out 2>&1
    check "G1 the name of an INI file" one_line 1
    "$program" train e.ini -q --set "model.plugin=a" --set "loss.plugin=$forged" >out 2>&1
    check "G1 a value of --set" one_line 1
    printf '\033\000\000\000\000\000\000\000{"a\\nhint: forged":{"c":1}}' >w.safetensors
    "$program" predict w.safetensors data/imagesTr/phantom_001.nii.gz -o o.nii.gz --config e.ini \
        --set 'data.labels=background:0 brain:1' >out 2>&1
    check "G1 the name of a tensor" one_line 1
    "$program" data phantom -o "$forged" --cases 1 --extent 9,9,9 >out 2>&1
    check "G1 the name of an output" one_line 1
    SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_LOCALID=0 SLURM_JOB_NODELIST="n[1$forged" SLURM_STEP_NODELIST="n[1$forged" \
        "$program" train e.ini -q >out 2>&1
    check "G1 a list of nodes" one_line 1
    PONS_PLUGIN_PATH="/x$(printf '\nhint forged')" "$program" train e.ini -q >out 2>&1
    check "G1 the folders of plugins" one_line 2
    cp data/labelsTr/phantom_001.nii.gz "$forged.nii.gz"
    "$program" evaluate --prediction "$forged.nii.gz" --label "$forged.nii.gz" >out 2>&1
    check "G1 a table has no control characters" sh -c '! LC_ALL=C tr -d "\n" <out | LC_ALL=C grep -q "[[:cntrl:]]"'
    check "G1 a table has no forged line" sh -c '! grep -q "^hint" out'
}

G2() {
    enter G2
    steps=
    for number in 1 2 3 4 5 6 7 8 9; do
        steps="$steps s$number"
        printf '[preprocess.s%s]\nplugin = normalize\n' $number >>e.ini
    done
    for blocks in 1 8 9; do
        rm -rf runs/new
        check "G2 a file that may not grow over $blocks blocks is named with the cause" \
            ends 1 "File too large" sh -c 'ulimit -f $1; shift; exec "$@"' sh $blocks \
            "$program" train e.ini -q --set experiment.name=new --set "preprocess.steps=$steps"
    done
}

G3() {
    enter G3
    predict="$program predict runs/run data/imagesTr/phantom_001.nii.gz -o b.nii.gz"
    mark=$(cat runs/run/checkpoints/best)
    rm -r runs/run/checkpoints/step-*
    check "G3 a mark alone is told as such" ends 4 "best' names step ${mark#step-000000}, which is not there" $predict
    check "G3 and that there is no other" ends 3 "runs/run' holds no checkpoint yet" $predict --any
}

# until_said FILE TEXT: wait until the file contains the text, or for ten seconds.
until_said() {
    tries=200
    while ! grep -qs "$2" "$1" && [ $((tries -= 1)) -gt 0 ]; do sleep 0.05; done
}

# signal_rank SIGNAL ARGUMENT...: two ranks train, and the second gets a signal during training.
signal_rank() {
    signal=$1
    shift
    "$program" launch -n 2 -- train e.ini -q --set experiment.name=ranks "$@" &
    launcher=$!
    until_said runs/ranks/metrics.jsonl '"step":3,'
    for rank in $(cat /proc/$launcher/task/*/children); do
        grep -qz '^RANK=1$' "/proc/$rank/environ" && kill "-$signal" "$rank"
    done
    wait "$launcher"
}

G4() {
    enter G4
    check "G4 the age of what a lost rank said stands in front of it" \
        ends 7 '  rank 1: last heard ' signal_rank STOP --set train.steps=100000 \
        --set distribute.timeout_s=1
}

# with_files N COMMAND...: at most N open files, for the program itself, not for the script of libtool.
with_files() (
    limit=$1
    shift 2
    [ "$program" != "$build/pons" ] ||
        export LD_LIBRARY_PATH="$build/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    ulimit -n "$limit"
    [ "$program" = "$build/pons" ] && exec "$build/.libs/pons" "$@"
    exec "$program" "$@"
)

# Too few descriptors are an error of the machine, whichever file cannot be opened.
G5() {
    enter G5
    for limit in 4 5 6 7; do
        rm -rf runs
        check "G5 train with $limit files" ends 5 "Too many open files" \
            with_files $limit "$program" train e.ini -q
    done
    check "G5 launch with 8 files" ends 5 "Too many open files" \
        with_files 8 "$program" launch -n 2 -- train e.ini -q
    for limit in 9 10 11 12 13 14 15 16 17 18; do
        rm -rf runs
        check "G5 launch with $limit files" suffice_or_end $limit
    done
}

# suffice_or_end N: two ranks train with N open files, or exit with 5 long before timeout_s.
suffice_or_end() {
    begun=$(date +%s)
    with_files "$1" "$program" launch -n 2 -- train e.ini -q --set train.steps=2 \
        --set distribute.timeout_s=$(patient 20) >said 2>&1
    code=$?
    [ $(($(date +%s) - begun)) -lt "$(patient 10)" ] || code="$code, too late"
    [ "$code" = 0 ] || { [ "$code" = 5 ] && grep -q "Too many open files" said; } ||
        { echo "code $code"; cat said; return 1; }
}

# ---- N: a first day (N1 is B1 of that report) ----------------------------------------------------

N1() {
    enter N1
    "$program" train e.ini --set experiment.name=other --debug -q 2>said
    check "N1 a debug run has a folder of its own" test -d runs/other-debug -a ! -e runs/other
    check "N1 the real run does not go on from it" begins_anew --set experiment.name=other
    check "N1 nor one of that name" ends 3 "run is without --debug but the run to be continued is with --debug" \
        "$program" train e.ini --set experiment.name=other-debug
    check "N1 nor by --resume" ends 3 "run is without --debug but the run to be continued is with --debug" \
        "$program" train e.ini --set experiment.name=third --resume runs/other-debug
}
begins_anew() { "$program" train e.ini --set train.steps=5 "$@" 2>&1 | grep -c -e 'going on' -e '^step ' | grep -qx 5; }

# turn FILE: exchange left and right, back and front in the header. thicken FILE: slices of 3 mm.
turn() {
    poke "$1" 252 '\0\0'
    poke "$1" 283 '\277'
    poke "$1" 303 '\277'
}

thicken() {
    poke "$1" 252 '\0\0'
    poke "$1" 90 '\100\100'
    poke "$1" 322 '\100\100'
}

# change CASE COMMAND: apply the command to an image of the data and its label.
change() {
    for file in "data/imagesTr/$1" "data/labelsTr/$1"; do
        gzip -dc "$file.nii.gz" >changed.nii
        "$2" changed.nii
        gzip -c changed.nii >"$file.nii.gz"
    done
}

# older CHECKPOINT: remove the geometry of the images from its manifest, and seal it again.
older() { edit_manifest "$1" '/^"geometry":/,/^"intensity_span"/d'; }
# saw RUN ORIENTATION...: a run whose images had these orientations.
saw() {
    run=$1
    shift
    edit_manifest "runs/$run/checkpoints/$(cat "runs/$run/checkpoints/best")" \
        "s/\"orientations\":\[[^]]*\]/\"orientations\":[$(printf '"%s",' "$@" | sed 's/,$//')]/"
}
# edit_manifest CHECKPOINT SCRIPT: edit its manifest with sed, and seal it again.
edit_manifest() {
    sed "$2" "$1/manifest.json" | sed '$d' >body
    printf '}' >>body
    seal=$(sha256sum <body)
    { cat body && printf ',"sha256":"%s"}\n' "${seal%% *}"; } >"$1/manifest.json"
}

# unwarned COMMAND...: the command succeeds without a warning.
unwarned() {
    "$@" >said 2>&1 && ! grep warning said
}

# kept NAME: facts about the images in the last checkpoint of a run.
kept() {
    sed -n '/"geometry":/,/^"files"/p' "runs/$1/checkpoints/$(cat "runs/$1/checkpoints/last")/manifest.json"
}

N2() {
    enter N2
    segment() { "$program" predict runs/run "$@" -o out.nii; }
    check "N2 one group of cases" ends 0 '     5  RAS          1 x 1 x 1' "$program" data check e.ini
    gzip -dc data/imagesTr/phantom_000.nii.gz >same.nii
    cp same.nii turned.nii
    cp same.nii thick.nii
    cp same.nii unit.nii
    turn turned.nii
    thicken thick.nii
    poke unit.nii 112 '\157\022\203\072'
    check "N2 an image as in training" unwarned segment same.nii
    check "N2 a foreign orientation" ends 4 "has orientation LPS, expected RAS as in training" \
        segment turned.nii
    check "N2 as it is" ends 0 "warning: case 'turned' has orientation LPS" segment turned.nii --force
    check "N2 as the hint says" unwarned segment turned.nii --set 'preprocess.steps=orient' \
        --set preprocess.orient.axes=RAS
    check "N2 a foreign spacing" ends 0 'training saw 1 x 1 x 1; step '"'spacing'" segment thick.nii
    check "N2 a foreign unit" ends 0 'holds 0 to 0.6' segment unit.nii
    check "N2 what evens it out" grep -q "step 'normalize' would even it out" "$folder/out"
    head -c 352 same.nii >flat.nii && head -c $(($(wc -c <same.nii) - 352)) /dev/zero >>flat.nii
    check "N2 an image of one value" ends 0 "channel 0 is 0 everywhere after [preprocess], training saw 0 to" \
        segment flat.nii
    check "N2 that nothing evens out" sh -c '! grep normalize "$0"' "$folder/out"
    check "N2 a step that is there already" ends 0 "training saw RAS" segment turned.nii --force --set preprocess.steps=orient \
        --set preprocess.orient.axes=LPS
    check "N2 is not named" grep -qx "warning: case 'turned' has orientation LPS, training saw RAS" "$folder/out"
    phantom small 1 9,20,20
    phantom large 1 20,20,44
    small=small/imagesTr/phantom_000.nii.gz
    large=large/imagesTr/phantom_000.nii.gz
    check "N2 a smaller field of view" ends 0 "has a field of view of 9 x 20 x 20 mm (left-right, back-front, \
feet-head), training saw 20 x 20 x 20; step 'pad'" segment $small
    check "N2 filled up" unwarned segment $small --set preprocess.steps=pad --set preprocess.pad.extent='20 0 0'
    check "N2 a larger one" ends 0 "training saw 20 x 20 x 20; step 'crop_foreground'" segment $large
    check "N2 cut off" unwarned segment $large --set preprocess.steps=crop_foreground \
        --set preprocess.crop_foreground.above=0.5
    "$program" train e.ini -q --set train.steps=2 --set experiment.name=flat --set patch.extent='16 16 1' ||
        fail "N2 flat"
    check "N2 slices of a 2D network are not counted" unwarned "$program" predict runs/flat $large -o out.nii
    check "N2 what a slice shows is compared" ends 0 "a field of view of 9 x 20 x 20" \
        "$program" predict runs/flat $small -o out.nii
    best=runs/run/checkpoints/$(cat runs/run/checkpoints/best)
    bare() { "$program" predict "$@" -o out.nii --config runs/run/resolved.ini; }
    cp -r $best beside && cp $best/model.safetensors bare.safetensors && mkdir foreign &&
        cp bare.safetensors foreign && cp beside/manifest.json foreign
    check "N2 a weights file beside its manifest, as in training" unwarned bare beside/model.safetensors same.nii
    check "N2 and not" ends 4 "has orientation LPS, expected RAS as in training" \
        bare beside/ema.safetensors turned.nii
    check "N2 as it is" ends 0 "warning: case 'turned' has orientation LPS" \
        bare beside/model.safetensors turned.nii --force
    check "N2 its spacing" ends 0 'training saw 1 x 1 x 1; step '"'spacing'" bare beside/model.safetensors thick.nii
    check "N2 in the folder it lies in" ends 4 "has orientation LPS" \
        sh -c 'cd beside && "$0" predict ema.safetensors ../turned.nii -o ../out.nii --config ../runs/run/resolved.ini' \
        "$program"
    check "N2 no manifest compares nothing" unwarned bare bare.safetensors turned.nii
    check "N2 nor one that does not list it" unwarned bare foreign/bare.safetensors turned.nii
    echo >>beside/manifest.json
    check "N2 a damaged one is named" ends 0 "; images are not compared with those of the training" \
        bare beside/model.safetensors turned.nii
    older $best
    check "N2 older checkpoints compare nothing" unwarned segment turned.nii
    for way in single "dp --set distribute.devices=cpu:0,cpu:1" "none --set data.cache=none" \
        "disk --set data.cache=disk" "again --set data.cache=disk"; do
        "$program" train e.ini -q --set train.steps=2 --set "experiment.name=${way%% *}" $(
            case $way in *\ *) echo "${way#* }" ;; esac) || fail "N2 $way"
    done
    "$program" launch -n 2 -- train e.ini -q --set train.steps=2 --set experiment.name=ddp || fail "N2 ddp"
    kept single >single
    check "N2 there is something" grep -q '"orientations":."RAS"' single
    for way in dp none disk again ddp; do
        kept "$way" >"$way"
        check "N2 $way keeps the same" cmp single "$way"
    done
    cp -r data upright && change phantom_004 turn
    check "N2 data check names a foreign orientation of validation alone" ends 0 \
        'warning: images have different orientations (RAS, LPS)' "$program" data check e.ini
    turned="warning: images for validation have orientation LPS, those for training have RAS; step 'orient'"
    for cache in memory none disk disk; do
        set -- train e.ini --fresh --set train.steps=2 --set experiment.name=v --set data.cache=$cache
        check "N2 train does, cache $cache" ends 0 "$turned" "$program" "$@"
        check "N2 unless a step turns it, cache $cache" unwarned "$program" "$@" --set preprocess.steps=orient
    done
    check "N2 rank 0 does" ends 0 "$turned" \
        "$program" launch -n 2 -- train e.ini --set train.steps=2 --set experiment.name=vddp
    rm -r data && mv upright data
    change phantom_004 thicken
    check "N2 evaluate --run warns as well" ends 0 "case 'phantom_004' has a field of view of 20 x 20 x 60" \
        "$program" evaluate --run runs/single
    change phantom_000 turn
    change phantom_001 thicken
    check "N2 orientations differ" ends 0 'warning: images have different orientations (RAS, LPS)' \
        "$program" data check e.ini
    check "N2 spacings differ" ends 0 'warning: images have different spacings (1 x 1 x 1 to 1 x 1 x 3' \
        "$program" data check e.ini
    printf '[preprocess]\nsteps = orient spacing\n[preprocess.spacing]\nmm = 1 1 1\n' >>e.ini
    check "N2 steps even it out" ends 0 '0 errors, 0 warnings' "$program" data check e.ini
    check "N2 among steps that change a voxel" ends 0 '0 errors, 0 warnings' "$program" data check e.ini \
        --set 'preprocess.steps=normalize orient crop_foreground pad spacing' \
        --set preprocess.crop_foreground.source=label --set preprocess.pad.extent='24 24 24'
    check "N2 on nnU-Net's grids as well" ends 0 '0 errors, 0 warnings' "$program" data check e.ini \
        --set preprocess.spacing.method=nnunet --set 'preprocess.spacing.mm=2 2 2.5'
    left='warning: images have different spacings after [preprocess] (1 x 1 x 1 to 1 x 1 x 3 mm'
    for left_as in "spacing.mm=1 1 0" "spacing.mm=0 0 0" "spacing.max_pixdim=5 5 5"; do
        check "N2 $left_as leaves the spacing" ends 0 "$left" "$program" data check e.ini \
            --set "preprocess.$left_as"
        check "N2 $left_as leaves nothing else" ends 0 '0 errors, 1 warning' "$program" data check e.ini \
            --set "preprocess.$left_as"
        check "N2 train says so, $left_as" ends 0 "trained on together: 1 x 1 x 1 to 1 x 1 x 3 mm; one 'mm' above 0" \
            "$program" train e.ini --fresh --set train.steps=2 --set experiment.name=left \
            --set "preprocess.$left_as"
    done
    check "N2 with one spacing it does not" unwarned "$program" train e.ini --fresh --set train.steps=2 \
        --set experiment.name=left
    sed -i 's/^steps = orient spacing/steps = orient/; /^.preprocess.spacing/,$d' e.ini
    check "N2 train names the step that is missing" ends 0 "to 1 x 1 x 3 mm; step 'spacing' in [preprocess]" \
        "$program" train e.ini --fresh --set train.steps=2 --set experiment.name=left
}

# The hint for a foreign orientation is right for all networks of an ensemble.
N12() {
    enter N12
    gzip -dc data/imagesTr/phantom_000.nii.gz >turned.nii
    turn turned.nii
    cp -r runs/run runs/other
    "$program" train e.ini -q --set experiment.name=even --set preprocess.steps=normalize || fail "N12 even"
    ensemble() { "$program" predict "runs/run,runs/$1" turned.nii -o out.nii; }
    check "N12 networks alike" ends 4 "hint: --set 'preprocess.steps=orient' --set preprocess.orient.axes=RAS turns" \
        ensemble other
    check "N12 it can be pasted" paste "pons predict runs/run,runs/other turned.nii -o out.nii \
        $(hinted '' ' turns it.*')"
    saw run RAS RPS && saw other RPS
    check "N12 what each of them saw" ends 4 "expected RAS, RPS as in training" ensemble other
    check "N12 is what is hinted at" grep -q 'axes=RPS turns' "$folder/out"
    saw run RAS
    check "N12 none fits all" ends 4 "saw different orientations in training, so no step 'orient' fits" ensemble other
    check "N12 networks of different steps" ends 4 "give all of them the same: turn the file to RAS" ensemble even
    check "N12 as the hint says" unwarned "$program" predict runs/run,runs/even data/imagesTr/*_000.nii.gz -o out.nii
    check "N12 with the step already" ends 4 "hint: --set 'preprocess.steps=orient' --set preprocess.orient.axes=RAS" \
        "$program" predict runs/run turned.nii -o out.nii --set preprocess.steps=orient \
        --set preprocess.orient.axes=LPS
}

# shown COLUMNS COMMAND...: output for a terminal of that many columns; 'script' is the terminal.
shown() {
    columns=$1
    shift
    TERM=${terminal:-xterm} script -qec "stty cols $columns; $*" /dev/null </dev/null | tr -d '\r' >screen
}
# redrawn: length of the longest line of steps that is redrawn. Each ends where the terminal erases the rest of the
# line.
redrawn() {
    tr '\033' '\n' <screen | sed -n 's/^\[?*[0-9]*[AJKl]//; /^step  \[/p' |
        awk '{ if (length > n) n = length } END { print n + 0 }'
}
fits() {
    shown "$1" "$program" train --fresh e.ini --set train.steps=2000 && test "$(redrawn)" -gt 20 -a "$(redrawn)" -lt "$1"
}
N3() {
    enter N3
    for columns in 40 60 400; do
        check "N3 the status line fits $columns columns" fits $columns
    done
}

N4() {
    enter N4
    check "N4 threads that are not taken are announced" ends 0 "threads = 2 is not taken: the run goes on with 1" \
        "$program" train e.ini --set train.steps=41 --set distribute.threads=2
    check "N4 so are weights" ends 0 "pretrained = '$folder/N4/w' is not taken" \
        "$program" train e.ini --set train.steps=42 --set train.pretrained=w
    weights=$PWD/runs/run/checkpoints/step-00000042/model.safetensors
    check "N4 resolved.ini keeps the run's own value" grep -q '^pretrained = ;' runs/run/resolved.ini
    "$program" train e.ini -q --set experiment.name=n --set train.steps=2 --set train.pretrained="$weights"
    "$program" train e.ini -q --set experiment.name=n --set train.steps=3
    check "N4 also where the next start gives none" grep -q "^pretrained = $weights ;" runs/n/resolved.ini
    check "N4 and the checkpoint" grep -qaF "\"[train] pretrained\":\"$weights\"" \
        runs/n/checkpoints/step-00000003/trainer.safetensors
}

# drawn NAME LABELS...: a case of four classes against the label of another case.
drawn() {
    picture=$1
    shift
    "$program" evaluate --prediction more/labelsTr/phantom_000.nii.gz \
        --label more/labelsTr/phantom_001.nii.gz --overlay "$picture.png" "$@"
}

N5() {
    enter N5
    "$program" data phantom -o more --cases 2 --extent 20,20,20 --classes 4 2>log || cat log
    if ! drawn all >said 2>&1 && grep -q 'needs libpng' said; then
        echo "SKIPPED: N5: needs libpng"
        return
    fi
    check "N5 every id" drawn all
    check "N5 the same as a list" drawn listed --labels "1:1 2:2 3:3"
    check "N5 the same picture" cmp all.png listed.png
    check "N5 names of their own" drawn named --labels "one:1 two:2 three:3"
    check "N5 are in the legend" sh -c '! cmp -s all.png named.png'
    check "N5 one class of three" drawn one --labels one:1
    check "N5 another picture" sh -c '! cmp -s all.png one.png'
}

N6() {
    enter N6
    mkdir -p D/imagesTr D/labelsTr
    for image in data/imagesTr/*; do
        cp "$image" "D/imagesTr/$(basename "$image" .nii.gz)_0000.nii.gz"
    done
    cp data/labelsTr/* D/labelsTr
    echo '{"channel_names":{"0":"CT"},"labels":{"background":0,"brain":1},"file_ending":".nii.gz"}' >D/dataset.json
    "$program" data check e.ini --set data.source=D >said
    check "N6 a raw folder of nnU-Net is read" grep -qx "layout: nnunet, by '$folder/N6/D/dataset.json'" said
    rm data/labelsTr/*_000.nii.gz data/labelsTr/*_001.nii.gz
    "$program" train e.ini --set data.source= --set "data.image=data/imagesTr/*.nii.gz" \
        --set "data.label=data/labelsTr/*.nii.gz" --set "data.labels=background:0 brain:1" 2>said
    check "N6 a command has its file" grep -qx 'hint: pons data check e.ini lists them all' said
    check "N6 no hint has a key without its section" eval "! bare_hints | grep ."
}
# Hints in the source that begin with 'key = value', which is no command.
bare_hints() {
    find "$source/core" "$source/plugins" "$source/losses" "$source/optimizers" -name '*.[ch]*' -exec cat {} + |
        tr -d '\n' | sed 's/" *"//g' | grep -o 'hint: [a-z_]* = [^"]*'
}

N7() {
    enter N7
    check "N7 the file's key is taken back" ends 3 "hint: --set train.steps= " "$program" train e.ini --set train.epochs=40
    check "N7 as the hint says" ends 0 "more [train] epochs go on" \
        "$program" train e.ini --set train.epochs=20 --set train.steps=
    sed 's/^steps = 40/epochs = 20/' e.ini >epochs.ini
    check "N7 so are epochs" ends 3 "hint: --set train.epochs= " "$program" train epochs.ini --set train.steps=40
}

N8() {
    enter N8
    "$program" train e.ini --resume runs/run --set experiment.name=other --set experiment.seed=5 2>said
    check "N8 another name is not proposed where it was given" sh -c "! grep -q 'another .experiment. name' said"
    check "N8 what is proposed works" sh -c "\"\$0\" train e.ini --set experiment.name=other \
        --set experiment.seed=5 $(sed -n 's/.* in its place \(.*\) begins anew .*/\1/p' said)" "$program"
    "$program" train e.ini --set optimizer.lr=0.5 2>said
    check "N8 else it is" grep -q 'another .experiment. name keeps both' said
    check "N8 and goes on from the run" sh -c "\"\$0\" train e.ini --set experiment.name=steered \
        --set optimizer.lr=0.5 $(sed -n 's/.*; with \(--resume [^ ]*\) that run.*/\1/p' said)" "$program"
}

# named WHAT FILE: both readers report that the file is WHAT.
named() {
    ends 4 "it is $1" "$program" predict runs/run "$2" -o out.nii.gz &&
        ends 4 "it is ${1#gzip of }" "$program" predict "$2" --config runs/run/resolved.ini data/imagesTr/*_000.nii.gz -o o.nii
}
N9() {
    enter N9
    image=data/imagesTr/phantom_000.nii.gz
    printf 'PK\003\004%26sarchive/data.pkl' '' >a.pt
    printf '\200\002\212\nl\374\234F\371 j\250P\031.' >b.pth
    printf '\211HDF\r\n\032\n\0\0\0' >c.h5
    printf 'ObjectType = Image\nNDims = 3\n' >d.mha
    printf 'NRRD0004\ntype: short\n' >e.nrrd
    { head -c 128 /dev/zero; printf 'DICM\002'; } >f.dcm
    printf '\0\0\0\001\0\0\001\0\0\0\001\0' >g.mgh
    printf '\211PNG\r\n\032\n' >h.nii
    printf '\377\330\377\340\0\020JFIF' >i.nii
    printf 'CDF\001\0\0\0\0' >j.mnc
    printf '\010\007\022\007pytorch\032\0052.1.0' >k.onnx
    printf '<!DOCTYPE html>\n<html lang="en"><title>Sign in</title>' >l.nii.gz
    for file in a.pt b.pth; do
        check "N9 PyTorch" ends 4 "it is a PyTorch file" "$program" predict runs/run $file -o out.nii.gz
        check "N9 damaged weights" ends 4 "'$file': " "$program" predict $file --config runs/run/resolved.ini $image -o o.nii
    done
    check "N9 HDF5" named "an HDF5 file" c.h5
    check "N9 MetaImage" named "a MetaImage" d.mha
    check "N9 NRRD" named "an NRRD volume" e.nrrd
    check "N9 DICOM" named "a DICOM file" f.dcm
    check "N9 MGH" named "an MGH volume" g.mgh
    check "N9 PNG" named "a PNG picture" h.nii
    check "N9 JPEG" named "a JPEG picture" i.nii
    check "N9 MINC 1" named "a NetCDF file, as MINC 1 is" j.mnc
    check "N9 ONNX" named "an ONNX file" k.onnx
    check "N9 a web page" named "an HTML page" l.nii.gz
    for file in c.h5 j.mnc; do
        check "N9 how $file is converted" ends 4 "hint: a MINC volume is converted by: mnc2nii '$file' '${file%.*}.nii'" \
            "$program" predict runs/run $file -o o.nii
    done
    check "N9 where a web page comes from" ends 4 "hint: a web page was saved in place of the file" \
        "$program" predict runs/run l.nii.gz -o o.nii
    gzip -c g.mgh >g.mgz
    check "N9 MGH in gzip" ends 4 "it is gzip of an MGH volume" "$program" predict runs/run g.mgz -o out.nii.gz
    check "N9 with what to do" grep -qx "hint: mri_convert 'g.mgz' 'g.nii.gz'" "$folder/out"
    mkdir slices mixed && cp f.dcm slices/IM1 && cp f.dcm d.mha mixed && cp $image mixed/z.nii.gz
    converted="hint: all slices of a folder are converted by: dcm2niix -z y"
    check "N9 a folder of slices" ends 4 "cannot read 'slices/IM1': it is a DICOM file" \
        "$program" predict runs/run slices -o out
    check "N9 and how it is converted" grep -q "^$converted" "$folder/out"
    check "N9 as dataset" ends 4 "it is a DICOM file" "$program" data check e.ini --set data.source=slices
    check "N9 with the same hint" grep -q "^$converted" "$folder/out"
    check "N9 a folder with a volume of its own" ends 4 "has no dataset.json" \
        "$program" data check e.ini --set data.source=mixed
    set -- data check e.ini --set data.source= --set data.image=slices --set data.label= \
        --set 'data.labels=a:0 b:1' --set data.validation=none
    check "N9 a folder given as image" ends 4 "it is a DICOM file" "$program" "$@"
    "$program" "$@" 2>said >listed
    check "N9 a problem's hint is a line of its own" grep -q "^$converted" said
    check "N9 text as weights" ends 4 "cannot read 'e.ini': it is a text file, expected weights as safetensors" \
        "$program" predict e.ini --config runs/run/resolved.ini $image -o o.nii
    gzip -c e.ini >ini.nii.gz
    check "N9 gzip of something else" ends 4 "gzip of something else" "$program" predict runs/run ini.nii.gz -o o.nii
    check "N9 a volume as weights" ends 4 "it is gzip" "$program" predict $image --config runs/run/resolved.ini $image -o o.nii
    check "N9 weights as a volume" ends 4 "it is a safetensors file" \
        "$program" predict runs/run runs/run/checkpoints/step-00000040/model.safetensors -o o.nii
}

escapes() { grep -q "$(printf '\033')" screen; }
N10() {
    enter N10
    terminal=dumb shown 80 "$program" train --fresh e.ini --set train.steps=3
    check "N10 it trains on a dumb terminal" grep -q '^step 3/3' screen
    check "N10 without a live line" sh -c "! grep -q ' of 3, ' screen"
    check "N10 and without sequences" eval "! escapes"
    terminal=dumb shown 80 "$program" train none.ini
    check "N10 an error has no colour there" eval "grep -q '^error: ' screen && ! escapes"
    shown 80 "$program" train none.ini
    check "N10 and has one elsewhere" escapes
}

# paste COMMAND: execute it in a shell in which 'pons' is the program and other tools copy a file.
paste() {
    sh -ec 'pons() { "$0" "$@"; }; mri_convert() { cp "$1" "$2"; }; fslorient() { cp "$3" oriented; }
        '"$1" "$program"
}
# hinted BEFORE BEHIND: the command between the two texts in the last printed hint.
hinted() { sed -n "s/^hint: $1\\(.*\\)$2\$/\\1/p" "$folder/out"; }
N11() {
    enter N11
    mkdir -p "it's a/loss" && cp "$build/stage/loss/dice_ce.so" "it's a/loss"
    chmod 0777 "it's a" "it's a/loss/dice_ce.so"
    path="$PWD/it's a:$PONS_PLUGIN_PATH"
    check "N11 a plugin that all may write" ends 6 "lets everybody write it" \
        env PONS_PLUGIN_PATH="$path" "$program" explain e.ini
    check "N11 its mode by the hint" paste "$(hinted '' '')"
    check "N11 a folder that all may write" ends 6 "lets everybody replace it" \
        env PONS_PLUGIN_PATH="$path" "$program" explain e.ini
    check "N11 its mode by the hint" paste "$(hinted '' '')"
    check "N11 then it is taken" ends 0 "" env PONS_PLUGIN_PATH="$path" "$program" explain e.ini
    check "N11 a name in the place of a file" ends 6 "it takes a file" \
        env PONS_PLUGIN_PATH="$path" "$program" plugin check dice_ce
    check "N11 its file can be pasted" paste "$(hinted 'it takes a file: ' '')"
    printf '\0\0\0\001\0\0\001\0\0\0\001\0' >"it's g.mgh"
    check "N11 a volume of another format" ends 4 "mri_convert" "$program" predict runs/run "it's g.mgh" -o out.nii
    check "N11 its conversion can be pasted" paste "$(hinted '' '')"
    check "N11 it has the new name" cmp "it's g.mgh" "it's g.nii.gz"
    gzip -dc data/imagesTr/*_000.nii.gz >"it's h.nii"
    printf '\0\0\0\0' | dd of="it's h.nii" bs=1 seek=252 conv=notrunc 2>log
    check "N11 a volume without a code" ends 4 "fslorient" "$program" predict runs/run "it's h.nii" -o out.nii
    check "N11 its mending can be pasted" paste "$(hinted '.*by: ' '')"
    cp -r runs/run "it's run"
    check "N11 a run with other values" ends 3 "begins anew" "$program" train e.ini --resume "it's run" \
        --set experiment.name=anew --set experiment.seed=5
    check "N11 its weights can be pasted" paste "pons train e.ini --set experiment.name=anew \
        --set experiment.seed=5 $(hinted '.* in its place ' ' begins anew .*')"
    cp e.ini "it's e.ini" && rm data/labelsTr/*_000.nii.gz data/labelsTr/*_001.nii.gz
    check "N11 a dataset with problems" ends 4 "lists them all" "$program" train "it's e.ini" --set data.source= \
        --set "data.image=data/imagesTr/*.nii.gz" --set "data.label=data/labelsTr/*.nii.gz" \
        --set "data.labels=background:0 brain:1"
    check "N11 the file can be pasted" ends 4 "case 'phantom_001'" paste "$(hinted '' ' lists them all') \
        --set data.source= --set 'data.image=data/imagesTr/*.nii.gz' \
        --set 'data.label=data/labelsTr/*.nii.gz' --set 'data.labels=background:0 brain:1'"
    check "N11 a list of words" ends 2 "a list needs quotes" "$program" data check e.ini \
        --set 'data.image="it'"'"'s $a"' 'b*'
    check "N11 it has quotes" [ "$(hinted '.*: ' '')" = "--set 'data.image=\"it'\\''s \$a\" b*'" ]
}

# unread CODE COMMAND...: the command exits with that code while no process reads its standard streams.
unread() {
    expected=$1
    shift
    { sleep 0.2 && "$@"; echo $? >code; } 2>&1 | :
    [ "$(cat code)" = "$expected" ]
}
N13() {
    enter N13
    check "N13 a training goes on that nobody reads" unread 0 "$program" train e.ini --fresh
    check "N13 to its end" grep -q " done: '.*'$" runs/run/log.txt
    check "N13 its log says so once" [ "$(grep -c 'nobody reads the standard error' runs/run/log.txt)" = 1 ]
    check "N13 a command that prints ends as others do" unread 141 "$program" plugin list
    for show in first all; do
        check "N13 so does one of ranks, show $show" unread 0 "$program" launch -n 2 --show $show -- train e.ini --fresh
        check "N13 to its end, show $show" grep -q " done: '.*'$" runs/run/log.txt
    done
}

N14() {
    enter N14
    scan=data/imagesTr/phantom_000.nii.gz
    check "N14 too many channels are counted, and a case is explained" \
        ends 4 "has 2 channels, the network expects 1" "$program" predict runs/run $scan,$scan -o out.nii.gz
    check "N14 by a comma and by the names of a folder" grep -q '^hint: a comma joins .* CASE_0000 and CASE_0001' \
        "$folder/out"
    check "N14 the usage has the list of networks" sh -c "\"\$0\" predict --help | grep -qF 'predict RUN[,RUN...] IMAGE'" \
        "$program"
    check "N14 two networks are averaged" ends 0 "" "$program" predict runs/run,runs/run $scan -o out.nii.gz
}

# ---- run them ------------------------------------------------------------------------------------

entries=$(sed -n 's/^\([A-GN][0-9]*\)() {$/\1/p' "$source/tests/integration/gallery/check_reports.sh")
for entry in ${*:-$entries}; do
    "$entry"
    cd "$folder" && rm -rf "${folder:?}/$entry"
done
finish
