// Shows a page with news, mail and weather, which a second service has. ROLE is portal or sources.
//
// FAULT=1 makes the weather take eight times as long as the rest.

const express = require('express');

const { ROLE, PORT, SOURCES_URL, FAULT } = process.env;
const SOURCE_MS = 12;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function get(path) {
  const response = await fetch(SOURCES_URL + path);
  return response.json();
}

const app = express();
app.get('/health', (_, response) => response.json({ status: 'ok' }));
if (ROLE === 'sources') {
  const source = (path, ms) =>
    app.get(path, async (_, response) => {
      await sleep(ms);
      response.json([path]);
    });
  source('/news', SOURCE_MS);
  source('/mail', SOURCE_MS);
  source('/weather', FAULT ? 8 * SOURCE_MS : SOURCE_MS);
} else {
  app.get('/', async (_, response) => {
    const [news, mail, weather] = await Promise.all([get('/news'), get('/mail'), get('/weather')]);
    response.json({ news, mail, weather });
  });
}
const server = app.listen(Number(PORT), '127.0.0.1');
process.once('SIGTERM', () => {
  server.close();
  server.closeAllConnections();
});
