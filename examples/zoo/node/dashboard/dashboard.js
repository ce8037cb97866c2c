// Shows the widgets of a user's dashboard, which a second service keeps. ROLE is dashboard or widgets.
//
// FAULT=1 fetches the widgets one by one.

const express = require('express');

const { ROLE, PORT, WIDGETS_URL, FAULT } = process.env;
const STORE_MS = 5;
const WIDGETS_MIN = 8;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const widget = (id) => ({ id, title: `widget ${id}`, value: (id * 37) % 100 });

async function get(path) {
  const response = await fetch(WIDGETS_URL + path);
  return response.json();
}

const app = express();
app.get('/health', (_, response) => response.json({ status: 'ok' }));
if (ROLE === 'widgets') {
  app.get('/users/:id/widgets', async (request, response) => {
    await sleep(STORE_MS);
    const user = Number(request.params.id);
    response.json(Array.from({ length: WIDGETS_MIN + (user % 9) }, (_, at) => user * 100 + at));
  });
  app.get('/widgets/:id', async (request, response) => {
    await sleep(STORE_MS);
    response.json(widget(Number(request.params.id)));
  });
  app.get('/widgets', async (request, response) => {
    await sleep(STORE_MS);
    response.json(String(request.query.ids).split(',').map(Number).map(widget));
  });
} else {
  app.get('/dashboards/:user', async (request, response) => {
    const ids = await get(`/users/${request.params.user}/widgets`);
    const widgets = [];
    if (FAULT) for (const id of ids) widgets.push(await get(`/widgets/${id}`));
    else widgets.push(...(await get(`/widgets?ids=${ids}`)));
    response.json(widgets);
  });
}
const server = app.listen(Number(PORT), '127.0.0.1');
process.once('SIGTERM', () => {
  server.close();
  server.closeAllConnections();
});
