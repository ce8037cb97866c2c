// A DNS server at port 53 that responds to every question for an IPv4 address with 127.0.0.1, after a delay.

const dgram = require('node:dgram');

const HEADER_BYTES = 12;
const TYPE_A = 1;

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

/** Listens at this address, and responds after so many milliseconds. */
function serveNames(address, delayMs) {
  const socket = dgram.createSocket('udp4');
  socket.on('message', (query, client) => {
    setTimeout(() => socket.send(response(query), client.port, client.address), delayMs);
  });
  socket.bind(53, address, () => console.log('listening on', address));
}

module.exports = { serveNames };
