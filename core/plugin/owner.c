/*
 * owner.c - check owner and mode of a plugin file and of every folder above it.
 *
 * Code may come only from users who can change this program anyway: root, the effective user, and
 * the owner of the program. The last is a service account where a cluster shares its software.
 *
 * The owner of a folder decides whether its group may write. That is accepted from root (Debian's
 * /usr/local/lib belongs to group staff) and from the owner of the program. A folder of the user
 * may be writable only by the user's effective group. A umask of 002 gives the private group
 * access, but a folder shared with a project may inherit access without a decision.
 */
#include "plugin/owner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/errno_status.h"
#include "base/text/shell_word.h"

/* The file or one of the folders above it. */
typedef struct level {
    const char *path;    /* path of the plugin                                                    */
    const char *place;   /* path of this file or folder                                           */
    struct stat facts;
    bool is_file;
} level;

/* A user namespace shows all users without a number in it, including root, as one other user. */
static bool is_hidden_root(uid_t user)
{
    unsigned first = 0, outside = 0, count = 0, hidden = 65534;
    FILE *map = fopen("/proc/self/uid_map", "re"), *number;
    bool known = map != NULL && fscanf(map, "%u %u %u", &first, &outside, &count) == 3;

    if (map != NULL)
        fclose(map);
    if (!known || (first == 0 && outside == 0))
        return false;
    number = fopen("/proc/sys/kernel/overflowuid", "re");
    if (number != NULL) {
        if (fscanf(number, "%u", &hidden) != 1)
            hidden = 65534;
        fclose(number);
    }
    return user == hidden;
}

static bool owns_program(uid_t user)
{
    struct stat program;

    return stat("/proc/self/exe", &program) == 0 && program.st_uid == user;
}

static pons_status check_user(const level *l, pons_error *err)
{
    const uid_t user = l->facts.st_uid;

    if (user == 0 || user == geteuid() || owns_program(user) || is_hidden_root(user))
        return PONS_OK;
    return pons_fail(err, PONS_PLUGIN, "cannot load '%s': %s%s%s belongs to user %u, expected root "
                     "or user %u", l->path, l->is_file ? "it" : "the folder '",
                     l->is_file ? "" : l->place, l->is_file ? "" : "'", (unsigned)user,
                     (unsigned)geteuid());
}

static pons_status refuse_mode(const level *l, const char *writers, const char *class,
                               pons_error *err)
{
    const unsigned mode = (unsigned)l->facts.st_mode & 07777;
    char word[sizeof err->text];

    shell_word(word, sizeof word, l->place);
    if (l->is_file)
        return pons_fail(err, PONS_PLUGIN, "cannot load '%s': its mode %04o lets %s write it\n"
                         "hint: chmod %s-w %.2000s", l->path, mode, writers, class, word);
    return pons_fail(err, PONS_PLUGIN, "cannot load '%s': the mode %04o of the folder '%s' lets %s "
                     "replace it\nhint: chmod %s-w %.2000s", l->path, mode, l->place, writers,
                     class, word);
}

static pons_status check_mode(const level *l, pons_error *err)
{
    const mode_t mode = l->facts.st_mode;
    const bool sticky = !l->is_file && (mode & S_ISVTX) != 0;
    char group[32];

    if (sticky)
        return PONS_OK;
    if ((mode & S_IWOTH) != 0)
        return refuse_mode(l, "everybody", "o", err);
    if ((mode & S_IWGRP) == 0 || l->facts.st_uid != geteuid() || l->facts.st_uid == 0
        || l->facts.st_gid == getegid())
        return PONS_OK;
    snprintf(group, sizeof group, "group %u", (unsigned)l->facts.st_gid);
    return refuse_mode(l, group, "g", err);
}

static pons_status check_level(const level *l, pons_error *err)
{
    return check_user(l, err) == PONS_OK ? check_mode(l, err) : err->status;
}

/* Cut the last name from the path; false at "/". */
static bool cut_last_name(char *place)
{
    char *slash = strrchr(place, '/');

    if (strcmp(place, "/") == 0)
        return false;
    slash[slash == place] = '\0';
    return true;
}

static pons_status check_folders(const char *path, char *place, pons_error *err)
{
    while (cut_last_name(place)) {
        level above = { .path = path, .place = place };
        if (stat(place, &above.facts) != 0)
            return pons_fail(err, errno_status(errno, PONS_PLUGIN), "cannot examine '%s', the "
                             "folder of '%s': %s", place, path, strerror(errno));
        if (check_level(&above, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

pons_status owner_check(const char *path, const struct stat *facts, pons_error *err)
{
    const level file = { .path = path, .place = path, .facts = *facts, .is_file = true };
    pons_error own = PONS_ERROR_INIT;
    char *place;
    pons_status status;

    if (err == NULL)
        err = &own;
    status = check_level(&file, err);
    if (status != PONS_OK)
        return status;
    place = strdup(path);
    if (place == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    status = check_folders(path, place, err);
    free(place);
    return status;
}
