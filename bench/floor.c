// The least that a request can cost on this machine: what the kernel takes for it, with nothing around it.
//
//     floor closed PORT CONNECTIONS REQUESTS      as fast as answers come
//     floor open PORT CONNECTIONS REQUESTS RATE   evenly spaced, each at its own time
//
// No parsing, no clock but the one that paces, no counting: every answer is taken to be one read. It is not a load
// generator; it is the ruler beside one. Prints how many answers came.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

enum { CONNECTIONS_MAX = 1024, EVENTS_MAX = 256, SECOND_NS = 1000000000 };

static const char REQUEST[] = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
static int sockets[CONNECTIONS_MAX];
static int poller;

static void fail(const char *what) {
  perror(what);
  exit(2);
}

static long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * SECOND_NS + now.tv_nsec;
}

static void connect_all(int port, int connections) {
  struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  for (int i = 0; i < connections; i++) {
    sockets[i] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(sockets[i], (struct sockaddr *)&server, sizeof server) != 0) fail("connect");
    setsockopt(sockets[i], IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    struct epoll_event event = {.events = EPOLLIN, .data.fd = sockets[i]};
    epoll_ctl(poller, EPOLL_CTL_ADD, sockets[i], &event);
  }
}

static void ask(int socket) {
  if (send(socket, REQUEST, sizeof REQUEST - 1, 0) < 0) fail("send");
}

// Reads what is there, waiting no longer than `wait_ns`, for ever below 0. With `again`, each answer asks once more.
static long answers(long wait_ns, int again) {
  struct epoll_event events[EVENTS_MAX];
  struct timespec wait = {.tv_sec = wait_ns / SECOND_NS, .tv_nsec = wait_ns % SECOND_NS};
  int ready = epoll_pwait2(poller, events, EVENTS_MAX, wait_ns < 0 ? NULL : &wait, NULL);
  char answer[16384];
  for (int i = 0; i < ready; i++) {
    if (recv(events[i].data.fd, answer, sizeof answer, 0) <= 0) fail("recv");
    if (again) ask(events[i].data.fd);
  }
  return ready < 0 ? 0 : ready;
}

static long closed_loop(int connections, long requests) {
  for (int i = 0; i < connections; i++) ask(sockets[i]);
  long done = 0;
  while (done < requests) done += answers(-1, 1);
  return done;
}

static long open_loop(int connections, long requests, long rate) {
  long start_ns = now_ns(), begun = 0, done = 0;
  while (done < requests) {
    long wait_ns = start_ns + begun * SECOND_NS / rate - now_ns();
    if (begun < requests && wait_ns <= 0) ask(sockets[begun++ % connections]);
    else done += answers(begun < requests ? wait_ns : -1, 0);
  }
  return done;
}

int main(int count, char **arguments) {
  if (count < 5) {
    fprintf(stderr, "usage: floor closed|open PORT CONNECTIONS REQUESTS [RATE]\n");
    return 2;
  }
  int connections = atoi(arguments[3]);
  long requests = atol(arguments[4]);
  if (connections < 1 || connections > CONNECTIONS_MAX) {
    fprintf(stderr, "error: %d connections, expected 1 to %d\n", connections, CONNECTIONS_MAX);
    return 2;
  }
  prctl(PR_SET_TIMERSLACK, 1);
  poller = epoll_create1(0);
  connect_all(atoi(arguments[2]), connections);
  int open = strcmp(arguments[1], "open") == 0;
  long done = open ? open_loop(connections, requests, count > 5 ? atol(arguments[5]) : 1000)
                   : closed_loop(connections, requests);
  printf("%ld answers\n", done);
  return 0;
}
