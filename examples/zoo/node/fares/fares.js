// Adds a fee to the fare that a carrier says. ROLE is fares or carrier.
//
// FAULT=1 makes the carrier take 150 ms.

const http = require('node:http');

const { ROLE, CARRIER_URL, PORT, FAULT } = process.env;
const CARRIER_MS = FAULT ? 150 : 2;
const agent = new http.Agent({ keepAlive: true });

function carrier(_, response) {
  setTimeout(() => response.end('{"cents":4200}'), CARRIER_MS);
}

function fares(request, response) {
  if (request.url === '/health') {
    response.end('ok');
    return;
  }
  const call = http.get(`${CARRIER_URL}/fares`, { agent }, (reply) => {
    let body = '';
    reply.on('data', (part) => {
      body += part;
    });
    reply.on('end', () => response.end(JSON.stringify({ cents: JSON.parse(body).cents + 150 })));
  });
  call.on('error', () => {
    response.statusCode = 502;
    response.end();
  });
}

http.createServer(ROLE === 'carrier' ? carrier : fares).listen(Number(PORT), '127.0.0.1');
