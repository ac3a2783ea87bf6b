/*
 * http_stub.h - a server of HTTP on this machine that answers by a function of the test.
 */
#ifndef TESTS_HTTP_STUB_H
#define TESTS_HTTP_STUB_H

typedef struct http_stub http_stub;

/* 'line' is "POST /path"; lines of 'headers' end with "\r\n"; 'body' may be "". */
typedef struct http_request {
    const char *line, *headers, *body;
} http_request;

/*
 * Answer a request: the code, and the body in *reply, a constant. A code of 0: no answer until the
 * server is closed. Called by the server's thread.
 */
typedef int http_answer(void *context, const http_request *request, const char **reply);

http_stub *http_stub_open(http_answer *answer, void *context);
int http_stub_port(const http_stub *s);
/* End the thread, which may be answering, and refuse connections from here on. */
void http_stub_close(http_stub *s);

#endif
