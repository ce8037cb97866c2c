// Keeps the sessions of users in Redis, and shows how many are online.
//
// FAULT=1 lists all keys to count the sessions.

const express = require('express');
const { createClient } = require('redis');

const { PORT, REDIS_URL, FAULT } = process.env;
const USERS = 200_000;
/** Sessions of users that were online before this program started. */
const SESSIONS = `for n = 1, ${USERS} do redis.call('SET', 'session:' .. n, 'eu') redis.call('SADD', 'online', n) end`;

const redis = createClient({ url: REDIS_URL });
const count = async () => (FAULT ? (await redis.keys('session:*')).length : redis.sCard('online'));

const app = express();
app.get('/health', (_, response) => response.json({ status: 'ok' }));
app.get('/online', async (_, response) => response.json({ users: await count() }));
app.get('/users/:id', async (request, response) => {
  response.json({ region: await redis.get(`session:${request.params.id}`) });
});

async function main() {
  await redis.connect();
  await redis.eval(SESSIONS);
  const server = app.listen(Number(PORT), '127.0.0.1');
  process.once('SIGTERM', () => {
    server.close();
    server.closeAllConnections();
    redis.destroy();
  });
}

main();
