/* replaced_environment: environment variables of the replaced systems. */
#ifndef KILN_CMD_REPLACED_ENVIRONMENT_H
#define KILN_CMD_REPLACED_ENVIRONMENT_H

/* Names those that are set and change nothing here, in one log line. */
void replaced_environment_tell(void);

#endif
