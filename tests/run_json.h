/*
 * run_json.h - what the program wrote to its output, as JSON.
 */
#ifndef TESTS_RUN_JSON_H
#define TESTS_RUN_JSON_H

#include "base/file/json.h"
#include "run_pons.h"

static inline json_document parse(const char *name)
{
    json_document d = { NULL, NULL };
    pons_error err = PONS_ERROR_INIT;
    const char *text = text_of(name);

    ck_assert_msg(json_parse(text, strlen(text), name, PONS_DATA, &d, &err) == PONS_OK, "%s: %s",
                  err.text, text);
    return d;
}

/* A member of members and items: "kernels/0/name". */
static inline const json_value *at(const json_value *v, const char *path)
{
    char word[64];

    for (size_t size; *path != '\0'; path += size + (path[size] == '/')) {
        size = strcspn(path, "/");
        snprintf(word, sizeof word, "%.*s", (int)size, path);
        v = v->type == JSON_LIST ? json_item(v, atoi(word)) : json_member(v, word);
        ck_assert_msg(v != NULL, "no '%s'", word);
    }
    return v;
}

#endif
