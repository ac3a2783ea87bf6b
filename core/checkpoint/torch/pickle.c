/*
 * pickle.c - the instructions. Their table has one row each; a code without a row is refused.
 */
#include "checkpoint/torch/pickle.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "checkpoint/torch/pickle_names.h"

enum { PICKLE_SIZE_MAX = 64 << 20, PROTOCOL_MAX = 5 };

typedef struct machine {
    pickle *p;
    pickle_maker maker;
    const unsigned char *bytes;
    size_t size, at;
    torch_value **stack;
    int depth, room;
    int *mark;                      /* depths of the stack                                        */
    int mark_count, mark_room;
    torch_value **memo;
    int memo_room, memo_count;      /* memo_count: numbers below it may be set                    */
    int spent;                      /* of TORCH_VALUES_MAX                                        */
    bool done;
    pons_error *err;
} machine;

static bool refuse(machine *m, const char *problem)
{
    pons_fail(m->err, PONS_DATA, "'%s': byte %zu of the pickle: %s", m->p->where, m->at, problem);
    return false;
}

static bool spend(machine *m)
{
    if (++m->spent > TORCH_VALUES_MAX)
        return refuse(m, "it makes more values than a checkpoint has");
    return true;
}

/* Enlarge an array of 'item' bytes each so that it has more than 'count' of them. */
static bool make_room(machine *m, void *array, int *room, int count, size_t item)
{
    int more = max_int(64, 2 * count);
    void **from = array;
    void *to;

    if (count < *room)
        return true;
    to = realloc(*from, (size_t)more * item);
    if (to == NULL) {
        pons_fail(m->err, PONS_DEVICE, "'%s': out of memory", m->p->where);
        return false;
    }
    memset((char *)to + (size_t)*room * item, 0, (size_t)(more - *room) * item);
    *from = to;
    *room = more;
    return true;
}

static bool push(machine *m, torch_value *v)
{
    if (!spend(m) || !make_room(m, &m->stack, &m->room, m->depth, sizeof *m->stack))
        return false;
    m->stack[m->depth++] = v;
    return true;
}

/* The lowest depth that the values above the last mark may sink to. */
static int floor_depth(const machine *m)
{
    return m->mark_count > 0 ? m->mark[m->mark_count - 1] : 0;
}

static torch_value *pop(machine *m)
{
    if (m->depth <= floor_depth(m)) {
        refuse(m, "its stack is empty");
        return NULL;
    }
    return m->stack[--m->depth];
}

/* Remove the last mark; the values above it begin at stack[*from]. */
static bool pop_mark(machine *m, int *from)
{
    if (m->mark_count == 0)
        return refuse(m, "a mark is missing");
    *from = m->mark[--m->mark_count];
    return true;
}

static const unsigned char *take(machine *m, size_t size)
{
    const unsigned char *at = m->bytes + m->at;

    if (size > m->size - m->at) {
        refuse(m, m->size == PICKLE_SIZE_MAX ? "it is too long" : "it ends too early");
        return NULL;
    }
    m->at += size;
    return at;
}

/* A little-endian number without sign of 'size' bytes. */
static bool take_number(machine *m, int size, uint64_t *out)
{
    const unsigned char *at = take(m, (size_t)size);

    *out = 0;
    for (int i = size - 1; at != NULL && i >= 0; i--)
        *out = *out << 8 | at[i];
    return at != NULL;
}

/* Text up to the end of its line. */
static char *take_line(machine *m)
{
    const unsigned char *from = m->bytes + m->at, *end = memchr(from, '\n', m->size - m->at);
    char *line;

    if (end == NULL) {
        refuse(m, "it ends too early");
        return NULL;
    }
    line = arena_alloc(m->p->memory, (size_t)(end - from) + 1);
    memcpy(line, from, (size_t)(end - from));
    m->at += (size_t)(end - from) + 1;
    return line;
}

/* ---- numbers and texts ----------------------------------------------------------------------- */

static bool push_integer(machine *m, int64_t value)
{
    torch_value *v = pickle_value_new(m->p->memory, TORCH_INTEGER);

    v->integer = value;
    return push(m, v);
}

static bool push_real(machine *m, double value)
{
    torch_value *v = pickle_value_new(m->p->memory, TORCH_REAL);

    v->real = value;
    return push(m, v);
}

static bool push_flag(machine *m, int value)
{
    torch_value *v = pickle_value_new(m->p->memory, TORCH_FLAG);

    v->flag = value != 0;
    return push(m, v);
}

static bool push_empty(machine *m, int kind)
{
    return push(m, pickle_value_new(m->p->memory, (torch_kind)kind));
}

/* BININT: 4 bytes with sign; BININT1, BININT2: without. */
static bool do_integer(machine *m, int size)
{
    uint64_t value;

    if (!take_number(m, size, &value))
        return false;
    return push_integer(m, size == 4 ? (int32_t)(uint32_t)value : (int64_t)value);
}

/* An integer in two's complement of any number of bytes, whose number has 'size' bytes. */
static bool do_long(machine *m, int size)
{
    uint64_t length, low = 0;
    const unsigned char *at;
    double value = 0, scale = 1;
    bool negative;

    if (!take_number(m, size, &length) || (at = take(m, length)) == NULL)
        return false;
    negative = length > 0 && at[length - 1] >= 128;
    for (uint64_t i = 0; i < length; i++, scale *= 256)
        value += at[i] * scale;
    if (length > 8)
        return push_real(m, negative ? value - scale : value);
    for (int i = 7; i >= 0; i--)
        low = low << 8 | ((uint64_t)i < length ? at[i] : negative ? 255u : 0u);
    return push_integer(m, (int64_t)low);
}

static bool do_real(machine *m, int unused)
{
    const unsigned char *at = take(m, 8);
    uint64_t bits = 0;
    double value;

    (void)unused;
    if (at == NULL)
        return false;
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | at[i];
    memcpy(&value, &bits, sizeof value);
    return push_real(m, value);
}

static bool push_bytes(machine *m, torch_kind kind, int size)
{
    const unsigned char *at;
    uint64_t length;

    if (!take_number(m, size, &length) || (at = take(m, length)) == NULL)
        return false;
    return push(m, pickle_value_bytes(m->p->memory, kind, at, length));
}

static bool do_text(machine *m, int size)
{
    return push_bytes(m, TORCH_TEXT, size);
}

static bool do_bytes(machine *m, int size)
{
    return push_bytes(m, TORCH_BYTES, size);
}

/* ---- containers ------------------------------------------------------------------------------ */

static bool do_mark(machine *m, int unused)
{
    (void)unused;
    if (!spend(m) || !make_room(m, &m->mark, &m->mark_room, m->mark_count, sizeof *m->mark))
        return false;
    m->mark[m->mark_count++] = m->depth;
    return true;
}

static bool append(machine *m, torch_value *list, torch_value *item)
{
    if (!spend(m))
        return false;
    if (!pickle_value_append(m->p->memory, list, item))
        return refuse(m, "a value is too large or too deep, or it holds itself");
    return true;
}

/* Move the values from stack[from] on into a list. */
static bool append_from(machine *m, torch_value *list, int from)
{
    for (int i = from; i < m->depth; i++)
        if (!append(m, list, m->stack[i]))
            return false;
    m->depth = from;
    return true;
}

/* A tuple of the 'count' topmost values. */
static bool do_tuple(machine *m, int count)
{
    torch_value *tuple = pickle_value_new(m->p->memory, TORCH_TUPLE);

    if (m->depth - floor_depth(m) < count)
        return refuse(m, "its stack is empty");
    return append_from(m, tuple, m->depth - count) && push(m, tuple);
}

/* A list, tuple, dictionary or set of the values above the mark. */
static bool do_marked(machine *m, int kind)
{
    torch_value *list = pickle_value_new(m->p->memory, (torch_kind)kind);
    int from;

    if (!pop_mark(m, &from))
        return false;
    if (kind == TORCH_DICTIONARY && (m->depth - from) % 2 != 0)
        return refuse(m, "a dictionary has a key without a value");
    return append_from(m, list, from) && push(m, list);
}

/* Append the values from stack[from] on to the container of that kind below them. */
static bool extend(machine *m, torch_kind kind, int from)
{
    torch_value *list = from > floor_depth(m) ? m->stack[from - 1] : NULL;

    if (list == NULL || list->kind != kind)
        return refuse(m, "a container is missing");
    if (kind == TORCH_DICTIONARY && (m->depth - from) % 2 != 0)
        return refuse(m, "a dictionary has a key without a value");
    return append_from(m, list, from);
}

static bool do_extend(machine *m, int kind)
{
    int from;

    return pop_mark(m, &from) && extend(m, (torch_kind)kind, from);
}

/* APPEND, SETITEM. */
static bool do_add(machine *m, int kind)
{
    int count = kind == TORCH_DICTIONARY ? 2 : 1;

    if (m->depth - floor_depth(m) <= count)
        return refuse(m, "its stack is empty");
    return extend(m, (torch_kind)kind, m->depth - count);
}

/* ---- stack and memo -------------------------------------------------------------------------- */

static bool do_pop(machine *m, int unused)
{
    (void)unused;
    if (m->depth == floor_depth(m) && m->mark_count > 0) {
        m->mark_count--;
        return true;
    }
    return pop(m) != NULL;
}

static bool do_pop_mark(machine *m, int unused)
{
    (void)unused;
    return pop_mark(m, &m->depth);
}

static bool do_duplicate(machine *m, int unused)
{
    (void)unused;
    if (m->depth <= floor_depth(m))
        return refuse(m, "its stack is empty");
    return push(m, m->stack[m->depth - 1]);
}

/* Remember the topmost value under a number. */
static bool remember(machine *m, uint64_t number)
{
    if (m->depth <= floor_depth(m))
        return refuse(m, "its stack is empty");
    if (number >= TORCH_VALUES_MAX)
        return refuse(m, "it remembers more values than a checkpoint has");
    if (!make_room(m, &m->memo, &m->memo_room, (int)number, sizeof *m->memo))
        return false;
    m->memo[number] = m->stack[m->depth - 1];
    m->memo_count = max_int(m->memo_count, (int)number + 1);
    return true;
}

static bool do_put(machine *m, int size)
{
    uint64_t number;

    return take_number(m, size, &number) && remember(m, number);
}

static bool do_memoize(machine *m, int unused)
{
    (void)unused;
    return remember(m, (uint64_t)m->memo_count);
}

static bool do_get(machine *m, int size)
{
    uint64_t number;

    if (!take_number(m, size, &number))
        return false;
    if (number >= (uint64_t)m->memo_room || m->memo[number] == NULL)
        return refuse(m, "a value is used before it is made");
    return push(m, m->memo[number]);
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool push_name(machine *m, const char *module, const char *name)
{
    torch_value *v;

    return pickle_names_find(&m->maker, module, name, &v, m->err) == PONS_OK && push(m, v);
}

static bool do_name(machine *m, int unused)
{
    const char *module = take_line(m), *name = module != NULL ? take_line(m) : NULL;

    (void)unused;
    return name != NULL && push_name(m, module, name);
}

static bool do_stack_name(machine *m, int unused)
{
    const torch_value *name = pop(m), *module = name != NULL ? pop(m) : NULL;

    (void)unused;
    if (module == NULL)
        return false;
    if (torch_value_text(name) == NULL || torch_value_text(module) == NULL)
        return refuse(m, "a name is no text");
    return push_name(m, torch_value_text(module), torch_value_text(name));
}

static bool do_make(machine *m, int unused)
{
    const torch_value *arguments = pop(m), *name = arguments != NULL ? pop(m) : NULL;
    torch_value *v;

    (void)unused;
    if (name == NULL)
        return false;
    if (arguments->kind != TORCH_TUPLE)
        return refuse(m, "arguments are no tuple");
    return pickle_names_make(&m->maker, name, arguments, &v, m->err) == PONS_OK && push(m, v);
}

static bool do_build(machine *m, int unused)
{
    const torch_value *state = pop(m);

    (void)unused;
    if (state == NULL)
        return false;
    if (m->depth <= floor_depth(m))
        return refuse(m, "its stack is empty");
    return pickle_names_build(&m->maker, m->stack[m->depth - 1], state, m->err) == PONS_OK;
}

static bool do_storage(machine *m, int unused)
{
    const torch_value *id = pop(m);
    torch_storage *storage;
    torch_value *v;

    (void)unused;
    if (id == NULL)
        return false;
    if (m->p->find_storage == NULL)
        return refuse(m, "it refers to data outside of itself");
    if (m->p->find_storage(m->p->context, id, &storage, m->err) != PONS_OK)
        return false;
    v = pickle_value_new(m->p->memory, TORCH_OTHER);
    v->other.name = "storage";
    v->other.about = storage;
    return push(m, v);
}

/* ---- the table ------------------------------------------------------------------------------- */

static bool do_protocol(machine *m, int unused)
{
    uint64_t version;

    (void)unused;
    if (!take_number(m, 1, &version))
        return false;
    return version <= PROTOCOL_MAX || refuse(m, "its protocol is newer than 5");
}

static bool do_frame(machine *m, int unused)
{
    uint64_t length;

    (void)unused;
    return take_number(m, 8, &length);
}

static bool do_stop(machine *m, int unused)
{
    (void)unused;
    m->p->root = pop(m);
    if (m->p->root != NULL && m->depth > 0)
        return refuse(m, "values are left over");
    m->done = true;
    return m->p->root != NULL;
}

typedef struct instruction {
    const char *name;
    bool (*run)(machine *m, int argument); /* NULL: refused                                       */
    int argument;                   /* bytes of a number, a count, or a kind of value             */
} instruction;

static const instruction instructions[256] = {
    [0x80] = { "PROTO", do_protocol, 0 },       [0x95] = { "FRAME", do_frame, 0 },
    ['.'] = { "STOP", do_stop, 0 },             ['('] = { "MARK", do_mark, 0 },
    ['0'] = { "POP", do_pop, 0 },               ['1'] = { "POP_MARK", do_pop_mark, 0 },
    ['2'] = { "DUP", do_duplicate, 0 },         ['N'] = { "NONE", push_empty, TORCH_NONE },
    [0x88] = { "NEWTRUE", push_flag, 1 },       [0x89] = { "NEWFALSE", push_flag, 0 },
    ['J'] = { "BININT", do_integer, 4 },        ['K'] = { "BININT1", do_integer, 1 },
    ['M'] = { "BININT2", do_integer, 2 },       [0x8a] = { "LONG1", do_long, 1 },
    [0x8b] = { "LONG4", do_long, 4 },           ['G'] = { "BINFLOAT", do_real, 0 },
    ['U'] = { "SHORT_BINSTRING", do_text, 1 },  ['T'] = { "BINSTRING", do_text, 4 },
    [0x8c] = { "SHORT_BINUNICODE", do_text, 1 }, ['X'] = { "BINUNICODE", do_text, 4 },
    [0x8d] = { "BINUNICODE8", do_text, 8 },     ['C'] = { "SHORT_BINBYTES", do_bytes, 1 },
    ['B'] = { "BINBYTES", do_bytes, 4 },        [0x8e] = { "BINBYTES8", do_bytes, 8 },
    [0x96] = { "BYTEARRAY8", do_bytes, 8 },     [']'] = { "EMPTY_LIST", push_empty, TORCH_LIST },
    [')'] = { "EMPTY_TUPLE", push_empty, TORCH_TUPLE },
    ['}'] = { "EMPTY_DICT", push_empty, TORCH_DICTIONARY },
    [0x8f] = { "EMPTY_SET", push_empty, TORCH_SET },
    [0x85] = { "TUPLE1", do_tuple, 1 },         [0x86] = { "TUPLE2", do_tuple, 2 },
    [0x87] = { "TUPLE3", do_tuple, 3 },         ['t'] = { "TUPLE", do_marked, TORCH_TUPLE },
    ['l'] = { "LIST", do_marked, TORCH_LIST },  ['d'] = { "DICT", do_marked, TORCH_DICTIONARY },
    [0x91] = { "FROZENSET", do_marked, TORCH_SET }, ['a'] = { "APPEND", do_add, TORCH_LIST },
    ['e'] = { "APPENDS", do_extend, TORCH_LIST }, ['s'] = { "SETITEM", do_add, TORCH_DICTIONARY },
    ['u'] = { "SETITEMS", do_extend, TORCH_DICTIONARY },
    [0x90] = { "ADDITEMS", do_extend, TORCH_SET }, ['q'] = { "BINPUT", do_put, 1 },
    ['r'] = { "LONG_BINPUT", do_put, 4 },       [0x94] = { "MEMOIZE", do_memoize, 0 },
    ['h'] = { "BINGET", do_get, 1 },            ['j'] = { "LONG_BINGET", do_get, 4 },
    ['c'] = { "GLOBAL", do_name, 0 },           [0x93] = { "STACK_GLOBAL", do_stack_name, 0 },
    ['R'] = { "REDUCE", do_make, 0 },           [0x81] = { "NEWOBJ", do_make, 0 },
    ['b'] = { "BUILD", do_build, 0 },           ['Q'] = { "BINPERSID", do_storage, 0 },
    ['i'] = { .name = "INST" },                 ['o'] = { .name = "OBJ" },
    ['P'] = { .name = "PERSID" },               ['I'] = { .name = "INT" },
    ['L'] = { .name = "LONG" },                 ['F'] = { .name = "FLOAT" },
    ['S'] = { .name = "STRING" },               ['V'] = { .name = "UNICODE" },
    ['p'] = { .name = "PUT" },                  ['g'] = { .name = "GET" },
    [0x82] = { .name = "EXT1" },                [0x83] = { .name = "EXT2" },
    [0x84] = { .name = "EXT4" },                [0x92] = { .name = "NEWOBJ_EX" },
    [0x97] = { .name = "NEXT_BUFFER" },         [0x98] = { .name = "READONLY_BUFFER" },
};

static bool run_next(machine *m)
{
    const unsigned char *code = take(m, 1);
    const instruction *next = code != NULL ? &instructions[*code] : NULL;

    if (next == NULL)
        return false;
    if (next->run != NULL)
        return next->run(m, next->argument);
    m->at--;
    if (next->name != NULL)
        pons_fail(m->err, PONS_DATA, "'%s': byte %zu of the pickle: instruction %s is not one of a "
                  "state dictionary's", m->p->where, m->at, next->name);
    else
        pons_fail(m->err, PONS_DATA, "'%s': byte %zu of the pickle: 0x%02x is no instruction",
                  m->p->where, m->at, *code);
    return false;
}

pons_status pickle_run(pickle *p, pons_error *err)
{
    machine m = { .p = p, .maker = { p->memory, p->where, 0 }, .bytes = p->bytes,
                  .size = min_size(p->size, PICKLE_SIZE_MAX), .err = err };

    while (!m.done && run_next(&m))
        continue;
    p->end = m.at;
    free(m.stack);
    free(m.mark);
    free(m.memo);
    return err->status;
}
