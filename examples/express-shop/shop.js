// A small shop: the page of a basket, put together from the responses of a stock service.
//
// Environment:
//   ROLE       shop or stock: which of the two services this process is
//   PORT       where it listens, on 127.0.0.1
//   STOCK      address of the stock service, for the shop
//   FAULT      what is wrong with the shop; nothing, or one of
//              chatty-http   asks the stock for each item of the basket by itself
//              serial        asks the carriers one after another
//              straggler     waits for recommendations that take six times as long as the rest
//              cpu           signs each page with far too many rounds, on the event loop

const { pbkdf2Sync } = require('node:crypto');
const express = require('express');

const { ROLE = 'shop', PORT = '8080', STOCK = 'http://127.0.0.1:8081', FAULT = '' } = process.env;

/** No basket holds fewer items, or more. */
const ITEMS_MIN = 6;
const ITEMS_MAX = 18;
const CARRIERS = ['bike', 'post', 'truck', 'drone'];
/** How long the stock's own store takes, milliseconds. */
const STORE_MS = 15;
const RECOMMENDATIONS_MS = FAULT === 'straggler' ? 6 * STORE_MS : STORE_MS;
const SIGNATURE_ROUNDS = FAULT === 'cpu' ? 800_000 : 100;

const store = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function stock() {
  const app = express();
  const item = (id) => ({ id, inStock: Number(id) % 7, priceCents: 100 + (Number(id) * 37) % 9_900 });

  app.get('/items/:id', async (request, response) => {
    await store(STORE_MS);
    response.json(item(request.params.id));
  });
  app.get('/items', async (request, response) => {
    await store(STORE_MS);
    response.json(String(request.query.ids).split(',').map(item));
  });
  app.get('/carriers/:name/quote', async (request, response) => {
    await store(STORE_MS);
    response.json({ carrier: request.params.name, cents: 300 + request.params.name.length * 50 });
  });
  app.get('/recommendations', async (request, response) => {
    await store(RECOMMENDATIONS_MS);
    response.json([1, 2, 3].map(item));
  });
  return app;
}

async function get(path) {
  const response = await fetch(STOCK + path);
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response.json();
}

async function items(ids) {
  if (FAULT !== 'chatty-http') return get(`/items?ids=${ids.join(',')}`);
  const found = [];
  for (const id of ids) found.push(await get(`/items/${id}`));
  return found;
}

async function quotes() {
  const quote = (carrier) => get(`/carriers/${carrier}/quote`);
  if (FAULT !== 'serial') return Promise.all(CARRIERS.map(quote));
  const found = [];
  for (const carrier of CARRIERS) found.push(await quote(carrier));
  return found;
}

function shop() {
  const app = express();

  app.get('/baskets/:id', async (request, response) => {
    const basket = Number(request.params.id);
    const size = ITEMS_MIN + (basket % (ITEMS_MAX - ITEMS_MIN + 1));
    const ids = Array.from({ length: size }, (_, at) => basket * ITEMS_MAX + at);
    const [lines, delivery, recommended] = await Promise.all([items(ids), quotes(), get('/recommendations')]);
    const page = JSON.stringify({ lines, delivery, recommended });
    const signature = pbkdf2Sync(page, 'basket', SIGNATURE_ROUNDS, 32, 'sha256').toString('hex');
    response.set('x-signature', signature).type('json').send(page);
  });
  return app;
}

const app = ROLE === 'stock' ? stock() : shop();
app.get('/health', (_, response) => response.json({ status: 'ok' }));
const server = app.listen(Number(PORT), '127.0.0.1');
process.once('SIGTERM', () => {
  server.close();
  server.closeAllConnections();
});
