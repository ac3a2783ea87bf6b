#!/bin/sh
# pons data check and pons bench --data: their output for a sound dataset, and the exit codes and
# phrases for broken ones.
. "${srcdir:-.}/tests/support/checks.sh"
cd "$folder" || exit 1

# expect CODE STREAM PHRASE: 'pons data check a.ini' exits with CODE and prints PHRASE to STREAM.
expect() {
    checks=$((checks + 1))
    "$program" data check a.ini >stdout 2>stderr
    found=$?
    if [ "$found" -ne "$1" ] || ! grep -qF -e "$3" "$2"; then
        fail "code $found, expected $1, '$3' in $2:"
        cat stdout stderr
    fi
}

# json NAME PHRASE [CODE]: 'pons data check a.ini --json' prints one line with PHRASE.
json() {
    checks=$((checks + 1))
    "$program" data check a.ini --json >stdout 2>stderr
    [ $? -eq "${3:-0}" ] && [ "$(wc -l <stdout)" -eq 1 ] && grep -qF -e "$2" stdout ||
        fail "$1: '$2' in JSON: $(cat stdout stderr)"
}

"$program" data phantom -o ph --cases 3 --extent 24,20,18 2>/dev/null || exit 1
printf '[data]\nsource = ph\nvalidation = last:1\n[model]\nplugin = unet\n' >a.ini
expect 0 stdout "3 cases, 2 for training, 1 for validation: phantom_002"
expect 0 stdout "i     24     24     24"
expect 0 stdout "0 errors, 0 warnings"
json "geometry" '"extent":{"least":[24,20,18],"median":[24,20,18],"largest":[24,20,18]}'
json "groups" '"geometry":[{"orientation":"RAS","spacing":[1,1,1],"cases":3}]'
json "the split" '{"case":"phantom_002","part":"validation","image":["'

checks=$((checks + 1))
"$program" data check a.ini -q >quiet 2>&1 && [ ! -s quiet ] || fail "-q: $(cat quiet)"

# Classes of several ids, with the voxels of each id only where they are asked for.
"$program" data check a.ini -v >ids 2>/dev/null
brain=$(awk '$1 == "1" && $2 == "brain" { print $3 }' ids)
outside=$(awk '$1 == "0" && $2 == "background" { print $3 }' ids)
checks=$((checks + 1))
[ "$((brain + outside))" -eq "$((3 * 24 * 20 * 18))" ] || fail "voxels of ids: $(cat ids)"
printf '[data]\nsource = ph\nlabels = all:0,1 none:7\n' >a.ini
json "a class of two ids" '{"name":"all","ids":"0,1","voxels":25920,"cases":3},{"name":"none","ids":"7","voxels":0,"cases":0}'
json "its ids" "\"ids\":[{\"id\":0,\"class\":\"all\",\"voxels\":$outside,\"cases\":3},{\"id\":1,"
expect 0 stdout "all                               25920  100.0000%        3  0,1"
checks=$((checks + 1))
grep -q '^ *1  all' stdout && fail "ids are printed without -v: $(cat stdout)"
printf '[data]\nsource = ph\nlabels = all:0 two:2 ignore:1\n' >a.ini
json "ignored ids" "\"ignored\":[{\"name\":\"ignore\",\"ids\":\"1\",\"voxels\":$brain,\"cases\":3}]"
printf '[data]\nsource = ph\nlabels = all:0,1 two:2\nregions = one:1 both:0,1\n' >a.ini
json "regions" "{\"name\":\"one\",\"ids\":\"1\",\"voxels\":$brain,\"cases\":3},{\"name\":\"both\",\"ids\":\"0,1\",\"voxels\":25920"
printf '[data]\nsource = ph\nvalidation = last:1\n[model]\nplugin = unet\n' >a.ini

"$program" data phantom -o ph --cases 5 --extent 8,8,8 2>/dev/null || exit 1
"$program" data phantom -o ph --cases 3 --extent 24,20,18 2>/dev/null || exit 1
checks=$((checks + 1))
[ "$(ls ph/imagesTr ph/labelsTr | grep -c nii)" -eq 6 ] || fail "cases of a larger phantom stay: $(ls ph/*)"

cp -r ph sound
label=ph/labelsTr/phantom_001.nii.gz
# The origin is the same and the voxels are 0.4 % larger along k: srow_z[2] is byte 320, pixdim[3]
# is byte 88.
gzip -dc $label >wide.nii
for at in 88 320; do printf '\025\203\200\077' | dd of=wide.nii bs=1 seek=$at conv=notrunc 2>/dev/null; done
gzip -c wide.nii >$label
expect 4 stdout "spacing 1 x 1 x 1.004"
cp sound/labelsTr/phantom_001.nii.gz $label
"$program" data crop sound/labelsTr/phantom_001.nii.gz -o $label --start 1,0,0 --extent 24,20,18 \
    2>/dev/null || "$program" data crop sound/labelsTr/phantom_001.nii.gz -o $label --start 1,0,0 \
    --extent 23,20,18 2>/dev/null
expect 4 stdout "error: case 'phantom_001'"
head -c 200 sound/imagesTr/phantom_000.nii.gz >ph/imagesTr/phantom_000.nii.gz
expect 4 stderr "2 problems, the first: case 'phantom_000'"
json "an unreadable image" '"errors":2,"warnings":0}' 4
json "an unreadable image" '"problems":[{"kind":"error","case":"phantom_000","file":"' 4
json "an unreadable image" '/phantom_000.nii.gz","readable":false}' 4
checks=$((checks + 1))
"$program" data check a.ini >both 2>&1
[ $? -eq 4 ] && [ "$(grep -c "case 'phantom_000'" both)" -eq 1 ] &&
    [ "$(tail -n 1 both)" = "error: the data has 2 errors, listed above" ] || fail "an error is said twice: $(cat both)"
cp sound/labelsTr/phantom_001.nii.gz $label
cp sound/imagesTr/phantom_000.nii.gz ph/imagesTr/phantom_000.nii.gz
expect 0 stdout "0 errors, 0 warnings"

# Pictures of cases, and of patches.
printf '%s\n' '[data]' 'source = ph' '[preprocess]' 'steps = normalize' '[augment]' 'steps = flip' \
    '[augment.flip]' 'axes = 0' 'probability = 0.5' >a.ini
shows() {
    expected=$1 phrase=$2
    shift 2
    checks=$((checks + 1))
    "$program" data show a.ini "$@" >stdout 2>stderr
    found=$?
    [ $found -eq "$expected" ] && grep -qF -e "$phrase" stderr ||
        fail "data show $*: code $found, expected $expected, '$phrase': $(cat stdout stderr)"
}
shows 2 "'pons data show' needs --output"
if "$program" doctor | grep -q '^libpng  .*: yes$'; then
    shows 0 "outlines: brain green" -o all
    shows 0 "one/phantom_002.png" phantom_002 -o one
    checks=$((checks + 1))
    [ "$(ls all one | grep -c 'phantom_00[012].png')" -eq 4 ] || fail "pictures: $(ls all one)"
    checks=$((checks + 1))
    [ "$(sed -n 1p one/captions.txt)" = "outlines: brain green" ] && [ "$(wc -l <all/captions.txt)" -eq 4 ] &&
        grep -qxF \
        "phantom_002.png: rows from the top: contrast0 as in the file; the same after normalize" one/captions.txt ||
        fail "captions: $(cat one/captions.txt all/captions.txt)"
    shows 0 "parts/phantom_002.png" -o parts --set 'preprocess.steps=normalize resize' \
        --set 'preprocess.resize.extent=9 9 9' --set preprocess.resize.cases=training \
        --set data.validation=names:phantom_002
    checks=$((checks + 1))
    cmp -s parts/phantom_002.png all/phantom_002.png && ! cmp -s parts/phantom_001.png all/phantom_001.png ||
        fail "a step for training is applied to other cases, or to none"
    shows 2 "there is no case 'phantom_009' in " phantom_009 -o none
    shows 3 "[patch] has no 'extent'" --patches 3 -o none
    checks=$((checks + 1))
    [ ! -e none ] || fail "a refused command has written: $(ls none)"
    shows 0 "sheet/patches.png" --patches 3 -o sheet --set patch.extent=8
    checks=$((checks + 1))
    grep -qxF "patches.png: patches after normalize, augmented by flip; a band of rows from the top: contrast0" \
        sheet/captions.txt &&
        [ "$(grep -c '^patches.png, band [12] from the left: phantom_00' sheet/captions.txt)" -eq 2 ] ||
        fail "captions: $(cat sheet/captions.txt)"
    shows 0 "sheet/patches.png" phantom_000 --patches 7 -o sheet --set 'patch.extent=8 8 1'
else
    shows 3 "'pons data show' needs libpng, which is not in this build" -o all
fi

printf '[data]\nsource = ph\nlabels = background:0 other:2\n' >a.ini
expect 4 stdout "which 'labels' does not list"
expect 4 stdout "(not listed)"
printf '[data]\nsource = ph\nlabel_s = x\n' >a.ini
expect 3 stderr "a.ini:3: unknown key 'label_s' in [data]"
printf '[data]\nsource = ph\n[preprocess]\nsteps = normalize\n[preprocess.normalize]\nx = 1\n' >a.ini
expect 3 stderr "a.ini:6: unknown key 'x' in [preprocess.normalize]"
printf '[data]\nsource = ph\n[augment]\nsteps = flip\n[augment.flip]\naxes = 0\nprobability = 2\n' >a.ini
expect 3 stderr "a.ini:7: "
printf '[data]\nsource = ph\n[preprocess]\nsteps = normalize\n[preprocess.normalize]\nchannels = 1\n' >a.ini
expect 3 stderr "found channel 1, expected 0 to 0"
printf '[data]\nsource = ph\n[augment]\nsteps = flip\n[augment.flop]\naxes = 0\n' >a.ini
expect 3 stderr "a.ini:6: unknown section 'augment.flop'; did you mean 'augment.flip'?"
printf '[data]\nsource = ph\n[augment]\nsteps = flip flop\n[augment.flop]\nplugin = flip\naxes = 0\n' >a.ini
expect 3 stderr "[augment.flip] has no 'axes', which must be given"
printf '[data]\nsource = absent\n' >a.ini
expect 4 stderr "cannot find the dataset"
printf '[data]\nimage = ph/imagesTr/*.nii.gz\nlabel = ph/labelsTr/*.nii.gz\n' >a.ini
expect 3 stderr "'labels' is not given in [data]"
printf '[data]\nimage = ph/imagesTr/*.nii.gz\nlabel = ph/labelsTr/*.nii.gz\nlabels = b:0 x:1\n' >a.ini
expect 0 stdout "layout: globs, by '"
printf '[data]\nlabel = a b/*.nii\nimage = a b/*.nii\n' >a.ini
expect 3 stderr "a.ini:3: [data] image: 'image' is '$(pwd)/a', which has no '*' but another pattern has one"
expect 3 stderr 'hint: a pattern with blanks stands in "double quotes"'
printf '[data]\nvalidation = none\n' >a.ini
expect 3 stderr "a.ini:1: [data] source: neither 'source' nor 'image' is given"
printf '[data]\nimage = ph/imagesTr/*.nii.gz\nlabel = ph/labelsTr/*.nii.gz\nlabels = b:0 x:1 y:4\n' >a.ini
expect 0 stdout "warning: no case contains 'y:4', which 'labels' lists"
expect 0 stdout "0 errors, 1 warning"
printf '[data]\nimage = ph/imagesTr/*.nii.gz\nlabel = ph/labelsTr/*.nii.gz\nlabels = b:0 x:1\n' >a.ini
rm ph/labelsTr/phantom_002.nii.gz
expect 4 stdout "error: case 'phantom_002': found '$folder/ph/imagesTr/phantom_002.nii.gz', expected '$folder/ph/labelsTr/phantom_002.nii.gz' beside it"
head -c 200 sound/imagesTr/phantom_000.nii.gz >ph/imagesTr/phantom_000.nii.gz
mv ph/imagesTr/phantom_001.nii.gz ph/imagesTr/other.nii.gz
expect 4 stdout "error: case 'other': found "
expect 4 stdout "error: case 'phantom_001': found "
expect 4 stdout "error: case 'phantom_000': "
expect 4 stderr "4 problems, the first: case 'other': found "

# Training names a class that no case has once, in every cache mode.
rm -rf ph && cp -r sound ph
printf '%s\n' '[experiment]' 'name = a' '[data]' 'source = ph' 'labels = b:0 brain:1 y:4,5' 'validation = last:1' \
    '[patch]' 'extent = 8' '[model]' 'plugin = unet' 'channels = 2 4' 'strides = 2' '[loss]' 'plugin = dice' \
    '[optimizer]' 'plugin = sgd' 'lr = 0.1' '[train]' 'steps = 1' >a.ini
for cache in memory none disk disk; do
    checks=$((checks + 1))
    "$program" train a.ini --fresh --set data.cache=$cache 2>stderr
    if [ $? -ne 0 ] || [ "$(grep -c "warning: no case contains 'y:4,5', which 'labels' lists" stderr)" -ne 1 ]; then
        fail "a training with cache $cache names the class that no case has:"
        cat stderr
    fi
done
checks=$((checks + 1))
"$program" train a.ini --fresh --set "data.labels=b:0 brain:1" 2>stderr
if [ $? -ne 0 ] || grep -q "no case contains" stderr; then
    fail "a training names a class although cases have all of them:"
    cat stderr
fi

# A patch that is mostly padding is told before the first step, one of a few voxels more is not.
phrase='warning: at least 82 % of each patch is padding: [patch] extent is 32 x 32 x 48 voxels, the cases have at most'
for extent in "32 32 48" "32 24 24"; do
    checks=$((checks + 1))
    "$program" train a.ini --fresh --set "data.labels=b:0 brain:1" --set "patch.extent=$extent" 2>stderr
    code=$?
    [ "$code" -eq 0 ] && [ "$(grep -cF "$phrase 24 x 20 x 18" stderr)" -eq "$([ "$extent" = "32 24 24" ]; echo $?)" ] ||
        fail "a patch of $extent voxels: code $code, $(cat stderr)"
done

# A validation that takes longer than the steps before it is told once; one step has no room for a remedy.
"$program" data phantom -o large --cases 2 --extent 40,36,32 2>/dev/null || exit 1
for rule in validate_every=1 validate_steps=1; do
    checks=$((checks + 1))
    "$program" train a.ini --fresh --set data.source=large --set train.steps=1 --set train.$rule \
        --set "data.labels=b:0 brain:1" --set window.overlap=0.9 --set window.extent=8 2>stderr
    [ "$(grep -c '^a validation takes .* s, the 1 step before it took [0-9.]* s$' stderr)" -eq 1 ] ||
        fail "the cost of validations with $rule: $(cat stderr)"
done

# ---- files that are read are never replaced ------------------------------------------------------

# refuses PHRASE ARGUMENT...: exit code 2 with the phrase; the files of 'kept' stay as they are.
refuses() {
    phrase=$1
    shift
    checks=$((checks + 1))
    rm -rf before && cp -r kept before
    "$program" "$@" >stdout 2>stderr
    found=$?
    if [ "$found" -ne 2 ] || ! grep -qF -e "$phrase" stderr || ! diff -r kept before >/dev/null; then
        fail "pons $*: code $found, expected 2 and '$phrase':"
        cat stderr
    fi
}

cp -r sound kept
refuses "is the image itself" data crop kept/imagesTr/phantom_000.nii.gz \
    -o ./kept/imagesTr/../imagesTr/phantom_000.nii.gz --start 1
ln -s ../kept/imagesTr/phantom_000.nii.gz sound/link.nii.gz
refuses "is the image itself" data crop kept/imagesTr/phantom_000.nii.gz -o sound/link.nii.gz --start 1
sed 's/"phantom"/"spleen"/' sound/dataset.json >kept/dataset.json
refuses "holds another dataset" data phantom -o kept --cases 1 --extent 8
rm -rf kept && mkdir -p kept/a && cp sound/imagesTr/phantom_000.nii.gz kept/a/image.nii.gz
printf '[data]\nimage = kept/*/image.nii.gz\n[preprocess]\nsteps = normalize\n' >a.ini
refuses "which is read, expected another folder" data preprocess a.ini -o kept
checks=$((checks + 1))
"$program" data preprocess a.ini -o other 2>stderr || fail "$(cat stderr)"

# Steps for validation alone act on the cases that training holds out, in files and in the cache.
printf '[data]\nsource = parts\nvalidation = last:1\ncache = disk\ncache_dir = kept_parts\n' >b.ini
printf '[preprocess]\nsteps = resize\n[preprocess.resize]\nextent = 8\ncases = validation\n' >>b.ini
checks=$((checks + 3))
"$program" data phantom -q -o parts --cases 2 --extent 12 2>stderr || fail "$(cat stderr)"
"$program" data preprocess b.ini -o parts_of 2>stderr || fail "$(cat stderr)"
grep -q 'phantom_000: 12 x 12 x 12' stderr && grep -q 'phantom_001: 8 x 8 x 8' stderr || fail "parts: $(cat stderr)"
"$program" data preprocess b.ini --cache 2>stderr || fail "$(cat stderr)"
[ "$(find kept_parts -type f -size +0 | wc -l)" -ge 2 ] || fail "the cache of parts: $(find kept_parts)"

checks=$((checks + 1))
"$program" data phantom -o ph --cases 1 --extent 8 2>stderr || fail "$(cat stderr)"

# pons bench --data needs no model and counts the patches that were asked for.
# said PHRASE: the last bench printed PHRASE.
said() {
    checks=$((checks + 1))
    if ! grep -q -e "$1" stdout; then
        fail "expected '$1' in:"
        cat stdout stderr
    fi
}

printf '[data]\nsource = sound\nvalidation = last:1\n[patch]\nextent = 8 8 8\nper_case = 3\n' >a.ini
"$program" bench a.ini --data --json --steps 4 >stdout 2>stderr
said '^{"cases":2,"voxels":17280,"read":{"seconds":[0-9.e-]*,"megavoxels_per_second":[0-9.e+]*,"threads":[0-9]*,'
said '"patches":{"seconds":[^}]*"count":12,'
said '"rounds":[0-9]*,"differ":[0-9.e-]*}$'
# The bench warns of a busy machine, so both outputs are valid.
busy=$(sed 's/.*"differ"://; s/}$//' stdout | awk '{ print ($1 > 0.25) }')
checks=$((checks + 1))
[ "$(grep -c 'longer than its fastest round: the machine was busy' stderr)" = "$busy" ] ||
    fail "busy: $busy, but said: $(cat stderr)"
python3 -c 'import json; json.load(open("stdout"))' 2>/dev/null || ! command -v python3 >/dev/null ||
    echo 'not JSON' >stdout
said '^{"cases"'
"$program" bench a.ini --data >stdout 2>stderr
said '^2 cases, .* Mvoxel, medians of [0-9]* rounds$'
said '^preprocess  *[0-9.]* Mvoxel/s'
said '^patches  *[0-9.]* /s .* loader thread'
"$program" bench a.ini --data --set data.loader_threads=3 >stdout 2>stderr
said '^read  *[0-9.]* Mvoxel/s .* 3 threads'
said '^preprocess  *[0-9.]* Mvoxel/s .* 3 threads'
"$program" bench a.ini --data --set data.cache=disk --set data.cache_dir=made >stdout 2>stderr
said '^cache .* MiB held, once$'
"$program" bench a.ini --data --set patch.per_cases=2 >stdout 2>&1
said "unknown key 'per_cases' in \[patch\]"
printf '[data]\nsource = sound\n' >a.ini
"$program" bench a.ini --data >stdout 2>&1
said "'extent'"

finish
