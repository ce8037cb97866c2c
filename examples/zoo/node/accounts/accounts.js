// Signs users in with a password that is hashed by scrypt.
//
// FAULT=1 hashes on the event loop instead of in a thread, and at twice the cost.

const { scrypt, scryptSync, timingSafeEqual } = require('node:crypto');
const { promisify } = require('node:util');
const express = require('express');

const FAULTY = Boolean(process.env.FAULT);
const COST = { N: FAULTY ? 16_384 : 8_192 };
const SALT = 'accounts';
const stored = scryptSync('secret', SALT, 32, COST);
const hash = FAULTY ? async (password) => scryptSync(password, SALT, 32, COST) : promisify(scrypt);

const app = express();
app.use(express.json());
app.get('/health', (_, response) => response.json({ status: 'ok' }));
app.post('/sessions', async (request, response) => {
  const given = await hash(request.body.password, SALT, 32, COST);
  response.status(timingSafeEqual(given, stored) ? 201 : 401).json({});
});
const server = app.listen(Number(process.env.PORT), '127.0.0.1');
process.once('SIGTERM', () => {
  server.close();
  server.closeAllConnections();
});
