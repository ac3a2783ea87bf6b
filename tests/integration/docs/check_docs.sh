#!/bin/sh
# The examples of README.md and docs. Blocks of INI are read by 'pons config', with the sections that they leave out.
# Blocks of C compile against the headers. The commands of each shell block run one after the other, in a folder with
# small data and runs under the names of the pages. Blocks and commands that cannot run are lines of 'exceptions', which
# says why. Names of commands, flags and keys are looked up in 'pons help --list', those of the text too.
. "${srcdir:-.}/tests/support/checks.sh"
. "$source/tests/support/idx.sh"
. "$source/tests/tools/lacks.sh"
here=$source/tests/integration/docs
tab=$(printf '\t')
(cd "$source" && find README.md docs -name '*.md') | sort >"$folder/pages"
mkdir "$folder/blocks" "$folder/bin" "$folder/given"
# shellcheck disable=SC2046 # names of pages have no blanks
(cd "$source" && awk -v out="$folder/blocks" -f "$here/blocks.awk" $(cat "$folder/pages")) || exit 1
check "there are blocks of each kind" [ "$(find "$folder/blocks" -name '*.ini' | wc -l)" -ge 10 ] &&
    check "and commands" [ "$(find "$folder/blocks" -name '*.sh' | wc -l)" -ge 40 ] &&
    check "and sources" [ "$(find "$folder/blocks" -name '*.c' | wc -l)" -ge 10 ] || finish

# ---- exceptions ----------------------------------------------------------------------------------

grep -v '^#' "$here/exceptions" >"$folder/exceptions"
: >"$folder/used"
# reason PAGE TEXT: why this line does not run; status 1 where it has to. A reason 'needs WHAT' holds where WHAT lacks.
reason() {
    awk -F ' \\| ' -v page="$1" -v text="$2" '$1 == page && index(text, $2) == 1 { print; exit }' \
        "$folder/exceptions" >"$folder/exception"
    [ -s "$folder/exception" ] || return 1
    cat "$folder/exception" >>"$folder/used"
    case $(cat "$folder/exception") in
    *' | needs '*)
        what=$(sed 's/.* | needs //' "$folder/exception")
        (cd "$build" && lacks "$what") || return 1
        echo "SKIPPED: $2: needs $what"
        ;;
    esac
}
# page_of BLOCK: its page; block_line BLOCK: the line where it begins.
page_of() { basename "$1" | sed 's/\.md\..*/.md/; s,+,/,g'; }
block_line() { basename "$1" | sed 's/.*\.md\.\([0-9]*\)\..*/\1/'; }

for block in "$folder"/blocks/*.text; do
    checks=$((checks + 1))
    reason "$(page_of "$block")" "$(head -n 1 "$block")" ||
        fail "$(page_of "$block"):$(block_line "$block"): no example by its text, and no exception:" \
            "$(head -n 1 "$block")"
done

# ---- names ---------------------------------------------------------------------------------------

"$program" help --list >"$folder/list"
while read -r page; do
    awk -v page="$page" '/^```/ { fence = !fence }
        !fence { n = split($0, part, "`"); for (i = 2; i <= n; i += 2) print page ":" NR "\t" part[i] }' "$source/$page"
done <"$folder/pages" | awk -F '\t' '$2 ~ /^pons [a-z]/ || $2 ~ /^\[[a-z_.]+\] [a-z_0-9]+( = .*)?$/' >"$folder/words"
for block in "$folder"/blocks/*.sh; do
    sed "s,^,$(page_of "$block"):$(block_line "$block")$tab," "$block"
done >>"$folder/words"
check "there are names in the text" [ "$(wc -l <"$folder/words")" -ge 300 ]
checks=$((checks + 1))
awk -f "$here/words.awk" - "$folder/words" <"$folder/list" >"$folder/wrong" || fail "words.awk"
[ ! -s "$folder/wrong" ] || fail "names that pons does not have:
$(cat "$folder/wrong")"

# ---- C -------------------------------------------------------------------------------------------

compiler=${CC:-cc}
# A part of a function stands in one whose arguments are what the part takes from its program.
whole_source() {
    if grep -q '^#include' "$1"; then
        cat "$1"
        return
    fi
    printf '#include <pons/predict.h>\n#include <pons/train.h>\n'
    printf 'int example(void *voxels, int (*report)(const char *), void (*show_record)(void *, const pons_record *),\n'
    printf '            bool (*is_cancelled)(void *), pons_error err)\n{\n'
    sed '/^pons_error err = /d' "$1"
    printf 'return 0;\n}\n'
}
for block in "$folder"/blocks/*.c; do
    whole_source "$block" >"$folder/example.c"
    check "$(page_of "$block"):$(block_line "$block")" "$compiler" -std=c11 -fsyntax-only -Wall -Wextra -Werror \
        -Wno-unused-variable -Wno-unused-parameter -I"$source/core" "$folder/example.c"
done

# ---- the folder of the examples -------------------------------------------------------------------

cd "$folder/given" || exit 1
. "$here/given.sh"

# ---- INI -----------------------------------------------------------------------------------------

# The sections that a block leaves out are those of base.ini.
for block in "$folder"/blocks/*.ini; do
    page=$(page_of "$block")
    # A block is named by its first key, since many begin with the same section.
    if reason "$page" "$(grep -m 1 -v '^\[' "$block")"; then continue; fi
    { grep -q '^\[' "$block" || echo '[data]'; sed 's,/data/,data/,' "$block"; } >block.ini
    # A length of the training is in no fragment.
    grep -q '^epochs = ' block.ini || sed -i 's/^\[train\]$/&\nsteps = 2/' block.ini
    # Keys without a section of their own are part of base.ini's [data].
    grep -qE '^(source|image) = ' block.ini || sed -i 's/^\[data\]$/&\nsource = Task03_Liver/' block.ini
    awk 'FNR == NR { if (/^\[/) given[$1]; next } /^\[/ { take = !($1 in given) } take' block.ini base.ini >rest.ini
    cat rest.ini >>block.ini
    check "$page:$(block_line "$block")" "$program" config block.ini
    rm block.ini rest.ini
done

# ---- commands ------------------------------------------------------------------------------------

# The program without libtool's script, which would take longer than most commands.
binary=$build/.libs/pons
[ -x "$binary" ] || binary=$program
# A training of a page has four steps, and begins anew unless its command names a run: alternatives stand in one block.
cat >"$folder/bin/pons" <<END
#!/bin/sh
export PONS_PLUGIN_PATH="\${PONS_PLUGIN_PATH:+\$PONS_PLUGIN_PATH:}$PONS_PLUGIN_PATH"
case " \$* " in
" init "*) set -- "\$@" --force ;;
*" train "*)
    case "\$*" in *runs/* | *experiment.name*) ;; *) rm -rf runs/liver runs/brats runs/spleen ;; esac
    set -- "\$@" --set train.steps=4
    ;;
*" find-rate "*) set -- "\$@" --steps 20 ;;
*" bench "*) set -- "\$@" --steps 1 --warm-up 0 ;;
esac
exec "$binary" "\$@"
END
chmod +x "$folder/bin/pons"
PATH=$folder/bin:$PATH
# Plugins and programs are compiled against the headers of the tree and the library of the build.
cat >"$folder/bin/pons.pc" <<END
Name: pons
Description: pons
Version: 0
Cflags: -I$source/core
Libs: -L$build/.libs -lpons
END
export PKG_CONFIG_PATH="$folder/bin" LD_LIBRARY_PATH="$build/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
for block in "$folder"/blocks/*.sh; do
    page=$(page_of "$block")
    line=$(block_line "$block")
    rm -rf "$folder/work"
    cp -r "$folder/given" "$folder/work"
    cd "$folder/work" || exit 1
    while IFS= read -r command; do
        while case $command in *\\) true ;; *) false ;; esac; do
            IFS= read -r more
            command=${command%\\}$more
        done
        case $command in '' | ' '* | '#'*) continue ;; esac
        if reason "$page" "$command"; then continue; fi
        case $command in
        pons\ * | cc\ * | make\ * | PONS_PLUGIN_PATH=* | ./volumes\ *) ;;
        *) fail "$page:$line: no command that a test may run, and no exception: $command"; continue ;;
        esac
        check "$page:$line" timeout "$(patient 60)" sh -c "$command" </dev/null
    done <"$block"
done

# ---- what is left --------------------------------------------------------------------------------

sort -u "$folder/used" >"$folder/seen"
sort -u "$folder/exceptions" | comm -23 - "$folder/seen" >"$folder/gone"
checks=$((checks + 1))
[ ! -s "$folder/gone" ] || fail "exceptions that no page has:
$(cat "$folder/gone")"
finish
