/*
 * completion.c - completions of the command line for bash, zsh and fish.
 */
#include "cli/manual/completion.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/text_stream.h"
#include "cli/arguments.h"
#include "cli/command_text.h"
#include "cli/manual/completion_words.h"

/* The words of one shell around the lists that all have. */
typedef struct shell {
    const char *begin;  /* a function's begin, with its name                                      */
    const char *end;
    const char *row;    /* begin of a row, with the name that selects it                          */
    const char *row_end;
    const char *quote;  /* a quote within quotes                                                  */
    const char *told;   /* begin of a row of words with their help, as row; NULL: there is none   */
    const char *mark;   /* between a word and its help                                            */
} shell;

#define POSIX "%s() {\n    case $1 in\n", "    esac\n}\n", "    '%s') echo", " ;;\n"

static const shell bash = { POSIX, NULL, NULL, NULL };
static const shell zsh = { POSIX, "'\\''", "    '%s') print -r -- '", ":" };
static const shell fish = { "function %s\n    switch $argv[1]\n", "    end\nend\n",
                            "        case '%s'\n            string split ' ' --", "\n", "\\'",
                            "        case '%s'\n            echo '", "\t" };

/* Print a row; 'words' begins with a blank. fish splits one word in quotes. */
static void put_row(FILE *to, const shell *s, const char *name, const char *words)
{
    fprintf(to, s->row, name);
    if (s == &fish)
        fprintf(to, " '%s'", words + 1);
    else
        fputs(words, to);
    fputs(s->row_end, to);
}

static void put_function(FILE *to, const shell *s, const char *name)
{
    fprintf(to, s->begin, name);
}

/* Close the words of a row, print it if there are some, and free them. */
static void put_words(text_stream *words, FILE *to, const shell *s, const char *name)
{
    if (text_stream_close(words) && words->size > 0)
        put_row(to, s, name, words->text);
    free(words->text);
}

/* A line of a row with help: the word, and the begin of its sentence. */
static void put_told(const void *of_shell, FILE *to, const char *word, const char *help)
{
    const shell *s = of_shell;

    fprintf(to, "%s%s", word, s->mark);
    for (size_t i = 0, size = strcspn(help, ".;"); i < size; i++)
        if (help[i] == '\'')
            fputs(s->quote, to);
        else if (help[i] != '\\')
            fputc(help[i], to);
    fputc('\n', to);
}

/* ---- the lists ------------------------------------------------------------------------------- */

static void put_flags(FILE *to, const shell *s)
{
    put_function(to, s, "_pons_flags");
    for (const command *const *c = commands; *c != NULL; c++) {
        text_stream p;
        if (s->told != NULL) {
            fprintf(to, s->told, (*c)->name);
            words_each_flag(to, *c, put_told, s);
            fprintf(to, "'%s", s->row_end);
        } else if (text_stream_open(&p)) {
            words_flags(p.to, *c);
            put_words(&p, to, s, (*c)->name);
        }
    }
    fputs(s->end, to);
}

/* The values of a command's flags, "predict --device" and "predict -o". */
static void put_flag_values(FILE *to, const shell *s, const command *c)
{
    text_stream p;

    for (const pons_option *o = c->flags; o != NULL && o->name != NULL; o++) {
        char flag[64], name[192];
        snprintf(name, sizeof name, "%s %s", c->name, usage_flag(o, flag, sizeof flag));
        if (o->type == PONS_OPTION_FLAG || !text_stream_open(&p))
            continue;
        words_of_flag(p.to, c, o);
        put_words(&p, to, s, name);
        snprintf(name, sizeof name, "%s -%c", c->name, arguments_letter(c, o));
        if (arguments_letter(c, o) == 0 || !text_stream_open(&p))
            continue;
        words_of_flag(p.to, c, o);
        put_words(&p, to, s, name);
    }
}

/* The arguments by number, "predict 1"; one that may repeat has '+' for all further numbers. */
static void put_arguments(FILE *to, const shell *s, const option_tables *tables, const command *c)
{
    const usage_row *row = command_text_of(c)->arguments;

    for (int i = 0; row[i].name != NULL; i++) {
        bool last = row[i + 1].name == NULL;
        char name[96];
        text_stream p;
        for (int further = 0; further <= (last && c->argument_max != i + 1); further++) {
            if (further)
                snprintf(name, sizeof name, "%s +", c->name);
            else
                snprintf(name, sizeof name, "%s %d", c->name, i + 1);
            if (!text_stream_open(&p))
                return;
            words_of_argument(p.to, tables, c, i);
            put_words(&p, to, s, name);
        }
    }
}

/* The values of keys, "train.precision". */
static void put_key_values(FILE *to, const shell *s, const option_tables *tables)
{
    text_stream p;

    for (int i = 0; i < tables->count; i++) {
        const option_table *t = &tables->item[i];
        for (const pons_option *o = t->options; o != NULL && o->name != NULL; o++) {
            char section[128], name[192];
            snprintf(name, sizeof name, "%s.%s", words_section(t, section, sizeof section),
                     o->name);
            if (!text_stream_open(&p))
                continue;
            words_values(p.to, tables, t, o);
            put_words(&p, to, s, name);
        }
    }
}

static void put_values(FILE *to, const shell *s, const option_tables *tables)
{
    char place[96];
    text_stream p;

    put_function(to, s, "_pons_values");
    put_row(to, s, "--color", " auto always never");
    for (const command *const *c = commands; *c != NULL; c++) {
        put_arguments(to, s, tables, *c);
        put_flag_values(to, s, *c);
    }
    for (int i = 0; words_follow(i, place, sizeof place) != NULL; i++)
        if (text_stream_open(&p)) {
            words_of_follow(p.to, tables, i);
            put_words(&p, to, s, place);
        }
    put_key_values(to, s, tables);
    fputs(s->end, to);
}

static void put_group(const void *of_shell, FILE *to, const char *group)
{
    text_stream p;

    if (!text_stream_open(&p))
        return;
    words_of_group(p.to, group);
    put_words(&p, to, of_shell, group);
}

/* _pons_commands: the first words; with a first word, the second words of its group. */
static void put_commands(FILE *to, const shell *s)
{
    text_stream p;

    put_function(to, s, "_pons_commands");
    if (s->told != NULL) {
        fprintf(to, s->told, "");
        words_each_command(to, put_told, s);
        fprintf(to, "'%s", s->row_end);
    } else if (text_stream_open(&p)) {
        words_commands(p.to);
        put_words(&p, to, s, "");
    }
    words_groups(to, put_group, s);
    fputs(s->end, to);
}

static void put_keys(FILE *to, const shell *s, const option_tables *tables)
{
    text_stream p;

    put_function(to, s, "_pons_keys");
    if (text_stream_open(&p)) {
        words_keys(p.to, tables);
        put_words(&p, to, s, "");
    }
    fputs(s->end, to);
}

static void put_lists(FILE *to, const shell *s, const option_tables *tables)
{
    put_commands(to, s);
    put_flags(to, s);
    put_keys(to, s, tables);
    put_values(to, s, tables);
}

/* ---- the shells ------------------------------------------------------------------------------ */

void completion_bash(FILE *to, const option_tables *tables)
{
    fputs("# Completion of pons for bash, written by 'pons help --manual'.\n", to);
    put_lists(to, &bash, tables);
    fputs("_pons_files() {\n" /* the words of a list that stand for files */
          "    local kind\n"
          "    for kind in $1; do\n"
          "        case $kind in\n"
          "        @ini) compgen -f -X '!*.ini' -- \"$2\"; compgen -d -- \"$2\" ;;\n"
          "        @so) compgen -f -X '!*.so' -- \"$2\"; compgen -d -- \"$2\" ;;\n"
          "        @run | @dir) compgen -d -- \"$2\" ;;\n"
          "        @file) compgen -f -- \"$2\" ;;\n"
          "        esac\n"
          "    done | sort -u\n"
          "}\n"
          "_pons() {\n"
          "    local line=${COMP_LINE:0:COMP_POINT} list= command current previous prefix= word\n"
          "    local first=2 at=1 argument= i\n"
          "    local -a words\n"
          "    read -ra words <<<\"$line\"\n"
          "    [[ $line == *[[:space:]] ]] && words+=(\"\")\n"
          "    local count=${#words[@]}\n"
          "    current=${words[count - 1]} previous=${words[count - 2]} command=${words[1]}\n"
          "    [[ -n $(_pons_commands \"$command\") ]] &&\n"
          "        command=\"$command ${words[2]}\" first=3\n"
          "    COMPREPLY=()\n"
          "    for ((i = first; i < count - 1; i++)); do\n"
          "        if [[ ${words[i]} != -* ]]; then\n"
          "            argument=${words[i]} at=$((at + 1))\n"
          "        elif [[ ${words[i]} == --set || -n $(_pons_values \"$command ${words[i]}\") "
          "|| -n $(_pons_values \"${words[i]}\") ]]; then\n"
          "            i=$((i + 1))\n"
          "        fi\n"
          "    done\n"
          "    if ((count == 2)); then\n"
          "        list=$(_pons_commands \"\")\n"
          "    elif ((count == 3 && first == 3)); then\n"
          "        list=$(_pons_commands \"${words[1]}\")\n"
          "    elif [[ $previous == --set && $current == *=* ]]; then\n"
          "        prefix=${current%%=*}= list=$(_pons_values \"${current%%=*}\")\n"
          "    elif [[ $previous == --set ]]; then\n"
          "        list=$(_pons_keys \"\")\n"
          "        compopt -o nospace 2>/dev/null\n"
          "    elif [[ $current == --*=* ]]; then\n"
          "        prefix=${current%%=*}= list=$(_pons_values \"$command ${current%%=*}\")\n"
          "        [[ -n $list ]] || list=$(_pons_values \"${current%%=*}\")\n"
          "    elif [[ $current == -* ]]; then\n"
          "        list=$(_pons_flags \"$command\")\n"
          "    else\n"
          "        [[ $previous == -* ]] && list=$(_pons_values \"$command $previous\")\n"
          "        [[ -n $list || $previous != -* ]] || list=$(_pons_values \"$previous\")\n"
          "        [[ -n $list || $at != 2 ]] || list=$(_pons_values \"$command $argument\")\n"
          "        [[ -n $list ]] || list=$(_pons_values \"$command $at\")\n"
          "        [[ -n $list ]] || list=$(_pons_values \"$command +\")\n"
          "        if [[ $command == help && $current == *.* ]]; then\n"
          "            list=$(_pons_keys \"\")\n"
          "            list=${list//=/}\n"
          "        fi\n"
          "    fi\n"
          "    if [[ $list == *@* ]]; then\n"
          "        mapfile -t COMPREPLY < <(_pons_files \"$list\" \"${current#\"$prefix\"}\")\n"
          "        compopt -o filenames 2>/dev/null\n"
          "        return\n"
          "    fi\n"
          "    COMPREPLY=($(compgen -P \"$prefix\" -W \"$list\" -- \"${current#\"$prefix\"}\"))\n"
          "    if [[ -n $prefix && $COMP_WORDBREAKS == *=* ]]; then # a word ends at '='\n"
          "        COMPREPLY=(\"${COMPREPLY[@]#\"$prefix\"}\")\n"
          "    fi\n"
          "}\n"
          "complete -F _pons pons\n", to);
}

void completion_zsh(FILE *to, const option_tables *tables)
{
    fputs("#compdef pons\n# Completion of pons for zsh, written by 'pons help --manual'.\n", to);
    put_lists(to, &zsh, tables);
    fputs("_pons_offer() {\n" /* words, and files of the kinds that a list names */
          "    local -a list=(${=1}) words=(${${=1}:#@*})\n"
          "    ((${#words})) && compadd -- $words\n"
          "    ((${list[(I)@ini]})) && _files -g '*.ini'\n"
          "    ((${list[(I)@so]})) && _files -g '*.so'\n"
          "    ((${list[(I)@file]})) && _files\n"
          "    ((${list[(I)@run]} || ${list[(I)@dir]})) && _files -/\n"
          "}\n"
          "_pons_arguments() {\n" /* the words of the next argument */
          "    local command=$1 argument= at=1 i list=\n"
          "    for ((i = $2; i < CURRENT; i++)); do\n"
          "        if [[ $words[i] != -* ]]; then\n"
          "            argument=$words[i] at=$((at + 1))\n"
          "        elif [[ $words[i] == --set || -n $(_pons_values \"$command $words[i]\") "
          "|| -n $(_pons_values \"$words[i]\") ]]; then\n"
          "            i=$((i + 1))\n"
          "        fi\n"
          "    done\n"
          "    ((at == 2)) && list=$(_pons_values \"$command $argument\")\n"
          "    [[ -n $list ]] || list=$(_pons_values \"$command $at\")\n"
          "    [[ -n $list ]] || list=$(_pons_values \"$command +\")\n"
          "    [[ $command == help && $PREFIX == *.* ]] && list=${$(_pons_keys \"\")//=/}\n"
          "    print -r -- $list\n"
          "}\n"
          "_pons() {\n"
          "    local command=$words[2] current=$words[CURRENT] previous=$words[CURRENT-1]\n"
          "    local first=3 list=\n"
          "    local -a told\n"
          "    [[ -n $(_pons_commands \"$command\") && -n $command ]] "
          "&& command=\"$command $words[3]\" first=4\n"
          "    if ((CURRENT == 2)); then\n"
          "        told=(\"${(@f)$(_pons_commands \"\")}\")\n"
          "        _describe -t commands command told\n"
          "    elif ((CURRENT == 3 && first == 4)); then\n"
          "        compadd -- ${=$(_pons_commands $words[2])}\n"
          "    elif [[ $previous == --set && $PREFIX == *=* ]]; then\n"
          "        list=$(_pons_values \"${PREFIX%%=*}\")\n"
          "        compset -P '*='\n"
          "        _pons_offer $list\n"
          "    elif [[ $previous == --set ]]; then\n"
          "        compadd -S '' -- ${=$(_pons_keys \"\")}\n"
          "    elif [[ $PREFIX == --*=* ]]; then\n"
          "        list=$(_pons_values \"$command ${PREFIX%%=*}\")\n"
          "        [[ -n $list ]] || list=$(_pons_values \"${PREFIX%%=*}\")\n"
          "        compset -P '*='\n"
          "        _pons_offer $list\n"
          "    elif [[ $current == -* ]]; then\n"
          "        told=(\"${(@f)$(_pons_flags \"$command\")}\")\n"
          "        _describe -o -t flags flag told\n"
          "    else\n"
          "        [[ $previous == -* ]] && list=$(_pons_values \"$command $previous\")\n"
          "        [[ -z $list && $previous == -* ]] && list=$(_pons_values \"$previous\")\n"
          "        [[ -n $list ]] || list=$(_pons_arguments \"$command\" $first)\n"
          "        _pons_offer $list\n"
          "    fi\n"
          "}\n"
          "compdef _pons pons 2>/dev/null\n"
          "[[ $funcstack[1] == _pons ]] && _pons \"$@\"\n", to);
}

/* Offer words, and files of the kinds that a list names. */
static const char fish_offer[] =
    "function _pons_offer\n"
    "    set -l current $argv[1]\n"
    "    for word in $argv[2..-1]\n"
    "        switch $word\n"
    "            case @ini\n"
    "                __fish_complete_path $current | string match -er '(/|\\.ini)(\\t|$)'\n"
    "            case @so\n"
    "                __fish_complete_path $current | string match -er '(/|\\.so)(\\t|$)'\n"
    "            case @run @dir\n"
    "                __fish_complete_directories $current\n"
    "            case @file\n"
    "                __fish_complete_path $current\n"
    "            case @none\n"
    "            case '*'\n"
    "                echo $word\n"
    "        end\n"
    "    end\n"
    "end\n";

/* Print the words of the next argument: COMMAND, the word at the cursor, the words before it. */
static const char fish_arguments[] =
    "function _pons_arguments\n"
    "    set -l command $argv[1]\n"
    "    set -l at 1\n"
    "    set -l argument\n"
    "    set -l list\n"
    "    set -l skipped no\n"
    "    for word in $argv[3..-1]\n"
    "        if test $skipped = yes\n"
    "            set skipped no\n"
    "        else if not string match -q -- '-*' $word\n"
    "            set argument $word\n"
    "            set at (math $at + 1)\n"
    "        else\n"
    "            set list (_pons_values \"$command $word\") (_pons_values $word)\n"
    "            test $word = --set -o -n \"$list\"; and set skipped yes\n"
    "        end\n"
    "    end\n"
    "    set list\n"
    "    test $at -eq 2; and set list (_pons_values \"$command $argument\")\n"
    "    test -n \"$list\"; or set list (_pons_values \"$command $at\")\n"
    "    test -n \"$list\"; or set list (_pons_values \"$command +\")\n"
    "    if test $command = help; and string match -q '*.*' -- $argv[2]\n"
    "        set list (string replace = '' -- (_pons_keys ''))\n"
    "    end\n"
    "    string join \\n -- $list\n"
    "end\n";

/* Print the words that may stand at the cursor. */
static const char fish_complete[] =
    "function _pons_complete\n"
    "    set -l words (commandline -opc)\n"
    "    set -l current (commandline -ct)\n"
    "    set -l previous $words[-1]\n"
    "    set -l command $words[2]\n"
    "    set -l first 3\n"
    "    set -l group\n"
    "    set -l list\n"
    "    if test (count $words) -eq 1\n"
    "        _pons_commands ''\n"
    "        return\n"
    "    end\n"
    "    set group (_pons_commands $words[2])\n"
    "    if test -n \"$group\" -a (count $words) -eq 2\n"
    "        string join \\n -- $group\n"
    "        return\n"
    "    end\n"
    "    test -n \"$group\"; and set command \"$words[2] $words[3]\"; and set first 4\n"
    "    if test \"$previous\" = --set; and string match -q '*=*' -- $current\n"
    "        set -l key (string split -m 1 = -- $current)[1]\n"
    "        for value in (_pons_values $key)\n"
    "            echo $key=$value\n"
    "        end\n"
    "        return\n"
    "    else if test \"$previous\" = --set\n"
    "        _pons_keys ''\n"
    "        return\n"
    "    else if string match -q -- '--*=*' $current\n"
    "        set -l flag (string split -m 1 = -- $current)[1]\n"
    "        for value in (_pons_values \"$command $flag\") (_pons_values $flag)\n"
    "            string match -q '@*' -- $value; or echo $flag=$value\n"
    "        end\n"
    "        return\n"
    "    else if string match -q -- '-*' $current\n"
    "        _pons_flags $command\n"
    "        return\n"
    "    else if string match -q -- '-*' $previous\n"
    "        set list (_pons_values \"$command $previous\") (_pons_values $previous)\n"
    "    end\n"
    "    test -n \"$list\"\n"
    "    or set list (_pons_arguments $command \"$current\" $words[$first..-1])\n"
    "    _pons_offer \"$current\" $list\n"
    "end\n"
    "complete -c pons -f -a '(_pons_complete)'\n";

void completion_fish(FILE *to, const option_tables *tables)
{
    fputs("# Completion of pons for fish, written by 'pons help --manual'.\n", to);
    put_lists(to, &fish, tables);
    fputs(fish_offer, to);
    fputs(fish_arguments, to);
    fputs(fish_complete, to);
}
