// Shows when the next bus leaves, from a timetable whose name is looked up for each request. ROLE is stops, timetable or
// names, a DNS server that knows one address. DNS servers are asked at port 53, so names listens there, at an address of
// its own.
//
// FAULT=1 makes the DNS server take 80 ms.

const dns = require('node:dns');
const http = require('node:http');

const { serveNames } = require('../name_server');

const { ROLE, TIMETABLE_PORT, PORT, FAULT } = process.env;
const NAME_SERVER = '127.0.0.154';
const DELAY_MS = FAULT ? 80 : 0;

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
  serveNames(NAME_SERVER, DELAY_MS);
} else {
  serve(ROLE === 'timetable' ? (_, reply) => reply.end('12:04') : stops);
}
