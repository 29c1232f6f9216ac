/* build_facts: what the program was built of, for `kiln --version` (cmake/facts.cmake). */
#ifndef KILN_CMD_BUILD_FACTS_H
#define KILN_CMD_BUILD_FACTS_H

/* Prints the version, and a line each: commit, compiler, instruction sets of kernels, libraries with their
 * versions. */
void build_facts_print(void);

#endif
