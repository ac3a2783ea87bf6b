/*
 * fuzz_json.c - any bytes at all as JSON text: refused with a line that names the place, or a tree
 * whose children are as many as it says.
 */
#include "fuzz_file.h"

#include "base/file/json.h"

static void require_sound(const json_value *v, int depth)
{
    int count = 0;

    require(v->type >= JSON_NULL && v->type <= JSON_OBJECT, "a value has a type");
    require(depth <= 64, "nesting ends at 64");
    require(v->type != JSON_TEXT || v->text, "a text is there");
    for (const json_value *c = v->child; c; c = c->next, count++) {
        require((c->key != NULL) == (v->type == JSON_OBJECT), "members alone have keys");
        require(!c->key || json_member(v, c->key) == c, "a key occurs once");
        require_sound(c, depth + 1);
    }
    require(count == v->count, "children are counted");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pons_error err = PONS_ERROR_INIT;
    json_document document = { NULL, NULL };
    pons_status status = json_parse((const char *)data, size, "a.json", PONS_DATA, &document, &err);

    if (status == PONS_OK) {
        require_sound(document.root, 0);
        json_free(&document);
    } else {
        require(status == PONS_DATA && err.status == PONS_DATA, "a refusal has its code");
        require(strstr(err.text, "a.json") != NULL, "a refusal names the file");
        require(strchr(err.text, '\n') == NULL, "a refusal is one line");
    }
    return 0;
}
