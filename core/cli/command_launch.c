/*
 * command_launch.c - pons launch: the number of ranks, their rendezvous, and the command of each.
 *
 * cluster/launch/launch.c starts and supervises them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/broken_pipe.h"
#include "base/file/file.h"
#include "base/text/text.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/train_folds.h"
#include "cli/usage.h"
#include "cluster/launch/launch.h"
#include "cluster/rendezvous/rank_info.h"
#include "config/sections.h"
#include "device/device_choose.h"
#include "report/run_folder.h"

typedef struct launch_flags {
    int64_t ranks, nodes, node_rank, restarts;
    const char *master;
    int show;
} launch_flags;

enum { SHOW_FIRST = 0, SHOW_ALL };

static const char *const auto_words[] = { "auto", NULL };
static const char *const show_words[] = { "first", "all", NULL };

static const pons_option flags[] = {
    PONS_INTEGER_OR(launch_flags, ranks, "auto", 1, LAUNCH_RANKS_MAX, auto_words,
                    "Ranks on this node; auto: as many as [distribute] devices lists, one for "
                    "each GPU of 'auto' and 'cuda', one for 'cpu'."),
    PONS_INTEGER(launch_flags, nodes, "1", 1, 65536,
                 "Nodes; the command runs once on each, with the same --ranks."),
    PONS_INTEGER(launch_flags, node_rank, "0", 0, 65535,
                 "Number of this node, from 0; its ranks begin at node rank x ranks."),
    PONS_TEXT(launch_flags, master, "",
              "HOST:PORT on node 0 where the ranks meet; one node needs none and takes a free "
              "port. Several nodes may share a secret as " RANK_INFO_TOKEN " in the environment."),
    PONS_INTEGER(launch_flags, restarts, "0", 0, 1000000,
                 "How often all start again from the last checkpoint after a rank was killed, or "
                 "lost a device, memory or the others."),
    PONS_CHOICE(launch_flags, show, "first", show_words,
                "Whose output is shown: rank 0's as it is, or all lines behind '[rank] '."),
    PONS_OPTIONS_END
};

/* ---- the command of the ranks ---------------------------------------------------------------- */

/* The command of the ranks. It is parsed before they start, so its errors are reported once. */
typedef struct inner {
    const command *command;
    int word_count;            /* words of the command, its name included                         */
    const char **word;
    const char **kept;         /* words of a restart                                              */
    invocation call;
    void *flags;
    config *config;
    sections sections;
    run_folder folder;
    bool folder_was_there;
    dev_t device;              /* device of the run folder before the first start                 */
    ino_t inode;
} inner;

static const command *find_inner(const char *name)
{
    static const char *const names[] = { "train", "bench", "find-rate" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (const command *const *c = commands; *c != NULL && strcmp(name, names[i]) == 0; c++)
            if (strcmp((*c)->name, name) == 0)
                return *c;
    return NULL;
}

static pons_status make_words(inner *in, int count, pons_error *err)
{
    in->word = calloc((size_t)count + 1, sizeof *in->word);
    in->kept = calloc((size_t)count + 1, sizeof *in->kept);
    if (in->word == NULL || in->kept == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    in->word[in->word_count++] = in->command->name;
    return PONS_OK;
}

/* Gather the words: "train", the launcher's own --set, then all words behind "train". */
static pons_status gather_words(inner *in, const invocation *call, pons_error *err)
{
    if (make_words(in, call->argument_count + 2 * call->set_count + 2, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < call->set_count; i++) {
        in->word[in->word_count++] = "--set";
        in->word[in->word_count++] = call->set[i];
    }
    for (int i = 1; i < call->argument_count; i++)
        in->word[in->word_count++] = call->argument[i];
    return PONS_OK;
}

static pons_status copy_words(inner *in, const invocation *call, pons_error *err)
{
    if (make_words(in, call->word_count + 3, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < call->word_count; i++)
        in->word[in->word_count++] = call->word[i];
    return PONS_OK;
}

static pons_status read_words(inner *in, const logger *log, pons_error *err)
{
    invocation *call = &in->call;
    logger own = *log; /* -q and -v behind the command's name belong to the ranks */

    call->command = in->command;
    call->log = &own;
    call->argument = calloc((size_t)in->word_count + 1, sizeof *call->argument);
    call->set = calloc((size_t)in->word_count + 1, sizeof *call->set);
    in->flags = calloc(1, in->command->flags_size + 1);
    if (call->argument == NULL || call->set == NULL || in->flags == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (config_open(NULL, 0, NULL, &call->values, err) == PONS_OK)
        arguments_read(in->command, in->word_count - 1, (char **)in->word + 1, call, in->flags,
                       err);
    call->log = NULL;
    return err->status;
}

static pons_status read_file(inner *in, pons_error *err)
{
    const experiment_options *e = &in->sections.experiment;
    struct stat facts;

    if (invocation_config(&in->call, in->call.argument[0], &in->config, err) != PONS_OK
        || sections_fill(in->config, &in->sections, err) != PONS_OK)
        return err->status;
    if (e->name == NULL || e->output == NULL) /* the ranks report it */
        return PONS_OK;
    if (run_folder_name(e->output, e->name, &in->folder, err) != PONS_OK)
        return err->status;
    in->folder_was_there = stat(in->folder.path, &facts) == 0;
    if (in->folder_was_there) {
        in->device = facts.st_dev;
        in->inode = facts.st_ino;
    }
    return PONS_OK;
}

/* Close what belongs to one start of the ranks. */
static void close_start(inner *in, logger *log)
{
    run_folder_close(&in->folder, log);
    if (in->config != NULL)
        config_close(in->config);
    in->config = NULL;
}

static void clear_inner(inner *in, logger *log)
{
    close_start(in, log);
    if (in->call.values != NULL)
        config_close(in->call.values);
    free(in->call.given);
    free(in->call.argument);
    free(in->call.set);
    free(in->flags);
    free(in->word);
    free(in->kept);
}

/* ---- restarts -------------------------------------------------------------------------------- */

/* Whether the run folder is not the one found before the first start: the ranks have made it. */
static bool has_own_folder(const inner *in)
{
    struct stat facts;

    if (in->folder.path == NULL || stat(in->folder.path, &facts) != 0)
        return false;
    return !in->folder_was_there || facts.st_dev != in->device || facts.st_ino != in->inode;
}

static bool has_checkpoint(const inner *in)
{
    return in->folder.checkpoints != NULL && folder_holds(in->folder.checkpoints, "last");
}

/*
 * The words of a restart, which continues the run. --fresh is dropped, because it would begin anew.
 * --resume is dropped, because it would be refused beside the run's own checkpoint.
 */
static const char *const *words_of(void *context, int restart)
{
    inner *in = context;
    bool no_fresh = restart > 0 && has_own_folder(in);
    bool no_resume = restart > 0 && has_checkpoint(in);
    int n = 0;

    for (int i = 0; i < in->word_count; i++) {
        const char *word = in->word[i];
        if (no_fresh && strcmp(word, "--fresh") == 0)
            continue;
        if (no_resume && strncmp(word, "--resume=", strlen("--resume=")) == 0)
            continue;
        if (no_resume && strcmp(word, "--resume") == 0)
            i++;
        else
            in->kept[n++] = word;
    }
    in->kept[n] = NULL;
    return in->kept;
}

/* ---- number of ranks, rendezvous ------------------------------------------------------------- */

/* Refuse more ranks than GPUs before the start. A surplus rank would fail only after it. */
static pons_status check_gpus(const char *text, const device_list *list, int ranks, pons_error *err)
{
    bool all = device_is_auto(text) || strcmp(text, "cuda") == 0;

    if (!all || strcmp(list->item[0].name, "cuda") != 0 || !list->item[0].numbered
        || ranks <= list->count)
        return PONS_OK;
    return pons_fail(err, PONS_DEVICE, "%d ranks, but this machine has %d GPU%s\nhint: --set "
                     "distribute.devices=cpu lets them share the processor", ranks, list->count,
                     list->count == 1 ? "" : "s");
}

static pons_status count_ranks(const launch_flags *f, const inner *in, launch_settings *s,
                               logger *log, pons_error *err)
{
    const char *text = in->sections.distribute.devices;
    char listed[DEVICE_LIST_TEXT];
    device_list list;

    if (device_choose(text, DEVICE_USE_ALL, config_location(in->config, "distribute", "devices"),
                      &list, err) != PONS_OK)
        return err->status;
    s->ranks = f->ranks > 0 ? (int)f->ranks : list.count;
    if (f->ranks > 0)
        return check_gpus(text, &list, s->ranks, err);
    device_list_print(&list, listed, sizeof listed);
    log_line(log, "%d rank%s: [distribute] devices = %s", s->ranks, s->ranks == 1 ? "" : "s",
             device_is_auto(text) ? listed : text);
    return PONS_OK;
}

/* Parse "node-a:29500", "10.0.0.1:29500" or "[fe80::1]:29500". */
static pons_status read_master(const char *text, char host[256], int *port, pons_error *err)
{
    const char *colon = strrchr(text, ':');
    size_t size = colon != NULL ? (size_t)(colon - text) : 0;
    bool bracket = size >= 2 && text[0] == '[' && colon[-1] == ']';
    int64_t number = 0;

    if (bracket) {
        text++;
        size -= 2;
    }
    if (size == 0 || size >= 256 || (!bracket && memchr(text, ':', size) != NULL)
        || !text_integer(colon + 1, &number) || number < 1 || number > 65535)
        return pons_fail(err, PONS_USAGE, "--master '%s': expected HOST:PORT with a port of 1 to "
                         "65535; an IPv6 address stands in brackets", text - bracket);
    snprintf(host, 256, "%.*s", (int)size, text);
    *port = (int)number;
    return PONS_OK;
}

/*
 * Launchers of several nodes need the same token, but share only the command line. Without a secret
 * the token only separates jobs at different addresses.
 */
static void choose_token(const launch_flags *f, launch_settings *s, char token[129])
{
    const char *secret = getenv(RANK_INFO_TOKEN);

    if (secret != NULL && secret[0] != '\0' && strlen(secret) <= 128)
        snprintf(token, 129, "%s", secret);
    else
        snprintf(token, 129, "%.96s/%d", f->master, s->nodes);
    s->token = token;
}

static pons_status place_nodes(const launch_flags *f, launch_settings *s, char host[256],
                               char token[129], pons_error *err)
{
    bool master = f->master != NULL && f->master[0] != '\0';

    s->nodes = (int)f->nodes;
    s->node = (int)f->node_rank;
    if (s->node >= s->nodes)
        return pons_fail(err, PONS_USAGE, "--node-rank %d of --nodes %d: expected 0 to %d", s->node,
                         s->nodes, s->nodes - 1);
    if (s->nodes > 1 && !master)
        return pons_fail(err, PONS_USAGE, "--nodes %d needs --master HOST:PORT, an address of node "
                         "0 that all nodes reach", s->nodes);
    if (!master)
        return PONS_OK;
    if (read_master(f->master, host, &s->port, err) != PONS_OK)
        return err->status;
    s->master = host;
    if (s->nodes > 1)
        choose_token(f, s, token);
    return PONS_OK;
}

/* ---- run ------------------------------------------------------------------------------------- */

static pons_status find_program(char path[4096], pons_error *err)
{
    ssize_t size = readlink("/proc/self/exe", path, 4095);

    if (size < 0)
        return pons_fail(err, PONS_FAILURE, "cannot find this program: '/proc/self/exe': %s",
                         strerror(errno));
    path[size] = '\0';
    return PONS_OK;
}

static pons_status start(const launch_flags *f, inner *in, logger *log, pons_error *err)
{
    char program[4096], host[256], token[129];
    launch_settings s = {
        .program = program, .words = words_of, .context = in, .restarts = (int)f->restarts,
        .show_all = f->show == SHOW_ALL, .log = log
    };

    if (place_nodes(f, &s, host, token, err) != PONS_OK)
        return err->status;
    if (read_file(in, err) != PONS_OK)
        return in->config != NULL ? config_location_add(in->config, NULL, NULL, err) : err->status;
    s.patience_s = in->sections.distribute.timeout_s;
    if (count_ranks(f, in, &s, log, err) != PONS_OK || find_program(program, err) != PONS_OK)
        return err->status;
    return launch_run(&s, err);
}

/* Start the ranks of one fold. All folds differ in values of --set and the last two words alone. */
static pons_status start_fold(const launch_flags *f, inner *in, const fold_range *range, int fold,
                              logger *log, pons_error *err)
{
    const invocation whole = in->call;
    const int words = in->word_count;
    fold_call one;

    if (train_fold_open(&whole, range, fold, &one, err) == PONS_OK) {
        train_fold_tell(range, fold, log);
        in->call.set = one.call.set;
        in->call.set_count = one.call.set_count;
        if (range->end - range->first > 1) {
            in->word[in->word_count++] = "--fold";
            in->word[in->word_count++] = one.number;
        }
        start(f, in, log, err);
    }
    in->call = whole;
    in->word_count = words;
    close_start(in, log);
    train_fold_close(&one);
    return err->status;
}

/* Start the ranks, for several folds once for each. */
static pons_status start_all(const launch_flags *f, inner *in, logger *log, pons_error *err)
{
    fold_range range = { 0 };

    if (strcmp(in->command->name, "train") == 0
        && train_folds_find(&in->call, in->flags, &range, err) != PONS_OK)
        return err->status;
    if (range.count == 0)
        return start(f, in, log, err);
    for (int fold = range.first; fold < range.end && err->status == PONS_OK; fold++)
        start_fold(f, in, &range, fold, log, err);
    return err->status;
}

/* The hint for a command of which one process uses all listed devices. */
static const char *hint_for(const char *name)
{
    if (strcmp(name, "predict") != 0 && strcmp(name, "evaluate") != 0)
        return "";
    return "\nhint: one process spreads cases and windows over its devices: --set "
           "distribute.devices=cpu:0,cpu:1";
}

static pons_status run(const invocation *call, const void *given, pons_error *err)
{
    inner in = { .command = find_inner(call->argument[0]), .folder = { NULL, NULL, -1, NULL } };

    if (in.command == NULL)
        return pons_fail(err, PONS_USAGE, "'pons launch' starts ranks of 'train', 'bench' or "
                         "'find-rate', not of '%s'%s", call->argument[0],
                         hint_for(call->argument[0]));
    broken_pipe_ignore(); /* ranks end with the launcher */
    if (gather_words(&in, call, err) == PONS_OK && read_words(&in, call->log, err) == PONS_OK) {
        if (in.call.help)
            usage_print(stdout, in.command);
        else
            start_all(given, &in, call->log, err);
    }
    clear_inner(&in, call->log);
    return err->status;
}

pons_status relaunch_under_launcher(const invocation *call, pons_error *err)
{
    static const launch_flags flags_of_none = { .ranks = -1, .nodes = 1, .show = SHOW_FIRST };
    inner in = { .command = call->command, .folder = { NULL, NULL, -1, NULL } };

    if (copy_words(&in, call, err) == PONS_OK && read_words(&in, call->log, err) == PONS_OK)
        start_all(&flags_of_none, &in, call->log, err);
    clear_inner(&in, call->log);
    return err->status;
}

const command command_launch = {
    "launch", "start ranks of a training on this node, and end them together",
    "[-n N] [--restarts K] [--nodes N --node-rank R --master HOST:PORT] -- train FILE.ini", flags,
    sizeof(launch_flags), "n=ranks", 1, -1, run
};
