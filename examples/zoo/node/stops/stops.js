// Shows when the next bus leaves, from a timetable whose name is looked up for each request. ROLE is stops, timetable or
// names, a DNS server that knows one address. DNS servers are asked at port 53, so names listens there, at an address of
// its own.
//
// FAULT=1 makes the DNS server take 80 ms.

const dgram = require('node:dgram');
const dns = require('node:dns');
const http = require('node:http');

const { ROLE, TIMETABLE_PORT, PORT, FAULT } = process.env;
const NAME_SERVER = '127.0.0.154';
const HEADER_BYTES = 12;
const TYPE_A = 1;
const DELAY_MS = FAULT ? 80 : 0;

/** Responds to every question for an IPv4 address with 127.0.0.1. */
function response(query) {
  let end = HEADER_BYTES;
  while (query[end] !== 0) {
    end += query[end] + 1;
  }
  const isA = query.readUInt16BE(end + 1) === TYPE_A;
  const header = Buffer.from([query[0], query[1], 0x81, 0x80, 0, 1, 0, isA ? 1 : 0, 0, 0, 0, 0]);
  const question = query.subarray(HEADER_BYTES, end + 5);
  const answer = Buffer.from([0xc0, HEADER_BYTES, 0, TYPE_A, 0, 1, 0, 0, 0, 1, 0, 4, 127, 0, 0, 1]);
  return Buffer.concat(isA ? [header, question, answer] : [header, question]);
}

function names() {
  const socket = dgram.createSocket('udp4');
  socket.on('message', (query, client) => {
    setTimeout(() => socket.send(response(query), client.port, client.address), DELAY_MS);
  });
  socket.bind(53, NAME_SERVER, () => console.log('listening on', NAME_SERVER));
}

const resolver = new dns.Resolver();
resolver.setServers([NAME_SERVER]);

function stops(request, reply) {
  const fail = () => {
    reply.statusCode = 502;
    reply.end();
  };
  resolver.resolve4('timetable.internal', (error, addresses) => {
    if (error) {
      fail();
      return;
    }
    http.get({ host: addresses[0], port: TIMETABLE_PORT, path: request.url }, (next) => next.pipe(reply)).on('error', fail);
  });
}

function serve(listener) {
  const handle = (request, reply) => (request.url === '/health' ? reply.end('ok') : listener(request, reply));
  http.createServer(handle).listen(Number(PORT), '127.0.0.1');
}

if (ROLE === 'names') {
  names();
} else {
  serve(ROLE === 'timetable' ? (_, reply) => reply.end('12:04') : stops);
}
