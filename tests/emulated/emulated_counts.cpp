#include "emulated_counts.h"

#include "emulated_memory.h"

#include <set>
#include <stdint.h>
#include <string.h>
#include <string>
#include <unordered_set>
#include <vector>

bool emulated_is_counting;

static std::vector<emulated_count> counts;
static std::unordered_set<uintptr_t> pieces[2]; /* read, written */
static const uintptr_t PIECE = 16;

void emulated_counts_begin(void)
{
    counts.clear();
    emulated_is_counting = true;
}

int emulated_counts_end(emulated_count *out, int most)
{
    int n = (int)counts.size() < most ? (int)counts.size() : most;
    emulated_is_counting = false;
    for (int i = 0; i < n; i++) {
        out[i] = counts[(size_t)i];
    }
    return (int)counts.size();
}

/* "(name<A, 1>)" is name.  Names live as long as the program. */
static const char *name_of(const char *launch)
{
    static std::set<std::string> names;
    launch += strspn(launch, "(");
    return names.insert(std::string(launch, strcspn(launch, "<)"))).first->c_str();
}

void emulated_counts_launch(const char *kernel)
{
    if (emulated_is_counting) {
        counts.push_back(emulated_count{name_of(kernel), 0, false});
        pieces[0].clear();
        pieces[1].clear();
    }
}

void emulated_counts_early(void)
{
    if (emulated_is_counting) {
        counts.back().early = true;
    }
}

void emulated_counts_done(void)
{
    emulated_counts_bytes((double)(PIECE * (pieces[0].size() + pieces[1].size())));
}

void emulated_counts_bytes(double bytes)
{
    if (emulated_is_counting && !counts.empty()) {
        counts.back().bytes = bytes;
    }
}

void emulated_counts_touch(const void *p, bool written)
{
    if (emulated_memory_has(p)) {
        pieces[written].insert((uintptr_t)p / PIECE);
    }
}
