/*
 * shared_table.c - see shared_table.h.
 */
#include "support/process/shared_table.h"

processes *processes_new(int count)
{
    processes *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t shared;

    ck_assert(p != MAP_FAILED);
    p->count = count;
    p->patience = deadline_scaled(20);
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&p->lock, &shared);
    pthread_mutexattr_destroy(&shared);
    return p;
}

void processes_free(processes *p)
{
    munmap(p, sizeof *p);
}

static table_row *table_find(processes *p, const char *key)
{
    for (int i = 0; i < p->rows; i++)
        if (strcmp(p->row[i].key, key) == 0)
            return &p->row[i];
    return NULL;
}

pons_status table_set(void *context, const char *key, const void *value, size_t size,
                      pons_error *err)
{
    processes *p = context;
    table_row *row;
    pons_status status = PONS_OK;

    pthread_mutex_lock(&p->lock);
    row = table_find(p, key);
    if (row == NULL && p->rows < TABLE_ROWS)
        row = &p->row[p->rows++];
    if (row == NULL || size > TABLE_VALUE || strlen(key) >= sizeof row->key) {
        status = pons_fail(err, PONS_FAILURE, "no room for '%s'", key);
    } else {
        strcpy(row->key, key);
        memcpy(row->value, value, size);
        row->size = size;
    }
    pthread_mutex_unlock(&p->lock);
    return status;
}

pons_status table_get(void *context, const char *key, void *value, size_t room,
                      size_t *size, pons_error *err)
{
    processes *p = context;
    double end = seconds_now() + p->patience;

    do {
        table_row *row;
        pthread_mutex_lock(&p->lock);
        row = table_find(p, key);
        if (row != NULL) {
            *size = row->size;
            memcpy(value, row->value, row->size < room ? row->size : room);
        }
        pthread_mutex_unlock(&p->lock);
        if (row != NULL)
            return PONS_OK;
        usleep(1000);
    } while (seconds_now() < end);
    return pons_fail(err, PONS_COMMUNICATION, "nobody has set '%s'", key);
}

void processes_start(processes *p, processes_work *work, void *context)
{
    fflush(NULL);
    for (int r = 0; r < p->count; r++) {
        pid_t pid = fork();
        ck_assert(pid >= 0);
        if (pid > 0) {
            p->pid[r] = pid;
        } else {
            work(p, r, context, &p->err[r]);
            p->ended[r] = seconds_now();
            _exit(p->err[r].status == PONS_OK ? 0 : 1);
        }
    }
}

void processes_join(processes *p, double patience)
{
    int left = (int)(deadline_scaled(patience) * 1000);

    for (int r = 0; r < p->count; r++) {
        while (waitpid(p->pid[r], &p->code[r], WNOHANG) == 0 && left-- > 0)
            usleep(1000);
        if (left < 0)
            for (int k = 0; k < p->count; k++)
                kill(p->pid[k], SIGKILL);
        ck_assert_msg(left >= 0, "process %d has not ended after %g s", r,
                      deadline_scaled(patience));
    }
}

void processes_check(const processes *p)
{
    bool good = true;

    for (int r = 0; r < p->count; r++) {
        good = good && p->code[r] == 0;
        if (p->code[r] != 0)
            fprintf(stderr, "process %d of %d: code %d, %s\n", r, p->count, p->code[r],
                    p->err[r].text);
    }
    ck_assert(good);
}
