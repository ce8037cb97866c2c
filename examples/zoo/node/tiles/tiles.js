// Shows map tiles, each drawn by one of three renderers, which are called over gRPC. ROLE is tiles or renderer. A renderer
// computes for some milliseconds.
//
// FAULT=1 leaves the client the policy that is gRPC's default, pick_first: one connection, so all calls go to the first
// renderer. Else calls go to the renderers in turn.

const grpc = require('@grpc/grpc-js');
const http = require('node:http');

const { ROLE, RENDERER_URLS, PORT, FAULT } = process.env;
const STEPS = 150_000;
const TURNS = { loadBalancingConfig: [{ round_robin: {} }] };

const asIs = (bytes) => bytes;
const DRAW = {
  path: '/Renderer/Draw',
  requestStream: false,
  responseStream: false,
  requestSerialize: asIs,
  requestDeserialize: asIs,
  responseSerialize: asIs,
  responseDeserialize: asIs,
};

function draw(call, reply) {
  let colour = call.request.length;
  for (let step = 0; step < STEPS; step++) {
    colour = (colour * 1_103_515_245 + 12_345) % 2_147_483_648;
  }
  reply(null, Buffer.from(String(colour)));
}

function renderer() {
  const server = new grpc.Server();
  server.addService({ draw: DRAW }, { draw });
  server.bindAsync(`127.0.0.1:${PORT}`, grpc.ServerCredentials.createInsecure(), (error) => {
    if (error) {
      throw error;
    }
    console.log('listening');
  });
}

function tiles() {
  const addresses = RENDERER_URLS.replaceAll('http://', '');
  const options = FAULT ? {} : { 'grpc.service_config': JSON.stringify(TURNS) };
  const renderers = new grpc.Client(`ipv4:${addresses}`, grpc.credentials.createInsecure(), options);
  const show = (request, response) => {
    if (request.url === '/health') {
      response.end('ok');
      return;
    }
    const tile = Buffer.from(request.url);
    renderers.makeUnaryRequest(DRAW.path, DRAW.requestSerialize, DRAW.responseDeserialize, tile, (error, drawn) => {
      response.statusCode = error ? 502 : 200;
      response.end(drawn);
    });
  };
  http.createServer(show).listen(Number(PORT), '127.0.0.1');
}

if (ROLE === 'renderer') {
  renderer();
} else {
  tiles();
}
