#define _GNU_SOURCE
#include "dist/heartbeat.h"

#include "core/clock.h"
#include "core/log.h"
#include "core/signals.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* Beats that may be lost on the way before a rank counts as silent.  No rank needs to beat more often than
 * once a second. */
enum { BEATS_OF_SILENCE = 5 };

/* A flood of packets must not keep the thread from judging: after so many it looks at the clock. */
enum { PACKETS_AT_ONCE = 256 };

static const int64_t LONGEST_BEAT_NS = 1000000000;

struct packet {
    char magic[8];
    int32_t from, to; /* ranks: a packet to one rank is not valid for another */
    uint64_t number;
    unsigned char hash[DIGEST_KEYED_BYTES]; /* hash of all fields before it, with the secret */
};

static const char MAGIC[8] = "kilnbeat";

/* ---- packets ---- */

static void hash_packet(const struct heartbeat *h, unsigned char hash[DIGEST_KEYED_BYTES],
                        const struct packet *p)
{
    digest_keyed(hash, h->secret.key, p, offsetof(struct packet, hash));
}

static void send_to(struct heartbeat *h, int rank, uint32_t address)
{
    struct packet p = {.from = h->rank, .to = rank, .number = ++h->n_sent};
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_addr.s_addr = address, .sin_port = h->places[rank].port};
    memcpy(p.magic, MAGIC, sizeof MAGIC);
    hash_packet(h, p.hash, &p);
    /* a packet that is not sent counts as silence, as one that does not arrive */
    (void)sendto(h->socket, &p, sizeof p, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&to,
                 sizeof to);
}

/* Sends a beat to the address of rank 0 that has answered; to all its addresses before one has, and again
 * while none does. */
static void beat(struct heartbeat *h, int64_t now)
{
    const struct heartbeat_place *place = &h->places[0];
    if (h->rank == 0) {
        return; /* rank 0 only answers */
    }
    if (h->heard_ns[0] > 0 && now - h->heard_ns[0] < 2 * h->beat_ns) {
        send_to(h, 0, h->first);
        return;
    }
    for (int i = 0; i < place->n_addresses; i++) {
        send_to(h, 0, place->addresses[i]);
    }
}

/* Rank 0 hears all others, and they hear rank 0. */
static bool is_peer(const struct heartbeat *h, int rank)
{
    return h->rank == 0 ? rank > 0 && rank < h->size : rank == 0;
}

static bool is_of_place(const struct heartbeat_place *place, const struct sockaddr_in *from)
{
    bool is = false;
    for (int i = 0; i < place->n_addresses; i++) {
        is = is || place->addresses[i] == from->sin_addr.s_addr;
    }
    return is && place->port == from->sin_port;
}

/* Compares every byte, so that the time reveals nothing about the right hash. */
static bool has_right_hash(const struct heartbeat *h, const struct packet *p)
{
    unsigned char right[DIGEST_KEYED_BYTES], difference = 0;
    hash_packet(h, right, p);
    for (size_t i = 0; i < sizeof right; i++) {
        difference |= right[i] ^ p->hash[i];
    }
    return difference == 0;
}

static bool counts(const struct heartbeat *h, const struct packet *p, const struct sockaddr_in *from)
{
    return memcmp(p->magic, MAGIC, sizeof MAGIC) == 0 && p->to == h->rank && is_peer(h, p->from) &&
           is_of_place(&h->places[p->from], from) && p->number > h->heard_number[p->from] &&
           has_right_hash(h, p);
}

static void hear(struct heartbeat *h, int64_t now)
{
    for (int i = 0; i < PACKETS_AT_ONCE; i++) {
        struct packet p;
        struct sockaddr_in from = {0};
        socklen_t n_from = sizeof from;
        /* MSG_TRUNC: the length of what was sent, however long */
        ssize_t n =
            recvfrom(h->socket, &p, sizeof p, MSG_DONTWAIT | MSG_TRUNC, (struct sockaddr *)&from, &n_from);
        if (n < 0) {
            return;
        }
        if (n != (ssize_t)sizeof p || !counts(h, &p, &from)) {
            continue;
        }
        bool is_first = h->heard_ns[p.from] == 0;
        h->heard_ns[p.from] = now;
        h->heard_number[p.from] = p.number;
        h->first = from.sin_addr.s_addr;
        if (h->rank == 0) {
            send_to(h, p.from, from.sin_addr.s_addr);
        }
        atomic_fetch_add(&h->n_heard, is_first);
    }
}

/* ---- who is silent ---- */

/* Warns once of the ranks that were never heard: their silence cannot be found.  It waits for as long as a
 * stopped rank may stay unnoticed. */
static void warn_of_unheard(struct heartbeat *h, int64_t now)
{
    int n = 0, first = -1;
    if (h->rank != 0 || h->has_warned || now - h->begin_ns < h->silence_ns) {
        return;
    }
    h->has_warned = true;
    for (int r = h->size - 1; r > 0; r--) {
        if (h->heard_ns[r] == 0) {
            first = r;
            n++;
        }
    }
    if (n > 0) {
        log_warning("heartbeats of %d of %d ranks, such as rank %d on %s, do not arrive at UDP port %d of "
                    "this host: if such a rank stops or its host is lost, only KILN_COMM_TIMEOUT detects it",
                    n, h->size, first, h->places[first].host, (int)ntohs(h->places[0].port));
    }
}

static void judge(struct heartbeat *h, int64_t now)
{
    int end = h->rank == 0 ? h->size : 1;
    for (int r = h->rank == 0 ? 1 : 0; r < end && atomic_load(&h->silent) < 0; r++) {
        if (h->heard_ns[r] > 0 && now - h->heard_ns[r] > h->silence_ns) {
            atomic_store(&h->silent, r);
        }
    }
    warn_of_unheard(h, now);
}

/* A process that was itself stopped has heard nobody meanwhile, so silence before `now` does not count. */
static void forgive(struct heartbeat *h, int64_t now)
{
    for (int r = 0; r < h->size; r++) {
        h->heard_ns[r] = h->heard_ns[r] > 0 ? now : 0;
    }
}

int64_t heartbeat_turn(struct heartbeat *h, int64_t now)
{
    hear(h, now);
    if (now - h->looked_ns > h->silence_ns / 2) {
        forgive(h, now);
    }
    h->looked_ns = now;
    judge(h, now);
    if (now >= h->next_ns) {
        beat(h, now);
        h->next_ns = now + h->beat_ns;
    }
    return h->next_ns;
}

static void *run(void *heartbeat)
{
    struct heartbeat *h = heartbeat;
    struct pollfd polls[] = {{.fd = h->socket, .events = POLLIN}, {.fd = h->wake, .events = POLLIN}};
    while (polls[1].revents == 0) {
        int64_t now = clock_ns(), next = heartbeat_turn(h, now);
        poll(polls, 2, (int)((next - now) / 1000000) + 1);
    }
    return NULL;
}

int heartbeat_silent(struct heartbeat *h)
{
    return atomic_load(&h->silent);
}

struct status heartbeat_loss(const struct heartbeat *h, int rank)
{
    return status_error(STATUS_IO,
                        "rank %d of %d on %s has been silent for %.1f s (KILN_COMM_SILENCE): its process is "
                        "stopped, or its host or its network is lost",
                        rank, h->size, h->places[rank].host, (double)h->silence_ns * 1e-9);
}

/* ---- begin and end ---- */

static void list_addresses(struct heartbeat_place *place)
{
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) != 0) {
        return;
    }
    for (const struct ifaddrs *i = all; i != NULL && place->n_addresses < HEARTBEAT_ADDRESSES;
         i = i->ifa_next) {
        if (i->ifa_addr != NULL && i->ifa_addr->sa_family == AF_INET && (i->ifa_flags & IFF_UP) != 0) {
            struct sockaddr_in address;
            memcpy(&address, i->ifa_addr, sizeof address);
            place->addresses[place->n_addresses++] = address.sin_addr.s_addr;
        }
    }
    freeifaddrs(all);
}

/* Binds a port that the system chooses, on all networks of this host. */
static bool bind_port(struct heartbeat *h, struct heartbeat_place *place)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    socklen_t n = sizeof any;
    h->socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    h->wake = eventfd(0, EFD_CLOEXEC);
    if (h->socket < 0 || h->wake < 0 || bind(h->socket, (const struct sockaddr *)&any, sizeof any) != 0 ||
        getsockname(h->socket, (struct sockaddr *)&any, &n) != 0) {
        return false;
    }
    place->port = any.sin_port;
    return true;
}

struct status heartbeat_open(struct heartbeat *h, int rank, int size, double silence_s)
{
    int64_t silence_ns = (int64_t)(silence_s * 1e9), beat_ns = silence_ns / BEATS_OF_SILENCE;
    *h = (struct heartbeat){.rank = rank,
                            .size = size,
                            .silence_ns = silence_ns,
                            .beat_ns = beat_ns < LONGEST_BEAT_NS ? beat_ns : LONGEST_BEAT_NS,
                            .socket = -1,
                            .wake = -1,
                            .silent = -1,
                            .places = calloc((size_t)size, sizeof *h->places),
                            .heard_ns = calloc((size_t)size, sizeof *h->heard_ns),
                            .heard_number = calloc((size_t)size, sizeof *h->heard_number)};
    FAIL_IF(h->places == NULL || h->heard_ns == NULL || h->heard_number == NULL, STATUS_MEMORY,
            "out of memory for the heartbeats of %d ranks", size);
    struct heartbeat_place *mine = &h->places[rank];
    gethostname(mine->host, sizeof mine->host - 1);
    list_addresses(mine);
    if (silence_s > 0 && !bind_port(h, mine)) {
        log_warning("rank %d of %d has no heartbeat: %s; if it stops or its host is lost, only "
                    "KILN_COMM_TIMEOUT detects it",
                    rank, size, strerror(errno));
    }
    return status_ok();
}

void heartbeat_begin(struct heartbeat *h, const struct heartbeat_secret *secret, int64_t now)
{
    h->secret = *secret;
    h->begin_ns = h->looked_ns = now;
    h->next_ns = now + h->beat_ns;
    beat(h, now);
}

void heartbeat_start(struct heartbeat *h, const struct heartbeat_secret *secret)
{
    sigset_t before;
    if (h->places[h->rank].port == 0 || h->places[0].port == 0) {
        return;
    }
    /* now, so that rank 0 knows of this rank before the thread first runs */
    heartbeat_begin(h, secret, clock_ns());
    signals_block(&before);
    h->has_thread = pthread_create(&h->thread, NULL, run, h) == 0;
    signals_restore(&before);
    if (!h->has_thread) {
        log_warning("rank %d of %d has no heartbeat: its thread did not start; if the rank stops or its host "
                    "is lost, only KILN_COMM_TIMEOUT detects it",
                    h->rank, h->size);
    }
}

void heartbeat_close(struct heartbeat *h)
{
    if (h->has_thread) {
        eventfd_write(h->wake, 1);
        pthread_join(h->thread, NULL);
    }
    if (h->socket >= 0) {
        close(h->socket);
    }
    if (h->wake >= 0) {
        close(h->wake);
    }
    free(h->places);
    free(h->heard_ns);
    free(h->heard_number);
    *h = (struct heartbeat){.socket = -1, .wake = -1, .silent = -1};
}
