/* wire_part: the wire of some of a wire's ranks, which number each other from 0, and whose messages are told
 * by their tags from those of all other parts. */
#ifndef KILN_DIST_WIRE_PART_H
#define KILN_DIST_WIRE_PART_H

#include "dist/wire.h"

/* A wire takes any tag below this (MPI_TAG_UB is at least 32,767). */
enum { WIRE_PARTS_MOST = 32768 / WIRE_TAGS };

struct wire_part {
    struct wire whole;
    int first, stride; /* rank r is rank first + r * stride of the whole */
    int first_tag;
};

/* A view of `p`: n ranks, this one the index-th.  `number`, below WIRE_PARTS_MOST, is the same for all of
 * them, and another for each part that two of them have in common; 0 is the whole.  Closing it does
 * nothing. */
struct wire wire_part_open(struct wire_part *p, int n, int index, int number);

#endif
