/*
 * cache_key - files by their content, not by name or time: a dataset may be copied, and a file that
 * was changed behind an old time is another file. Their bytes are as many as the disk must give
 * anyway on a first reading, and take a hundredth of the time that inflating them does.
 */
#include "data/cache_key.h"

#include "base/fingerprint.h"
#include "base/hash.h"
#include "base/pages.h"
#include "config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void add_text(sha256 *h, const char *text)
{
    sha256_add(h, text, strlen(text) + 1);
}

static void add_number(sha256 *h, int64_t number)
{
    sha256_add(h, &number, sizeof number);
}

static pons_status read_bytes(int fd, const char *path, char *to, size_t size, pons_error *err)
{
    size_t done = 0;

    while (done < size) {
        ssize_t part = read(fd, to + done, size - done);
        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0)
            return pons_fail(err, PONS_DATA, "cannot read '%s': %s", path,
                             part < 0 ? strerror(errno) : "it ended");
        done += (size_t)part;
    }
    return PONS_OK;
}

static pons_status add_open_file(sha256 *h, int fd, const char *path, pons_error *err)
{
    struct stat s;
    fingerprint print;
    char *bytes;

    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode))
        return pons_fail(err, PONS_DATA, "cannot read '%s': it is no regular file", path);
    bytes = pages_alloc((size_t)s.st_size + 1);
    if (bytes == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory: '%s' needs %lld bytes", path,
                         (long long)s.st_size);
    if (read_bytes(fd, path, bytes, (size_t)s.st_size, err) == PONS_OK) {
        print = fingerprint_of(bytes, (size_t)s.st_size);
        add_number(h, (int64_t)s.st_size);
        sha256_add(h, &print, sizeof print);
    }
    free(bytes);
    return err->status;
}

static pons_status add_file(sha256 *h, const char *path, pons_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return pons_fail(err, PONS_DATA, "cannot read '%s': %s", path, strerror(errno));
    add_open_file(h, fd, path, err);
    close(fd);
    return err->status;
}

static void add_classes(sha256 *h, int count, const data_class *classes)
{
    add_number(h, count);
    for (int c = 0; c < count; c++) {
        add_number(h, classes[c].id_count);
        sha256_add(h, classes[c].id, (size_t)classes[c].id_count * sizeof *classes[c].id);
    }
}

static void add_chain(sha256 *h, const volume_chain *chain)
{
    add_number(h, chain != NULL ? chain->count : 0);
    for (int n = 0; chain != NULL && n < chain->count; n++) {
        const volume_step *step = &chain->step[n];
        add_text(h, step->name);
        add_text(h, step->plugin);
        add_text(h, step->sha256);
        add_number(h, (int64_t)step->channels);
        option_hash(h, step->options, step->config);
    }
}

pons_status cache_key(const dataset *d, const volume_chain *chain, const packed_wish *wish,
                      int rank, char key[CASE_KEY_SIZE], pons_error *err)
{
    const data_case *info = &d->cases[rank];
    sha256 h;

    sha256_init(&h);
    add_text(&h, "pons cached case 1");
    add_text(&h, info->id); /* warnings that are kept name it */
    add_number(&h, d->channels);
    add_classes(&h, d->class_count, d->classes);
    add_classes(&h, d->region_count, d->regions);
    add_chain(&h, chain);
    add_number(&h, wish->sets);
    add_number(&h, wish->set_count);
    sha256_add(&h, &wish->background_above, sizeof wish->background_above);
    add_number(&h, info->image_count);
    add_number(&h, info->label != NULL);
    for (int n = 0; n < info->image_count; n++)
        if (add_file(&h, info->image[n], err) != PONS_OK)
            return err->status;
    if (info->label != NULL && add_file(&h, info->label, err) != PONS_OK)
        return err->status;
    sha256_finish(&h, key);
    return PONS_OK;
}
