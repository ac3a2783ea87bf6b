/*
 * join_ranks.c - a replacement of pons in replays of launchers' environments: find this process's
 * rank, join the others through the store, read every rank's value and print all ranks.
 *
 *   join_ranks [ANYTHING...]     exit codes of pons, or JOIN_STATUS after a success
 */
#include <config.h>

#include "cluster/store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *look(void *context, const char *name)
{
    (void)context;
    return getenv(name);
}

static void exchange_ranks(const rank_info *place, store *s, pons_error *err)
{
    char key[32], address[64];
    size_t size = 0;

    snprintf(key, sizeof key, "at.%d", place->rank);
    store_set(s, key, store_address(s), strlen(store_address(s)), err);
    for (int i = 0; i < place->size && err->status == PONS_OK; i++) {
        snprintf(key, sizeof key, "at.%d", i);
        if (store_get(s, key, 60, address, sizeof address - 1, &size, err) != PONS_OK)
            return;
        address[size] = '\0';
        printf("rank %d sees rank %d at %s\n", place->rank, i, address);
    }
}

int main(void)
{
    const char *status = getenv("JOIN_STATUS");
    pons_error err = PONS_ERROR_INIT;
    rank_info place;
    store *s = NULL;
    char told[512];

    if (rank_info_find(look, NULL, &place, &err) == PONS_OK) {
        rank_info_print(&place, told, sizeof told);
        printf("%s\n", told);
        if (place.size > 1 && store_open(&place, 60, &s, &err) == PONS_OK)
            exchange_ranks(&place, s, &err);
        store_close(s, 5);
    }
    if (err.status != PONS_OK)
        fprintf(stderr, "error: %s\n", err.text);
    return err.status == PONS_OK && status != NULL ? atoi(status) : (int)err.status;
}
