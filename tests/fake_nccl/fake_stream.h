/* fake_stream: what a cudaStream_t points to where there is no CUDA: the devices of tests make them, and the
 * fake NCCL library queues its collectives on them. */
#ifndef KILN_TESTS_FAKE_STREAM_H
#define KILN_TESTS_FAKE_STREAM_H

struct fake_stream {
    /* Runs work(argument) after what the stream was given before: at once, or in a thread of the stream's. */
    void (*give)(struct fake_stream *stream, void (*work)(void *argument), void *argument);
};

#endif
