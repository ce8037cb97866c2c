// Shows where a parcel is, from a carrier whose name a DNS server knows that takes 80 ms. ROLE is parcels, carrier or names, the
// DNS server. DNS servers are asked at port 53, so names listens there, at an address of its own, which parcels finds in its own
// /etc/resolv.conf.
//
// FAULT=1 looks up the name for each request, as http.get does it: by the system's resolver, in threads of libuv, which looks up
// two names at a time. Else the address is kept.

const dgram = require('node:dgram');
const dns = require('node:dns');
const http = require('node:http');

const { ROLE, CARRIER_PORT, PORT, FAULT } = process.env;
const NAME_SERVER = '127.0.0.155';
const HEADER_BYTES = 12;
const TYPE_A = 1;
const DELAY_MS = 80;

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

let kept;
function lookup(name, options, found) {
  if (kept) {
    found(null, ...kept);
    return;
  }
  dns.lookup(name, options, (error, ...address) => {
    kept = FAULT || error ? undefined : address;
    found(error, ...address);
  });
}

function parcels(request, reply) {
  const fail = () => {
    reply.statusCode = 502;
    reply.end();
  };
  // Without an agent that keeps connections, so that each request opens one.
  const carrier = { host: 'carrier.internal', port: CARRIER_PORT, path: request.url, agent: false, family: 4, lookup };
  http.get(carrier, (place) => place.pipe(reply)).on('error', fail);
}

function serve(listener) {
  const handle = (request, reply) => (request.url === '/health' ? reply.end('ok') : listener(request, reply));
  http.createServer(handle).listen(Number(PORT), '127.0.0.1');
}

if (ROLE === 'names') {
  names();
} else {
  serve(ROLE === 'carrier' ? (_, reply) => reply.end('Rome') : parcels);
}
