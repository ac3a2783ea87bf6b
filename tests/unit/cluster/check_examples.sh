#!/bin/sh
# The launcher examples run with the launcher's command replaced by one that sets the same
# variables. Their processes first join through the store alone. Where the build has gloo they
# train, and the weights equal those of one process.
. "${srcdir:-.}/tests/support/checks.sh"
holder=
# shellcheck disable=SC2086 # a list of processes
trap 'rm -rf "$folder"; [ -z "$holder" ] || kill $holder 2>/dev/null' EXIT

# ends CODE COMMAND...: the command exits with CODE; its output is in 'output'.
ends() {
    code=$1
    shift
    "$@" >"$folder/output" 2>&1
    found=$?
    cat "$folder/output"
    [ "$found" -eq "$code" ]
}

says() {
    grep -qxF -e "$1" "$folder/output" || { echo "no line '$1' in:"; cat "$folder/output"; return 1; }
}

# Find a port without a listener, distinct from those of runs beside this one.
port() {
    echo $((20000 + ($$ * 7 + checks * 131) % 10000))
}

mkdir "$folder/bin"
# shellcheck disable=SC2016 # expands in that script
printf '#!/bin/sh\nexec "$REPLAY_PONS" "$@"\n' >"$folder/bin/pons"
chmod +x "$folder/bin/pons"
PATH=$folder/bin:$PATH
REPLAY_PONS=$build/tests/unit/cluster/join_ranks
export PATH REPLAY_PONS

# ---- scripts --------------------------------------------------------------------------------------

for script in "$source"/examples/*.sh; do
    check "a shell reads it" sh -n "$script"
    if command -v dash >/dev/null; then
        check "dash reads it" dash -n "$script"
    fi
    # A script without '#!' is read by others.
    case $(head -n 1 "$script") in
    '#!'*) check "it can be run" test -x "$script" ;;
    esac
done

# ---- SLURM ----------------------------------------------------------------------------------------

# sbatch and srun take the options of the file's #SBATCH lines, then those of the command line. Each
# task has the variables that SLURM's manual lists.
cat >"$folder/bin/sbatch" <<'END'
#!/bin/sh
options=
while case ${1-} in --*) true ;; *) false ;; esac do
    options="$options $1"
    shift
done
script=$1
shift
for option in $(sed -n 's/^#SBATCH //p' "$script") $options; do
    case $option in
    --nodes=*) nodes=${option#*=} ;;
    --ntasks-per-node=*) tasks=${option#*=} ;;
    --cpus-per-task=*) SLURM_CPUS_PER_TASK=${option#*=} ;;
    --signal=USR1@*) signal=yes ;;
    --requeue) requeue=yes ;;
    esac
done
[ "${signal-}" = yes ] && [ "${requeue-}" = yes ] || { echo "no signal, or no requeue"; exit 1; }
SLURM_JOB_ID=$REPLAY_JOB SLURM_NNODES=$nodes SLURM_NTASKS=$((nodes * tasks))
SLURM_TASKS_PER_NODE="$tasks(x$nodes)" SLURM_JOB_NODELIST=localhost,node2 SLURM_NODELIST=$SLURM_JOB_NODELIST
[ "$nodes" -eq 1 ] && SLURM_JOB_NODELIST=localhost SLURM_NODELIST=localhost
SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 ENVIRONMENT=BATCH
export SLURM_JOB_ID SLURM_NNODES SLURM_NTASKS SLURM_TASKS_PER_NODE SLURM_JOB_NODELIST SLURM_NODELIST \
    SLURM_PROCID SLURM_LOCALID SLURM_NODEID SLURM_CPUS_PER_TASK ENVIRONMENT
exec "$script" "$@"
END
cat >"$folder/bin/srun" <<'END'
#!/bin/sh
while case $1 in --*) true ;; *) false ;; esac do shift; done
export SLURM_STEP_ID=0 SLURM_STEPID=0 SLURM_STEP_NUM_TASKS=$SLURM_NTASKS \
    SLURM_STEP_NODELIST=$SLURM_JOB_NODELIST SLURM_STEP_TASKS_PER_NODE="$SLURM_TASKS_PER_NODE"
each=$((SLURM_NTASKS / SLURM_NNODES)) i=0 all=
while [ "$i" -lt "$SLURM_NTASKS" ]; do
    SLURM_PROCID=$i SLURM_LOCALID=$((i % each)) SLURM_NODEID=$((i / each)) "$@" &
    all="$all $!"
    i=$((i + 1))
done
# The time limit is almost reached once the run has come this far.
if [ -n "${REPLAY_UNTIL-}" ]; then
    tries=0
    until [ -s "$REPLAY_UNTIL" ] || [ "$tries" -eq 600 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
    # shellcheck disable=SC2086 # a list of processes
    kill -USR1 $all
fi
worst=0
for one in $all; do
    wait "$one"
    status=$?
    [ "$status" -gt "$worst" ] && worst=$status
done
exit "$worst"
END
printf '#!/bin/sh\necho "scontrol $*"\n' >"$folder/bin/scontrol"
chmod +x "$folder/bin/sbatch" "$folder/bin/srun" "$folder/bin/scontrol"

slurm=$source/examples/slurm.sh
REPLAY_JOB=$$
export REPLAY_JOB
check "two nodes run" ends 0 sbatch "$slurm" FILE.ini
for rank in 0 1 2 3; do
    check "tasks are numbered" grep -q \
        "^rank $rank of 4, local rank $((rank % 2)) of 2, store localhost:[0-9]* (SLURM)\$" "$folder/output"
    check "all have met" says "rank $rank sees rank 3 at 127.0.0.1"
done
check "one node runs" ends 0 sbatch --nodes=1 --ntasks-per-node=3 "$slurm" FILE.ini
check "of one node are three" grep -q "^rank 2 of 3, local rank 2 of 3, " "$folder/output"
check "nothing queues up" sh -c "! grep -q scontrol '$folder/output'"
JOIN_STATUS=75
export JOIN_STATUS
check "an interrupted job ends with 75" ends 75 sbatch "$slurm" FILE.ini
check "and queues up again" says "scontrol requeue $REPLAY_JOB"
JOIN_STATUS=4
check "a failed job ends with its code" ends 4 sbatch "$slurm" FILE.ini
check "and stays where it is" sh -c "! grep -q scontrol '$folder/output'"
unset JOIN_STATUS

# ---- torchrun -------------------------------------------------------------------------------------

# The agent of torchrun --standalone keeps a store of its own at the port that it hands out.
cat >"$folder/bin/torchrun" <<'END'
#!/bin/sh
for option; do
    case $option in
    --nproc-per-node=*) size=${option#*=} ;;
    --nnodes=*) nodes=${option#*=} ;;
    --rdzv-endpoint=*) endpoint=${option#*=} ;;
    --rdzv-id=*) id=${option#*=} ;;
    --standalone) endpoint=localhost:$REPLAY_PORT id=$REPLAY_PORT ;;
    --rdzv-backend=c10d | --no-python) ;;
    --*) echo "torchrun: unrecognized arguments: $option" >&2; exit 2 ;;
    *) break ;;
    esac
    shift
done
nodes=${nodes:-1}
export WORLD_SIZE=$((size * nodes)) LOCAL_WORLD_SIZE="$size" MASTER_ADDR="${endpoint%:*}" \
    MASTER_PORT="${endpoint##*:}" TORCHELASTIC_RUN_ID="$id" TORCHELASTIC_USE_AGENT_STORE=True
i=0 all=
while [ "$i" -lt "$WORLD_SIZE" ]; do
    RANK=$i LOCAL_RANK=$((i % size)) GROUP_RANK=$((i / size)) "$@" &
    all="$all $!"
    i=$((i + 1))
done
for one in $all; do
    wait "$one" || exit 1
done
END
chmod +x "$folder/bin/torchrun"
REPLAY_PORT=$(port)
export REPLAY_PORT
check "torchrun runs" ends 0 "$source/examples/torchrun.sh" FILE.ini
check "its ranks have met" says "rank 1 sees rank 0 at 127.0.0.1"
check "it is torchrun" grep -q ' (torchrun)$' "$folder/output"
check "its port is left to it" sh -c "! grep -q ':$REPLAY_PORT ' '$folder/output'"
check "torchrun on nodes" env NODES=2 MASTER=127.0.0.1:"$(port)" JOB=17 PROCESSES=2 \
    "$source/examples/torchrun.sh" FILE.ini
check "NODES without MASTER is refused" sh -c "! NODES=2 '$source/examples/torchrun.sh' FILE.ini"

# ---- Kubernetes -----------------------------------------------------------------------------------

# Turn YAML of maps, lists and plain or quoted words into lines 'document.path.0.key=value'. Other
# syntax, and indentation other than two blanks a level, ends with a message.
flatten() {
    awk '
    function fail(why) { printf "%s:%d: %s\n", FILENAME, FNR, why; bad = 1; exit 1 }
    function path(   i, p) {
        p = document
        for (i = 1; i <= depth; i++) p = p "." name[i]
        return p
    }
    # Maps and lists at this column or deeper have ended; the current line belongs to the rest.
    function leave(column, most) {
        while (depth > 0 && indent[depth] >= column) depth--
        if (column > 0 ? depth == 0 || column - indent[depth] > most : depth > 0) fail("indented wrongly")
        if (path() in value) fail("below a value")
    }
    function enter(column, key) { indent[++depth] = column; name[depth] = key }
    function put(text) {
        if (text !~ /^"[^"]*"$/ && text ~ /^[\[{&*!|>%@`"#-]|: | #|:$/) fail("no plain word")
        gsub(/^"|"$/, "", text)
        value[path()] = text
        print path() "=" text
    }
    BEGIN { document = 0 }
    /\t/ { fail("a tab") }
    / +$/ { fail("a blank at the end") }
    /^ *#/ || /^$/ { next }
    /^---$/ { document++; depth = 0; next }
    {
        match($0, /^ */); column = RLENGTH; rest = substr($0, column + 1)
        if (column % 2) fail("indented by an odd number")
        while (rest ~ /^- /) {  # an item is as far in as the blank behind its dash
            leave(column + 1, 3)
            enter(column + 1, items[path()]++)
            column += 2; rest = substr(rest, 3)
        }
        if (rest !~ /^[A-Za-z_.\/-]+:( |$)/) {
            if (depth == 0 || indent[depth] != column - 1) fail("neither a key nor an item")
            put(rest)
            next
        }
        leave(column, 2)
        key = rest; sub(/:.*/, "", key); rest = substr(rest, length(key) + 3)
        enter(column, key)
        if (seen[path()]++) fail("there twice: " path())
        if (rest != "") put(rest)
    }
    END { exit bad }' "$1"
}
yaml=$source/examples/kubernetes.yaml
flat=$folder/flat
checks=$((checks + 1))
flatten "$yaml" >"$flat" || { fail "the YAML is read"; cat "$flat"; }

# value PATH: print the value at PATH.
value() {
    sed -n "s|^$1=||p" "$flat"
}

# variable NAME: print a variable of the first container.
variable() {
    at=$(sed -n "s|^\(1.spec.template.spec.containers.0.env.[0-9]*\).name=$1\$|\1|p" "$flat")
    sed -n "s|^$at.value=||p" "$flat"
}

job=1.spec pod=1.spec.template.spec
check "a Service and a Job" test "$(value 0.kind) $(value 1.kind)" = "Service Job"
check "the Service is headless" test "$(value 0.spec.clusterIP)" = None
check "names are known before pods are ready" test "$(value 0.spec.publishNotReadyAddresses)" = true
job_name=$(value 1.metadata.name) service=$(value 0.metadata.name)
check "the Service selects the Job's pods" test "$(value 0.spec.selector.job-name)" = "$job_name"
check "pods have names below the Service's" test "$(value $pod.subdomain)" = "$service"
check "the Job numbers its pods" test "$(value $job.completionMode)" = Indexed
check "all pods run at once" test "$(value $job.parallelism)" = "$(value $job.completions)"
check "WORLD_SIZE is the number of pods" test "$(variable WORLD_SIZE)" = "$(value $job.completions)"
check "MASTER_ADDR is pod 0" test "$(variable MASTER_ADDR)" = "$job_name-0.$service"
check "MASTER_PORT is the Service's" test "$(variable MASTER_PORT)" = "$(value 0.spec.ports.0.port)"
rule=$job.podFailurePolicy.rules.0
check "75 is no failure" test "$(value $rule.action) $(value $rule.onExitCodes.values.0)" = "Ignore 75"
check "pods are not restarted in place" test "$(value $pod.restartPolicy)" = Never
command=$pod.containers.0.command
gpus=$pod.containers.0.resources
check "a pod asks for as many GPUs as it may have" test "$(value "$gpus.requests.nvidia.com/gpu")" = 1 -a \
    "$(value "$gpus.limits.nvidia.com/gpu")" = 1
check "pons trains" test "$(value "$command.0") $(value "$command.1")" = "pons train"

# The pods are processes of this machine, whose name server does not know pod 0.
pods() {
    all=
    for index in 0 1; do
        env JOB_COMPLETION_INDEX=$index WORLD_SIZE="$(variable WORLD_SIZE)" MASTER_ADDR=localhost \
            MASTER_PORT="$REPLAY_PORT" TORCHELASTIC_RUN_ID=0f57 pons train "$@" &
        all="$all $!"
    done
    for pod in $all; do
        wait "$pod" || return 1
    done
}
REPLAY_PORT=$(port)
check "the pods meet" ends 0 pods FILE.ini
check "pods are ranks" says "rank 1 of 2, local rank 0 of 1, store localhost:$REPLAY_PORT (Kubernetes)"
check "pods have met" says "rank 0 sees rank 1 at 127.0.0.1"
for broken in 's/^  name: pons$/ name: pons/' 's/^kind: Job/kind Job/' 's/parallelism: 2/completions: 2/' \
    's/^  completions:/    completions:/' 's/Indexed$/a: b/' 's/clusterIP: None/clusterIP: None # none/'; do
    sed "$broken" "$yaml" >"$folder/broken.yaml"
    check "a broken file is noticed" sh -c "! cmp -s '$yaml' '$folder/broken.yaml'"
    checks=$((checks + 1))
    flatten "$folder/broken.yaml" >/dev/null && fail "'$broken' was not noticed"
done

# ---- two nodes ------------------------------------------------------------------------------------

# Two network namespaces joined by a veth pair; they end with the processes that hold them.
nodes() {
    own=$(readlink /proc/self/ns/net)
    unshare -n sleep 6000 &
    first_node=$! holder=$!
    unshare -n sleep 6000 &
    second_node=$! holder="$holder $!"
    for node in $first_node $second_node; do
        tries=0
        while [ "$(readlink "/proc/$node/ns/net")" = "$own" ]; do
            tries=$((tries + 1))
            [ "$tries" -lt 100 ] || return 1
            sleep 0.1
        done
    done
    nsenter -t "$first_node" -n ip link add wire type veth peer name wire netns "$second_node" &&
        join "$first_node" 10.77.0.1 && join "$second_node" 10.77.0.2
}

# join NODE ADDRESS
join() {
    nsenter -t "$1" -n ip link set lo up && nsenter -t "$1" -n ip address add "$2/24" dev wire &&
        nsenter -t "$1" -n ip link set wire up
}

# meet PORT ARGUMENT...: start two ranks on each node.
meet() {
    port=$1
    all=
    shift
    for rank in 0 1 2 3; do
        node=$first_node
        [ "$rank" -lt 2 ] || node=$second_node
        nsenter -t "$node" -n env RANK="$rank" WORLD_SIZE=4 LOCAL_RANK=$((rank % 2)) LOCAL_WORLD_SIZE=2 \
            MASTER_ADDR=10.77.0.1 MASTER_PORT="$port" pons train "$@" &
        all="$all $!"
    done
    for rank in $all; do
        wait "$rank" || return 1
    done
}

have_nodes=no
if command -v ip >/dev/null && command -v nsenter >/dev/null && unshare -n true 2>/dev/null &&
    nodes >"$folder/nodes" 2>&1; then
    have_nodes=yes
    check "two nodes meet" ends 0 meet 29500 FILE.ini
    # Rank 0's node has the address that the other node reached, not its own view of it.
    for rank in 0 1 2 3; do
        check "rank 0 is found" says "rank $rank sees rank 0 at 10.77.0.1"
        check "rank 1 is found" says "rank $rank sees rank 1 at 10.77.0.1"
        check "rank 2 is found" says "rank $rank sees rank 2 at 10.77.0.2"
    done
else
    echo "skipped: two nodes, since this machine allows no network namespaces"
fi

# ---- caches ---------------------------------------------------------------------------------------

# The table has a line for each cache, with seconds above 0; a smart cache trains on half of the cases.
PONS=$program
export PONS
check "caches are timed" ends 0 "$source/examples/datasets_speed.sh" --folder "$folder/caches" --cases 4 \
    --extent 36,36,36 --epochs 2
for cache in none memory disk disk-again smart; do
    seen=4
    [ $cache != smart ] || seen=2
    check "$cache is timed" grep -Eq "^$cache +$seen( +[0-9.]*[1-9][0-9.]*){5}\$" "$folder/output"
done
if "$program" help data.cache | grep -q "Not in this build:.*lmdb"; then
    check "lmdb is left out" says "lmdb         not in this build"
else
    check "lmdb is timed" grep -Eq "^lmdb-again +4 " "$folder/output"
fi
mkdir "$folder/mine" "$folder/mine/runs"
check "nothing is overwritten" ends 2 "$source/examples/datasets_speed.sh" --folder "$folder/mine"
check "one epoch is refused" ends 2 "$source/examples/datasets_speed.sh" --epochs 1

smart() {
    cp "$source/examples/smartcache_ddp.ini" "$folder/caches/"
    "$program" "$@" "$folder/caches/smartcache_ddp.ini" --set data.source="$folder/caches/phantom" \
        --set patch.extent=16 --set "model.channels=4 8" --set model.strides=2 --set data.smart_share=0.5
}
check "a smart cache is explained" ends 0 smart explain
check "two of four" grep -q "2 of 4 training cases are in the cache, 1 of them" "$folder/output"

# ---- training -------------------------------------------------------------------------------------

# same NAME: the weights equal those of the single process.
same() {
    file=checkpoints/step-00000004/model.safetensors
    cmp "runs/$1/$file" "runs/one/$file"
}

train() {
    "$REPLAY_PONS" data phantom -o ph --cases 4 --extent 20,18,16 >/dev/null 2>&1
    {
        printf '%s\n' "[experiment]" "name = one" "deterministic = yes" "[data]" "source = ph" "validation = last:1" \
            "[patch]" "extent = 16" "[train]" "steps = 4" "micro_batches = 4" "precision = fp32" "[distribute]" \
            "threads = 1" "timeout_s = 100"
        small_unet
    } >e.ini
    check "one process trains" ends 0 "$REPLAY_PONS" train e.ini
    check "two nodes of SLURM train" ends 0 sbatch "$slurm" e.ini --set experiment.name=slurm
    check "SLURM's weights" same slurm
    REPLAY_PORT=$(port)
    check "torchrun trains" ends 0 "$source/examples/torchrun.sh" e.ini --set experiment.name=torchrun
    check "torchrun's weights" same torchrun
    REPLAY_PORT=$(port)
    check "pods train" ends 0 pods e.ini --set experiment.name=pods
    check "the pods' weights" same pods
    if [ "$have_nodes" = yes ]; then
        check "two nodes train" ends 0 meet 29501 e.ini --set experiment.name=nodes
        check "the nodes' weights" same nodes
    fi
    "$REPLAY_PONS" data phantom -o phantom --cases 8 --extent 20,18,16 >/dev/null 2>&1
    cp "$source/examples/smartcache_ddp.ini" .
    set -- --set patch.extent=16 --set "model.channels=4 8" --set model.strides=2 --set train.steps=4 \
        --set train.epochs= --set distribute.threads=1 --set train.precision=fp32
    check "a smart cache of one process" ends 0 "$REPLAY_PONS" train smartcache_ddp.ini "$@" \
        --set experiment.name=one --fresh
    check "a smart cache of two ranks" ends 0 "$REPLAY_PONS" launch -n 2 -- train smartcache_ddp.ini "$@"
    check "has the same weights" same smartcache
    REPLAY_UNTIL=runs/stopped/metrics.jsonl
    export REPLAY_UNTIL
    check "USR1 ends a job with 75" ends 75 sbatch --nodes=1 "$slurm" e.ini \
        --set experiment.name=stopped --set train.steps=1000000
    check "which queues up again" says "scontrol requeue $REPLAY_JOB"
    REPLAY_UNTIL=
}

if [ -e "${PONS_PLUGIN_PATH%%:*}/comm/gloo.so" ]; then
    mkdir "$folder/train"
    cd "$folder/train" || exit 1
    REPLAY_PONS=$build/pons
    train
else
    echo "skipped: training, since this build has no gloo"
fi

finish
