#!/bin/sh
# Man pages and completions of shells, which the program writes from its tables; the resolved file of 'pons config'.
. "${srcdir:-.}/tests/support/checks.sh"
cd "$folder" || exit 1

# ---- pages ---------------------------------------------------------------------------------------

check "the pages are written" "$program" help --manual manual
check "no topic goes with them" ends 2 "--manual takes no topic, found 'train'" "$program" help train --manual manual
check "nor the list" ends 2 "--list and --manual exclude each other" "$program" help --list --manual manual
touch file
check "a file is no folder for them" ends 1 "file" "$program" help --manual file

"$program" help --list >list
# has_page COMMAND: its page has its name, and each of its flags.
has_page() {
    page=manual/pons-$(echo "$1" | tr ' ' '-').1
    grep -q "^\.TH \"PONS-$(echo "$1" | tr ' a-z' '-A-Z')\" \"1\"" "$page" || return 1
    awk -F '\t' -v place="pons $1" '$1 == place { gsub("_", "-", $3); print $3 }' list >flags
    while read -r flag; do
        grep -qF "\\fB\\-\\-$(echo "$flag" | sed 's/-/\\-/g')" "$page" || { echo "no $flag"; return 1; }
    done <flags
}
"$program" help | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z-]*\( [a-z]*\)\{0,1\}\)  .*/\1/p' >commands
check "there are commands" [ "$(grep -c . commands)" -ge 20 ]
# explains COMMAND: help and page have the same description and example, and the page each argument.
explains() {
    page=manual/pons-$(echo "$1" | tr ' ' '-').1
    set -f
    "$program" help $1 >said
    sed -n '/^\.SH "DESCRIPTION"/,/^\.SH/p; /^\.SH "EXAMPLES"/,/^\.SH/p' "$page" |
        sed 's/\\-/-/g; s/\\e/\\/g' >page
    description=$(sed -n '5p' said | cut -c1-40)
    example=$(sed -n '/^Examples:/{n;s/^  //p;}' said)
    set +f
    [ "${example#pons }" != "$example" ] && grep -qF -e "$example" page && grep -qF -e "$description" page ||
        { cat page; echo "lacks '$description' or '$example'"; return 1; }
    [ "$(sed -n '/^Arguments:/,/^$/s/^  [^ ]/&/p' said | grep -c .)" = \
        "$(sed -n '/^\.SH "ARGUMENTS"/,/^\.SH "[^A]/p' "$page" | grep -c '^\.TP')" ]
}
# names_keys COMMAND: each key that its help has in quotes, as '[train] pretrained', is one.
names_keys() {
    set -f
    "$program" help $1 | tr '\n' ' ' | grep -oE "'\[[a-z]+\] [a-z_]+'" | tr -d "'[]" >named
    set +f
    while read -r section key; do
        grep -q "^$section	[^	]*	$key	" list || { echo "[$section] has no $key"; return 1; }
    done <named
}
while read -r topic; do
    check "page of $topic" has_page "$topic"
    check "$topic is explained" explains "$topic"
    check "$topic names keys that there are" names_keys "$topic"
done <commands
check "there is such a key" sh -c '"$0" help import | tr "\n" " " | grep -q "\[train\] pretrained"' "$program"
check "a flag has the name of its value" grep -qF '\fB\-\-resume\fR RUN' manual/pons-train.1
check "and its letter" grep -qF '\fB\-\-output, \-o\fR OUT' manual/pons-predict.1
check "help has both" ends 0 "  -o, --output OUT" "$program" help predict
check "--debug is a flag of train alone" [ "$(grep -l '^\\fB\\-\\-debug' manual/pons-*.1)" = manual/pons-train.1 ]
check "a group has a page" grep -q '^\\fBphantom\\fR' manual/pons-data.1
check "help names the plugins of a key" ends 0 " dice_ce " "$program" help loss.plugin
check "help says where lines of a training go" ends 0 "the standard output stays empty" "$program" help train

# Every key of the INI file, with the plugin that has it.
awk -F '\t' '$1 !~ /^pons/ { print $1 "\t" $2 "\t" $3 }' list | sort -u >expected
awk '/^\.SS "\[/ {
        plugin = "-"
        place = $0
        sub(/^\.SS "\[/, "", place)
        if (match(place, /with the plugin [a-z0-9_]*/)) plugin = substr(place, RSTART + 16, RLENGTH - 16)
        sub(/\].*/, "", place)
    }
    /^\.SH/ { if ($0 !~ /SECTIONS|PLUGINS/) place = "" }
    place != "" && /^\\fB/ {
        key = substr($0, 4)
        sub(/\\fR.*/, "", key)
        print place "\t" plugin "\t" key
    }' manual/pons.ini.5 | sort -u >found
check "pons.ini(5) has every key" cmp expected found
check "pons-plugin(7) has a loss" grep -q '^\\fBdice_ce\\fR' manual/pons-plugin.7

# The first release of the page is this program's, and its day that of every man page.
release=$(sed -n 's/^## \([0-9.]*\), \(20[0-9]*-[0-9]*-[0-9]*\)$/\1 \2/p' "$source/docs/releases.md" | head -n 1)
check "the page of releases begins with this version" [ "$("$program" --version | grep -c "^pons ${release% *}[.]")" = 1 ]
check "man pages have the day of the release" \
    [ "$(sed -n 's/^\.TH "[^"]*" "[157]" "\([^"]*\)" .*/\1/p' manual/*.[157] | sort -u)" = "${release#* }" ]

if command -v mandoc >/dev/null; then
    for page in manual/*.[157]; do
        check "mandoc has no remark on $page" mandoc -T lint -W style "$page"
    done
else
    echo "SKIPPED: mandoc's verdict: needs mandoc"
fi

# ---- completions ---------------------------------------------------------------------------------

# completes LINE WORD...: bash offers these words.
completes() {
    line=$1
    shift
    bash -c '. manual/pons; COMP_LINE=$1 COMP_POINT=${#1}; _pons 2>/dev/null; echo "${COMPREPLY[*]}"' - "$line" >offered
    [ "$(cat offered)" = "$*" ] || { cat offered; return 1; }
}
check "a command" completes "pons tra" train
check "a group" completes "pons data c" crop check
check "a flag" completes "pons data check x.ini --j" --json
check "the values of a flag" completes "pons predict r i.nii --split " auto test all
check "a key" completes "pons train a.ini --set train.prec" train.precision=
check "its values" completes "pons train a.ini --set train.precision=f" fp32 fp16
check "a key of a transform" completes "pons train a.ini --set augment.flip.ax" augment.flip.axes=
check "the plugins of a kind" completes "pons train a.ini --set model.plugin=res" residual_unet resnet
check "yes and no" completes "pons train a.ini --set train.recompute=" yes no
check "a topic of help" completes "pons help distr" distribute
check "a kind of plugin" completes "pons plugin new opt" optimizer
check "a plugin" completes "pons plugin show dice_" dice_ce dice_focal
check "a metric" completes "pons evaluate --metrics hd" hd hd95
check "files elsewhere" completes "pons train a" ""
check "a common flag's value" completes "pons train t.ini --color " auto always never
check "the same behind '='" completes "pons train t.ini --color=a" auto always
check "a key for help" completes "pons help train.pret" train.pretrained train.pretrained_skip
check "a section's plugins for help" completes "pons help loss dice_" dice_ce dice_focal
check "a name of a new plugin is the user's" completes "pons plugin new loss " ""
check "plugins of a kind" completes "pons plugin show model un" unet
check "no --debug elsewhere" completes "pons doctor --de" ""
check "--set where a file is read" completes "pons report --se" --send
mkdir some && touch some.ini some.txt
check "an INI file" completes "pons train some" some some.ini
check "a run" completes "pons predict --no-mirror some" some
check "its images" completes "pons predict some some." some.ini some.txt
check "a flag's file" completes "pons predict -o out --config some." some.ini
check "a flag's run" completes "pons train some.ini --resume so" some
if command -v zsh >/dev/null; then
    cat >stubs.zsh <<'END'
compadd() { shift; print -r -- $* }
_files() { print -r -- files $* }
_describe() { print -r -- ${(P)@[-1]} }
compset() { }
source manual/_pons
words=(${=1}) PREFIX=
[[ $1 == *' ' ]] && words+=("") || PREFIX=$words[-1]
CURRENT=${#words}
_pons
END
    zsh_offers() { [ "$(zsh -f stubs.zsh "$1" 2>/dev/null)" = "$2" ]; }
    zsh_tells() { zsh -f stubs.zsh "$1" | grep -F -e "$2"; }
    check "zsh tells a flag" zsh_tells "pons train --prof" "--profile:Write the time of ph"
    check "zsh completes a value" zsh_offers "pons train a.ini --color=" "auto always never"
    check "zsh asks for INI files" zsh_offers "pons train " "files -g *.ini"
    check "zsh asks for a run" zsh_offers "pons predict " "files -/"
    check "zsh has the plugins of a kind" zsh_offers "pons plugin show sink " "$(ls "$PONS_PLUGIN_PATH/sink" |
        sed 's/\.so$//' | sort | tr '\n' ' ' | sed 's/ $//')"
else
    echo "SKIPPED: the completion of zsh: needs zsh"
fi
if command -v fish >/dev/null; then
    told() { [ "$(fish_offers "$1" | tr '\t' ' ' | cut -c1-30)" = "$2" ]; }
    fish_offers() { fish --no-config -c ". manual/pons.fish; complete -C '$1'" >offered; cat offered; }
    check "fish tells a flag" told 'pons train --prof' "--profile Write the time of ph"
    check "fish completes arguments" [ "$(fish_offers 'pons train some' | cut -f1 | tr '\n' ' ')" = "some.ini some/ " ]
    check "fish completes a value" [ "$(fish --no-config -c ". manual/pons.fish
        complete -C 'pons train a --set train.precision=b'")" = train.precision=bf16 ]
else
    echo "SKIPPED: the completion of fish: needs fish"
fi

# ---- config --------------------------------------------------------------------------------------

phantom data 3 16
{
    printf '[experiment]\nname = base\n[data]\nsource = data\n[patch]\nextent = 16\n'
    small_unet
    printf '[train]\nsteps = 2\n'
} >base.ini
"$program" config base.ini --set train.batch=2 >told.ini 2>log || fail "pons config: $(cat log)"
check "an origin in the file" grep -q '^steps = 2 ; base.ini:[0-9]*$' told.ini
check "an origin on the command line" grep -q '^batch = 2 ; --set' told.ini
check "a default" grep -q '^clip_norm = 0 ; default' told.ini
check "what auto became" grep -q '^mode = single ; ' told.ini
check "no run is begun" [ ! -e runs ]
values() { sed 's/ ; .*//; /^;/d' "$1"; }
"$program" config told.ini >again.ini 2>log || fail "pons config of its own output: $(cat log)"
values told.ini >first
values again.ini >second
check "what it prints is a file with these values" cmp first second
check "an unknown key" ends 3 "unknown key 'stepps'" "$program" config base.ini --set train.stepps=2
finish
