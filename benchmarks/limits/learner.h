/* Logistic regression by stochastic gradient with lazily truncated weights (Langford, Li and Zhang, 2009): the
   truncation of skipped steps is applied when a weight is next needed. */
#ifndef LEARNER_H
#define LEARNER_H
#include "text.h"

typedef struct {
    float w;
    uint32_t seen; /* the step up to which truncation has been applied */
} weight;

typedef struct {
    weight *weights;
    size_t size;
    float *owed; /* owed[t]: total gravity of all steps before t */
    size_t steps;
    float bias, eta0, l1;
} learner;

static inline float shrink(float w, float by) {
    float rest = fabsf(w) - by;
    return rest > 0 ? copysignf(rest, w) : 0.0f;
}

/* Takes one step and returns the margin before it. Every id is below m->size; owed has room for one more. */
static inline float step(learner *m, size_t n, const uint32_t *ids, const float *x, float y) {
    const float owed = m->owed[m->steps];
    float margin = m->bias;
    for (size_t j = 0; j < n; j++) {
        weight *q = m->weights + ids[j];
        q->w = shrink(q->w, owed - m->owed[q->seen]);
        q->seen = (uint32_t)m->steps;
        margin += q->w * x[j];
    }
    float eta = m->eta0 / sqrtf(1.0f + (float)m->steps * 1e-5f);
    float move = eta * y / (1.0f + expf(y * margin));
    for (size_t j = 0; j < n; j++) m->weights[ids[j]].w += move * x[j];
    m->bias += 0.1f * move;
    m->owed[++m->steps] = owed + eta * m->l1;
    return margin;
}

/* Brings all weights up to date; returns the number of non-zeros. */
static inline size_t settle(learner *m) {
    size_t nonzero = 0;
    for (size_t j = 0; j < m->size; j++) {
        weight *q = m->weights + j;
        q->w = shrink(q->w, m->owed[m->steps] - m->owed[q->seen]);
        q->seen = (uint32_t)m->steps;
        nonzero += q->w != 0;
    }
    return nonzero;
}
#endif
