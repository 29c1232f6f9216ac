/* pipeline_step: the passes of a pipeline.  Each stage runs its chunks of layers over all micro-batches in
 * the order of dist/pipeline.h, and exchanges activations and their gradients with its neighbours.  A stage
 * has weights, gradients, moments and activations of its own layers only.
 *
 * Gradients are summed in the same order as in a mesh without stages, so the bits are the same, for every
 * parameter but the one that input layer and heads have in common (model.tied).  The heads' stage sums its
 * gradients of that over the step, and the input layer's stage adds them to its own once; a single trainer
 * adds the two micro-batch by micro-batch.  The bits do not depend on how many stages and chunks there are,
 * if there are several stages. */
#include "dist/pipeline.h"
#include "train/trainer_parts.h"
#include "watch/profile.h"

struct pipeline {
    struct trainer *t;
    const struct batch_step *batch;
    struct pipeline_shape shape;
    int stage, last_part;
};

/* Gradients go the other way, and with two stages from the same rank to the same rank as activations:
 * messages are distinguished by their order, so they take two communicators. */
static const struct comm *backward_comm(const struct mesh *m)
{
    return m->pipe.size == 2 ? &m->ends : &m->pipe;
}

static int stage_after(const struct mesh *m)
{
    return (m->pipe.rank + 1) % m->pipe.size;
}

static int stage_before(const struct mesh *m)
{
    return (m->pipe.rank + m->pipe.size - 1) % m->pipe.size;
}

static void receive_input(struct trainer *t, int part)
{
    const struct mesh *m = &t->mesh;
    if (part > 0) {
        profile_phase(t->net.profile, "wait for a stage");
        comm_receive(&m->pipe, &t->net.x, stage_input(&t->net.stage), stage_before(m));
    }
}

static void send_output(struct trainer *t, int part, int last_part)
{
    const struct mesh *m = &t->mesh;
    if (part < last_part) {
        comm_send(&m->pipe, &t->net.x, stage_output(&t->net.stage), stage_after(m));
    }
}

static int select_chunk(const struct pipeline *p, struct pipeline_action a)
{
    stage_select(&p->t->net.stage, a.chunk, a.micro % p->t->net.config.n_slots);
    return pipeline_part(&p->shape, p->stage, a.chunk);
}

static void forward(const struct pipeline *p, struct pipeline_action a)
{
    struct trainer *t = p->t;
    struct stage *s = &t->net.stage;
    const struct batch *b = batch_step_filled(p->batch, a.micro);
    int part = select_chunk(p, a);
    trainer_scale_losses(t, p->batch, b);
    stage_begin(s, b, &t->numbers);
    receive_input(t, part);
    profile_phase(t->net.profile, "forward");
    enum stage_work work = a.micro == 0 ? STAGE_FORWARD_FIRST : STAGE_FORWARD_NEXT;
    if (stage_graph_begin(s, work)) {
        if (a.micro == 0 && a.chunk == 0) {
            stage_round_weights(s);
        }
        stage_forward(s, true);
        stage_learn(s, t->sums, a.micro > 0);
        stage_graph_end(s, work);
    }
    send_output(t, part, p->last_part);
}

static void backward(const struct pipeline *p, struct pipeline_action a)
{
    struct trainer *t = p->t;
    struct stage *s = &t->net.stage;
    const struct comm *c = backward_comm(&t->mesh);
    int part = select_chunk(p, a);
    if (part < p->last_part) {
        profile_phase(t->net.profile, "wait for a stage");
        comm_receive(c, &t->net.x, stage_gradient(s), stage_after(&t->mesh));
    }
    profile_phase(t->net.profile, "backward");
    enum stage_work work = a.micro == 0 ? STAGE_BACKWARD_FIRST : STAGE_BACKWARD_NEXT;
    if (stage_graph_begin(s, work)) {
        stage_backward(s, true, a.micro > 0);
        stage_graph_end(s, work);
    }
    if (part > 0) {
        comm_send(c, &t->net.x, stage_gradient(s), stage_before(&t->mesh));
    }
}

/* ---- the parameter that input layer and heads have in common ---- */

enum { INPUT_END, HEADS_END }; /* ranks of mesh.ends */

static bool is_tied(const struct trainer *t)
{
    return t->config.net.model->tied != NULL && t->mesh.ends.size == 2;
}

/* Sends the heads' gradient of the tied parameter, over all micro-batches, to the input layer's stage, which
 * adds it to its own. */
static void send_tied_gradient(struct trainer *t)
{
    const struct mesh *m = &t->mesh;
    if (m->ends.rank == HEADS_END) {
        comm_send(&m->ends, &t->net.x, trainer_tied(t, t->grad), INPUT_END);
    } else {
        comm_receive(&m->ends, &t->net.x, t->tied_part, HEADS_END);
        trainer_add_tied(t);
    }
}

/* Sending the weights costs the same number of bytes as sending the gradient would, and the heads' stage
 * needs no moments for them. */
void pipeline_share_tied(struct trainer *t)
{
    const struct mesh *m = &t->mesh;
    struct network *n = &t->net;
    if (!is_tied(t)) {
        return;
    }
    tensor read = trainer_tied(t, tensor_is_null(n->working) ? n->master : n->working);
    if (m->ends.rank == HEADS_END) {
        comm_receive(&m->ends, &n->x, read, INPUT_END);
    } else {
        comm_send(&m->ends, &n->x, read, HEADS_END);
    }
}

/* ---- a step ---- */

/* Computes the gradients of a block of micro-batches, which are added to one another. */
static void run_block(struct pipeline *p, const struct batch_step *block)
{
    p->batch = block;
    p->shape.n_micro = batch_step_n_filled(block);
    if (p->shape.n_micro == 0) {
        p->t->net.x.ops->fill(&p->t->net.x, p->t->grad, 0);
        stage_send_numbers(&p->t->net.stage, &p->t->numbers);
    }
    struct exec *x = &p->t->net.x;
    struct status fits = pipeline_check(&p->shape);
    if (failed(fits)) { /* the same on all ranks */
        x->status = failed(x->status) ? x->status : fits;
        return;
    }
    for (int64_t i = 0; i < pipeline_n_actions(&p->shape); i++) {
        struct pipeline_action a = pipeline_action(&p->shape, p->stage, i);
        (a.work == PIPELINE_FORWARD ? forward : backward)(p, a);
    }
    profile_phase(p->t->net.profile, NULL);
    if (is_tied(p->t)) {
        send_tied_gradient(p->t);
    }
}

/* Runs one block after the other, for a sum that does not depend on the ranks (gradient_tree.h). */
static void run_blocks(struct pipeline *p, const struct batch_step *part)
{
    struct gradient_blocks blocks = p->t->tree.blocks;
    for (int i = 0; i < blocks.n; i++) {
        struct batch_step block = batch_step_part(part, blocks.first + i, blocks.n_all);
        if (i > 0) {
            trainer_clear_added(p->t);
        }
        run_block(p, &block);
        gradient_tree_add(&p->t->tree, &p->t->net.x, i, p->t->grad);
    }
    p->batch = part;
}

void pipeline_gradients(struct trainer *t, const struct batch_step *batch)
{
    int n_stages = t->mesh.pipe.size, n_chunks = t->net.config.part.n_ranges;
    struct pipeline p = {.t = t,
                         .shape = {n_stages, n_chunks, 0},
                         .stage = t->mesh.pipe.rank,
                         .last_part = n_stages * n_chunks - 1};
    trainer_clear(t, 1);
    if (trainer_abandons(t)) {
        return;
    }
    if (t->tree.n_levels > 0) {
        run_blocks(&p, batch);
    } else {
        run_block(&p, batch);
    }
    stage_weights_rounded(&t->net.stage);
}

void pipeline_evaluate_batch(struct trainer *t, const struct batch *batch)
{
    const struct mesh *m = &t->mesh;
    struct stage *s = &t->net.stage;
    int n = t->net.config.part.n_ranges, last_part = m->pipe.size * n - 1;
    for (int chunk = 0; chunk < n; chunk++) {
        int part = chunk * m->pipe.size + m->pipe.rank;
        stage_select(s, chunk, 0);
        stage_begin(s, batch, &(struct stage_numbers){0});
        stage_round_changed(s);
        receive_input(t, part);
        if (stage_graph_begin(s, STAGE_EVALUATE)) {
            stage_forward(s, false);
            stage_measure(s, t->sums, false);
            stage_graph_end(s, STAGE_EVALUATE);
        }
        send_output(t, part, last_part);
    }
}
