#!/bin/sh
# The order of the sources. Folders of core include each other in one direction (tests/tools/folder_order). A function
# is declared in the header that its file's name selects. No two files have one name, no folder is large,
# retired words do not return, and the files that pages name exist.
. "${srcdir:-.}/tests/support/checks.sh"
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
            if (!(folder in rank)) print folder " is not in tests/tools/folder_order"
        }
        match($0, /^# *include *["<][a-z0-9_]+\/[^">]*[">]/) {
            header = substr($0, RSTART, RLENGTH)
            gsub(/^# *include *["<]|[">]$/, "", header)
            of = "core/" header
            sub("/[^/]*$", "", of)
            if (of in rank && rank[of] > rank[folder]) print FILENAME " includes " header
        }' "$@"
}

# astray FILE...: non-static functions without a declaration in a header of their file. These are FILE.h, the header
# of its module (fuse.h for fuse_join.c), FOLDER's *_internal.h and core/pons/*.h. In plugins they are also those of
# the family, cuda/cuda.h and *_internal.h of a folder around the file, and *_testing.h. Headers come first.
astray() {
    awk '
        function base(path) { sub(".*/", "", path); sub("[.][ch]$", "", path); return path }
        function folder(path) { sub("/[^/]*$", "", path); return path }
        function is_home(header, file, name) {
            if (folder(header) == "core/pons") return 1
            if (file ~ /^plugins\// && index(file, folder(header) "/") == 1 &&
                (base(header) == base(folder(header)) || header ~ /_internal[.]h$/)) return 1
            if (folder(header) != folder(file)) return 0
            if (file ~ /^plugins\// && header ~ /_testing[.]h$/) return 1
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

# twins FILE...: names of files in several folders; a public header may share its name with its implementation.
twins() {
    printf '%s\n' "$@" | grep -v '^core/pons/' | sed 's/[.][a-z.]*$//' | sort -u |
        awk -F/ '{ if (seen[$NF]++) print $NF ": " first[$NF] ", " $0; else first[$NF] = $0 }'
}

crowded() {
    printf '%s\n' "$@" | sed 's|/[^/]*$||' | sort | uniq -c | awk -v limit=$limit '$1 > limit { print $2 ": " $1 " files" }'
}

# retired FILE...: words with pons_ or PONS_ in the right column of CONTRIBUTING.md's tables of words.
retired() {
    words=$(sed -n '/^## Words/,/^## Cards/s/^|[^|]*|\([^|]*\)|$/\1/p' "$source/CONTRIBUTING.md" |
        grep -oE '(pons|PONS)_[A-Za-z_]+' | tr '\n' '|')
    grep -nwE "${words%|}" "$@"
}

# absent PAGE...: "PAGE: FILE" for paths that do not exist, and for names of C files that no folder has. Build
# products, names in capitals as placeholders, and files of a reader's system are left out.
absent() {
    grep -oHE '[A-Za-z0-9_./<-]*[A-Za-z0-9_]' "$@" | sed 's|:\(\.\./\)*|:|' | grep -vE ':.*([A-Z]{3}|/\.libs|<)' | sort -u |
        while IFS=: read -r page file; do
            case $file in
            squared.c | nccl.h) ;;
            core/* | plugins/* | losses/* | optimizers/* | tests/* | docs/* | examples/*)
                [ -e "$file" ] || [ -e "$file.c" ] || echo "$page: $file"
                ;;
            */* | [ch]) ;;
            ?*.[ch]) [ -n "$(find core plugins losses optimizers tests examples -name "$file")" ] || echo "$page: $file" ;;
            esac
        done
}

# retired_inside FILE...: words of the second table, where a star stands for the rest of a name.
retired_inside() {
    words=$(sed -n '/^| area | word/,/^## /s/^|[^|]*|[^|]*|\([^|]*\)|$/\1/p' "$source/CONTRIBUTING.md" |
        grep -oE '`[A-Za-z_]+[*]?`' | tr -d '`' | sed 's/[*]/[A-Za-z0-9_]*/' | tr '\n' '|')
    grep -nwE "${words%|}" "$@"
}

# nothing COMMAND: it prints nothing.
nothing() {
    "$@" >"$folder/found"
    cat "$folder/found"
    [ ! -s "$folder/found" ]
}

# shellcheck disable=SC2046 # lists of words
core_upward() { upward tests/tools/folder_order $(find core -name '*.[ch]' | sort); }
# shellcheck disable=SC2046
all_astray() { astray $(sources | grep '[.]h$') $(sources | grep '[.]c$'); }
# gloo includes gloo/common/memory.h by that name.
sources() { find core plugins losses optimizers \( -name '*.[ch]' -o -name '*.cc' \) ! -path '*/gloo/common/*' | sort; }
every_file() { sources; find tests -name '*.[ch]' | sort; }
# shellcheck disable=SC2046
all_twins() { twins $(every_file); }
# shellcheck disable=SC2046
all_crowded() { crowded $(every_file); }
# Texts that speak of the sources; CONTRIBUTING.md and this script have to write retired words.
texts() {
    echo README.md Makefile.am configure.ac
    find core plugins losses optimizers tests docs examples .ci -type f \( -name '*.md' -o -name '*.mk' \
        -o -name '*.sh' -o -name '*.py' -o -name '*.ini' -o -path .ci/run -o -path tests/programs -o -path tests/bench/counts \) \
        ! -path tests/tools/check_folders.sh | sort
}
# shellcheck disable=SC2046
all_retired() { retired $(every_file) $(texts); }
all_absent() { absent README.md CONTRIBUTING.md docs/*.md; }
check "folders include each other in one direction" nothing core_upward
check "functions are declared where they are looked for" nothing all_astray
check "no two files have one name" nothing all_twins
check "no folder is crowded" nothing all_crowded
# shellcheck disable=SC2046
all_retired_inside() { retired_inside $(every_file) $(texts); }
check "retired words are gone" nothing all_retired
check "retired words of the core, the plugins and the tests are gone" nothing all_retired_inside
check "files that pages name are there" nothing all_absent
check "tables of figures are those of the data" docs/performance/tables.sh --check

# The controls: each check finds its kind of mistake.
mkdir -p "$folder/core/pons" "$folder/core/base" "$folder/core/train"
cd "$folder" || exit 1
printf '#include "train/state.h"\nint low(void)\n{\n}\n' >core/base/low.c
printf 'int low(void);\nint other(int a,\n          int b);\n' >core/train/state.h
printf '#include "base/low.h"\nint other(int a, int b)\n{\n}\n' >core/train/low.c
check "an upward include is found" [ "$(upward "$source/tests/tools/folder_order" core/base/low.c core/train/low.c)" = \
    'core/base/low.c includes train/state.h' ]
check "functions astray are found" [ "$(astray core/train/state.h core/base/low.c core/train/low.c | wc -l)" -eq 2 ]
mkdir -p plugins/fast/loops
printf 'int one(void);\n' >plugins/fast/fast.h
printf 'int two(void);\n' >plugins/fast/loops/other.h
printf 'int one(void)\n{\n}\nint two(void)\n{\n}\n' >plugins/fast/loops/row.c
check "functions astray of a plugin are found" [ "$(astray plugins/fast/*.h plugins/fast/loops/*.h plugins/fast/loops/row.c)" = \
    'plugins/fast/loops/row.c: two is declared in plugins/fast/loops/other.h ' ]
check "a name of two files is found" [ "$(twins core/base/low.c core/train/low.c)" = \
    'low: core/base/low, core/train/low' ]
echo 'pons_queue q;' >core/base/queue.h
check "a retired word is found" retired core/base/queue.h
echo 'void seal_put(void);' >core/base/seal.h
check "a retired word of the core is found" retired_inside core/base/seal.h
# shellcheck disable=SC2016 # backticks of a page
echo 'core/base/low.c, `low.c` and ../core/base/low.c, core/base/high.c, tall.h, core/NAME.c' >page.md
mkdir losses optimizers tests
mkdir docs examples .ci
touch README.md Makefile.am configure.ac
echo 'crew_run' >tests/low.sh
# shellcheck disable=SC2046
check "a retired word of a script is found" retired_inside $(texts)
check "a file that is not there is found" [ "$(absent page.md | tr '\n' ' ')" = \
    'page.md: core/base/high.c page.md: tall.h ' ]
limit=1
check "a crowded folder is found" [ "$(crowded core/a/x.c core/a/y.c)" = 'core/a: 2 files' ]
finish
