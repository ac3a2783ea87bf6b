#!/bin/sh
# [train] best by any metric of pons evaluate: the record, the mark, early stop, resume, several replicas and ranks.
. "${srcdir:-.}/tests/support/checks.sh"
cd "$folder" || exit 1
phantom heads 5 20,20,20
cat >a.ini <<END
[experiment]
name = a
deterministic = yes
[data]
source = heads
validation = last:3
$(small_training)
[train]
steps = 8
validate_steps = 2
micro_batches = 2
keep = 9
precision = fp32
[log]
sinks = csv
END

train() { "$program" train a.ini "$@"; }
records() { sed -n '/"kind":"validation"/s/,"seconds":[^}]*//p' "runs/$1/metrics.jsonl"; }
# values RUN METRIC: the means of a metric, one a line
values() { records "$1" | sed -n "s/.*\"$2\":{\"mean\":\([^,}]*\).*/\1/p"; }
# best_step RUN METRIC high|low: the first step with the best mean
best_step() {
    values "$1" "$2" | awk -v to="$3" '$1 != "null" && (!n || (to == "high" ? $1 > v : $1 < v)) { v = $1; n = NR }
                                       END { printf "step-%08d\n", 2 * n }'
}
# agrees RUN METRIC: the record of the best checkpoint equals pons evaluate
agrees() {
    "$program" evaluate --run "runs/$1" --metrics "$2" --json >evaluated.json 2>/dev/null
    at=$(sed 's/.*-0*//' "runs/$1/checkpoints/best")
    recorded=$(values "$1" "$2" | sed -n "$((at / 2))p")
    evaluated=$(sed -n 's/.*},"mean":{"[a-z0-9_]*":\([^,}]*\)}.*/\1/p' evaluated.json)
    awk -v a="$recorded" -v b="$evaluated" \
        'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a != "" && b != "" && d <= 1e-6 * (1 + (a < 0 ? -a : a))) }'
}
marked() { [ "$(cat "runs/$1/checkpoints/best")" = "$(best_step "$1" "$2" "$3")" ]; }

# The files' grid is that of the network, so the validation of a run equals its evaluation.
for metric in hd:low hd95:low asd:low nsd:high sensitivity:high specificity:high precision:high volume_similarity:high \
    lesions_missed:low lesions_false:low lesion_f1:high generalized_dice:high; do
    kind=${metric%:*}
    check "a run selects by $kind" train --set experiment.name=$kind --set train.best=$kind.mean
    check "its best checkpoint has the best $kind" marked $kind $kind "${metric#*:}"
    check "the record of $kind equals pons evaluate" agrees $kind $kind
done

check "surfaces are measured only if they select" sh -c "! grep -q '\"hd\"' runs/hd95/metrics.jsonl"
check "the table has the metric" grep -q '^validation,2,.*,hd95.mean,' runs/hd95/metrics.csv
check "a class may have a comma and quotes" train --set experiment.name=odd --set train.steps=2 \
    --set 'data.labels=background:0 a,"b<i>:1'
check "the table quotes its name" grep -qE '^validation,2,[0-9]+,"dice\.a,""b<i>",[0-9.]+$' runs/odd/metrics.csv
check "a bare name is the mean" train --set experiment.name=bare --set train.best=hd95
check "it selects the same checkpoint" cmp runs/bare/checkpoints/best runs/hd95/checkpoints/best

# ---- several classes, regions, ignored voxels -----------------------------------------------------

# fewest RUN: the step whose validation lacks the fewest values, the smallest mean among equals
fewest() {
    sed -n 's/.*validation after step \([0-9]*\): [a-z0-9_.]* \([0-9.]*\)\(.*\)/\1 \2 \3/p' "runs/$1/log.txt" |
        awk '{ lacks = $0 ~ /undefined/ ? $4 + 0 : 0 }
             NR == 1 || lacks < least || (lacks == least && $2 < v) { least = lacks; v = $2; step = $1 }
             END { printf "step-%08d\n", step }'
}
several() {
    name=$1
    shift
    train --set data.source=many --set experiment.name="$name" "$@"
}

"$program" data phantom -o many --cases 5 --extent 20,20,20 --classes 5 2>log || exit 1
for metric in hd95 nsd lesion_f1; do
    check "classes select by $metric" several classes_$metric --set train.best=$metric
    check "regions select by $metric" several regions_$metric --set train.best=$metric --set loss.plugin=dice_focal \
        --set "data.regions=whole:1,2,3,4 core:2,3 small:4"
    check "classes beside ignored voxels select by $metric" several ignored_$metric --set train.best=$metric \
        --set "data.labels=background:0 brain:1 inner:2,3 ignore:4"
    for kind in classes regions ignored; do
        check "the record of $kind by $metric equals pons evaluate" agrees ${kind}_$metric $metric
    done
done
check "one region selects" several one --set train.best=hd95.core --set loss.plugin=dice_focal \
    --set "data.regions=whole:1,2,3,4 core:2,3 small:4"
check "its record has the region" grep -q '"hd95":{[^}]*"core":[0-9]' runs/one/metrics.jsonl
check "training of regions ends early" ends 0 "training ends early" several stops --set train.best=hd95 \
    --set optimizer.lr=1e-12 --set train.early_stop=2 --set loss.plugin=dice_focal \
    --set "data.regions=whole:1,2,3,4 core:2,3 small:4"

# The network soon misses small classes: their distances are undefined, and the mean without them is smaller.
check "a validation lacks values" grep -q "values undefined" runs/classes_hd95/log.txt
check "its mean is the smallest" [ "$(best_step classes_hd95 hd95 low)" != "$(fewest classes_hd95)" ]
check "the best lacks the fewest" [ "$(cat runs/classes_hd95/checkpoints/best)" = "$(fewest classes_hd95)" ]
check "a run of 4 steps lacks values" several lacking --set train.best=hd95 --set train.steps=4
check "goes on to 8" several lacking --set train.best=hd95
check "with the same best checkpoint" cmp runs/lacking/checkpoints/best runs/classes_hd95/checkpoints/best

# ---- replicas, ranks, resume ----------------------------------------------------------------------

same() { records hd95 >one.txt && records "$1" | cmp one.txt -; }
check "two replicas train" train --set experiment.name=dp --set train.best=hd95.mean \
    --set distribute.devices=cpu:0,cpu:1
check "their validations have the same bits" same dp
check "two ranks train" "$program" launch -n 2 -- train a.ini --set experiment.name=ddp --set train.best=hd95.mean
if [ -e runs/ddp/metrics.jsonl ]; then
    check "their validations have the same bits" same ddp
fi
check "a run of 4 steps" train --set experiment.name=more --set train.best=hd95.mean --set train.steps=4
check "goes on to 8" train --set experiment.name=more --set train.best=hd95.mean
check "with the same validations" same more
check "and the same best checkpoint" cmp runs/more/checkpoints/best runs/hd95/checkpoints/best
check "another metric does not continue it" \
    ends 3 "[train] best is 'dice.mean' but the run to be continued has 'hd95.mean'" train \
    --set experiment.name=more --set train.best=dice.mean

# The rate is too small to move a surface, so the first validation stays the best.
still() { train --set experiment.name="$1" --set train.best=nsd --set optimizer.lr=1e-12 --set train.early_stop=2 "$2" "$3"; }
check "training ends early by a distance" ends 0 "no better validation 2 times: training ends early" \
    still still --set train.steps=8
check "three validations were made" [ "$(records still | wc -l)" -eq 3 ]
check "early stop is interrupted" still halves --set train.steps=4
check "early stop goes on counting" ends 0 "training ends early" still halves --set train.steps=8
check "it ends at the same step" [ "$(records halves | wc -l)" -eq 3 ]
check "the best of equals is the first" [ "$(cat runs/halves/checkpoints/best)" = step-00000002 ]

# ---- resolved.ini ---------------------------------------------------------------------------------

sed 's/^name = .*/name = again/' runs/hd95/resolved.ini >again.ini
check "the resolved file of micro_batches trains again" "$program" train again.ini
check "with the same validations" same again
check "and on another number of devices" "$program" train again.ini --set experiment.name=two --set distribute.mode=auto \
    --set distribute.devices=cpu:0,cpu:1
check "with the same validations" same two

finish
