// Shows carts with their items, from PostgreSQL, and when they can be delivered.
//
// FAULT=1 leaves one database connection for all requests, which each keeps while it waits for the delivery date.

const express = require('express');
const { Pool } = require('pg');

const { PORT, DATABASE_URL, FAULT } = process.env;
const POOL = FAULT ? 1 : 16;
const DELIVERY_MS = 15;
const ITEMS = 'SELECT product, quantity FROM items WHERE cart = $1';

const pool = new Pool({ connectionString: DATABASE_URL, max: POOL });
/** Stands for the carrier's library, which waits for a device. */
const deliveryDate = () => new Promise((resolve) => setTimeout(resolve, DELIVERY_MS, 'tomorrow'));

const app = express();
app.get('/health', (_, response) => response.json({ status: 'ok' }));
app.get('/carts/:id', async (request, response) => {
  const client = await pool.connect();
  try {
    const { rows } = await client.query(ITEMS, [Number(request.params.id)]);
    response.json({ items: rows, delivery: await deliveryDate() });
  } finally {
    client.release();
  }
});
const server = app.listen(Number(PORT), '127.0.0.1');
process.once('SIGTERM', () => {
  server.close();
  server.closeAllConnections();
});
