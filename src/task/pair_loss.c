#include "task/pair_loss.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* State of a computation; sides are 0 for the first texts and 1 for the second. */
struct losing {
    const struct pair_vectors *p;
    double *units;   /* [n, 2, width] */
    double *lengths; /* [n, 2] */
    double *row;     /* [n] */
    double *du;      /* [n, 2, width]: the gradients, by the units and then by the vectors */
};

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

static void add_times(double *to, double factor, const double *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        to[i] += factor * v[i];
    }
}

static double *unit(const struct losing *l, int64_t pair, int side)
{
    return l->units + (2 * pair + side) * l->p->width;
}

static double *gradient(const struct losing *l, int64_t pair, int side)
{
    return l->du + (2 * pair + side) * l->p->width;
}

/* u = v / |v|; returns |v|, at least that of torch.nn.functional.normalize. */
static double normalize(double *u, const float *v, int64_t n)
{
    double squares = 0;
    for (int64_t i = 0; i < n; i++) {
        squares += (double)v[i] * v[i];
    }
    double length = fmax(sqrt(squares), 1e-12);
    for (int64_t i = 0; i < n; i++) {
        u[i] = v[i] / length;
    }
    return length;
}

/* Adds `d`, the gradient of c_ij, to those of both units. */
static void add_cosine_gradient(const struct losing *l, int64_t i, int64_t j, double d)
{
    add_times(gradient(l, i, 0), d, unit(l, j, 1), l->p->width);
    add_times(gradient(l, j, 1), d, unit(l, i, 0), l->p->width);
}

static double cosine(const struct losing *l, int64_t i, int64_t j)
{
    return dot(unit(l, i, 0), unit(l, j, 1), l->p->width);
}

static double in_batch(const struct losing *l)
{
    double loss = 0, s = l->p->scale;
    int64_t n = l->p->n;
    for (int64_t i = 0; i < n; i++) {
        double largest = -INFINITY, sum = 0;
        for (int64_t j = 0; j < n; j++) {
            l->row[j] = s * cosine(l, i, j);
            largest = fmax(largest, l->row[j]);
        }
        for (int64_t j = 0; j < n; j++) {
            sum += exp(l->row[j] - largest);
        }
        loss += (largest + log(sum) - l->row[i]) / (double)n;
        for (int64_t j = 0; j < n; j++) {
            double p = exp(l->row[j] - largest) / sum;
            add_cosine_gradient(l, i, j, s * (p - (i == j)) / (double)n);
        }
    }
    return loss;
}

/* exp(c_i - c_j) of pairs that are in the wrong order, else 0; the largest exponent is taken out. */
static double disorder(const struct losing *l, int64_t i, int64_t j, double largest)
{
    return l->p->scores[i] < l->p->scores[j] ? exp(l->row[i] - l->row[j] - largest) : 0;
}

static double cosent(const struct losing *l)
{
    double largest = 0, s = l->p->scale;
    int64_t n = l->p->n;
    for (int64_t i = 0; i < n; i++) {
        l->row[i] = s * cosine(l, i, i);
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            bool counts = l->p->scores[i] < l->p->scores[j];
            largest = counts ? fmax(largest, l->row[i] - l->row[j]) : largest;
        }
    }
    double sum = exp(-largest);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            sum += disorder(l, i, j, largest);
        }
    }
    for (int64_t i = 0; i < n; i++) {
        double d = 0;
        for (int64_t j = 0; j < n; j++) {
            d += disorder(l, i, j, largest) - disorder(l, j, i, largest);
        }
        add_cosine_gradient(l, i, i, s * d / sum);
    }
    return largest + log(sum);
}

/* dv = (du - u (u . du)) / |v| */
static void to_vectors(const struct losing *l)
{
    int64_t width = l->p->width;
    for (int64_t i = 0; i < 2 * l->p->n; i++) {
        double *d = l->du + i * width;
        const double *u = l->units + i * width;
        add_times(d, -dot(u, d, width), u, width);
        for (int64_t c = 0; c < width; c++) {
            d[c] /= l->lengths[i];
        }
    }
}

struct status pair_loss(double *loss, double *gradients, const struct pair_vectors *p)
{
    size_t n = (size_t)(2 * p->n), width = (size_t)p->width;
    struct losing l = {.p = p,
                       .units = calloc(n * width + 1, sizeof(double)),
                       .lengths = malloc((n + 1) * sizeof(double)),
                       .row = malloc((n + 1) * sizeof(double)),
                       .du = gradients};
    struct status s =
        l.units != NULL && l.lengths != NULL && l.row != NULL
            ? status_ok()
            : status_error(STATUS_MEMORY, "out of memory for the vectors of %lld pairs", (long long)p->n);
    if (!failed(s)) {
        for (size_t i = 0; i < n; i++) {
            l.lengths[i] = normalize(l.units + i * width, p->vectors + i * width, p->width);
        }
        memset(gradients, 0, n * width * sizeof *gradients);
        *loss = p->scores != NULL ? cosent(&l) : in_batch(&l);
        to_vectors(&l);
    }
    free(l.units);
    free(l.lengths);
    free(l.row);
    return s;
}

double pair_loss_cosine(const float *a, const float *b, int64_t width)
{
    double aa = 0, bb = 0, ab = 0;
    for (int64_t i = 0; i < width; i++) {
        aa += (double)a[i] * a[i];
        bb += (double)b[i] * b[i];
        ab += (double)a[i] * b[i];
    }
    return ab / (fmax(sqrt(aa), 1e-12) * fmax(sqrt(bb), 1e-12));
}
