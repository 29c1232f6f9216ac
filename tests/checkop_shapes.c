/* The shapes that checkop tries: odd sizes, single rows, empty sequences, whole vector widths and one off
 * them, and the sizes of BERT for the benchmark. */
#include "checkop_cases.h"

#define LENS(...)                                                                                            \
    (const int32_t[])                                                                                        \
    {                                                                                                        \
        __VA_ARGS__, -1                                                                                      \
    }

#define RAGGED LENS(17, 1, 0, 64, 33, 5)

/* One and one off the sides of squares and tiles of attention with matrix instructions, and more than a
 * tile. */
#define EVERY_LENGTH LENS(1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200)

static const struct checkop_shape test_shapes[] = {
    {"fill", .t = 3, .h = 5, .strided = true},
    {"fill", .t = 100, .h = 777},
    {"cast", .t = 3, .h = 1000},
    {"cast", .t = 33, .h = 1027, .plain = true},
    {"cast", .t = 5, .h = 17, .strided = true},
    {"sum", .t = 1},
    {"sum", .t = 5003},
    {"sum", .t = 77, .plain = true},
    {"find_nonfinite", .t = 100, .h = 333},
    {"find_nonfinite", .t = 1, .h = 3},
    {"find_nonfinite", .t = 100, .h = 333, .plain = true},
    {"linear", .t = 1, .h = 1, .f = 1},
    {"linear", .t = 7, .h = 33, .f = 17},
    {"linear", .t = 130, .h = 100, .f = 77, .plain = true},
    {"linear", .t = 129, .h = 64, .f = 1030, .strided = true},
    {"linear", .t = 300, .h = 192, .f = 576},
    {"linear", .t = 33, .h = 3072, .f = 40},
    {"linear_gelu", .t = 3, .h = 5, .f = 7},
    {"linear_gelu", .t = 257, .h = 64, .f = 513},
    {"linear_backward_input", .t = 9, .h = 7, .f = 19, .plain = true},
    {"linear_backward_input", .t = 131, .h = 65, .f = 50, .strided = true},
    {"linear_backward_input", .t = 256, .h = 192, .f = 576},
    {"linear_backward_input", .t = 33, .h = 24, .f = 8250},
    {"linear_backward_weight", .t = 1, .h = 3, .f = 5},
    {"linear_backward_weight", .t = 70, .h = 33, .f = 17, .plain = true, .strided = true},
    {"linear_backward_weight", .t = 333, .h = 192, .f = 200},
    {"linear_backward_weight", .t = 2100, .h = 9, .f = 40},
    {"gelu_backward", .t = 1, .h = 1},
    {"gelu_backward", .t = 70, .h = 333},
    {"gelu_backward", .t = 9, .h = 1024, .shared = true},
    {"tanh", .t = 3, .h = 7},
    {"tanh", .t = 50, .h = 768, .shared = true},
    {"tanh_backward", .t = 3, .h = 7},
    {"tanh_backward", .t = 50, .h = 768, .shared = true},
    {"embed", .t = 70, .h = 24},
    {"embed", .t = 90, .h = 200, .p = 0.1},
    {"embed", .t = 1, .h = 7, .p = 0.5},
    {"embed_backward", .t = 70, .h = 24},
    {"embed_backward", .t = 130, .h = 200, .p = 0.1, .shared = true},
    {"embed_backward", .t = 1, .h = 7, .p = 0.5},
    {"embed_backward", .t = 700, .h = 1032, .f = 300},
    {"embed_backward", .t = 150, .h = 8, .f = 70000},
    {"layernorm", .t = 1, .h = 3},
    {"layernorm", .t = 90, .h = 333},
    {"layernorm_backward", .t = 1, .h = 3},
    {"layernorm_backward", .t = 90, .h = 333, .shared = true},
    {"bias_dropout_add_layernorm", .t = 1, .h = 5},
    {"bias_dropout_add_layernorm", .t = 37, .h = 333, .p = 0.1},
    {"bias_dropout_add_layernorm", .t = 50, .h = 768, .p = 0.3, .lens_q = LENS(20, 29, 1)},
    {"bias_dropout_add_layernorm_backward", .t = 1, .h = 5},
    {"bias_dropout_add_layernorm_backward", .t = 37, .h = 333, .p = 0.1, .shared = true},
    {"bias_dropout_add_layernorm_backward", .t = 500, .h = 192, .p = 0.1, .lens_q = LENS(200, 290, 10)},
    {"attention", .h = 64, .heads = 2, .lens_q = RAGGED},
    {"attention", .h = 64, .heads = 2, .lens_q = RAGGED, .p = 0.1, .strided = true},
    {"attention", .h = 48, .heads = 3, .lens_q = RAGGED, .lens_kv = LENS(20, 3, 7, 64, 30, 0),
     .causal = true},
    {"attention", .h = 160, .heads = 1, .lens_q = LENS(40, 90), .causal = true, .alibi = true, .p = 0.2},
    {"attention", .h = 21, .heads = 3, .lens_q = LENS(1, 2, 130), .alibi = true},
    {"attention", .h = 64, .heads = 1, .lens_q = LENS(300), .p = 0.1},
    {"attention", .h = 64, .heads = 1, .lens_q = EVERY_LENGTH, .p = 0.1, .strided = true},
    {"attention", .h = 64, .heads = 1, .lens_q = LENS(130, 20, 5, 0, 40), .lens_kv = LENS(70, 150, 0, 9, 129),
     .causal = true},
    {"attention", .h = 64, .heads = 2, .lens_q = LENS(31, 129), .alibi = true},
    {"attention", .h = 96, .heads = 1, .lens_q = LENS(35, 81), .p = 0.1, .strided = true},
    {"attention", .h = 128, .heads = 1, .lens_q = LENS(65, 20), .p = 0.1},
    {"attention", .h = 96, .heads = 2, .lens_q = LENS(40), .p = 0.1},
    {"attention", .h = 32, .f = 3, .heads = 1, .lens_q = LENS(33), .strided = true},
    {"attention", .h = 128, .heads = 2, .lens_q = LENS(70, 9), .rest = 40, .p = 0.1, .strided = true},
    {"attention_backward", .h = 64, .heads = 2, .lens_q = RAGGED},
    {"attention_backward", .h = 64, .heads = 2, .lens_q = RAGGED, .p = 0.1, .strided = true},
    {"attention_backward", .h = 48, .heads = 3, .lens_q = RAGGED, .lens_kv = LENS(20, 3, 7, 64, 30, 0),
     .causal = true},
    {"attention_backward", .h = 160, .heads = 1, .lens_q = LENS(40, 90), .causal = true, .alibi = true,
     .p = 0.2},
    {"attention_backward", .h = 21, .heads = 3, .lens_q = LENS(1, 2, 130), .alibi = true},
    {"attention_backward", .h = 64, .heads = 1, .lens_q = LENS(300), .p = 0.1},
    {"attention_backward", .h = 64, .heads = 1, .lens_q = EVERY_LENGTH, .p = 0.1, .strided = true},
    {"attention_backward", .h = 64, .heads = 1, .lens_q = LENS(130, 20, 5, 0, 40),
     .lens_kv = LENS(70, 150, 0, 9, 129), .causal = true},
    {"attention_backward", .h = 64, .heads = 2, .lens_q = LENS(31, 129), .alibi = true},
    {"attention_backward", .h = 96, .heads = 1, .lens_q = LENS(35, 81), .p = 0.1, .strided = true},
    {"attention_backward", .h = 128, .heads = 1, .lens_q = LENS(65, 20), .p = 0.1},
    {"attention_backward", .h = 96, .heads = 2, .lens_q = LENS(40), .p = 0.1},
    {"attention_backward", .h = 32, .f = 3, .heads = 1, .lens_q = LENS(33), .strided = true},
    {"attention_backward", .h = 128, .heads = 2, .lens_q = LENS(70, 9), .rest = 40, .p = 0.1,
     .strided = true},
    {"gather_rows", .t = 20, .h = 33, .f = 50},
    {"gather_rows", .t = 20, .h = 33, .f = 1},
    {"scatter_add_rows", .t = 20, .h = 333, .f = 50},
    {"scatter_add_rows", .t = 1, .h = 3, .f = 4},
    {"scatter_add_rows", .t = 200, .h = 1100, .f = 400},
    {"cross_entropy", .t = 9, .h = 2, .f = 2},
    {"cross_entropy", .t = 50, .h = 1088, .f = 1027},
    {"cross_entropy", .t = 7, .h = 6016, .f = 6001, .shared = true},
    {"cross_entropy", .t = 7, .h = 40, .f = 33, .plain = true},
    {"span_cross_entropy", .f = 7, .lens_q = LENS(7, 30, 384, 12, 9)},
    {"span_cross_entropy", .f = 1, .lens_q = LENS(1, 3)},
    {"span_cross_entropy", .f = 7, .lens_q = LENS(17, 7), .plain = true},
    {"global_norm", .t = 9},
    {"global_norm", .t = 100000},
    {"lamb", .t = 9},
    {"lamb", .t = 50001},
    {"lamb", .t = 5000, .plain = true},
    {"lamb", .t = 3001, .shared = true},
    {"adamw", .t = 9},
    {"adamw", .t = 50001},
    {"adamw", .t = 5000, .plain = true},
    {"adamw", .t = 3001, .shared = true},
};

/* Every slot that has a backward, with respect to every input and parameter. */
static const struct checkop_shape gradient_shapes[] = {
    {"linear_backward_input", .t = 3, .h = 4, .f = 5},
    {"linear_backward_weight", .t = 3, .h = 4, .f = 5},
    {"gelu_backward", .t = 4, .h = 5, .f = 1},
    {"tanh_backward", .t = 4, .h = 5},
    {"embed_backward", .t = 9, .h = 8, .f = 6},
    {"embed_backward", .t = 9, .h = 11, .f = 6, .p = 0.3},
    {"layernorm_backward", .t = 4, .h = 7},
    {"bias_dropout_add_layernorm_backward", .t = 4, .h = 7},
    {"bias_dropout_add_layernorm_backward", .t = 4, .h = 17, .p = 0.3},
    {"attention_backward", .h = 8, .heads = 2, .lens_q = LENS(3, 0, 6)},
    {"attention_backward", .h = 8, .heads = 2, .lens_q = LENS(3, 1, 6), .p = 0.3, .strided = true},
    {"attention_backward", .h = 6, .heads = 1, .lens_q = LENS(3, 5), .lens_kv = LENS(7, 2), .causal = true},
    {"attention_backward", .h = 8, .heads = 2, .lens_q = LENS(5, 2), .causal = true, .alibi = true, .p = 0.2},
    {"scatter_add_rows", .t = 5, .h = 3, .f = 7},
    {"cross_entropy", .t = 6, .h = 9, .f = 7},
    {"span_cross_entropy", .f = 3, .lens_q = LENS(3, 8, 5)},
};

#define EIGHT(n)      n, n, n, n, n, n, n, n
#define THIRTY_TWO(n) EIGHT(n), EIGHT(n), EIGHT(n), EIGHT(n)

/* One training step of BERT-base at 4,096 tokens (32 sequences of 128; 8 of 512), of BERT-mini at as many
 * (attention at fewer), then of a small model at 1,024 tokens (16 of 64). */
static const struct checkop_shape bench_shapes[] = {
    {"linear", .t = 4096, .h = 768, .f = 2304},
    {"linear", .t = 4096, .h = 768, .f = 768},
    {"linear", .t = 4096, .h = 3072, .f = 768},
    {"linear_gelu", .t = 4096, .h = 768, .f = 3072},
    {"linear", .t = 640, .h = 768, .f = 30528, .strided = true},
    {"linear_backward_input", .t = 4096, .h = 768, .f = 2304, .plain = true},
    {"linear_backward_input", .t = 4096, .h = 3072, .f = 768, .plain = true},
    {"linear_backward_input", .t = 4096, .h = 768, .f = 3072, .plain = true},
    {"linear_backward_weight", .t = 4096, .h = 768, .f = 2304},
    {"linear_backward_weight", .t = 4096, .h = 3072, .f = 768},
    {"linear_backward_weight", .t = 4096, .h = 768, .f = 3072},
    {"linear_backward_weight", .t = 640, .h = 768, .f = 30528},
    {"gelu_backward", .t = 4096, .h = 3072},
    {"embed", .t = 4096, .h = 768, .f = 30528, .p = 0.1},
    {"embed_backward", .t = 4096, .h = 768, .f = 30528, .p = 0.1},
    {"layernorm", .t = 4096, .h = 768},
    {"layernorm_backward", .t = 4096, .h = 768},
    {"bias_dropout_add_layernorm", .t = 4096, .h = 768, .p = 0.1},
    {"bias_dropout_add_layernorm_backward", .t = 4096, .h = 768, .p = 0.1},
    {"attention", .t = 128, .h = 768, .heads = 12, .p = 0.1, .strided = true,
     .lens_q = LENS(THIRTY_TWO(128))},
    {"attention_backward", .t = 128, .h = 768, .heads = 12, .p = 0.1, .strided = true,
     .lens_q = LENS(THIRTY_TWO(128))},
    {"attention", .t = 512, .h = 768, .heads = 12, .p = 0.1, .strided = true, .lens_q = LENS(EIGHT(512))},
    {"attention_backward", .t = 512, .h = 768, .heads = 12, .p = 0.1, .strided = true,
     .lens_q = LENS(EIGHT(512))},
    {"attention", .t = 512, .h = 768, .heads = 12, .strided = true, .lens_q = LENS(EIGHT(512))},
    {"attention_backward", .t = 512, .h = 768, .heads = 12, .strided = true, .lens_q = LENS(EIGHT(512))},
    {"gather_rows", .t = 4096, .h = 768, .f = 640},
    {"scatter_add_rows", .t = 4096, .h = 768, .f = 640},
    {"cross_entropy", .t = 640, .h = 30528, .f = 30522},
    {"cast", .t = 4096, .h = 768},
    {"fill", .t = 4096, .h = 768},
    {"find_nonfinite", .t = 4096, .h = 768},
    {"global_norm", .t = 20000000},
    {"lamb", .t = 20000000},
    {"adamw", .t = 20000000},

    {"linear", .t = 4096, .h = 256, .f = 768},
    {"linear", .t = 4096, .h = 256, .f = 256},
    {"linear", .t = 4096, .h = 1024, .f = 256},
    {"linear_gelu", .t = 4096, .h = 256, .f = 1024},
    {"linear", .t = 640, .h = 256, .f = 30528, .strided = true},
    {"linear_backward_input", .t = 4096, .h = 256, .f = 768, .plain = true},
    {"linear_backward_input", .t = 4096, .h = 256, .f = 256},
    {"linear_backward_input", .t = 4096, .h = 256, .f = 1024, .plain = true},
    {"linear_backward_input", .t = 4096, .h = 1024, .f = 256},
    {"linear_backward_weight", .t = 4096, .h = 256, .f = 768},
    {"linear_backward_weight", .t = 4096, .h = 256, .f = 256},
    {"linear_backward_weight", .t = 4096, .h = 1024, .f = 256},
    {"linear_backward_weight", .t = 4096, .h = 256, .f = 1024},
    {"linear_backward_weight", .t = 640, .h = 256, .f = 30528},
    {"gelu_backward", .t = 4096, .h = 1024},
    {"embed", .t = 4096, .h = 256, .f = 30528, .p = 0.1},
    {"embed_backward", .t = 4096, .h = 256, .f = 30528, .p = 0.1},
    {"bias_dropout_add_layernorm", .t = 4096, .h = 256, .p = 0.1},
    {"bias_dropout_add_layernorm_backward", .t = 4096, .h = 256, .p = 0.1},
    {"attention", .t = 128, .h = 256, .heads = 4, .p = 0.1, .strided = true, .lens_q = LENS(EIGHT(128))},
    {"attention_backward", .t = 128, .h = 256, .heads = 4, .p = 0.1, .strided = true,
     .lens_q = LENS(EIGHT(128))},
    {"attention", .t = 512, .h = 256, .heads = 4, .p = 0.1, .strided = true, .lens_q = LENS(512, 512)},
    {"attention_backward", .t = 512, .h = 256, .heads = 4, .p = 0.1, .strided = true,
     .lens_q = LENS(512, 512)},
    {"cross_entropy", .t = 640, .h = 30528, .f = 30522},

    {"linear", .t = 1024, .h = 192, .f = 576},
    {"linear", .t = 1024, .h = 768, .f = 192},
    {"linear_gelu", .t = 1024, .h = 192, .f = 768},
    {"linear", .t = 160, .h = 192, .f = 8192, .strided = true},
    {"linear_backward_input", .t = 1024, .h = 192, .f = 576, .plain = true},
    {"linear_backward_input", .t = 1024, .h = 192, .f = 192, .plain = true},
    {"linear_backward_weight", .t = 1024, .h = 192, .f = 576},
    {"linear_backward_weight", .t = 1024, .h = 192, .f = 192},
    {"gelu_backward", .t = 1024, .h = 768},
    {"embed", .t = 1024, .h = 192, .f = 8192, .p = 0.1},
    {"embed_backward", .t = 1024, .h = 192, .f = 8192, .p = 0.1},
    {"bias_dropout_add_layernorm", .t = 1024, .h = 192, .p = 0.1},
    {"bias_dropout_add_layernorm_backward", .t = 1024, .h = 192, .p = 0.1},
    {"attention", .t = 64, .h = 192, .heads = 6, .p = 0.1, .strided = true,
     .lens_q = LENS(EIGHT(64), EIGHT(64))},
    {"attention_backward", .t = 64, .h = 192, .heads = 6, .p = 0.1, .strided = true,
     .lens_q = LENS(EIGHT(64), EIGHT(64))},
    {"cross_entropy", .t = 160, .h = 8192, .f = 8190},
    {"lamb", .t = 4500000},
};

#define COUNT(table) ((int)(sizeof(table) / sizeof(table)[0]))

const struct checkop_shape *checkop_test_shapes(int *n)
{
    *n = COUNT(test_shapes);
    return test_shapes;
}

const struct checkop_shape *checkop_gradient_shapes(int *n)
{
    *n = COUNT(gradient_shapes);
    return gradient_shapes;
}

const struct checkop_shape *checkop_bench_shapes(int *n)
{
    *n = COUNT(bench_shapes);
    return bench_shapes;
}
