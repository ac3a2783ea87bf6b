#!/bin/sh
# Broken files in the hands of a user. The program gets each file of the galleries. It must exit with the
# file's code and print its phrase in one line (and a hint). It must not open an existing file of the user for
# writing, nor truncate, remove or replace one. Valid twins are accepted.
. "${srcdir:-.}/tests/support/checks.sh"
keep=$folder/keep
results=$folder/results
export keep results program

pons() {
    "$program" "$@"
}

# ---- files of the user: a dataset, a finished run, an unfinished run, results --------------------

mkdir -p "$folder/cases" "$results" "$keep" || exit 1
cd "$keep" || exit 1
settings() {
    printf '%s\n' "[experiment]" "name = $1" "[data]" "source = ${2:-ph}" "validation = none" \
        "labels = background:0 brain:1" "[patch]" "extent = 16" "[model]" "plugin = unet" "channels = 2 4" "strides = 2" \
        "[loss]" "plugin = dice" "[optimizer]" "plugin = adam" "lr = 0.01" "[train]" "steps = ${3:-2}"
}
pons data phantom -o ph --cases 2 --extent 18,16,16 2>log || { cat log; exit 1; }
settings done >a.ini
settings open ph 1 >open.ini
pons train a.ini 2>log && pons train open.ini 2>log || { cat log; exit 1; }
settings open >open.ini
pons data phantom -o more --cases 2 --extent 18,16,16 --classes 3 2>log || { cat log; exit 1; }
cp runs/done/checkpoints/step-*/model.safetensors model.safetensors
cp ph/imagesTr/phantom_000.nii.gz out.nii.gz
echo picture >out.png

# ---- cases: those of the tables, and those that need a dataset or a run of their own -------------

"$build/tests/integration/gallery/gallery_files" "$folder/cases" "$build/tests/plugins/.libs/effect.so" >"$folder/log" ||
    { cat "$folder/log"; exit 1; }

# prepare NAME CODE PHRASE COMMAND TWIN: a folder with copies of the dataset and both runs.
prepare() {
    mkdir "$folder/cases/$1" && cd "$folder/cases/$1" || exit 1
    cp -r "$keep"/ph "$keep"/runs "$keep"/*.ini "$keep"/model.safetensors .
    echo "$2" >code
    echo "$3" >phrase
    echo "$4" >run
    echo "$5" >twin
}
label=ph/labelsTr/phantom_001.nii.gz
image=ph/imagesTr/phantom_000.nii.gz
sound=$keep/ph/labelsTr/phantom_001.nii.gz
whole="cp -r $keep/ph $keep/runs $keep/model.safetensors ."
check="$whole; pons data check a.ini"
predict="pons predict model.safetensors --config a.ini $image -o $keep/out.nii.gz"

prepare shifted 4 "case 'phantom_001'" "pons train a.ini --set experiment.name=new" "$check"
pons data crop "$sound" -o $label --start 1,0,0 --extent 17,16,16 2>/dev/null
for task in new open; do
    prepare unlisted-$task 4 "case 'phantom_001'" "pons train open.ini --set experiment.name=$task" \
        "$check"
    cp "$keep/more/labelsTr/phantom_001.nii.gz" $label
    printf '%s\n' "has id 2 in " " voxels, which 'labels' does not list" >>phrase
done
prepare missing-label 4 "phantom_001" "pons train open.ini" "$check"
rm $label
prepare cut-image 4 "phantom_000" "pons train open.ini" "$check"
head -c 300 "$keep/$image" >$image
prepare plain-image 4 "expected 1f 8b" "pons data preprocess a.ini -o $keep/ph" "$check"
echo text >$image
prepare divisor 3 "not divisible" "pons train a.ini --set patch.extent=15 --set experiment.name=new" "$check"
prepare other-seed 3 "seed" "pons train open.ini --set experiment.seed=7" "pons train open.ini"
prepare other-network 3 "channels" "pons train open.ini --set 'model.channels=2 6'" "pons train open.ini"
prepare cut-weights 4 "model.safetensors" "$predict" "$whole; ${predict% -o*} -o new.nii.gz"
head -c 900 "$keep/model.safetensors" >model.safetensors
prepare narrow-weights 3 "expected" "$predict --set 'model.channels=2 6'" "${predict% -o*} -o new.nii.gz"
prepare deep-weights 3 "model.1" "$predict --set 'model.channels=2 4 8' --set 'model.strides=2 2'" \
    "${predict% -o*} -o new.nii.gz"
prepare pretrained 4 "model.safetensors" \
    "pons train a.ini --set train.pretrained=model.safetensors --set experiment.name=new" \
    "$whole; pons train a.ini --set train.pretrained=model.safetensors --set experiment.name=new"
head -c 900 "$keep/model.safetensors" >model.safetensors
prepare flipped-resume 4 "model.safetensors" "pons train a.ini --set experiment.name=new --resume runs/open" \
    "$whole; pons train open.ini"
printf X | dd of="$(echo runs/open/checkpoints/step-*/model.safetensors)" bs=1 seek=1500 conv=notrunc \
    2>/dev/null
prepare missing-image 4 "none.nii.gz" "pons predict runs/done none.nii.gz -o $keep/out.nii.gz" \
    "pons predict runs/done $image -o new.nii.gz"
prepare no-run 3 "runs/none" "pons predict runs/none $image -o $keep/out.nii.gz" \
    "pons predict runs/done $image -o new.nii.gz"
prepare other-grid 4 "expected" "pons evaluate --prediction small.nii.gz --label $label --overlay $keep/out.png" \
    "pons evaluate --prediction $label --label $label"
pons data crop "$sound" -o small.nii.gz --start 0,0,0 --extent 9,9,9 2>/dev/null

# ---- commands ------------------------------------------------------------------------------------

cat >"$folder/ask.sh" <<'END'
# ask.sh NAME...: execute 'run' (or 'twin') in each case's folder.
pons() { "$program" "$@"; }
question=$1
shift
for case in "$@"; do
    name=${case##*/}
    (cd "$case" && . "./$question") >"$results/$name.$question.out" 2>"$results/$name.$question.err"
    echo $? >"$results/$name.$question.code"
done
END
cd "$folder" || exit 1
find "$keep" "$folder/cases" -type f | sort >before
xargs -d '\n' stat -c '%n %i %s %Y %Z' <before >before.stat
mkdir trace || exit 1
strace=
if ! command -v strace >/dev/null; then
    echo "strace is not installed: files are compared only"
elif ! strace -ff --seccomp-bpf -o trace/of true 2>/dev/null; then
    echo "strace may not trace here: files are compared only"
else
    # LeakSanitizer does not work under a tracer.
    strace="env ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS-} strace -ff --seccomp-bpf -y -s 4096 -o trace/of
        -e trace=openat,open,creat,truncate,ftruncate,rename,renameat,renameat2,unlink,unlinkat,link,linkat"
fi
# shellcheck disable=SC2086 # lists of words
$strace sh ask.sh run cases/* || fail "the cases could not be asked"
xargs -d '\n' stat -c '%n %i %s %Y %Z' <before >after.stat 2>&1

checks=$((checks + 1))
cmp -s before.stat after.stat || fail "files of the user changed: $(diff before.stat after.stat | head)"

# Existing paths that were opened for writing, truncated, removed or replaced, according to the trace.
if [ -n "$strace" ]; then
    checks=$((checks + 1))
    touched() {
        cat trace/* |
        awk -v before=before '
            BEGIN { while ((getline line < before) > 0) user[line] = 1 }
            / = -1 / { next }
            /open(at)?\(/ && !/O_WRONLY|O_RDWR|O_TRUNC|O_CREAT/ { next }
            { base = "";
              if (match($0, /AT_FDCWD<[^>]*>/)) base = substr($0, RSTART + 9, RLENGTH - 10);
              rest = $0;
              while (match(rest, /"[^"]*"|[0-9]+<\/[^>]*>/)) {
                  path = substr(rest, RSTART, RLENGTH);
                  sub(/^[0-9]*["<]/, "", path); sub(/[">]$/, "", path);
                  rest = substr(rest, RSTART + RLENGTH);
                  if (path !~ /^\//) path = base "/" path;
                  while (sub(/\/[^\/]*\/\.\.\//, "/", path)) ;
                  gsub(/\/(\.\/)+/, "/", path); gsub(/\/+/, "/", path);
                  if (path in user) print path ": " $0;
              } }'
    }
    touched >touched
    rm trace/*
    [ -s touched ] && fail "files of the user were opened to be changed: $(head touched)"
    # The control: the same shell writes a file of the user, and the trace has it.
    checks=$((checks + 1))
    $strace sh -c 'cd keep && echo again >out.png'
    [ -n "$(touched)" ] || fail "a file that was written was not seen"
fi

for case in cases/*; do
    name=${case##*/}
    checks=$((checks + 1))
    found=$(cat "results/$name.run.code")
    error=results/$name.run.err
    if [ "$found" -ne "$(cat "$case/code")" ]; then
        fail "$name: code $found, expected $(cat "$case/code"):"
        cat "$case/run" "$error"
        continue
    fi
    while IFS= read -r phrase; do
        grep -qF -e "$phrase" "$error" || { fail "$name: no '$phrase' in:"; cat "$error"; }
    done <"$case/phrase"
    if [ "$(grep -c '^error: ' "$error")" -ne 1 ] || grep -v -e '^error: ' -e '^hint: ' -e '^warning: ' "$error" ||
        [ -s "results/$name.run.out" ]; then
        fail "$name: expected one line and at most a hint:"
        cat "$error" "results/$name.run.out"
    fi
done

# Every fifth twin of a table, and each of the others.
n=0
set --
for case in cases/*; do
    n=$((n + 1))
    case $case in
    *-[0-9][0-9][0-9]) [ $((n % 5)) -ne 0 ] || set -- "$@" "$case" ;;
    *) set -- "$@" "$case" ;;
    esac
done
sh ask.sh twin "$@"
for case in "$@"; do
    name=${case##*/}
    checks=$((checks + 1))
    found=$(cat "results/$name.twin.code")
    if [ "$found" -ne "$(cat "$case/twin.code" 2>/dev/null || echo 0)" ]; then
        fail "twin of $name: code $found:"
        cat "$case/twin" "results/$name.twin.err"
    fi
done

checks=$((checks + 1))
count=$(find cases -mindepth 1 -maxdepth 1 | wc -l)
[ "$count" -ge 120 ] || fail "$count broken files, expected at least 120"
echo "$count broken files, $# twins"
finish
