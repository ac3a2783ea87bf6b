/*
 * json.c - a recursive reader over a bounded range of bytes, and number and string output.
 *
 * Used where a file comes from outside (safetensors headers, manifests, dataset.json), so every
 * byte is checked before it is looked at, and nothing is accepted that the grammar does not name.
 */
#include "base/file/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

#define DEPTH_MAX 64
#define BLOCK_SIZE 65536

struct json_block {
    struct json_block *next;
    size_t used, size;
    _Alignas(16) char data[];
};

typedef struct reader {
    const char *begin, *at, *end, *where;
    pons_status kind;
    json_document *document;
    pons_error *err;
} reader;

static bool fail(reader *r, const char *what)
{
    pons_fail(r->err, r->kind, "'%s': %s at byte %zu", r->where, what, (size_t)(r->at - r->begin));
    return false;
}

static void *take(reader *r, size_t size)
{
    struct json_block *b = r->document->block;

    size = round_up_size(size, 16);
    if (b == NULL || b->size - b->used < size) {
        size_t room = size > BLOCK_SIZE ? size : BLOCK_SIZE;
        b = malloc(sizeof *b + room);
        if (b == NULL) {
            pons_fail(r->err, PONS_DEVICE, "'%s': out of memory", r->where);
            return NULL;
        }
        *b = (struct json_block){ r->document->block, 0, room };
        r->document->block = b;
    }
    b->used += size;
    return memset(b->data + b->used - size, 0, size);
}

static void skip_blanks(reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

static bool accept(reader *r, char c)
{
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static bool hex4(reader *r, unsigned *out)
{
    unsigned value = 0;

    if (r->end - r->at < 4)
        return fail(r, "an escape is cut off");
    for (int i = 0; i < 4; i++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit = memchr(digits, *r->at | 0x20, 16);
        if (digit == NULL)
            return fail(r, "an escape is not four hexadecimal digits");
        value = value * 16 + (unsigned)(digit - digits);
        r->at++;
    }
    *out = value;
    return true;
}

static char *put_utf8(char *out, unsigned code)
{
    if (code < 0x80) {
        *out++ = (char)code;
    } else if (code < 0x800) {
        *out++ = (char)(0xc0 | code >> 6);
        *out++ = (char)(0x80 | (code & 63));
    } else if (code < 0x10000) {
        *out++ = (char)(0xe0 | code >> 12);
        *out++ = (char)(0x80 | (code >> 6 & 63));
        *out++ = (char)(0x80 | (code & 63));
    } else {
        *out++ = (char)(0xf0 | code >> 18);
        *out++ = (char)(0x80 | (code >> 12 & 63));
        *out++ = (char)(0x80 | (code >> 6 & 63));
        *out++ = (char)(0x80 | (code & 63));
    }
    return out;
}

static bool read_escape(reader *r, char **out)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    unsigned code, low;

    if (r->at == r->end)
        return fail(r, "a string is cut off");
    const char *name = memchr(names, *r->at, sizeof names - 1);
    if (name != NULL) {
        r->at++;
        *(*out)++ = values[name - names];
        return true;
    }
    if (*r->at++ != 'u')
        return fail(r, "an unknown escape");
    if (!hex4(r, &code))
        return false;
    if (code >= 0xd800 && code < 0xdc00) {
        if (r->end - r->at < 6 || r->at[0] != '\\' || r->at[1] != 'u')
            return fail(r, "half of a surrogate pair");
        r->at += 2;
        if (!hex4(r, &low))
            return false;
        if (low < 0xdc00 || low > 0xdfff)
            return fail(r, "half of a surrogate pair");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code < 0xe000) {
        return fail(r, "half of a surrogate pair");
    }
    if (code == 0)
        return fail(r, "a zero character in a string");
    *out = put_utf8(*out, code);
    return true;
}

/* Bytes of the UTF-8 sequence at r->at, 0 when it is none. */
static int utf8_size(const reader *r)
{
    const unsigned char *s = (const unsigned char *)r->at;
    ptrdiff_t left = r->end - r->at;
    int size = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3
             : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;

    if (size == 0 || left < size)
        return 0;
    for (int i = 1; i < size; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    if (size == 3 && ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f)))
        return 0;
    if (size == 4 && ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f)))
        return 0;
    return size;
}

static bool read_string(reader *r, const char **out)
{
    const char *close = r->at;

    if (!accept(r, '"'))
        return fail(r, "expected a string");
    for (close = r->at; close < r->end && *close != '"'; close++)
        close += *close == '\\' && close + 1 < r->end;
    if (close >= r->end)
        return fail(r, "a string is cut off");
    char *text = take(r, (size_t)(close - r->at) + 1), *to = text;
    if (text == NULL)
        return false;
    while (*r->at != '"') {
        if ((unsigned char)*r->at < 0x20)
            return fail(r, "a control character in a string");
        if (*r->at == '\\') {
            r->at++;
            if (!read_escape(r, &to))
                return false;
            continue;
        }
        int size = utf8_size(r);
        if (size == 0)
            return fail(r, "a string is not UTF-8");
        memcpy(to, r->at, (size_t)size);
        to += size;
        r->at += size;
    }
    r->at++;
    *out = text;
    return true;
}

static int digits(reader *r)
{
    int count = 0;

    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
        count++;
    return count;
}

static bool read_number(reader *r, json_value *v)
{
    const char *begin = r->at;

    accept(r, '-');
    if (r->at < r->end && *r->at == '0')
        r->at++;
    else if (digits(r) == 0)
        return fail(r, "expected a value");
    if (accept(r, '.') && digits(r) == 0)
        return fail(r, "a number without digits behind its point");
    if (accept(r, 'e') || accept(r, 'E')) {
        if (!accept(r, '+'))
            accept(r, '-');
        if (digits(r) == 0)
            return fail(r, "a number without digits in its exponent");
    }
    size_t size = (size_t)(r->at - begin);
    if (size > 400)
        return fail(r, "a number of more than 400 characters");
    char *text = take(r, size + 1);
    if (text == NULL)
        return false;
    memcpy(text, begin, size);
    v->type = JSON_NUMBER;
    v->text = text;
    v->number = strtod(text, NULL);
    return true;
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool check_keys(reader *r, const json_value *object)
{
    const char **key = malloc((size_t)object->count * sizeof *key + 1);
    const char *twice = NULL;
    int n = 0;

    if (key == NULL) {
        pons_fail(r->err, PONS_DEVICE, "'%s': out of memory", r->where);
        return false;
    }
    for (const json_value *v = object->child; v != NULL; v = v->next)
        key[n++] = v->key;
    qsort(key, (size_t)n, sizeof *key, compare_keys);
    for (int i = 1; i < n && twice == NULL; i++)
        twice = strcmp(key[i - 1], key[i]) == 0 ? key[i] : NULL;
    free(key);
    if (twice != NULL)
        pons_fail(r->err, r->kind, "'%s': duplicate key '%.200s'", r->where, twice);
    return twice == NULL;
}

static bool read_value(reader *r, json_value *v, int depth);

static bool read_children(reader *r, json_value *v, char close, int depth)
{
    json_value **tail = &v->child;

    if (depth == DEPTH_MAX)
        return fail(r, "nested deeper than 64");
    r->at++;
    skip_blanks(r);
    if (accept(r, close))
        return true;
    for (;;) {
        json_value *child = take(r, sizeof *child);
        if (child == NULL)
            return false;
        skip_blanks(r);
        if (close == '}') {
            if (!read_string(r, &child->key))
                return false;
            skip_blanks(r);
            if (!accept(r, ':'))
                return fail(r, "expected ':'");
        }
        if (!read_value(r, child, depth + 1))
            return false;
        *tail = child;
        tail = &child->next;
        v->count++;
        skip_blanks(r);
        if (accept(r, close))
            return close != '}' || check_keys(r, v);
        if (!accept(r, ','))
            return fail(r, close == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
    }
}

static bool read_value(reader *r, json_value *v, int depth)
{
    static const struct { const char *word; size_t size; json_type type; } words[] = {
        { "null", 4, JSON_NULL }, { "true", 4, JSON_TRUE }, { "false", 5, JSON_FALSE }
    };

    skip_blanks(r);
    if (r->at == r->end)
        return fail(r, "the text is cut off");
    if (*r->at == '{' || *r->at == '[') {
        v->type = *r->at == '{' ? JSON_OBJECT : JSON_LIST;
        return read_children(r, v, *r->at == '{' ? '}' : ']', depth);
    }
    if (*r->at == '"') {
        v->type = JSON_TEXT;
        return read_string(r, &v->text);
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if ((size_t)(r->end - r->at) >= words[i].size
            && memcmp(r->at, words[i].word, words[i].size) == 0) {
            r->at += words[i].size;
            v->type = words[i].type;
            return true;
        }
    }
    return read_number(r, v);
}

pons_status json_parse(const char *text, size_t size, const char *where, pons_status kind,
                       json_document *out, pons_error *err)
{
    json_document document = { NULL, NULL };
    reader r = { text, text, text + size, where, kind, &document, err };

    json_value *root = take(&r, sizeof *root);
    bool good = root != NULL && read_value(&r, root, 0);
    if (good) {
        skip_blanks(&r);
        if (r.at != r.end)
            good = fail(&r, "something behind the end of the text");
    }
    if (!good) {
        json_free(&document);
        return err != NULL ? err->status : kind;
    }
    document.root = root;
    *out = document;
    return PONS_OK;
}

void json_free(json_document *document)
{
    while (document->block != NULL) {
        struct json_block *next = document->block->next;
        free(document->block);
        document->block = next;
    }
    document->root = NULL;
}

const json_value *json_member(const json_value *object, const char *key)
{
    if (object == NULL || object->type != JSON_OBJECT)
        return NULL;
    for (const json_value *v = object->child; v != NULL; v = v->next) {
        if (strcmp(v->key, key) == 0)
            return v;
    }
    return NULL;
}

const json_value *json_item(const json_value *list, int index)
{
    if (list == NULL || list->type != JSON_LIST || index < 0)
        return NULL;
    const json_value *v = list->child;
    for (; v != NULL && index > 0; v = v->next)
        index--;
    return v;
}

bool json_whole(const json_value *value, uint64_t *out)
{
    uint64_t sum = 0;

    if (value == NULL || value->type != JSON_NUMBER)
        return false;
    for (const char *c = value->text; *c != '\0'; c++) {
        if (*c < '0' || *c > '9' || __builtin_mul_overflow(sum, 10u, &sum)
            || __builtin_add_overflow(sum, (uint64_t)(*c - '0'), &sum))
            return false;
    }
    *out = sum;
    return true;
}

void json_format_number(char *out, double number)
{
    if (!isfinite(number)) {
        strcpy(out, "null");
        return;
    }
    snprintf(out, 32, "%.9g", number);
    for (char *c = out; *c != '\0'; c++)
        *c = *c == ',' ? '.' : *c; /* the decimal point of a host program's locale */
}

void json_put_number(FILE *file, double number)
{
    char text[32];

    json_format_number(text, number);
    fputs(text, file);
}

/* U+0080 to U+009F in UTF-8, whose second byte is the number: a terminal obeys U+009B as ESC [. */
static bool is_wide_control(const char *c)
{
    return (unsigned char)c[0] == 0xc2 && (unsigned char)c[1] >= 0x80
           && (unsigned char)c[1] <= 0x9f;
}

void json_put_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(file, "\\%c", *c);
        else if ((unsigned char)*c < 0x20 || *c == 0x7f)
            fprintf(file, "\\u%04x", (unsigned)*c);
        else if (is_wide_control(c))
            fprintf(file, "\\u%04x", (unsigned)(unsigned char)*++c);
        else
            fputc(*c, file);
    }
    fputc('"', file);
}
