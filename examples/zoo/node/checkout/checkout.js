// Takes orders and charges them at a payment service, up to eight times until a charge succeeds. ROLE is checkout or
// payment.
//
// FAULT=1 makes the payment service refuse four of five charges in every other interval of three seconds.

const express = require('express');

const { ROLE, PORT, PAYMENT_URL, FAULT } = process.env;
const ATTEMPTS_MAX = 8;
const CHARGE_MS = 15;
const INTERVAL_MS = 3_000;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const isDown = () => Boolean(FAULT) && Math.floor(Date.now() / INTERVAL_MS) % 2 === 0;

async function charge(order) {
  for (let attempt = 1; ; attempt += 1) {
    const response = await fetch(`${PAYMENT_URL}/charges/${order}`, { method: 'POST' });
    await response.text();
    if (response.ok || attempt === ATTEMPTS_MAX) return response.ok;
  }
}

const app = express();
app.get('/health', (_, response) => response.json({ status: 'ok' }));
if (ROLE === 'payment') {
  app.post('/charges/:order', async (request, response) => {
    await sleep(CHARGE_MS);
    response.sendStatus(isDown() && Math.random() < 0.8 ? 503 : 201);
  });
} else {
  app.post('/orders/:id', async (request, response) => {
    response.json({ paid: await charge(request.params.id) });
  });
}
const server = app.listen(Number(PORT), '127.0.0.1');
process.once('SIGTERM', () => {
  server.close();
  server.closeAllConnections();
});
