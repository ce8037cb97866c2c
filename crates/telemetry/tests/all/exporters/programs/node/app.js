// A server and its client in one process; nothing in it knows that it is watched.
'use strict';
const http = require('node:http');

const server = http.createServer((request, response) => {
  response.statusCode = request.url === '/boom' ? 500 : 200;
  response.end('hello');
});

function get(path, then) {
  const { port } = server.address();
  http.get({ host: '127.0.0.1', port, path, agent: false }, (response) => {
    response.resume();
    response.on('end', then);
  });
}

server.listen(0, '127.0.0.1', () => {
  get('/hello/world', () => get('/boom', () => server.close()));
});
