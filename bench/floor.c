// The least that a request can cost on this machine: what the kernel takes for it, with nothing around it.
//
//     floor closed PORT CONNECTIONS REQUESTS      as fast as responses come
//     floor open PORT CONNECTIONS REQUESTS RATE   evenly spaced, each at its own time
//
// No parsing: every response is taken to be one read. The open loop waits once for each request, until it is due; responses
// lie in their sockets until then, and when they came says the kernel's stamp. It is not a load generator; it is the
// ruler beside one. Prints how many responses came and, of the open loop, their median latency from the time of sending.

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

enum { CONNECTIONS_MAX = 1024, EVENTS_MAX = 256, RESPONSE_BYTES = 16384, SECOND_NS = 1000000000 };

static const char REQUEST[] = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
static int sockets[CONNECTIONS_MAX];
static int poller;
// Sockets without a request under way, the one used last at the end.
static int idle[CONNECTIONS_MAX], idle_count;
// By descriptor: when its request was sent.
static long sent_ns[2 * CONNECTIONS_MAX];
static long *latencies_ns;

static void fail(const char *what) {
  perror(what);
  exit(2);
}

static long ns(struct timespec time) { return time.tv_sec * SECOND_NS + time.tv_nsec; }

static long now_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return ns(now);
}

static void connect_all(int port, int connections) {
  struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  for (int i = 0; i < connections; i++) {
    sockets[i] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(sockets[i], (struct sockaddr *)&server, sizeof server) != 0) fail("connect");
    if (sockets[i] >= 2 * CONNECTIONS_MAX) fail("socket");
    setsockopt(sockets[i], IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    struct epoll_event event = {.events = EPOLLIN, .data.fd = sockets[i]};
    epoll_ctl(poller, EPOLL_CTL_ADD, sockets[i], &event);
  }
}

static void ask(int socket) {
  if (send(socket, REQUEST, sizeof REQUEST - 1, 0) < 0) fail("send");
}

static long closed_loop(int connections, long requests) {
  for (int i = 0; i < connections; i++) ask(sockets[i]);
  struct epoll_event events[EVENTS_MAX];
  char response[RESPONSE_BYTES];
  long done = 0;
  while (done < requests) {
    int ready = epoll_wait(poller, events, EVENTS_MAX, -1);
    for (int i = 0; i < ready; i++) {
      if (recv(events[i].data.fd, response, sizeof response, 0) <= 0) fail("recv");
      ask(events[i].data.fd);
    }
    done += ready > 0 ? ready : 0;
  }
  return done;
}

// Reads a response. Gives when it came, on the wall clock.
static long receive(int socket) {
  char response[RESPONSE_BYTES], control[CMSG_SPACE(sizeof(struct timespec))];
  struct iovec slice = {response, sizeof response};
  struct msghdr message = {.msg_iov = &slice, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  if (recvmsg(socket, &message, 0) <= 0) fail("recvmsg");
  struct cmsghdr *stamp = CMSG_FIRSTHDR(&message);
  if (!stamp || stamp->cmsg_type != SO_TIMESTAMPNS) return now_ns(CLOCK_REALTIME);
  struct timespec came;
  memcpy(&came, CMSG_DATA(stamp), sizeof came);
  return ns(came);
}

// Reads the responses that have come, or waits for one with `wait_ms` below 0.
static long responses(int wait_ms, long done) {
  struct epoll_event events[EVENTS_MAX];
  int ready = epoll_wait(poller, events, EVENTS_MAX, wait_ms);
  for (int i = 0; i < ready; i++) {
    int socket = events[i].data.fd;
    latencies_ns[done + i] = receive(socket) - sent_ns[socket];
    idle[idle_count++] = socket;
  }
  return ready < 0 ? 0 : ready;
}

static long open_loop(int connections, long requests, long rate) {
  for (int i = 0; i < connections; i++) {
    setsockopt(sockets[i], SOL_SOCKET, SO_TIMESTAMPNS, &(int){1}, sizeof(int));
    idle[idle_count++] = sockets[i];
  }
  long start_ns = now_ns(CLOCK_MONOTONIC), begun = 0, done = 0;
  while (done < requests) {
    if (begun == requests || idle_count == 0) {
      done += responses(-1, done);
      continue;
    }
    long due_ns = start_ns + begun * SECOND_NS / rate;
    struct timespec due = {.tv_sec = due_ns / SECOND_NS, .tv_nsec = due_ns % SECOND_NS};
    if (now_ns(CLOCK_MONOTONIC) < due_ns) clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
    done += responses(0, done);
    if (idle_count == 0) continue;
    int socket = idle[--idle_count];
    sent_ns[socket] = now_ns(CLOCK_REALTIME);
    ask(socket);
    begun++;
  }
  return done;
}

static int by_size(const void *left, const void *right) {
  long a = *(const long *)left, b = *(const long *)right;
  return (a > b) - (a < b);
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
  if (strcmp(arguments[1], "open") != 0) {
    printf("%ld responses\n", closed_loop(connections, requests));
    return 0;
  }
  latencies_ns = calloc(requests, sizeof *latencies_ns);
  if (requests < 1 || !latencies_ns) fail("no room for so many latencies");
  long done = open_loop(connections, requests, count > 5 ? atol(arguments[5]) : 1000);
  qsort(latencies_ns, done, sizeof *latencies_ns, by_size);
  printf("%ld responses, 50%% in %.3f ms\n", done, latencies_ns[done / 2] / 1e6);
  return 0;
}
