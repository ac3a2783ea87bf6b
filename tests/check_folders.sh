#!/bin/sh
# The order of the sources: folders of core include each other in one direction (tests/folder_order), a function of
# core is declared where its file's name says, no two files have one name, no folder is large, and words that were
# retired stay so.
. "${srcdir:-.}/tests/checks.sh"
limit=28 # files in a folder
cd "$source" || exit 1

# upward ORDER FILE...: includes of a folder that is not below, "FILE includes HEADER".
upward() {
    awk '
        FNR == 1 { file++ }
        file == 1 { if ($0 !~ /^#/) rank[$1] = ++count; next }
        FNR == 1 {
            folder = FILENAME
            sub("/[^/]*$", "", folder)
            if (!(folder in rank)) print folder " is not in tests/folder_order"
        }
        match($0, /^# *include *["<][a-z0-9_]+\/[^">]*[">]/) {
            header = substr($0, RSTART, RLENGTH)
            gsub(/^# *include *["<]|[">]$/, "", header)
            of = "core/" header
            sub("/[^/]*$", "", of)
            if (of in rank && rank[of] > rank[folder]) print FILENAME " includes " header
        }' "$@"
}

# astray FILE...: functions that are not static, and whose declaration is in no header of the file: FILE.h, the header
# of its module (nifti.h for nifti_read.c), FOLDER's *_internal.h, core/pons/*.h. Headers come first.
astray() {
    awk '
        function base(path) { sub(".*/", "", path); sub("[.][ch]$", "", path); return path }
        function folder(path) { sub("/[^/]*$", "", path); return path }
        function is_home(header, file, name) {
            if (folder(header) == "core/pons") return 1
            if (folder(header) != folder(file)) return 0
            return header ~ /_internal[.]h$/ || base(header) == base(file) ||
                   index(base(file), base(header) "_") == 1
        }
        { line = $0; gsub(/\/\*.*\*\//, "", line) }
        FILENAME ~ /[.]h$/ {
            while (match(line, /[A-Za-z_0-9]+ *[(;]/)) {
                name = substr(line, RSTART, RLENGTH)
                sub(/ *[(;]$/, "", name)
                homes[name] = homes[name] FILENAME " "
                if (name == "X") { # a list that a macro makes names of
                    rule = substr(line, RSTART + 2)
                    sub(/\).*/, "", rule)
                    homes["gradient_" rule] = homes["gradient_" rule] FILENAME " "
                }
                line = substr(line, RSTART + RLENGTH)
            }
            next
        }
        line ~ /^[a-z][a-z0-9_ *]*[ *][a-z0-9_]+\(/ && line !~ /^(static|typedef|extern)/ {
            start = line
            sub(/\(.*/, "", start)
            sub(/.*[ *]/, "", start)
            pending = start
        }
        pending != "" && line ~ /;[ ]*$/ { pending = "" }
        pending != "" && line ~ /^\{/ {
            count = split(homes[pending], header, " ")
            found = pending == "main"
            for (i = 1; i <= count; i++) found = found || is_home(header[i], FILENAME, pending)
            if (!found) print FILENAME ": " pending " is declared in " (count ? homes[pending] : "no header")
            pending = ""
        }' "$@"
}

# twins FILE...: names that files in several folders have; a public header may have the name of what stands behind it.
twins() {
    printf '%s\n' "$@" | grep -v '^core/pons/' | sed 's/[.][a-z.]*$//' | sort -u |
        awk -F/ '{ if (seen[$NF]++) print $NF ": " first[$NF] ", " $0; else first[$NF] = $0 }'
}

crowded() {
    printf '%s\n' "$@" | sed 's|/[^/]*$||' | sort | uniq -c | awk -v limit=$limit '$1 > limit { print $2 ": " $1 " files" }'
}

# retired FILE...: words with pons_ or PONS_ in the right column of CONTRIBUTING.md's table of words.
retired() {
    words=$(sed -n '/^## Words/,/^## Cards/s/^|[^|]*|\([^|]*\)|$/\1/p' "$source/CONTRIBUTING.md" |
        grep -oE '(pons|PONS)_[A-Za-z_]+' | tr '\n' '|')
    grep -nwE "${words%|}" "$@"
}

# nothing COMMAND: it prints nothing.
nothing() {
    "$@" >"$folder/found"
    cat "$folder/found"
    [ ! -s "$folder/found" ]
}

# shellcheck disable=SC2046 # lists of words
core_upward() { upward tests/folder_order $(find core -name '*.[ch]' | sort); }
# shellcheck disable=SC2046
core_astray() { astray $(find core -name '*.h' | sort) $(find core -name '*.c' | sort); }
# gloo/common/memory.h is named by gloo.
sources() { find core plugins losses optimizers \( -name '*.[ch]' -o -name '*.cc' \) ! -path '*/gloo/common/*' | sort; }
# shellcheck disable=SC2046
all_twins() { twins $(sources); }
# shellcheck disable=SC2046
all_crowded() { crowded $(sources); }
# shellcheck disable=SC2046
all_retired() { retired $(sources) $(find tests docs -name '*.[ch]' -o -name '*.md') README.md; }
check "folders include each other in one direction" nothing core_upward
check "functions are declared where they are looked for" nothing core_astray
check "no two files have one name" nothing all_twins
check "no folder is crowded" nothing all_crowded
check "retired words are gone" nothing all_retired

# What the checks are for is found.
mkdir -p "$folder/core/pons" "$folder/core/base" "$folder/core/train"
cd "$folder" || exit 1
printf '#include "train/state.h"\nint low(void)\n{\n}\n' >core/base/low.c
printf 'int low(void);\nint other(int a,\n          int b);\n' >core/train/state.h
printf '#include "base/low.h"\nint other(int a, int b)\n{\n}\n' >core/train/low.c
check "an upward include is found" [ "$(upward "$source/tests/folder_order" core/base/low.c core/train/low.c)" = \
    'core/base/low.c includes train/state.h' ]
check "functions astray are found" [ "$(astray core/train/state.h core/base/low.c core/train/low.c | wc -l)" -eq 2 ]
check "a name of two files is found" [ "$(twins core/base/low.c core/train/low.c)" = \
    'low: core/base/low, core/train/low' ]
echo 'pons_queue q;' >core/base/queue.h
check "a retired word is found" retired core/base/queue.h
limit=1
check "a crowded folder is found" [ "$(crowded core/a/x.c core/a/y.c)" = 'core/a: 2 files' ]
finish
