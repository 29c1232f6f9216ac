/* ops: the one table of operations.  Each slot is declared once, with its formula, shapes and source; the
 * tables are
 *
 *   ops_ref    plain C in double arithmetic on any dtype: the definition, and the oracle of every other table
 *   ops_plan   computes nothing: checks shapes and dtypes, sums bytes, FLOPs and scratch
 *   ops_cpu    oneDNN (or BLAS, or plain loops) and fused vectorised kernels, fp32 and bf16
 *
 * Rules that hold for every slot.  No slot is NULL.  Outputs come first, then inputs, then scalars.
 * Activations are assigned (=), parameter gradients are added to (+=).  Tensors are dense unless the slot
 * says otherwise. `A` below is the dtype of activations and matrices (fp32, bf16, fp64); `W` that of vectors,
 * statistics and parameter gradients: fp32, or fp64 where A is fp64; `R` that of a residual stream: A, or W
 * where the slots that read and write it get it so.  Index tensors are i32.  Outputs never
 * alias inputs unless the slot says so.  Results do not depend on the number of threads.  A failure sticks in
 * exec.status.
 *
 * Letters: T tokens of the ragged stream, B sequences in it, H hidden size, N attention heads, of keys and
 * values G, D columns of a head, F feed-forward size, V padded vocabulary, M masked positions. */
#ifndef KILN_OPS_OPS_H
#define KILN_OPS_OPS_H

#include "core/tensor.h"
#include "dev/exec.h"

/* Dropout with an address (docs/math/dropout.md).  Element (row, column) is dropped iff the 16-bit number
 *
 *     word16(philox4x32_7(*exec.dropout_key, column / 8, position, sequence, site), column % 8)
 *
 * is below round(65536 p), and scaled by 65536 / (65536 - round(65536 p)) otherwise.  (sequence, position) =
 * row_keys[row] is the row's place in the global batch, never its offset in the stream.  p = 0 drops
 * nothing. */
struct dropout {
    double p;
    uint32_t site; /* number of this dropout in the model: layer and place */
};

/* Round(65536 p): numbers below are dropped. */
uint32_t dropout_threshold(struct dropout d);

/* 65536 / (65536 - threshold): what the kept elements are multiplied by. */
double dropout_scale(struct dropout d);

/* The function of a gate: silu(z) = z / (1 + e^-z) (Elfwing et al. 2017, arXiv:1702.03118), or a GELU. */
enum gate_function { GATE_SILU, GATE_GELU, GATE_GELU_TANH };

/* The keys that each query attends to, and the options of attention. */
struct attention {
    tensor cu_seqlens_q;  /* i32 [B + 1]: the queries of sequence b are rows [cu[b], cu[b + 1]) */
    tensor cu_seqlens_kv; /* i32 [B + 1]: the same for keys and values */
    int64_t max_seqlen_q, max_seqlen_kv;
    /* pairs of queries and keys, only to count work; 0: assumes the longest length for each sequence */
    double n_pairs;
    double scale; /* factor of the scores: 1 / sqrt(D) */
    bool causal;  /* query i sees keys j <= i + (kv length - q length) */
    /* greatest distance of a key from its query: |i + (kv length - q length) - j| <= window; 0: no bound
     * (Beltagy et al. 2020, arXiv:2004.05150, section 3.1).  Work is that of the keys in the window alone. */
    int64_t window;
    tensor alibi_slopes; /* f32 [N] or null: slope * j is added to the scores */
    tensor block_table;  /* i32 [B, blocks], of attention_cached alone: pages of a sequence, in order */
    tensor row_keys;     /* i32 [T, 2]: keys of the query rows */
    /* heads of keys and values, for attention_cached, whose pages do not tell; 0: as many as of queries */
    int64_t n_kv_heads;
    /* dropout of the probabilities; column = (first_head + head) * 65536 + key position in its sequence */
    struct dropout dropout;
    int64_t first_head; /* number of the first of these heads in the model */

    /* i32 bits of ops/attention_bits.h, or null.  With dropout the forward writes which probabilities it
     * keeps, and the backward may read them and need not draw again.  Devices that keep no bits
     * (dev/device.h) ignore it. */
    tensor bits;
};

/* The state of an optimizer over flat buffers of one layout. */
struct optim_buffers {
    tensor master;     /* W [n]: the parameters that are updated */
    tensor working;    /* A [n]: their rounded copy that products read, written too; null where A is W */
    tensor grad;       /* W [n]: gradient; undefined afterwards */
    tensor exp_avg;    /* W [n]: m */
    tensor exp_avg_sq; /* W [n]: v */
};

/* Options of choosing or rating a token: columns of a tensor f64 [M, CHOICE_N_OPTIONS] (choose_tokens). */
enum choice_option {
    CHOICE_LABEL,       /* the token that is rated; -1: one is chosen, and rated */
    CHOICE_N_RATED,     /* 0: none is rated; 1 + n: it, and the n most probable ones */
    CHOICE_RANDOM,      /* uniform in [0, 1) */
    CHOICE_TEMPERATURE, /* 0: the largest logit is chosen */
    CHOICE_TOP_K,       /* 0: all */
    CHOICE_TOP_P,       /* 1: all */
    CHOICE_MIN_P,       /* 0: all */
    CHOICE_REPETITION,  /* 1: off */
    CHOICE_FREQUENCY,   /* 0: off */
    CHOICE_PRESENCE,    /* 0: off */
    CHOICE_N_OPTIONS,
};

/* Changes of a logit before the choice: columns of a tensor f32 [E, CHANGE_N_COLUMNS]. */
enum choice_change {
    CHANGE_ID,    /* id of the token, below 2^24; in a row each once */
    CHANGE_ADD,   /* a number that is added to its logit */
    CHANGE_WAS,   /* 1: the text has it, so that CHOICE_REPETITION holds for it; else 0 */
    CHANGE_N_NEW, /* count of times that it was generated */
    CHANGE_N_COLUMNS,
};

/* A run of elements with the same update: one logical parameter, or the part of it that one rank updates.
 * Its sums are those of chunks of OPTIM_CHUNK elements, the last of which may be shorter. */
struct optim_span {
    int64_t offset, n;
    double weight_decay;
    /* the learning rate of its elements, as a part of OPTIM_LR: lr in the formulas below is their product */
    double rate;
    int64_t first_chunk, n_chunks; /* the full parameter's chunks, in arrays of sums of all parameters */
    /* rows of a matrix whose update is orthogonal (optim/optimizer_muon.c); 0: not such a matrix */
    int64_t rows;
    int64_t full_rows, full_cols; /* size of the matrix, of which tensor parallelism leaves a slice here */
};

enum { OPTIM_CHUNK = 1024 };

/* The number of chunks of some spans, one span after the other. */
int64_t optim_chunks(const struct optim_span *spans, int64_t n_spans);

/* Scalars of one update, in a tensor f64 [OPTIM_N_SCALARS] on the device, so that a captured graph can be
 * replayed. */
enum optim_scalar {
    OPTIM_LR,
    OPTIM_BETA1,
    OPTIM_BETA2,
    OPTIM_EPS,
    OPTIM_CORRECTION1, /* 1 - beta1^t, or 1 without bias correction */
    OPTIM_CORRECTION2, /* 1 - beta2^t, or 1 */
    OPTIM_MAX_NORM,    /* gradients are divided by max(1, norm / MAX_NORM); 0: never */
    OPTIM_GRAD_SCALE,  /* gradients, and their norm, are multiplied by it first: 1 / the loss scale */
    /* 1: decay is added to the gradient, as Adam has it; 0: it is taken from the weight, as AdamW has it */
    OPTIM_COUPLED,
    OPTIM_RATIO_OF_ALL, /* 1: parameters without decay have a trust ratio, too; 0: theirs is 1 */
    OPTIM_MIN_RATIO,    /* the bounds of trust ratios: 0 and infinity are none */
    OPTIM_MAX_RATIO,
    OPTIM_MOMENTUM, /* the momentum of `nesterov` */
    OPTIM_N_SCALARS,
};

/* Losses of one logit z with target y. */
enum pointwise_loss {
    POINTWISE_SQUARED, /* (z - y)^2: regression */
    POINTWISE_SIGMOID, /* -y log s - (1 - y) log (1 - s), s = sigmoid(z): labels that are not exclusive */
};

/* Every dim of a product in fp8 is a multiple of this. */
enum { OPS_FP8_MULTIPLE = 16 };

/* Rows of activations that meet a matrix in int8 are integers of at most this magnitude under a scale of
 * their own: so that the sum of `n` products fits 31 bits. */
#define OPS_INT8_STEPS(n)                                                                                    \
    (INT32_MAX / (127 * (n)) < INT16_MAX ? (int32_t)(INT32_MAX / (127 * (n))) : (int32_t)INT16_MAX)

/* The longest row for which these are finer than int8 itself. */
enum { OPS_INT8_MOST = INT32_MAX / (127 * 127) };

/* Tokens of a page of cached keys and values. */
enum { OPS_CACHE_PAGE = 32 };

struct ops {
    const char *name; /* "ref", "plan", "cpu" */

    /* out[i] = value.  Any dtype. */
    void (*fill)(struct exec *x, tensor out, double value);

    /* out[i] = in[i], converted to the dtype of out (round to nearest even).  Same shape; strided rows
     * allowed. */
    void (*cast)(struct exec *x, tensor out, tensor in);

    /* Rounds a factor of products to fp8 (core/fp8.h; Micikevicius et al. 2022, arXiv:2209.05433), with one
     * scale:
     *     scale = fp8_scale(format, max |in|);  rows = columns = scale round(in / scale)
     *     dbias += sum over rows of in
     * With a history, which holds the largest magnitudes of this factor in the step before and in this one:
     *     history[1] = max(history[1], max |in|);  scale = fp8_scale_after(format, history[0], history[1])
     * This scale hardly ever depends on max |in|, so `in` is read only once.  A NaN counts as the largest
     * number.
     *
     * rows and columns [T, I] have dtype `format` and this scale.  columns is stored by columns
     * (tensor_transpose), for products that sum over its rows.  On a device that does not compute in fp8,
     * rows is A, bf16 or fp32, and columns is null.  scale f32 [1], history f32 [2] or null, dbias [I] W or
     * null, in [T, I] A.
     *
     * With format int8, on a device that multiplies it, each row has its own scale, and the largest magnitude
     * of a row becomes 127:
     *     scale[t] = max |in[t]| / 127;  rows[t] = round(in[t] / scale[t])
     * scale is then [T], rows int8, and columns, history and dbias are null.  A row that is not finite gets
     * the scale NaN.
     *
     * Only tables of devices that compute in fp8 use maxima and `rounded` (core/tensor.h).  Slots that say
     * "notes maxima" assign the maxima of a result together with it; if `in` has maxima, quantize takes the
     * largest from them. Slots that say "rounds" also round a result whose `rounded` points to a factor, with
     * columns and a history, as quantize does.  With "rounds instead of it" the result itself is then not
     * stored. */
    void (*quantize)(struct exec *x, tensor rows, tensor columns, tensor scale, tensor history, tensor dbias,
                     tensor in, enum dtype format);

    /* out[i] += in[i].  out, in W, of any one shape, dense. */
    void (*add)(struct exec *x, tensor out, tensor in);

    /* total[0] += sum_i in[i].  total f64 [1], in W or i32 [n]. */
    void (*sum)(struct exec *x, tensor total, tensor in);

    /* index[0] = the first i with in[i] infinite or NaN, or -1.  index i64 [1], in any float dtype, any
     * shape. */
    void (*find_nonfinite)(struct exec *x, tensor index, tensor in);

    /* out = in w^T + bias.  out [T, O] A or W, in [T, I] A, w [O, I] A, bias [O] W, or of the dtype of out on
     * a device that takes_rounded_biases, or null.  in and out may have strided rows.
     *
     * Here and in linear_gelu, on a device that multiplies int8, w may be int8 with a scale for each of its
     * rows.  Then each row of `in` may be rounded to multiples of its largest magnitude divided by
     * OPS_INT8_STEPS(I), where I is at most OPS_INT8_MOST.  With exec.int8_rows a row is rounded
     * to multiples of the step
     *     s[t] = (max(0, max_i in[t, i]) - min(0, min_i in[t, i])) / 254
     * and the sums of these integers are exact; I is at most half as many.
     *
     * Here and in the next three, on a device that computes in fp8, both factors of a product may be fp8: in
     * and w e4m3, dout e5m2.  They are stored by rows, except w in linear_backward_input and both factors of
     * linear_backward_weight, which are stored by columns.  T, I and O are then multiples of 16, and dbias is
     * null. */
    void (*linear)(struct exec *x, tensor out, tensor in, tensor w, tensor bias);

    /* Here and in the layer norms below, tensors that only a backward reads may be null: pre; sum; mean and
     * rstd together.  pre = in w^T + bias;  out = gelu(pre) = pre Phi(pre), Phi the normal CDF: the erf form
     * of Hendrycks and Gimpel 2016 (arXiv:1606.08415) section 2, not its tanh approximation.  out, pre [T, O]
     * A; bias [O] as in linear.  out notes maxima, and rounds instead of it. */
    void (*linear_gelu)(struct exec *x, tensor out, tensor pre, tensor in, tensor w, tensor bias);

    /* din = dout w, or din += dout w if `accumulate`.  din [T, I] A, dout [T, O] A, w [O, I] A. */
    void (*linear_backward_input)(struct exec *x, tensor din, tensor dout, tensor w, bool accumulate);

    /* dw = dout^T in, or dw += dout^T in if `accumulate`;  dbias += sum over rows of dout.  dw [O, I] W,
     * dbias [O] W or null, dout [T, O] A, in [T, I] A. */
    void (*linear_backward_weight)(struct exec *x, tensor dw, tensor dbias, tensor dout, tensor in,
                                   bool accumulate);

    /* dpre = dout gelu'(pre), gelu'(z) = Phi(z) + z phi(z);  dbias += sum over rows of dpre, the gradient of
     * linear_gelu's bias.  All [T, F] A, dbias [F] W; dpre may alias dout, notes maxima, and rounds
     * instead of it. */
    void (*gelu_backward)(struct exec *x, tensor dpre, tensor dbias, tensor dout, tensor pre);

    /* out = tanh(in); out may alias in.  din = dout (1 - out^2); din may alias dout.  Any shape, A. */
    void (*tanh)(struct exec *x, tensor out, tensor in);
    void (*tanh_backward)(struct exec *x, tensor din, tensor dout, tensor out);

    /* The rectifier (Nair and Hinton 2010): out = max(in, 0); out may alias in.  din = dout where out > 0,
     * else 0; din may alias dout.  Any shape, A. */
    void (*relu)(struct exec *x, tensor out, tensor in);
    void (*relu_backward)(struct exec *x, tensor din, tensor dout, tensor out);

    /* The tanh approximation of GELU, as GPT-2 and BLOOM have it (Hendrycks and Gimpel 2016, section 2), with
     * u = sqrt(2 / pi) (z + 0.044715 z^3):
     *     out = z (1 + tanh u) / 2;  dpre = dout gelu'(z), z = pre
     * out may alias pre, and dpre dout.  Any shape, A. */
    void (*gelu_tanh)(struct exec *x, tensor out, tensor pre);
    void (*gelu_tanh_backward)(struct exec *x, tensor dpre, tensor dout, tensor pre);

    /* The gate of a feed-forward (Shazeer 2020, arXiv:2002.05202, section 2), pre = [gate, up], f the
     * function; all A, out, dout [T, F], pre, dpre [T, 2 F]; dpre may alias pre:
     *     out = f(gate) up;  dpre = [dout up f'(gate), dout f(gate)] */
    void (*gated)(struct exec *x, tensor out, tensor pre, enum gate_function f);
    void (*gated_backward)(struct exec *x, tensor dpre, tensor dout, tensor pre, enum gate_function f);

    /* Rotary positions (Su et al. 2021, arXiv:2104.09864, section 3.4.2), in place: of each head the columns
     * i and i + R / 2 of the first R are turned by the i-th angle of the row's position, whose cosine and
     * sine are turns[position, i] and turns[position, R / 2 + i]; back: by its opposite, the gradient:
     *     (a, b) = (a cos - b sin, b cos + a sin)
     * heads [T, N, D] A, strided rows allowed; turns f32 [P, R], R even and at most D; positions i32 [T]. */
    void (*rotate)(struct exec *x, tensor heads, tensor turns, tensor positions, bool back);

    /* out = residual + branch; out may alias either.  Any shape; out, residual R, branch A. */
    void (*residual_add)(struct exec *x, tensor out, tensor residual, tensor branch);

    /* out = dropout(in); row i has the address row_keys[i].  Applied to dout it is the gradient.  out, in [R,
     * C] A, out may alias in; row_keys i32 [R, 2].  Srivastava et al. 2014. */
    void (*dropout)(struct exec *x, tensor out, tensor in, tensor row_keys, struct dropout drop);

    /* sum = word[id] + position[pos] + type[segment];  out = dropout(LN(sum)).  Devlin et al. 2018
     * (arXiv:1810.04805), figure 2.  out, sum [T, H] A; mean, rstd [T] W; ids, types, positions i32 [T]; word
     * [V, H], position [P, H], type [S, H] A; gamma, beta [H] W; row_keys i32 [T, 2].  out notes maxima. */
    void (*embed)(struct exec *x, tensor out, tensor sum, tensor mean, tensor rstd, tensor ids, tensor types,
                  tensor positions, tensor word, tensor position, tensor type, tensor gamma, tensor beta,
                  double eps, tensor row_keys, struct dropout drop);

    /* The gradients of embed, all += except dsum: dword [V, H], dposition [P, H], dtype [S, H], dgamma, dbeta
     * [H] W. dsum [T, H] A, assigned, is the gradient of `sum`; it may alias dout. */
    void (*embed_backward)(struct exec *x, tensor dsum, tensor dword, tensor dposition, tensor dtype,
                           tensor dgamma, tensor dbeta, tensor dout, tensor sum, tensor mean, tensor rstd,
                           tensor ids, tensor types, tensor positions, tensor gamma, tensor row_keys,
                           struct dropout drop);

    /* LN: out = (in - mean) rstd gamma + beta over the last dim, mean and rstd = 1 / sqrt(var + eps) of each
     * row, var biased.  Ba et al. 2016 (arXiv:1607.06450) section 3.  out [T, H] A, in [T, H] R; mean, rstd
     * [T], gamma, beta [H] W.  Without beta, which is null then, nothing is added.  Without mean as well, in
     * a backward without mean, it is the RMS norm (Zhang and Sennrich 2019, arXiv:1910.07467): mean is 0,
     * and var the mean of squares.  So for all ops with such a norm; the gradient of a null beta is null.
     * out may alias in.  Here and in layernorm_backward rows may be strided, and be those of heads
     * [T, N, D], mean and rstd [T N], gamma [D]. */
    void (*layernorm)(struct exec *x, tensor out, tensor mean, tensor rstd, tensor in, tensor gamma,
                      tensor beta, double eps);

    /* With g = dout gamma and xhat = (in - mean) rstd; din, dout A, in R; din may alias dout:
     *     din = rstd (g - mean(g) - xhat mean(g xhat));  dgamma += sum dout xhat;  dbeta += sum dout */
    void (*layernorm_backward)(struct exec *x, tensor din, tensor dgamma, tensor dbeta, tensor dout,
                               tensor in, tensor mean, tensor rstd, tensor gamma);

    /* sum = residual + dropout(in + bias);  out = LN(sum).  One pass for the end of both halves of a
     * transformer layer; bias may be null.  out, in [T, H] A; sum, residual [T, H] R;
     * mean, rstd [T], bias, gamma, beta [H] W.  out notes maxima, and rounds. */
    void (*bias_dropout_add_layernorm)(struct exec *x, tensor out, tensor sum, tensor mean, tensor rstd,
                                       tensor in, tensor bias, tensor residual, tensor gamma, tensor beta,
                                       double eps, tensor row_keys, struct dropout drop);

    /* dresidual = gradient of `sum`, which is also that of the residual; or += it with `accumulate`, if
     * `sum` has another reader than LN;  din = dropout'(dresidual);  dbias += sum over rows of din; dgamma,
     * dbeta += as in layernorm_backward.  dresidual, sum [T, H] R; din, dout [T, H] A; dresidual and din
     * are distinct; dresidual may alias dout where R is A, unless it accumulates or din is rounded.  din
     * notes maxima, and rounds instead of it. */
    void (*bias_dropout_add_layernorm_backward)(struct exec *x, tensor dresidual, tensor din, tensor dbias,
                                                tensor dgamma, tensor dbeta, tensor dout, tensor sum,
                                                tensor mean, tensor rstd, tensor gamma, tensor row_keys,
                                                struct dropout drop, bool accumulate);

    /* Scaled dot-product attention of each head inside each sequence (Vaswani et al. 2017, arXiv:1706.03762,
     * section 3.2):
     *     P = softmax(scale q k^T);  out = dropout(P) v;  lse = log sum_j exp(scale q k_j)
     * out, q [T, N, D], k, v [T, G, D] A, strided rows allowed (views of one product); lse [T, N] W.  Head n
     * reads the keys and values of head n / (N / G); G divides N (Ainslie et al. 2023, arXiv:2305.13245).
     * In rows after the last sequence out is 0, and lse is not written.  a.bits, if not null, is written. */
    void (*attention)(struct exec *x, tensor out, tensor lse, tensor q, tensor k, tensor v,
                      struct attention a);

    /* With P recomputed from lse (Dao 2023, arXiv:2307.08691, algorithm 2), all assigned:
     *     dv = dropout(P)^T dout;  dP = dropout'(dout v^T);  dS = P (dP - rowsum(dout out))
     *     dq = scale dS k;  dk = scale dS^T q
     * and 0 in rows after the last sequence;  dbias += sums over rows of dq, dk and dv.  dbias [(N + 2 G) D]
     * W, the three side by side, or null; only if q and k have rows of the same size.  a.bits, if not null,
     * may be read. */
    void (*attention_backward)(struct exec *x, tensor dq, tensor dk, tensor dv, tensor dbias, tensor dout,
                               tensor out, tensor lse, tensor q, tensor k, tensor v, struct attention a);

    /* Writes keys and values of rows into pages (Kwon et al. 2023, arXiv:2309.06180, section 4.1).  The
     * pages of keys hold columns of tokens, those of values rows, so that both are read in the order of
     * memory: with page = slots[t] / OPS_CACHE_PAGE and place = slots[t] % OPS_CACHE_PAGE
     *     keys[page G + n, d, place] = k[t, n, d];  values[page G + n, place, d] = v[t, n, d]
     * keys [P G, D, page], values [P G, page, D], k, v [T, G, D] A, strided rows allowed; slots i32 [T],
     * no two the same; -1: the row is not kept. */
    void (*append_rows)(struct exec *x, tensor keys, tensor values, tensor k, tensor v, tensor slots);

    /* Computes attention over keys and values in such pages, without dropout: key j of sequence b is at place
     * j % OPS_CACHE_PAGE of page block_table[b, j / OPS_CACHE_PAGE], and a.cu_seqlens_kv counts cached keys
     * as well as those of the queries' own tokens.  What a query gets depends on its own keys alone, to the
     * bit: not on the queries and sequences next to it.  out, q [T, N, D] A; q may have strided rows.  In
     * rows after the last sequence out is 0. */
    void (*attention_cached)(struct exec *x, tensor out, tensor q, tensor keys, tensor values,
                             struct attention a);

    /* out[i] = in[rows[i]].  out [M, H], in [T, H] A, or both i32, or out A and in int8 where linear takes
     * that; rows i32 [M]. */
    void (*gather_rows)(struct exec *x, tensor out, tensor in, tensor rows);

    /* din[rows[i]] += dout[i], in the order of i.  din [T, H] A or W, dout [M, H] A; a row may occur
     * twice. */
    void (*scatter_add_rows)(struct exec *x, tensor din, tensor dout, tensor rows);

    /* gather_rows and scatter_add_rows on a table of which only rows [first, first + T) of n_rows are here,
     * as on one of several ranks that have a slice each (core/param.h); in and din have those T rows, and
     * rows[i] is a number in [0, n_rows):
     *     out[i] = in[rows[i] - first] if that row is here, else 0;  din[rows[i] - first] += dout[i] if it
     * is. */
    void (*gather_slice)(struct exec *x, tensor out, tensor in, tensor rows, int64_t first, int64_t n_rows);
    void (*scatter_add_slice)(struct exec *x, tensor din, tensor dout, tensor rows, int64_t first,
                              int64_t n_rows);

    /* For each row with label y >= 0, over the first n_classes columns (the rest has probability zero):
     *     loss = -log softmax(logits)[y];  correct = (argmax logits == y)
     *     dlogits = scale (softmax(logits) - onehot(y))
     * For rows with label -1: loss 0, correct 0, dlogits 0.  dlogits of columns past n_classes is 0. loss W
     * [M], correct i32 [M], logits [M, C] W, labels i32 [M], scale f64 [1]; dlogits [M, C] A, or null to skip
     * it; it may alias logits where A is W. */
    void (*cross_entropy)(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                          tensor labels, int64_t n_classes, tensor scale);

    /* cross_entropy where the columns are a slice of n_classes classes, from class `first` on, as on one of
     * several ranks (Shoeybi et al. 2019, arXiv:1909.08053, section 3): those of them below n_classes are
     * `here`; there may be none.  In three steps:
     *     maxima = the largest logit here, or -infinity
     * and then, with `maxima` that are the largest of all ranks, for each row with label y
     *     sums = the sum of exp(logit - maximum) here;
     *            the logit of y if it is here, else 0;
     *            how many classes here before y have the maximum as their logit
     * and 0 for a row with label -1; and then, with `sums` that are added up over all ranks, what
     * cross_entropy computes, dlogits for the columns that are here.  In fp32 loss and dlogits are within
     * 1e-6 of its own, relative to the largest element, and correct is the same.
     * maxima [M] W, sums f64 [M, 3], all else as in cross_entropy. */
    void (*slice_maxima)(struct exec *x, tensor maxima, tensor logits, int64_t first, int64_t n_classes);
    void (*slice_sums)(struct exec *x, tensor sums, tensor logits, tensor maxima, tensor labels,
                       int64_t first, int64_t n_classes);
    void (*slice_cross_entropy)(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                                tensor maxima, tensor sums, tensor labels, int64_t first, int64_t n_classes,
                                tensor scale);

    /* The loss of the start and the end of a span (Devlin et al. 2018, section 4.2).  For sequence b with the
     * rows [cu[b], cu[b + 1]) and column e (0 start, 1 end), y = labels[b, e] >= 0 counted from its first
     * row:
     *     loss = -log softmax(logits[rows, e])[y];  correct = (argmax == y)
     *     dlogits = scale (softmax(logits[rows, e]) - onehot(y))
     * For labels -1 and rows of no labelled sequence: loss 0, correct 0, dlogits 0.
     * loss W [B, 2], correct i32 [B, 2], logits [T, 2] W, labels i32 [B, 2], cu_seqlens i32 [at least B + 1],
     * scale f64 [1]; dlogits [T, 2] A, or null to skip it. */
    void (*span_cross_entropy)(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                               tensor cu_seqlens, tensor labels, tensor scale);

    /* For each element with target y, not a NaN: loss as above; correct = ((z > 0) == (y > 1/2)) of sigmoid,
     * 0 of squared;
     *     dlogits = scale times the gradient of the loss: 2 (z - y), or sigmoid(z) - y
     * For targets that are NaN: loss 0, correct 0, dlogits 0.  loss W, correct i32, logits W, targets f32 of
     * one shape [R, C]; dlogits [R, C] A, or null to skip it; scale f64 [1]. */
    void (*pointwise)(struct exec *x, tensor loss, tensor correct, tensor dlogits, tensor logits,
                      tensor targets, enum pointwise_loss kind, tensor scale);

    /* For row r, a label y = options[r, CHOICE_LABEL] and p = softmax of its first n_words logits z:
     *     tokens[r, 0] = y >= 0 ? y : the chosen token;  tokens[r, i] = the i-th most probable token
     *     log_ps = log p of them, by the formula of cross_entropy; of CHOICE_N_RATED of them, the rest is 0
     * where there are no more tokens they are -1.  If not all z are finite tokens[r, 0] = -1 and
     * log_ps[r, 0] = NaN.  Tokens are those below n_tokens <= n_words, and are ordered by their logits, the
     * smaller one first where they are equal.  To choose, for each change [starts[r], starts[r + 1]) first
     *     z = z + add;  z = z > 0 ? z / repetition : z repetition, if it was there (Keskar et al. 2019,
     *     arXiv:1909.05858, section 4.1);  z = z - frequency n_new - presence, if n_new > 0
     * Then w = exp((z - largest z) / temperature), and of all tokens in order only these are left, one step
     * after the other: the first top_k; the first whose w sum to top_p of all (Holtzman et al. 2019,
     * arXiv:1904.09751, section 3.1); those with w >= min_p (Nguyen et al. 2024, arXiv:2407.01082). The token
     * is the first at which the sum of their w exceeds `random` of all.
     * tokens i32 [M, K], log_ps W [M, K], of which CHOICE_N_RATED is at most K; logits W [M, V], starts i32
     * [M + 1].  changes is undefined afterwards; logits are changed meanwhile. */
    void (*choose_tokens)(struct exec *x, tensor tokens, tensor log_ps, tensor changes, tensor logits,
                          tensor options, tensor starts, int64_t n_tokens, int64_t n_words);

    /* flat[i] = 0 for i in the spans.  flat W [n]. */
    void (*clear)(struct exec *x, tensor flat, const struct optim_span *spans, int64_t n_spans);

    /* sums[k] = the sum of in[i]^2 over chunk k of the spans, in double.  sums f64 [optim_chunks], in W
     * [n]. */
    void (*squares)(struct exec *x, tensor sums, tensor in, const struct optim_span *spans, int64_t n_spans);

    /* sums[k] = the number of zeros among in[i] of chunk k, of both signs.  sums f64 [optim_chunks], in W
     * [n]. */
    void (*zeros)(struct exec *x, tensor sums, tensor in, const struct optim_span *spans, int64_t n_spans);

    /* norm[0] = sqrt(sums[0] + sums[1] + ...), added in an order that n alone decides.  norm f64 [1], sums
     * f64 [n]. */
    void (*norm_of)(struct exec *x, tensor norm, tensor sums);

    /* LAMB (You et al. 2020, arXiv:1904.00962, algorithm 2; the variant of docs/math/optimizers.md).  For
     * every span, with c1, c2, s = grad_scale, ... of the scalars:
     *     g = s grad / max(1, s norm / max_norm)
     *     m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
     *     u = (m / c1) / (sqrt(v / c2) + eps) + wd w
     *     r = max(min_ratio, min(|w| / |u|, max_ratio)) if both > 0 and (wd != 0 or ratio_of_all), else 1
     *     w -= lr r u
     * in two halves, between which ranks that update parts of parameters exchange their sums.  The
     * first leaves u in the gradient's buffer, and in sums f64 [optim_chunks, 2] those of w^2 and of u^2
     * of each chunk of the spans; the second takes |w| and |u| of each span's full parameter from sums f64
     * [all chunks, 2], added in order. norm f64 [n], n >= 1: the first from norm_of, then whatever else must
     * be finite; scalars f64 [OPTIM_N_SCALARS].  Where one of norm is not finite nothing is written,
     * gradients included: the update can be queued before anybody has looked. */
    void (*lamb_direction)(struct exec *x, tensor sums, struct optim_buffers b,
                           const struct optim_span *spans, int64_t n_spans, tensor norm, tensor scalars);
    void (*lamb_apply)(struct exec *x, struct optim_buffers b, const struct optim_span *spans,
                       int64_t n_spans, tensor sums, tensor norm, tensor scalars);

    /* LANS (Zheng et al. 2020, arXiv:2006.13484, algorithm 2), with g as in lamb_direction, and n = |g| of
     * each span's full parameter from squares f64 [all chunks], which `squares` has left:
     *     g = g / (n + eps) if n > 0;  m, v as in lamb_direction, of this g;  d = sqrt(v / c2) + eps
     *     r = (m / c1) / d + wd w;  c = g / d + wd w
     *     w -= lr (b1 |w| / |r| r + (1 - b1) |w| / |c| c), both ratios as LAMB's; the paper has ratios of all
     * in two halves as LAMB.  The first leaves the normalised g in the gradient's buffer, and in sums f64
     * [optim_chunks, 3] those of w^2, r^2 and c^2; the second makes r and c again from m, v and g. */
    void (*lans_direction)(struct exec *x, tensor sums, struct optim_buffers b,
                           const struct optim_span *spans, int64_t n_spans, tensor squares, tensor norm,
                           tensor scalars);
    void (*lans_apply)(struct exec *x, struct optim_buffers b, const struct optim_span *spans,
                       int64_t n_spans, tensor sums, tensor norm, tensor scalars);

    /* AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101; the variant of docs/math/optimizers.md), g, m and
     * v, norm and scalars as in lamb_direction:
     *     w = w (1 - lr wd) - lr sqrt(c2) / c1 * m / (sqrt(v) + eps)
     * or, coupled, g += wd w, and w has no factor: Adam (Kingma and Ba 2015, arXiv:1412.6980) with L2
     * regularisation. */
    void (*adamw)(struct exec *x, struct optim_buffers b, const struct optim_span *spans, int64_t n_spans,
                  tensor norm, tensor scalars);

    /* The pieces of Muon (Jordan et al. 2024; optim/optimizer_muon.c) that are not products.  Nesterov
     * momentum, with g, norm and scalars as in lamb_direction, and mu of the scalars:
     *     m = mu m + (1 - mu) g;  u = mu m + (1 - mu) g
     * u takes the place of the gradient.  sums f64 [optim_chunks, 1]: of u^2, of each chunk of the spans.  v
     * is not touched. */
    void (*nesterov)(struct exec *x, tensor sums, struct optim_buffers b, const struct optim_span *spans,
                     int64_t n_spans, tensor norm, tensor scalars);

    /* out = in / sqrt(sums[0] + sums[1] + ...), or 0 if that is 0.  out [R, C] A or W, in [R, C] W, sums f64
     * [n, 1], added in an order that n alone decides. */
    void (*unit)(struct exec *x, tensor out, tensor in, tensor sums);

    /* out = a I + b in + c square: a polynomial of a symmetric matrix.  All [M, M], A or W; out may alias
     * either. */
    void (*matrix_polynomial)(struct exec *x, tensor out, tensor in, tensor square, double a, double b,
                              double c);

    /* w = w (1 - lr wd) - lr in, with lr the span's part of OPTIM_LR: gradient descent with decoupled decay,
     * of the matrix of one span.  in [R, C] A or W; of b, master and working.  Nothing is written where one
     * of norm is not finite. */
    void (*descend)(struct exec *x, struct optim_buffers b, const struct optim_span *span, tensor in,
                    tensor norm, tensor scalars);
};

extern const struct ops ops_ref;
extern const struct ops ops_plan;

/* The fastest table that this processor runs, and the instruction set of its kernels: "avx512". */
const struct ops *ops_cpu(void);
const char *ops_cpu_isa(void);

/* Whether this processor has instructions for products of int8 by int8 (exec.int8_rows), which are then
 * faster than those in fp32. */
bool ops_cpu_multiplies_int8(void);

/* Whether the environment variable KILN_ISA, if it is set, names one: STATUS_USAGE if there is none of that
 * name, STATUS_UNAVAILABLE if the processor lacks it. */
struct status ops_cpu_check(void);

/* A line for each library of matrix products, "oneDNN 2.6.3: on"; NULL after the last. */
const char *ops_cpu_library(int i);

/* Memory that these libraries and the pool of threads take while they train a model with these sizes, besides
 * its tensors: code, tables, panels of matrices, scratch of each thread. */
size_t ops_cpu_library_bytes(int64_t hidden_size, int64_t feed_forward_size, bool in_fp32);

#endif
