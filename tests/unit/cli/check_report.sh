#!/bin/sh
# pons report: a page from the files of a run, with every text from outside escaped.
. "${srcdir:-.}/tests/support/checks.sh"

cd "$folder" || exit 1

# A run as its files: two validations, a class and a case with names that are markup.
bad='<img src=x onerror=alert(1)>&"'
run="runs/$bad'"
mkdir -p "$run/validation"
i=1
while [ $i -le 300 ]; do
    echo "{\"kind\":\"step\",\"step\":$i,\"epoch\":1,\"loss\":$((600 - i)),\"lr\":0.5,\"seconds\":0.5,\"data_seconds\":0.125}"
    [ $((i % 150)) -eq 0 ] && echo "{\"kind\":\"validation\",\"step\":$i,\"epoch\":1,\"dice\":{\"mean\":0.$i," \
        "\"<b>liver\":null},\"cases\":2,\"seconds\":25}"
    i=$((i + 1))
done >"$run/metrics.jsonl"
echo '{"kind":"st' >>"$run/metrics.jsonl"
printf '%s\n' "; pons 0.2.0" "; host <i>h, A & B, 16 processors, 31.2 GiB" "; devices 8 x H200, 139.8 GiB" \
    "; model un<b>et 1.0 sha256 0123" "" "[experiment]" "name = a<b>c ; x.ini:2" "[train]" \
    "steps = 400 ; default" "best = dice.mean ; default" >"$run/resolved.ini"
printf '%s\n' "case,class,dice,iou,step" "good,<b>liver,0.75,0.5,300" "good,(mean),0.75,0.5,300" \
    '"<script>alert(2)</script>&""",<b>liver,0.25,,300' '"<script>alert(2)</script>&""",(mean),0.25,,300' \
    >"$run/validation/cases.csv"

printf '%s\n' "2026-11-28 10:00:00 step 300/400" "2026-11-28 10:00:01 error: <b>" "hint: none" >"$run/log.txt"

page=$run/report.html
picture() { ! "$program" doctor | grep -q '^libpng  *.*: yes$' || [ "$(head -c 4 "$1" | tail -c 3)" = PNG ]; }
has() { grep -qF -- "$1" "$page"; }

check "a page" ends 0 "report.html" "$program" report "$run"
check "it has no script and no element of a name" sh -c '! grep -qE "<script|<img src=x|<b>" "$1"' - "$page"
check "the name of the run is escaped" has "<h1>Run &lt;img src=x onerror=alert(1)&gt;&amp;&quot;&#39;</h1>"
check "the name of a case is escaped" has "&lt;script&gt;alert(2)&lt;/script&gt;&amp;&quot;</h3>"
check "the name of a plugin is escaped" has "un&lt;b&gt;et"
check "a curve has the value of a position" grep -qF "mean: 0.15<" "$page"
check "a part of many steps has mean, least and largest" has "Training loss: 598 (597 to 599)"
check "the cut last line is passed over" has "Step 300 of 400"
dated() { grep -qE "<p>200 s of steps and validations, the last one at 20[0-9-]{8} [0-9:]{8}</p>" "$page"; }
check "the time of all and the date of the last record" dated
check "the host and its devices" has "<p>On &lt;i&gt;h, A &amp; B, 16 processors, 31.2 GiB; 8 x H200, 139.8 GiB</p>"
check "the end of the log without its hint" has "The log ends with: 2026-11-28 10:00:01 error: &lt;b&gt;</p>"
check "what the phases leave out" has "pons train --profile measures all"
check "the best validation" has "<strong>0.3000</strong> after step 300"
check "the sum of steps without data" has "steps without waiting for data</th><td class=\"n\">112.5</td>"
check "the sum of validations" has "validation</th><td class=\"n\">50</td>"
check "the command that repeats it, from any folder" has "<pre tabindex=\"0\">pons train &#39;$folder/runs/"
check "in a shell's quotes" has "--set &#39;experiment.name=a&lt;b&gt;c-again&#39;"
first_case() { sed -n 's/.*<a href="#case-\([0-9]*\)".*/\1/p' "$page" | head -1; }
check "the worst case comes first" [ "$(first_case)" = 2 ]
links() { grep -oE "(src|href)=\"[^\"]{0,5}|url\(|@import" "$page" | grep -vE "=\"(#|data:)"; }
check "nothing is loaded from elsewhere" [ "$(links)" = "" ]

check "a picture of the curves beside it" picture "$run/progress.png"
rm "$run/progress.png"
check "another file" ends 0 "'deep/page.html'" "$program" report "$run" -o deep/page.html
check "equals the first" cmp deep/page.html "$page"
check "and leaves the run alone" [ ! -e "$run/progress.png" ]
check "a table of the curves" ends 0 "'deep/curves.csv'" "$program" report "$run" -o deep/curves.csv
row() { sed -n "$1p" deep/curves.csv; }
check "has a column for each name" \
    [ "$(row 1)" = "kind,step,epoch,loss,lr,seconds,data_seconds,dice.mean,dice.<b>liver,cases" ]
check "a row for each record" [ "$(wc -l <deep/curves.csv)" -eq 303 ]
check "cells that are empty" [ "$(row 2)" = "step,1,1,599,0.5,0.5,0.125,,," ]
check "and names of two kinds in one column" [ "$(row 152)" = "validation,150,1,,,25,,0.15,,2" ]
mkfifo deep/fifo
mv deep/fifo "$run/log.txt"
check "nothing waits for a log that is no file" ends 0 "'deep/page.html'" timeout 20 "$program" report "$run" \
    -o deep/page.html
mkdir doubled
printf '%s\n' '{"kind":"v","step":1,"epoch":1,"dice":{"a":1},"dice.a":2}' \
    '{"kind":"v","step":2,"epoch":1,"dice":{"a":3}}' >doubled/metrics.jsonl
check "a record with two values of one name" "$program" report doubled -o doubled.csv
check "has the last one, and others have theirs" \
    [ "$(tail -n 2 doubled.csv | tr '\n' ' ')" = "v,1,1,2 v,2,1,3 " ]
check "no folder is refused" ends 4 "'nowhere' is no folder, expected the folder of a run" "$program" report nowhere
mkdir empty
check "a folder without records is refused" ends 4 "cannot read 'empty/metrics.jsonl'" "$program" report empty
check "and gets no page" [ ! -e empty/report.html ]
mkdir -p folds/fold_0/checkpoints
check "folds are refused" ends 4 "hint: pons report folds/fold_0" "$program" report folds

# Two runs with six cases: every difference is 0.125 k, k = 1 to 6, so p = 2 / 2^6.
for name in one two; do
    mkdir -p "$name/validation"
    cp "$run/metrics.jsonl" "$name/"
    cp "$run/resolved.ini" "$name/"
    {
        echo "case,class,dice,step"
        for k in 1 2 3 4 5 6; do
            value=$(awk -v k=$k -v by=$([ $name = one ] && echo 0 || echo 0.125) 'BEGIN { print k / 64 + by * k }')
            printf '%s\n' "c$k,liver,$value,300" "c$k,(mean),$value,300"
        done
    } >"$name/validation/cases.csv"
done
page=comparison.html
check "a comparison of equal settings" "$program" report one two
check "tells that none differs" has '<p>None.</p>'
check "a run beside itself is refused" ends 2 "'one' and 'one/' are one run" "$program" report one one/
sed -i 's/steps = 400/steps = 500/' two/resolved.ini
printf '%s\n' "[data]" "labels = a:1 \\" "    b:2 ; x.ini:7" >>one/resolved.ini
printf '%s\n' "[data]" "labels = a:1 \\" "    c:2 ; x.ini:7" "source = other ; x.ini:9" >>two/resolved.ini
echo '{"wall_ns":2000000000,"phases":[{"phase":"checkpoint","calls":1,"cpu_ns":1000000000,"gpu_ns":0},
{"phase":"forward","calls":1,"cpu_ns":3000000000,"gpu_ns":0}]}' >two/profile.json
check "a page with a profile" "$program" report two
check "has its phases" grep -q '>checkpoint</th><td class="n">1</td><td class="n">25</td>' two/report.html
echo '{' >one/profile.json
check "a page with a damaged profile" "$program" report one
check "tells it" grep -qF "profile.json cannot be read" one/report.html
check "a comparison" ends 0 "'comparison.html'" "$program" report one two
check "p of six differences of one sign is 2 / 2^6" \
    has '<td class="n">6</td><td class="n">0</td><td class="n">0.03125</td>'
check "the difference of the means" has '<td class="n">0.4375</td>'
check "the metric, its best and its last value" has \
    '<td class="wrap">dice.mean</td><td class="n">0.3000</td><td class="n">0.3000</td>'
check "settings that differ" has '[train] steps</th><td class="wrap">400</td><td class="wrap">500</td>'
check "values that go on in the next line" \
    grep -q '\[data\] labels</th><td class="wrap">a:1 *b:2</td>' comparison.html
check "another dataset is told" has "The runs have other datasets:"
check "settings that are equal are left out" sh -c '! grep -qF "[train] best" comparison.html'
check "a curve has both runs" sh -c 'tr "\n" " " <comparison.html | grep -qF "step 150 one: 0.15 two: 0.15"'
check "without pictures there is no section of them" sh -c '! grep -qF "Cases that differ most" comparison.html'
for number in 2 5 6; do
    echo picture >one/validation/case_000$number.png
done
cp one/validation/case_000[26].png two/validation/
check "a comparison with pictures" "$program" report one two
shown() { sed -n '/id="pictures"/,$p' comparison.html | grep -o "$1" | tr '\n' ' '; }
check "has those of the cases that two runs have, the largest difference first" \
    [ "$(shown 'alt="Slices of c[0-9]*"')" = \
    'alt="Slices of c6" alt="Slices of c6" alt="Slices of c2" alt="Slices of c2" ' ]
check "beside each other with run and value" \
    [ "$(shown '<figcaption>[a-z]* <small>[0-9.]*')" = "<figcaption>one <small>0.0938 <figcaption>two <small>0.8438 \
<figcaption>one <small>0.0312 <figcaption>two <small>0.2812 " ]
more='{"kind":"epoch","step":300,"epoch":1,"a,b":null,"memory_bytes":7}'
check "a run with a name of its own" sh -c 'echo "$1" >>two/metrics.jsonl' - "$more"
check "a table of two runs" "$program" report one "two" -o two.csv
check "has the names of both" grep -q '^run,kind,step,epoch,loss,.*,cases,"a,b",memory_bytes$' two.csv
check "rows of the first run" [ "$(grep -c '^one,.*,,$' two.csv)" -eq 302 ]
check "and the second one's own" [ "$(tail -1 two.csv)" = 'two,epoch,300,1,,,,,,,,,7' ]
check "a run without cases" sh -c 'rm one/validation/cases.csv'
check "is compared by its curves" ends 0 "'c.html'" "$program" report two one -o c.html
check "which the page says" grep -q "no validation case and metric in common" c.html

echo "case,class,dice" >"$run/validation/cases.csv"
echo "x,liver,0.5" >>"$run/validation/cases.csv"
check "a malformed table is refused" ends 4 "no table of validation cases" "$program" report "$run"

# A training writes the page, pictures and scores; it is the same without them.
phantom ph 4 32,28,24
{
    printf '%s\n' "[experiment]" "name = run" "deterministic = yes" "[data]" "source = ph" "validation = 0.5" \
        "[preprocess]" "steps = normalize" "[patch]" "extent = 16" "[train]" "steps = 4" "validate_steps = 2" \
        "checkpoint_every = 100" "[window]" "overlap = 0"
    small_unet
} >e.ini
train() { name=$1; shift; "$program" train e.ini -q --set "experiment.name=$name" "$@"; }
bits_of_run() {
    weights=checkpoints/step-00000004/model.safetensors
    cmp "runs/$1/$weights" "runs/run/$weights"
}
page=runs/run/report.html
check "a training" train run
check "leaves a page with its host" has "<p>On $(uname -n), "
check "and of all its steps" has "Step 4 of 4"
check "a training that fails" ends 1 "the gradient" "$program" train e.ini --set experiment.name=stops \
    --set optimizer.lr=1e30 --set train.nonfinite=stop
check "has a page, too" grep -q "The log ends with: .*: the gradient" runs/stops/report.html
check "and a picture of each case" picture runs/run/validation/case_0002.png
scores() { sed -n 's/.*,(mean),\([^,]*\),.*,4$/\1/p' runs/run/validation/cases.csv; }
recorded() { sed -n 's/.*"step":4,.*"dice":{"mean":\([^,}]*\).*/\1/p' runs/run/metrics.jsonl; }
check "the scores of the cases have the mean of the record" [ "$(scores | awk '{ n++; sum += $1 } END {
    printf "%d %.6f", n, sum / n }')" = "2 $(recorded | awk '{ printf "%.6f", $1 }')" ]
parameters() { awk -F, 'NR > 1 { sum += $6 } END { print sum }' runs/run/network.csv; }
explained() { "$program" explain e.ini --json 2>/dev/null | tr -d '\n' | sed 's/.*"parameter_count":\([0-9]*\).*/\1/'; }
check "levels have all parameters" [ "$(parameters)" = "$(explained)" ]
check "and the extents of the unet" [ "$(awk -F, 'NR > 1 { printf "%s ", $1 }' runs/run/network.csv)" = "16 8 " ]
check "a training without a page" train bare --set log.report=no
check "leaves none" [ "$(ls runs/bare)" = "$(ls runs/run | grep -v -e report -e progress -e validation -e network)" ]
check "and has the same bits" bits_of_run bare
# Two processes send their pictures to rank 0: they are those of two replicas of one process.
validation_losses() { sed -n 's/^{"kind":"validation",.*"loss":\([^,]*\),"dice.*/\1/p' "runs/$1/metrics.jsonl"; }
check "two validations have a loss" [ "$(validation_losses run | grep -c '^[0-9]')" = 2 ]
check "which the page shows" grep -qF " Validation loss " "$page"
check "a training without it" train without --set train.validate_loss=no
check "has none" [ "$(validation_losses without)" = "" ]
check "and the same bits" bits_of_run without
two="--set distribute.devices=cpu:0,cpu:1 --set distribute.threads=1"
same_picture() { cmp "runs/ranks/validation/case_000$1.png" "runs/dp/validation/case_000$1.png"; }
pictures() { ! "$program" doctor | grep -q '^libpng  *.*: yes$' || { same_picture 1 && same_picture 2; }; }
# same_losses A B: both runs have two validations, and these have the same losses.
same_losses() {
    [ "$(validation_losses "$1" | grep -c '^[0-9]')" = 2 ] &&
        [ "$(validation_losses "$1")" = "$(validation_losses "$2")" ]
}
# The replicas' shares of three micro-batches differ, and the foreground is a share of all three.
odd="--set data.validation=last:3 --set patch.foreground_share=0.33 --set train.micro_batches=2"
check "one replica" train single $odd
check "two replicas of an odd number" train double $odd --set distribute.mode=dp $two
check "have the same loss of the validations" same_losses double single
check "two replicas" train dp --set distribute.mode=dp $two
if "$program" doctor | grep -q '^gloo  *.*: yes$'; then
    check "two processes" train ranks --set distribute.mode=ddp $two
    check "have the same pictures" pictures
    check "and the same loss of the validations" same_losses ranks dp
else
    echo "SKIPPED: pictures and losses of two processes: needs gloo"
fi
halves() { train halves --set train.steps=2 && train halves; }
check "a run in two parts" halves
page=runs/halves/report.html
steps_of() { grep -o 'step [0-9]*$' "$1" | sort | uniq -c; }
check "the curves have titles" [ "$(steps_of runs/run/report.html | grep -c .)" = 4 ]
check "has the curves of one" [ "$(steps_of runs/halves/report.html)" = "$(steps_of runs/run/report.html)" ]
mkdir -p runs/blocked && echo >runs/blocked/validation
check "a report that cannot be written is a warning" ends 0 "the report of the run is not complete" \
    "$program" train e.ini --set experiment.name=blocked
check "and the training has the same bits" bits_of_run blocked
cd / || exit 1
finish
