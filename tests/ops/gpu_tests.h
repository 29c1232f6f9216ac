/* gpu_tests: the tests of a device are one program, so that what is carried to a GPU (tools/gpu_carry.sh)
 * holds the engine once.  Each returns its exit code, or ends the program. */
#ifndef KILN_TESTS_GPU_TESTS_H
#define KILN_TESTS_GPU_TESTS_H

int test_cuda_bench(void);
int test_cuda_bits(void);
int test_cuda_fp8(void);
int test_cuda_generate(void);
int test_cuda_half(void);
int test_cuda_large(int argc, char **argv); /* [layers hidden heads length [dtype]] */
int test_cuda_loss_scale(void);
int test_cuda_maxima(void);
int test_cuda_replay(void);
int test_cuda_residual(void);
int test_cuda_rounding(void);
int test_cuda_segments(void);
int test_cuda_session(void);
int test_cuda_squad(void);
int test_cuda_training(void);

#endif
