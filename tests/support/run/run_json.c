/*
 * run_json.c - see run_json.h.
 */
#include "support/run/run_json.h"

json_t *root_json(const char *name)
{
    json_t *d = NULL;
    pons_error err = PONS_ERROR_INIT;
    const char *text = root_text(name);

    ck_assert_msg(json_parse(text, strlen(text), name, PONS_DATA, &d, &err) == PONS_OK, "%s: %s",
                  err.text, text);
    return d;
}

const json_t *json_at(const json_t *v, const char *path)
{
    char word[64];

    for (size_t size; *path != '\0'; path += size + (path[size] == '/')) {
        size = strcspn(path, "/");
        snprintf(word, sizeof word, "%.*s", (int)size, path);
        v = json_is_array(v) ? json_array_get(v, strtoul(word, NULL, 10))
                             : json_object_get(v, word);
        ck_assert_msg(v != NULL, "no '%s'", word);
    }
    return v;
}
