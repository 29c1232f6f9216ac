/* wire_mpi: the wire of MPI, in libkiln_mpi.so, so that the program itself does not need MPI.  Only
 * point-to-point messages are used, non-blocking: MPI's collectives cannot be given a deadline, and add in an
 * order of their own. */
#include "dist/wire.h"

#include <mpi.h>

#include <stdio.h>
#include <string.h>

/* A request is a pointer in Open MPI, and a number in MPICH. */
union request {
    MPI_Request mpi;
    void *kept; /* wire_op.request */
};

_Static_assert(sizeof(union request) == sizeof(void *), "a request fits into wire_op");

static struct status check(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n;
    if (code == MPI_SUCCESS) {
        return status_ok();
    }
    MPI_Error_string(code, text, &n);
    return status_error(STATUS_IO, "MPI: %s: %.300s", what, text);
}

static struct status begun(struct wire_op *op, union request request, int code, const char *what)
{
    *op = (struct wire_op){.request = request.kept, .pending = code == MPI_SUCCESS};
    return check(code, what);
}

static struct status send(void *state, struct wire_op *op, int to, int tag, const void *bytes, size_t n)
{
    union request request = {.kept = NULL};
    (void)state;
    int code = MPI_Isend(bytes, (int)n, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request.mpi);
    return begun(op, request, code, "a message to a rank");
}

static struct status receive(void *state, struct wire_op *op, int from, int tag, void *bytes, size_t n)
{
    union request request = {.kept = NULL};
    (void)state;
    int code = MPI_Irecv(bytes, (int)n, MPI_BYTE, from == WIRE_ANY ? MPI_ANY_SOURCE : from, tag,
                         MPI_COMM_WORLD, &request.mpi);
    return begun(op, request, code, "a message from a rank");
}

static struct status test(void *state, struct wire_op *op)
{
    union request request = {.kept = op->request};
    MPI_Status status;
    int done = 0;
    (void)state;
    if (!op->pending) {
        return status_ok();
    }
    int code = MPI_Test(&request.mpi, &done, &status);
    op->request = request.kept;
    if (done || code != MPI_SUCCESS) {
        op->pending = false;
        op->from = status.MPI_SOURCE;
    }
    return check(code, "a message");
}

static void drop(void *state, struct wire_op *op)
{
    union request request = {.kept = op->request};
    (void)state;
    if (op->pending) {
        MPI_Cancel(&request.mpi);
        MPI_Request_free(&request.mpi);
        op->pending = false;
    }
}

/* MPI_Finalize waits for all ranks, so a rank that has failed, or has lost another, ends without it. */
static void close(void *state, bool in_peace)
{
    (void)state;
    if (in_peace) {
        MPI_Finalize();
    }
}

static const struct wire_type type = {
    .name = "MPI", .send = send, .receive = receive, .test = test, .drop = drop, .close = close};

/* "Open MPI v4.1.4, package: Debian OpenMPI, ident: ..." up to the first comma or line. */
static void name_library(struct wire *w)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int n;
    MPI_Get_library_version(text, &n);
    snprintf(w->library, sizeof w->library, "%.*s", (int)strcspn(text, ",\n"), text);
}

static struct status open(struct wire *w)
{
    int given, is_open;
    *w = (struct wire){.type = &type};
    TRY(check(MPI_Initialized(&is_open), "MPI_Initialized"));
    if (!is_open) {
        TRY(check(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given), "MPI_Init_thread"));
    }
    TRY(check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler"));
    TRY(check(MPI_Comm_rank(MPI_COMM_WORLD, &w->rank), "MPI_Comm_rank"));
    TRY(check(MPI_Comm_size(MPI_COMM_WORLD, &w->size), "MPI_Comm_size"));
    name_library(w);
    return status_ok();
}

__attribute__((visibility("default"))) extern const struct wire_entry kiln_mpi_entry;
const struct wire_entry kiln_mpi_entry = {WIRE_ENTRY_LAYOUT, .open = open};
