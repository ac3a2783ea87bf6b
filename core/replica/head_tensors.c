/*
 * head_tensors.c - two builds of one network are compared.
 */
#include "replica/head_tensors.h"

#include <string.h>

#include "graph/ir/build.h"
#include "graph/ir/shape.h"
#include "replica/programs.h"

static const leaf *find_leaf(const leaf *first, const char *name)
{
    while (first != NULL && strcmp(first->name, name) != 0)
        first = first->next;
    return first;
}

/* Add the names of leaves that the other build lacks or has in another shape. */
static int add_changed(const leaf *first, const leaf *other, arena *a, const char **out)
{
    int count = 0;

    for (const leaf *l = first; l != NULL; l = l->next) {
        const leaf *twin = find_leaf(other, l->name);
        if (twin == NULL || !shape_equal(l->shape, twin->shape))
            out[count++] = arena_string(a, l->name);
    }
    return count;
}

pons_status head_tensors_list(const experiment *e, arena *a, const char *const **out,
                              pons_error *err)
{
    experiment wider = *e;
    const char **names = arena_alloc(a, ((size_t)e->task.classes + 1) * sizeof *names), **found;
    pons_shape shape = programs_window_shape(e);
    pons_graph *one = NULL, *more = NULL;
    pons_node *logits;
    int count;

    for (int i = 0; i < e->task.classes; i++)
        names[i] = e->task.class_names != NULL ? e->task.class_names[i] : "class";
    names[wider.task.classes++] = "class";
    wider.task.class_names = names;
    if (programs_graph_evaluation(e, shape, &one, &logits, err) == PONS_OK
        && programs_graph_evaluation(&wider, shape, &more, &logits, err) == PONS_OK) {
        found = arena_alloc(a, (size_t)(one->parameter_count + one->state_count + 1)
                                   * sizeof *found);
        count = add_changed(one->parameter, more->parameter, a, found);
        add_changed(one->state, more->state, a, found + count);
        *out = found;
    }
    graph_free(one);
    graph_free(more);
    return err->status;
}
