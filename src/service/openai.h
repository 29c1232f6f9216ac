/* openai: what files of OpenAI's dialect share. */
#ifndef KILN_SERVICE_OPENAI_H
#define KILN_SERVICE_OPENAI_H

/* The beginning of the message that a text does not fit the model's window: clients look for it and its
 * code. */
#define OPENAI_TOO_LONG "This model's maximum context length is "

#endif
