/*
 * completion.c - completions of the command line for bash, zsh and fish.
 */
#include "cli/manual/completion.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/text_stream.h"
#include "cli/manual/completion_words.h"

/* The words of one shell around the lists that all have. */
typedef struct shell {
    const char *begin;  /* a function's begin, with its name                                      */
    const char *end;
    const char *row;    /* begin of a row, with the name that selects it                          */
    const char *row_end;
} shell;

static const shell posix = { "%s() {\n    case $1 in\n", "    esac\n}\n", "    '%s') echo",
                             " ;;\n" };
static const shell fish = { "function %s\n    switch $argv[1]\n", "    end\nend\n",
                            "        case '%s'\n            string split ' ' --", "\n" };

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

/* ---- the lists ------------------------------------------------------------------------------- */

static void put_flags(FILE *to, const shell *s)
{
    put_function(to, s, "_pons_flags");
    for (const command *const *c = commands; *c != NULL; c++) {
        text_stream p;
        if (!text_stream_open(&p))
            return;
        words_flags(p.to, *c);
        put_words(&p, to, s, (*c)->name);
    }
    fputs(s->end, to);
}

/*
 * The values of a command's flags, "predict --device", of keys, "train.precision", and of
 * arguments, "help".
 */
static void put_values(FILE *to, const shell *s, const option_tables *tables)
{
    text_stream p;

    put_function(to, s, "_pons_values");
    for (int i = 0; words_argument(i) != NULL && text_stream_open(&p); i++) {
        words_of_argument(p.to, tables, i);
        put_words(&p, to, s, words_argument(i));
    }
    for (const command *const *c = commands; *c != NULL; c++) {
        for (const pons_option *o = (*c)->flags; o != NULL && o->name != NULL; o++) {
            char name[192];
            snprintf(name, sizeof name, "%s --%s", (*c)->name, o->name);
            for (char *at = strchr(name, '-'); *at != '\0'; at++)
                *at = *at == '_' ? '-' : *at;
            if (o->type == PONS_OPTION_FLAG || !text_stream_open(&p))
                continue;
            words_of_choice(p.to, o);
            put_words(&p, to, s, name);
        }
    }
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
    if (text_stream_open(&p)) {
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
    put_lists(to, &posix, tables);
    fputs("_pons() {\n"
          "    local line=${COMP_LINE:0:COMP_POINT} list= command current previous prefix\n"
          "    local -a words\n"
          "    read -ra words <<<\"$line\"\n"
          "    [[ $line == *[[:space:]] ]] && words+=(\"\")\n"
          "    local count=${#words[@]}\n"
          "    current=${words[count - 1]} previous=${words[count - 2]} command=${words[1]}\n"
          "    [[ -n $(_pons_commands \"$command\") ]] && command=\"$command ${words[2]}\"\n"
          "    COMPREPLY=()\n"
          "    if ((count == 2)); then\n"
          "        list=$(_pons_commands \"\")\n"
          "    elif ((count == 3)) && [[ $command == *\" \"* ]]; then\n"
          "        list=$(_pons_commands \"${words[1]}\")\n"
          "    elif [[ $previous == --set && $current == *=* ]]; then\n"
          "        for prefix in $(_pons_values \"${current%%=*}\"); do\n"
          "            list+=\" ${current%%=*}=$prefix\"\n"
          "        done\n"
          "    elif [[ $previous == --set ]]; then\n"
          "        list=$(_pons_keys \"\")\n"
          "        compopt -o nospace 2>/dev/null\n"
          "    elif [[ $current == -* ]]; then\n"
          "        list=$(_pons_flags \"$command\")\n"
          "    elif [[ $previous == --* ]]; then\n"
          "        list=$(_pons_values \"$command $previous\")\n"
          "    else\n"
          "        list=$(_pons_values \"$command\")\n"
          "    fi\n"
          "    COMPREPLY=($(compgen -W \"$list\" -- \"$current\"))\n"
          "    if [[ $current == *=* && $COMP_WORDBREAKS == *=* ]]; then # a word ends at '='\n"
          "        prefix=${current%%=*}=\n"
          "        COMPREPLY=(\"${COMPREPLY[@]#\"$prefix\"}\")\n"
          "    fi\n"
          "}\n"
          "complete -o bashdefault -o default -F _pons pons\n", to);
}

void completion_zsh(FILE *to, const option_tables *tables)
{
    fputs("#compdef pons\n# Completion of pons for zsh, written by 'pons help --manual'.\n", to);
    put_lists(to, &posix, tables);
    fputs("_pons() {\n"
          "    local command=$words[2] current=$words[CURRENT] previous=$words[CURRENT-1]\n"
          "    local -a list\n"
          "    [[ -n $(_pons_commands \"$command\") ]] && command=\"$command $words[3]\"\n"
          "    if ((CURRENT == 2)); then\n"
          "        list=(${=$(_pons_commands \"\")})\n"
          "    elif ((CURRENT == 3)) && [[ $command == *\" \"* ]]; then\n"
          "        list=(${=$(_pons_commands $words[2])})\n"
          "    elif [[ $previous == --set && $PREFIX == *=* ]]; then\n"
          "        list=(${=$(_pons_values \"${PREFIX%%=*}\")})\n"
          "        compset -P '*='\n"
          "    elif [[ $previous == --set ]]; then\n"
          "        compadd -S '' -- ${=$(_pons_keys \"\")}\n"
          "        return\n"
          "    elif [[ $current == -* ]]; then\n"
          "        list=(${=$(_pons_flags \"$command\")})\n"
          "    elif [[ $previous == --* ]]; then\n"
          "        list=(${=$(_pons_values \"$command $previous\")})\n"
          "    else\n"
          "        list=(${=$(_pons_values \"$command\")})\n"
          "    fi\n"
          "    if ((${#list})); then\n"
          "        compadd -- $list\n"
          "    else\n"
          "        _files\n"
          "    fi\n"
          "}\n"
          "compdef _pons pons 2>/dev/null\n"
          "[[ $funcstack[1] == _pons ]] && _pons \"$@\"\n", to);
}

void completion_fish(FILE *to, const option_tables *tables)
{
    fputs("# Completion of pons for fish, written by 'pons help --manual'.\n", to);
    put_lists(to, &fish, tables);
    fputs("function _pons_complete\n"
          "    set -l words (commandline -opc)\n"
          "    set -l current (commandline -ct)\n"
          "    set -l previous $words[-1]\n"
          "    set -l command $words[2]\n"
          "    set -l group\n"
          "    set -q words[2]; and set group (_pons_commands $words[2])\n"
          "    if test (count $words) -eq 1\n"
          "        _pons_commands ''\n"
          "        return\n"
          "    end\n"
          "    if test -n \"$group\" -a (count $words) -eq 2\n"
          "        string split ' ' -- $group\n"
          "        return\n"
          "    end\n"
          "    test -n \"$group\"; and set command \"$words[2] $words[3]\"\n"
          "    if test \"$previous\" = --set; and string match -q '*=*' -- $current\n"
          "        set -l key (string split -m 1 = -- $current)[1]\n"
          "        for value in (_pons_values $key)\n"
          "            echo $key=$value\n"
          "        end\n"
          "    else if test \"$previous\" = --set\n"
          "        _pons_keys ''\n"
          "    else if string match -q -- '-*' $current\n"
          "        _pons_flags $command\n"
          "    else if string match -q -- '--*' $previous\n"
          "        set -l list (_pons_values \"$command $previous\")\n"
          "        test -n \"$list\"; and string join \\n -- $list; "
          "or __fish_complete_path $current\n"
          "    else\n"
          "        set -l list (_pons_values $command)\n"
          "        test -n \"$list\"; and string join \\n -- $list; "
          "or __fish_complete_path $current\n"
          "    end\n"
          "end\n"
          "complete -c pons -f -a '(_pons_complete)'\n", to);
}
