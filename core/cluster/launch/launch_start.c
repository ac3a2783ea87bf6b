/*
 * launch_start.c - start all ranks once: the address of the store, their environment, their output.
 */
#include "cluster/launch/launch_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/errno_status.h"
#include "cluster/rendezvous/rank_info.h"

extern char **environ;

/* ---- the store's address --------------------------------------------------------------------- */

/*
 * Open the store's socket here and keep it until rank 0 has it, so that no process takes the port.
 */
static pons_status open_listener(rank_set *c, pons_error *err)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;

    c->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->listener < 0 || bind(c->listener, (struct sockaddr *)&address, sizeof address) != 0
        || listen(c->listener, SOMAXCONN) != 0
        || getsockname(c->listener, (struct sockaddr *)&address, &size) != 0)
        return pons_fail(err, errno_status(errno, PONS_COMMUNICATION), "cannot open a port on this "
                         "machine for the ranks to meet: %s", strerror(errno));
    snprintf(c->master, sizeof c->master, "127.0.0.1");
    c->port = ntohs(address.sin_port);
    return PONS_OK;
}

static pons_status make_token(rank_set *c, pons_error *err)
{
    unsigned char byte[16];

    if (c->settings->token != NULL) {
        snprintf(c->token, sizeof c->token, "%s", c->settings->token);
        return PONS_OK;
    }
    if (getrandom(byte, sizeof byte, 0) != (ssize_t)sizeof byte)
        return pons_fail(err, PONS_FAILURE, "cannot draw the job's token: %s", strerror(errno));
    for (size_t i = 0; i < sizeof byte; i++)
        snprintf(c->token + 2 * i, 3, "%02x", byte[i]);
    return PONS_OK;
}

static pons_status find_master(rank_set *c, pons_error *err)
{
    const launch_settings *s = c->settings;

    if (s->master == NULL)
        return open_listener(c, err);
    snprintf(c->master, sizeof c->master, "%s", s->master);
    c->port = s->port;
    return PONS_OK;
}

/* ---- environment ----------------------------------------------------------------------------- */

enum { VARIABLES_MAX = 9, VARIABLE_SIZE = 320 };

/* The variables of a rank as NAME=VALUE. Returns their number. */
static int list_variables(const rank_set *c, int local, char out[VARIABLES_MAX][VARIABLE_SIZE])
{
    int n = 0;

    snprintf(out[n++], VARIABLE_SIZE, "RANK=%d", c->rank[local].rank);
    snprintf(out[n++], VARIABLE_SIZE, "WORLD_SIZE=%d", c->count * c->settings->nodes);
    snprintf(out[n++], VARIABLE_SIZE, "LOCAL_RANK=%d", local);
    snprintf(out[n++], VARIABLE_SIZE, "LOCAL_WORLD_SIZE=%d", c->count);
    snprintf(out[n++], VARIABLE_SIZE, "MASTER_ADDR=%s", c->master);
    snprintf(out[n++], VARIABLE_SIZE, "MASTER_PORT=%d", c->port);
    snprintf(out[n++], VARIABLE_SIZE, RANK_INFO_TOKEN "=%s", c->token);
    snprintf(out[n++], VARIABLE_SIZE, STATUS_PAGE_VARIABLE "=%d %d",
             status_page_descriptor(c->status_page), local);
    if (c->listener >= 0 && c->rank[local].rank == 0)
        snprintf(out[n++], VARIABLE_SIZE, RANK_INFO_LISTENER "=%d", c->listener);
    return n;
}

/* Whether the launcher replaces a variable. Inside another launcher's rank all are replaced. */
static bool is_replaced(const char *entry)
{
    static const char *const names[] = {
        "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
        RANK_INFO_TOKEN, STATUS_PAGE_VARIABLE, RANK_INFO_LISTENER
    };
    size_t size = strcspn(entry, "=");

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == size && strncmp(entry, names[i], size) == 0)
            return true;
    return false;
}

/* An array for execve whose strings are borrowed; NULL: out of memory. */
static char **make_environment(char own[VARIABLES_MAX][VARIABLE_SIZE], int own_count)
{
    size_t count = 0, n = 0;

    while (environ[count] != NULL)
        count++;
    char **out = calloc(count + (size_t)own_count + 1, sizeof *out);
    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (!is_replaced(environ[i]))
            out[n++] = environ[i];
    for (int i = 0; i < own_count; i++)
        out[n++] = own[i];
    return out;
}

/* argv with borrowed strings; NULL: out of memory. */
static char **make_arguments(const char *const *words)
{
    size_t count = 0;

    while (words[count] != NULL)
        count++;
    char **out = calloc(count + 2, sizeof *out);
    if (out == NULL)
        return NULL;
    out[0] = "pons";
    memcpy(out + 1, words, count * sizeof *out);
    return out;
}

/* ---- output ---------------------------------------------------------------------------------- */

/* Open a pipe from the rank and return its write end, or -1. */
static int open_stream(rank_process *r, int which, FILE *to, pons_error *err)
{
    int ends[2];
    launch_output *s = calloc(1, sizeof *s);

    if (s == NULL || pipe2(ends, O_CLOEXEC) != 0) {
        const int problem = s == NULL ? ENOMEM : errno;
        pons_fail(err, errno_status(problem, PONS_FAILURE), "cannot open a pipe to rank %d: %s",
                  r->rank, strerror(problem));
        free(s);
        return -1;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    s->file = ends[0];
    s->rank = r->rank;
    s->to = to;
    r->output[which] = s;
    return ends[1];
}

/*
 * Descriptors for the rank's standard output and error; -1: that of this process. Of a rank that is
 * not shown, only the end of the standard error is kept, for the report of a crash.
 */
static pons_status open_output(const rank_set *c, rank_process *r, int out[2], pons_error *err)
{
    out[0] = out[1] = -1;
    if (c->settings->show_all) {
        out[0] = open_stream(r, 0, stdout, err);
        out[1] = out[0] < 0 ? -1 : open_stream(r, 1, stderr, err);
    } else if (r->rank != 0) {
        out[0] = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (out[0] < 0)
            return pons_fail(err, errno_status(errno, PONS_FAILURE), "cannot open '/dev/null': %s",
                             strerror(errno));
        out[1] = open_stream(r, 1, NULL, err);
    }
    return err->status;
}

/* ---- child ----------------------------------------------------------------------------------- */

/* The data that a child needs to become a rank. */
typedef struct child_setup {
    const rank_set *rank_set;
    const rank_process *rank;
    char **argument, **environment;
    const char *status_page;   /* value of STATUS_PAGE_VARIABLE                                   */
    int out[2];
    pid_t parent;
} child_setup;

static bool redirect_output(const child_setup *b)
{
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0)
        return false;
    return (b->out[0] < 0 || dup2(b->out[0], STDOUT_FILENO) >= 0)
           && (b->out[1] < 0 || dup2(b->out[1], STDERR_FILENO) >= 0);
}

static bool keep_on_exec(int descriptor)
{
    return descriptor < 0 || fcntl(descriptor, F_SETFD, 0) == 0;
}

/*
 * Become a rank, in the child. In its own process group a rank gets no Ctrl-C from the terminal,
 * only the signals that the launcher passes on. It ignores SIGTTOU, so that it may write to a
 * terminal that stops background groups.
 */
static _Noreturn void become_rank(const child_setup *b)
{
    const rank_set *c = b->rank_set;
    pons_status status;
    char text[512];

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != b->parent)
        _exit(PONS_FAILURE); /* the launcher died before PR_SET_PDEATHSIG */
    signal(SIGTTOU, SIG_IGN);
    sigprocmask(SIG_SETMASK, &c->before, NULL);
    if (redirect_output(b) && keep_on_exec(status_page_descriptor(c->status_page))
        && keep_on_exec(b->rank->rank == 0 ? c->listener : -1))
        execve(c->settings->program, b->argument, b->environment);
    status = errno_status(errno, PONS_FAILURE);
    snprintf(text, sizeof text, "cannot start '%s': %s", c->settings->program, strerror(errno));
    status_page_report(status_page_attach(b->status_page), status, text);
    _exit((int)status);
}

static pons_status fork_rank(child_setup *b, rank_process *r, pons_error *err)
{
    b->parent = getpid();
    pid_t child = fork();
    if (child < 0)
        return pons_fail(err, errno_status(errno, PONS_FAILURE), "cannot start rank %d: %s",
                         r->rank, strerror(errno));
    if (child == 0)
        become_rank(b);
    setpgid(child, child); /* both do it, so that the rank can be signalled from here on */
    r->process = child;
    r->outcome = RANK_RUNS;
    return PONS_OK;
}

static pons_status start_rank(rank_set *c, int local, const char *const *words, pons_error *err)
{
    rank_process *r = &c->rank[local];
    char own[VARIABLES_MAX][VARIABLE_SIZE], board_value[64];
    int own_count;

    r->rank = c->settings->node * c->count + local;
    own_count = list_variables(c, local, own);
    snprintf(board_value, sizeof board_value, "%d %d", status_page_descriptor(c->status_page),
             local);
    child_setup b = { .rank_set = c, .rank = r, .argument = make_arguments(words),
                      .environment = make_environment(own, own_count), .status_page = board_value,
                      .out = { -1, -1 } };
    if (b.argument == NULL || b.environment == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory");
    else if (open_output(c, r, b.out, err) == PONS_OK)
        fork_rank(&b, r, err);
    for (int i = 0; i < 2; i++)
        if (b.out[i] >= 0)
            close(b.out[i]);
    free(b.argument);
    free(b.environment);
    return err->status;
}

/* ---- all ranks ------------------------------------------------------------------------------- */

pons_status rank_set_start(rank_set *c, const launch_settings *settings, int restart,
                           const sigset_t *before, pons_error *err)
{
    *c = (rank_set){ .settings = settings, .listener = -1, .before = *before };
    c->rank = calloc((size_t)settings->ranks, sizeof *c->rank);
    if (c->rank == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    c->count = settings->ranks;
    if (status_page_new(c->count, &c->status_page, err) != PONS_OK || make_token(c, err) != PONS_OK
        || find_master(c, err) != PONS_OK)
        return err->status;
    const char *const *words = settings->words(settings->context, restart);
    if (words == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    log_detail(settings->log, "rank%s %d to %d of %d meet at %s:%d", c->count == 1 ? "" : "s",
               settings->node * c->count, settings->node * c->count + c->count - 1,
               settings->nodes * c->count, c->master, c->port);
    for (int i = 0; i < c->count && err->status == PONS_OK; i++)
        start_rank(c, i, words, err);
    if (c->listener >= 0)
        close(c->listener);
    c->listener = -1;
    return err->status;
}

void rank_set_clear(rank_set *c)
{
    for (int i = 0; i < c->count; i++) {
        for (int k = 0; k < 2; k++) {
            if (c->rank[i].output[k] != NULL)
                launch_output_close(c->rank[i].output[k]);
            free(c->rank[i].output[k]);
        }
    }
    if (c->listener >= 0)
        close(c->listener);
    status_page_free(c->status_page);
    free(c->rank);
}
