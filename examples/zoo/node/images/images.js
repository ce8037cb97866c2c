// Keeps descriptions of images in memory, with a heap of 128 MB, and copies a few of them per request.
//
// FAULT=1 keeps so many that hardly any heap is left.

const express = require('express');

const KEPT = process.env.FAULT ? 500_000 : 20_000;
const COPIES = 1_000;
const describe = (id) => ({ id, title: `image ${id}`, width: id % 4_000, height: id % 3_000, tags: [id, id + 1] });
const images = Array.from({ length: KEPT }, (_, id) => describe(id));

const app = express();
app.get('/health', (_, response) => response.json({ status: 'ok' }));
app.get('/images', (_, response) => {
  const first = Math.floor(Math.random() * (KEPT - COPIES));
  const found = images.slice(first, first + COPIES).map((image) => ({ ...image, tags: [...image.tags] }));
  response.json({ pixels: found.reduce((sum, image) => sum + image.width * image.height, 0) });
});
const server = app.listen(Number(process.env.PORT), '127.0.0.1');
process.once('SIGTERM', () => {
  server.close();
  server.closeAllConnections();
});
