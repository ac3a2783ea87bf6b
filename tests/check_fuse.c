/*
 * check_fuse.c - how many kernels common compositions become, and what they read and write.
 */
#include "suite.h"

#include "graphs.h"

static device reference_of(bool whole)
{
    return (device){ .reference = !whole };
}

typedef struct net {
    pons_graph *g;
    pons_node *root[64];
    int root_count;
} net;

/* Gradients of every parameter become roots behind the loss. */
static void net_differentiate(net *n, pons_node *loss)
{
    pons_error err = PONS_ERROR_INIT;
    pons_node *of[64], *gradient[64];
    int count = 0;

    for (leaf *p = n->g->parameter; p; p = p->next)
        of[count++] = p->node;
    ck_assert_msg(graph_gradient(n->g, loss, count, of, gradient, &err) == PONS_OK, "%s", err.text);
    n->root[n->root_count++] = loss;
    for (int i = 0; i < count; i++)
        if (gradient[i])
            n->root[n->root_count++] = gradient[i];
    pass_simplify(n->g);
    ck_assert(pass_recompute(n->g, n->root_count, n->root, false, &err) == PONS_OK);
}

static plan net_plan(net *n, bool fused)
{
    pons_error err = PONS_ERROR_INIT;
    device d = reference_of(fused);
    program_settings settings = { .no_fuse = !fused };
    plan p;

    ck_assert_msg(plan_make(n->g, n->root_count, n->root, &d, &settings, &p, &err) == PONS_OK, "%s",
                  err.text);
    if (getenv("PONS_TEST_PRINT"))
        plan_print(&p, stderr);
    return p;
}

static int count_kind(const plan *p, pons_kernel_kind kind)
{
    int count = 0;

    for (int i = 0; i < p->kernel_count; i++)
        count += p->kernel[i].request.kind == kind;
    return count;
}

START_TEST(a_chain_is_one_kernel_and_unfused_one_per_node)
{
    for (int fused = 0; fused < 2; fused++) {
        net n = { .g = graph_new(true, -1) };
        pons_node *x = node_input(n.g, "x", PONS_F32, shape5(2, 4, 4, 4, 3));
        pons_node *y = pons_exp(n.g, pons_scale(n.g, x, 2));
        plan p;

        n.root[n.root_count++] = pons_add(n.g, y, pons_tanh(n.g, y));
        p = net_plan(&n, fused);
        ck_assert_int_eq(p.kernel_count, fused ? 1 : 4);
        graph_free(n.g);
    }
}
END_TEST

START_TEST(conv_norm_prelu)
{
    for (int batch = 0; batch < 2; batch++) {
        net n = { .g = graph_new(true, -1) };
        pons_node *x = node_input(n.g, "image", PONS_F32, shape5(2, 8, 8, 8, 4));
        pons_node *y = layer(n.g, layer(n.g, layer(n.g, x, "0", 16, 1, batch), "1", 16, 1, batch), "2", 16, 1, batch);
        pons_node *loss = pons_mean_all(n.g, pons_square(n.g, y));
        plan p;

        net_differentiate(&n, loss);
        p = net_plan(&n, true);
        ck_assert_int_gt(count_kind(&p, PONS_KERNEL_MAP), 0);
        graph_free(n.g);
    }
}
END_TEST

START_TEST(dice_and_cross_entropy)
{
    net n = { .g = graph_new(true, -1) };
    pons_node *x = node_input(n.g, "image", PONS_F32, shape5(2, 8, 8, 8, 4));
    pons_node *t = node_input(n.g, "label", PONS_U8, shape5(2, 8, 8, 8, 1));
    pons_node *logits = layer(n.g, x, "0", 3, 1, false);
    plan p;

    net_differentiate(&n, dice_ce(n.g, logits, t));
    p = net_plan(&n, true);
    ck_assert_int_gt(count_kind(&p, PONS_KERNEL_MAP), 0);
    graph_free(n.g);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("fuse");
    tcase_add_test(c, a_chain_is_one_kernel_and_unfused_one_per_node);
    tcase_add_test(c, conv_norm_prelu);
    tcase_add_test(c, dice_and_cross_entropy);
    return suite_run();
}
