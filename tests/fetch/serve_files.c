/* serve_files: tests/fetch/http_server as a program, for tests that are scripts.  usage: serve_files ROOT
 * PORT_FILE: the port stands in that file once the server listens; a signal ends it. */
#include "http_server.h"

#include "test.h"

#include "io/file.h"

int main(int argc, char **argv)
{
    struct http_server s;
    char port[16];
    EXPECT(argc == 3, "usage: serve_files ROOT PORT_FILE");
    http_server_open(&s, argv[1]);
    snprintf(port, sizeof port, "%d\n", s.port);
    EXPECT_OK(file_write_atomic(argv[2], port, strlen(port)));
    http_server_serve(&s);
    return 0;
}
