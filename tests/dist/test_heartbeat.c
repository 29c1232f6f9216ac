/* Heartbeats count only where they come from the run's own rank, with the run's secret, and once: whatever
 * strangers send, a rank that is silent is found.  The clock is the test's. */
#include "test.h"

#include "core/entropy.h"
#include "dist/heartbeat.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PACKET_BYTES = 256, BEATS = 10 /* twice a silence */ };

static int udp_socket(struct heartbeat_place *place)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    EXPECT(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 &&
               getsockname(fd, (struct sockaddr *)&at, &n) == 0,
           "a socket");
    *place = (struct heartbeat_place){
        .host = "test", .port = at.sin_port, .n_addresses = 1, .addresses = {at.sin_addr.s_addr}};
    return fd;
}

/* Rank 0, and rank 1 whose packets pass through the test: it sends them to `far` and they go on from
 * `near`. */
struct line {
    struct heartbeat ranks[2];
    struct heartbeat_secret secrets[2];
    int64_t now;
    int near, far, stranger;
    struct sockaddr_in first; /* where rank 0 listens */
};

static void line_open(struct line *l, bool same_secret)
{
    struct heartbeat_place nobody;
    *l = (struct line){.now = 1};
    EXPECT(entropy_draw(l->secrets, sizeof l->secrets), "random bytes");
    if (same_secret) {
        l->secrets[1] = l->secrets[0];
    }
    for (int r = 0; r < 2; r++) {
        EXPECT_OK(heartbeat_open(&l->ranks[r], r, 2, 0.8));
    }
    l->near = udp_socket(&l->ranks[0].places[1]);
    l->far = udp_socket(&l->ranks[1].places[0]);
    l->stranger = udp_socket(&nobody);
    l->first = (struct sockaddr_in){.sin_family = AF_INET,
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                    .sin_port = l->ranks[0].places[0].port};
}

static void line_begin(struct line *l)
{
    for (int r = 0; r < 2; r++) {
        heartbeat_begin(&l->ranks[r], &l->secrets[r], l->now);
    }
}

static void line_close(struct line *l)
{
    heartbeat_close(&l->ranks[0]);
    heartbeat_close(&l->ranks[1]);
    close(l->near);
    close(l->far);
    close(l->stranger);
}

/* What comes next, however late. */
static size_t take(int fd, char packet[PACKET_BYTES])
{
    ssize_t n = recv(fd, packet, PACKET_BYTES, 0);
    EXPECT(n > 0 && n < PACKET_BYTES, "%zd bytes", n);
    return (size_t)n;
}

/* Returns when rank 0 can read it. */
static void give(struct line *l, int fd, const char *packet, size_t n)
{
    struct pollfd arrival = {.fd = l->ranks[0].socket, .events = POLLIN};
    EXPECT(sendto(fd, packet, n, 0, (struct sockaddr *)&l->first, sizeof l->first) == (ssize_t)n, "a packet");
    EXPECT(poll(&arrival, 1, -1) == 1, "a packet that does not arrive");
}

/* Rank 1's next beat is due, and is sent. */
static size_t next_beat(struct line *l, char packet[PACKET_BYTES])
{
    l->now += l->ranks[1].beat_ns;
    EXPECT(heartbeat_turn(&l->ranks[1], l->now) == l->now + l->ranks[1].beat_ns, "the next beat");
    return take(l->far, packet);
}

/* The beat at the begin, which is true, is heard. */
static size_t hear_first(struct line *l, char packet[PACKET_BYTES])
{
    line_begin(l);
    size_t n = take(l->far, packet);
    give(l, l->near, packet, n);
    heartbeat_turn(&l->ranks[0], l->now);
    EXPECT(l->ranks[0].heard_ns[1] == l->now, "the first beat is not heard");
    return n;
}

/* Each way of keeping a rank alive that says nothing any more. */
enum deceit { NOTHING, REPLAY, OTHER_PLACE, CHANGED, CUT, LONGER, N_DECEITS };

static void deceive(struct line *l, enum deceit d, const char *old, size_t n_old)
{
    char packet[PACKET_BYTES + 1] = {0};
    size_t n = next_beat(l, packet);
    switch (d) {
    case REPLAY: give(l, l->near, old, n_old); break;
    case OTHER_PLACE: give(l, l->stranger, packet, n); break;
    case CHANGED:
        packet[n / 2] ^= 1;
        give(l, l->near, packet, n);
        break;
    case CUT: give(l, l->near, packet, n - 1); break;
    case LONGER: give(l, l->near, packet, n + 1); break;
    case NOTHING:
    case N_DECEITS: break;
    }
}

static void a_silent_rank_is_found(enum deceit d)
{
    struct line l;
    char old[PACKET_BYTES];
    line_open(&l, true);
    size_t n = hear_first(&l, old);
    int64_t heard = l.now;
    for (int i = 0; i < BEATS; i++) {
        deceive(&l, d, old, n);
        heartbeat_turn(&l.ranks[0], l.now);
        int wanted = l.now - heard > l.ranks[0].silence_ns ? 1 : -1;
        EXPECT(heartbeat_silent(&l.ranks[0]) == wanted,
               "deceit %d, %g s after the last beat: rank %d is silent", d, 1e-9 * (double)(l.now - heard),
               heartbeat_silent(&l.ranks[0]));
    }
    line_close(&l);
}

/* And who was never heard is not watched. */
static void another_secret_is_another_run(void)
{
    struct line l;
    char packet[PACKET_BYTES];
    line_open(&l, false);
    line_begin(&l);
    take(l.far, packet);
    for (int i = 0; i < BEATS; i++) {
        give(&l, l.near, packet, next_beat(&l, packet));
        heartbeat_turn(&l.ranks[0], l.now);
    }
    EXPECT(l.ranks[0].heard_ns[1] == 0, "a packet of another run was heard");
    EXPECT(heartbeat_silent(&l.ranks[0]) < 0, "a rank of another run is missed");
    line_close(&l);
}

static void who_beats_lives(void)
{
    struct line l;
    char packet[PACKET_BYTES];
    line_open(&l, true);
    hear_first(&l, packet);
    for (int i = 0; i < BEATS; i++) {
        give(&l, l.near, packet, next_beat(&l, packet));
        heartbeat_turn(&l.ranks[0], l.now);
        EXPECT(l.ranks[0].heard_ns[1] == l.now && heartbeat_silent(&l.ranks[0]) < 0,
               "rank 1 beats, but is called silent");
    }
    line_close(&l);
}

static void who_was_stopped_itself_blames_nobody(void)
{
    struct line l;
    char packet[PACKET_BYTES];
    line_open(&l, true);
    hear_first(&l, packet);
    l.now += 100 * l.ranks[0].silence_ns;
    heartbeat_turn(&l.ranks[0], l.now);
    EXPECT(heartbeat_silent(&l.ranks[0]) < 0, "a stopped rank 0 blames rank 1");
    line_close(&l);
}

/* Rank 1 beats although nobody asks it, and rank 0 answers. */
static void threads_take_their_turns(void)
{
    struct line l;
    char packet[PACKET_BYTES];
    line_open(&l, true);
    for (int r = 0; r < 2; r++) {
        heartbeat_start(&l.ranks[r], &l.secrets[r]);
    }
    for (int i = 0; i < 3; i++) {
        size_t n = take(l.far, packet);
        EXPECT(sendto(l.near, packet, n, 0, (struct sockaddr *)&l.first, sizeof l.first) == (ssize_t)n,
               "a packet");
        take(l.near, packet);
    }
    line_close(&l);
}

int main(void)
{
    who_beats_lives();
    for (int d = 0; d < N_DECEITS; d++) {
        a_silent_rank_is_found((enum deceit)d);
    }
    another_secret_is_another_run();
    who_was_stopped_itself_blames_nobody();
    threads_take_their_turns();
    return 0;
}
