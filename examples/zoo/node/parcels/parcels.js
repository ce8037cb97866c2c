// Shows where a parcel is, from a carrier whose name a DNS server knows that takes 80 ms. ROLE is parcels, carrier or names, the
// DNS server. DNS servers are asked at port 53, so names listens there, at an address of its own, which parcels finds in its own
// /etc/resolv.conf.
//
// FAULT=1 looks up the name for each request, as http.get does it: by the system's resolver, in threads of libuv, which looks up
// two names at a time. Else the address is kept.

const dns = require('node:dns');
const http = require('node:http');

const { serveNames } = require('../name_server');

const { ROLE, CARRIER_PORT, PORT, FAULT } = process.env;
const NAME_SERVER = '127.0.0.155';
const DELAY_MS = 80;

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
  serveNames(NAME_SERVER, DELAY_MS);
} else {
  serve(ROLE === 'carrier' ? (_, reply) => reply.end('Rome') : parcels);
}
