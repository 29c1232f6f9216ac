/* Heartbeats count only where they come from the run's own rank, with the run's secret, and once: whatever
 * strangers send, a rank that is silent is found. */
#include "test.h"

#include "core/clock.h"
#include "core/entropy.h"
#include "dist/heartbeat.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

static const double SILENCE_S = 0.8;

enum { PACKET_BYTES = 256 };

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
    int near, far, stranger;
    struct sockaddr_in first; /* where rank 0 listens */
};

static void line_open(struct line *l, bool same_secret)
{
    struct heartbeat_secret secrets[2];
    struct heartbeat_place nobody;
    EXPECT(entropy_draw(&secrets, sizeof secrets), "random bytes");
    for (int r = 0; r < 2; r++) {
        EXPECT_OK(heartbeat_open(&l->ranks[r], r, 2, SILENCE_S));
    }
    l->near = udp_socket(&l->ranks[0].places[1]);
    l->far = udp_socket(&l->ranks[1].places[0]);
    l->stranger = udp_socket(&nobody);
    l->first = (struct sockaddr_in){.sin_family = AF_INET,
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                    .sin_port = l->ranks[0].places[0].port};
    for (int r = 0; r < 2; r++) {
        heartbeat_start(&l->ranks[r], &secrets[same_secret ? 0 : r]);
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

static size_t take(struct line *l, char packet[PACKET_BYTES])
{
    struct pollfd wait = {.fd = l->far, .events = POLLIN};
    EXPECT(poll(&wait, 1, 3000) == 1, "rank 1 sends nothing");
    ssize_t n = recv(l->far, packet, PACKET_BYTES, 0);
    EXPECT(n > 0 && n < PACKET_BYTES, "%zd bytes", n);
    return (size_t)n;
}

static void give(struct line *l, int fd, const char *packet, size_t n)
{
    EXPECT(sendto(fd, packet, n, 0, (struct sockaddr *)&l->first, sizeof l->first) == (ssize_t)n, "a packet");
}

static void pass_on(struct line *l, double seconds)
{
    char packet[PACKET_BYTES];
    for (int64_t start = clock_ns(); clock_since_s(start) < seconds;) {
        give(l, l->near, packet, take(l, packet));
        EXPECT(heartbeat_silent(&l->ranks[0]) < 0, "rank 1 beats, but is called silent");
    }
}

/* Each way of keeping a rank alive that says nothing any more. */
enum deceit { NOTHING, REPLAY, OTHER_PLACE, CHANGED, CUT, LONGER, N_DECEITS };

static void deceive(struct line *l, enum deceit d, const char *old, size_t n_old)
{
    char packet[PACKET_BYTES + 1] = {0};
    size_t n = take(l, packet);
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

/* All at once, since each takes the time of a silence. */
static void silent_ranks_are_found(void)
{
    static struct line lines[N_DECEITS];
    char old[N_DECEITS][PACKET_BYTES];
    size_t n[N_DECEITS];
    int n_found = 0;
    for (int d = 0; d < N_DECEITS; d++) {
        line_open(&lines[d], true);
        n[d] = take(&lines[d], old[d]);
        give(&lines[d], lines[d].near, old[d], n[d]);
    }
    for (int64_t start = clock_ns(); n_found < N_DECEITS;) {
        n_found = 0;
        for (int d = 0; d < N_DECEITS; d++) {
            bool found = heartbeat_silent(&lines[d].ranks[0]) == 1;
            EXPECT(found || clock_since_s(start) < 8 * SILENCE_S, "deceit %d keeps a silent rank alive", d);
            deceive(&lines[d], (enum deceit)d, old[d], n[d]);
            n_found += found;
        }
    }
    for (int d = 0; d < N_DECEITS; d++) {
        EXPECT(lines[d].ranks[0].heard_ns[1] > 0, "deceit %d: nothing was heard before", d);
        line_close(&lines[d]);
    }
}

/* And who was never heard is not watched. */
static void another_secret_is_another_run(void)
{
    struct line l;
    char packet[PACKET_BYTES];
    line_open(&l, false);
    for (int64_t start = clock_ns(); clock_since_s(start) < 2 * SILENCE_S;) {
        give(&l, l.near, packet, take(&l, packet));
    }
    EXPECT(l.ranks[0].heard_ns[1] == 0, "a packet of another run was heard");
    EXPECT(heartbeat_silent(&l.ranks[0]) < 0, "a rank of another run is missed");
    line_close(&l);
}

static void who_beats_lives(void)
{
    struct line l;
    line_open(&l, true);
    pass_on(&l, 2 * SILENCE_S);
    EXPECT(l.ranks[0].heard_ns[1] > 0, "nothing was heard");
    line_close(&l);
}

int main(void)
{
    who_beats_lives();
    silent_ranks_are_found();
    another_secret_is_another_run();
    return 0;
}
