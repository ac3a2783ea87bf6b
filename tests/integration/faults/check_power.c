/*
 * check_power.c - the power fails at any moment while checkpoints are written. Every state that the
 * disk may have is built from a record of all calls. In each of them a checkpoint is found that is
 * not older than the last complete one.
 *
 * The disk promises no more than POSIX. Written data is there when the file has been synced.
 * Created, renamed and removed names are there when their folder has been synced. Of other calls
 * all may be there, or none, or names without data, or half of the data, or all names but one.
 */
#include <config.h>

#include "support/process/disk_shim.h"
#include "support/run/tiny_run.h"
#include "support/soak.h"
#include "support/suite.h"

#include <ftw.h>
#include <sys/stat.h>

enum { NODES = 512, CALLS = 8192, ENTRIES = 1024, PATH = 512 };

/* ---- files and folders ----------------------------------------------------------------------- */

/* The file or folder of a name; the first node is the root folder. */
typedef struct node {
    bool is_folder;
    size_t size;               /* size of 'data' at the moment                                    */
    char *data;                /* content before the record begins                                */
    size_t base;               /* size of that content                                            */
} node;

typedef struct entry {
    int folder, node;
    char name[64];
} entry;

typedef struct tree {
    int count;
    entry item[ENTRIES];
} tree;

static node nodes[NODES];
static int node_count;
static tree base, now;         /* at the begin of the record; after the calls                     */

static entry *find_entry(tree *t, int folder, const char *name)
{
    for (int i = 0; i < t->count; i++)
        if (t->item[i].folder == folder && strcmp(t->item[i].name, name) == 0)
            return &t->item[i];
    return NULL;
}

static void remove_entry(tree *t, int folder, const char *name)
{
    entry *e = find_entry(t, folder, name);

    if (e != NULL)
        *e = t->item[--t->count];
}

static void set_entry(tree *t, int folder, const char *name, int to)
{
    remove_entry(t, folder, name);
    ck_assert_int_lt(t->count, ENTRIES);
    entry *e = &t->item[t->count++];
    e->folder = folder;
    e->node = to;
    snprintf(e->name, sizeof e->name, "%s", name);
}

static int new_node(bool is_folder)
{
    ck_assert_int_lt(node_count, NODES);
    nodes[node_count] = (node){ .is_folder = is_folder };
    return node_count++;
}

/* Folder of the last name of a path in the root folder; -1: the path is the root folder. */
static int find_folder(tree *t, const char *path, char name[64])
{
    const char *at = path + strlen(in_root("c"));
    int folder = -1;

    name[0] = '\0';
    ck_assert_int_eq(strncmp(path, in_root("c"), strlen(in_root("c"))), 0);
    for (folder = at[0] == '\0' ? -1 : 0; *at == '/'; ) {
        size_t size = strcspn(++at, "/");
        snprintf(name, 64, "%.*s", (int)size, at);
        at += size;
        if (*at == '\0')
            break;
        entry *e = find_entry(t, folder, name);
        ck_assert_msg(e != NULL, "no '%s' in the record", path);
        folder = e->node;
    }
    return folder;
}

static int find_node(tree *t, const char *path)
{
    char name[64];
    int folder = find_folder(t, path, name);

    if (folder < 0)
        return 0;
    entry *e = find_entry(t, folder, name);
    ck_assert_msg(e != NULL, "no '%s' in the record", path);
    return e->node;
}

/* ---- the record ------------------------------------------------------------------------------ */

typedef struct call {
    disk_kind kind;
    int folder, node;       /* folder of its name; node that was made, written, synced or renamed */
    int to_folder, to_node;
    char name[64], to[64];
    void *data;
    size_t size;
    long at;
} call;

static call calls[CALLS];
static int call_count;
/* Number of calls at the moment when a step was complete. */
static struct { int calls; int64_t step; } finished[64];
static int finished_count;

static bool changes_names(const call *c)
{
    return c->kind != DISK_WRITE && c->kind != DISK_SYNC;
}

static void apply_call(tree *t, const call *c)
{
    entry *from = find_entry(t, c->folder, c->name);

    if (c->kind == DISK_CREATE || c->kind == DISK_FOLDER)
        set_entry(t, c->folder, c->name, c->node);
    if (from == NULL || from->node != c->node)
        return; /* its creation was lost */
    if (c->kind == DISK_REMOVE)
        remove_entry(t, c->folder, c->name);
    if (c->kind == DISK_RENAME) {
        remove_entry(t, c->folder, c->name);
        set_entry(t, c->to_folder, c->to, c->node);
    }
    if (c->kind == DISK_EXCHANGE) {
        set_entry(t, c->folder, c->name, c->to_node);
        set_entry(t, c->to_folder, c->to, c->node);
    }
}

static void record_call(const disk_call *d)
{
    ck_assert_int_lt(call_count, CALLS);
    call *c = &calls[call_count++];
    *c = (call){ .kind = d->kind, .size = d->size, .at = d->at };
    if (d->kind == DISK_WRITE) {
        c->node = find_node(&now, d->path);
        c->data = malloc(d->size);
        memcpy(c->data, d->data, d->size);
        return;
    }
    if (d->kind == DISK_SYNC) {
        c->node = find_node(&now, d->path);
        return;
    }
    c->folder = find_folder(&now, d->path, c->name);
    ck_assert_int_ge(c->folder, 0);
    c->node = d->kind == DISK_CREATE || d->kind == DISK_FOLDER ? new_node(d->kind == DISK_FOLDER)
                                                               : find_node(&now, d->path);
    if (d->to != NULL)
        c->to_folder = find_folder(&now, d->to, c->to);
    if (d->kind == DISK_EXCHANGE)
        c->to_node = find_node(&now, d->to);
    apply_call(&now, c);
}

/* The content of the folder before the record, which is safely on disk. */
static void read_base(const char *path, int folder)
{
    char command[PATH + 64], name[64];

    snprintf(command, sizeof command, "ls -A %s", path);
    FILE *list = popen(command, "r");
    while (fgets(name, sizeof name, list) != NULL) {
        char below[PATH];
        struct stat facts;
        name[strcspn(name, "\n")] = '\0';
        snprintf(below, sizeof below, "%s/%s", path, name);
        ck_assert_int_eq(stat(below, &facts), 0);
        int n = new_node(S_ISDIR(facts.st_mode));
        set_entry(&base, folder, name, n);
        if (S_ISDIR(facts.st_mode)) {
            read_base(below, n);
            continue;
        }
        pons_error err = PONS_ERROR_INIT;
        ck_assert_int_eq(file_read(below, 1 << 24, &nodes[n].data, &nodes[n].base, PONS_DATA, &err),
                         PONS_OK);
    }
    pclose(list);
}

static void begin_record(void)
{
    node_count = call_count = finished_count = 0;
    base.count = 0;
    new_node(true);
    read_base(in_root("c"), 0);
    now = base;
    strcpy(disk_shim.path, in_root("c"));
    disk_seen = record_call;
}

static void end_record(void)
{
    disk_seen = NULL;
    disk_shim.path[0] = '\0';
}

/* ---- states of the disk ---------------------------------------------------------------------- */

typedef enum loss { LOSE_NOTHING, LOSE_ALL, LOSE_BYTES, LOSE_HALF, LOSE_ONE_NAME } loss;

/* State of the disk after the first 'count' calls. As a control, syncs may be ignored. */
typedef struct failure {
    int count;
    loss loss;
    int one;                   /* the call whose name is lost                                     */
    bool files_synced, folders_synced;
} failure;

static bool is_synced(const failure *f, int i)
{
    const call *c = &calls[i];
    int target = changes_names(c) ? c->folder : c->node;

    if (nodes[target].is_folder ? !f->folders_synced : !f->files_synced)
        return false;
    for (int k = i + 1; k < f->count; k++)
        if (calls[k].kind == DISK_SYNC && calls[k].node == target)
            return true;
    return false;
}

static bool name_is_kept(const failure *f, int i)
{
    return f->loss == LOSE_ONE_NAME ? i != f->one : f->loss != LOSE_ALL || is_synced(f, i);
}

static void write_node(const failure *f, int n, const char *path)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    if (nodes[n].base > 0)
        ck_assert_int_eq(fwrite(nodes[n].data, 1, nodes[n].base, file), nodes[n].base);
    for (int i = 0; i < f->count; i++) {
        const call *c = &calls[i];
        if (c->kind != DISK_WRITE || c->node != n)
            continue;
        bool whole = f->loss == LOSE_NOTHING || is_synced(f, i);
        size_t size = whole ? c->size : f->loss == LOSE_HALF ? c->size / 2 : 0;
        fseek(file, c->at, SEEK_SET);
        ck_assert_int_eq(fwrite(c->data, 1, size, file), size);
    }
    fclose(file);
}

static void write_folder(const failure *f, const tree *t, int folder, const char *path)
{
    ck_assert_int_eq(mkdir(path, 0777), 0);
    for (int i = 0; i < t->count; i++) {
        const entry *e = &t->item[i];
        char below[2 * PATH];
        if (e->folder != folder)
            continue;
        snprintf(below, sizeof below, "%s/%s", path, e->name);
        if (nodes[e->node].is_folder)
            write_folder(f, t, e->node, below);
        else
            write_node(f, e->node, below);
    }
}

static int64_t step_promised(int count, int64_t before)
{
    for (int i = 0; i < finished_count; i++)
        if (finished[i].calls <= count)
            before = finished[i].step;
    return before;
}

static int remove_path(const char *path, const struct stat *facts, int flag, struct FTW *place)
{
    return remove(path);
}

/* Newest checkpoint that is found after the failure; -1: none. */
static int64_t newest_step_after(const failure *f)
{
    static tree t;
    pons_error err = PONS_ERROR_INIT;
    const char *after = in_root("after");
    char *newest = NULL;
    int64_t step = -1;

    t = base;
    for (int i = 0; i < f->count; i++)
        if (changes_names(&calls[i]) && name_is_kept(f, i))
            apply_call(&t, &calls[i]);
    write_folder(f, &t, 0, after);
    if (checkpoint_newest(after, NULL, &newest, &err) == PONS_OK && newest != NULL)
        step = step_of_name(strrchr(newest, '/'));
    free(newest);
    ck_assert_int_eq(nftw(after, remove_path, 8, FTW_DEPTH | FTW_PHYS), 0);
    return step;
}

typedef struct tally {
    int states, bad;
} tally;

static void try_state(const failure *f, int64_t before, bool tell, tally *sum)
{
    static const char *const losses[] = { "nothing", "all", "bytes", "half", "one name" };
    int64_t promised = step_promised(f->count, before), found = newest_step_after(f);

    sum->states++;
    sum->bad += found < promised;
    if (found < promised && tell)
        fprintf(stderr, "%d of %d calls, %s lost (%d): step %d is promised, %d is found\n",
                f->count, call_count, losses[f->loss], f->one, (int)promised, (int)found);
}

/* Every prefix of the record, with every kind of loss. */
static tally try_states(int64_t before, bool files_synced, bool folders_synced, int pace)
{
    tally sum = { 0, 0 };

    for (int count = 0; count <= call_count; count += pace) {
        failure f = { count, LOSE_NOTHING, -1, files_synced, folders_synced };
        for (f.loss = LOSE_NOTHING; f.loss <= LOSE_HALF; f.loss++)
            try_state(&f, before, files_synced && folders_synced, &sum);
        f.loss = LOSE_ONE_NAME;
        for (f.one = 0; f.one < count; f.one++)
            if (changes_names(&calls[f.one]) && !is_synced(&f, f.one))
                try_state(&f, before, files_synced && folders_synced, &sum);
    }
    return sum;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void write_step(int64_t step, float number)
{
    static float numbers[3000];
    pons_error err = PONS_ERROR_INIT;
    safetensor item = { .name = "w", .type = SAFETENSORS_F32, .rank = 1, .extent = { 3000 },
                        .data = numbers };
    checkpoint_file files[] = { { "model.safetensors", { .count = 1, .item = &item } },
                                { "trainer.safetensors", { .count = 1, .item = &item } } };
    const checkpoint_list content = { .file_count = 2, .file = files };

    for (int i = 0; i < 3000; i++)
        numbers[i] = number;
    ck_assert_int_eq(checkpoint_write(in_root("c"), step, &content, &err), PONS_OK);
    ck_assert_int_eq(checkpoint_mark(in_root("c"), "last", step, &err), PONS_OK);
    ck_assert_int_eq(checkpoint_prune(in_root("c"), 1, &err), PONS_OK);
    if (disk_seen != NULL) {
        finished[finished_count].calls = call_count;
        finished[finished_count++].step = step;
    }
}

/* Step 1 exists. Two steps follow; the second is written twice, as after a validation. */
static void record_run(void)
{
    make_root();
    write_step(1, 1);
    begin_record();
    write_step(2, 2);
    write_step(3, 3);
    write_step(3, 4);
    end_record();
}

START_TEST(a_power_failure_at_any_moment_keeps_the_last_checkpoint)
{
    record_run();
    tally all = try_states(1, true, true, 1);
    printf("%d calls, %d states, %d bad\n", call_count, all.states, all.bad);
    ck_assert_int_gt(call_count, 60);
    ck_assert_int_gt(all.states, 4 * call_count);
    ck_assert_int_eq(all.bad, 0);
    remove_root();
}
END_TEST

/* The controls: the same calls, with syncs of files or syncs of folders ignored. */
START_TEST(writers_without_fsync_are_noticed)
{
    record_run();
    tally files = try_states(1, false, true, 3), folders = try_states(1, true, false, 3);
    printf("%d of %d bad without syncs of files, %d of %d without those of folders\n", files.bad,
           files.states, folders.bad, folders.states);
    ck_assert_int_gt(files.bad, 0);
    ck_assert_int_gt(folders.bad, 0);
    remove_root();
}
END_TEST

int main(void)
{
    TCase *c = suite_new("power");

    tcase_add_test(c, a_power_failure_at_any_moment_keeps_the_last_checkpoint);
    tcase_add_test(c, writers_without_fsync_are_noticed);
    return suite_run();
}
