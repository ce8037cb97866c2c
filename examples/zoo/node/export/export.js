// Exports orders as JSON.
//
// FAULT=1 writes all 10,000 orders into each response instead of one page of 50.

const http = require('node:http');

const PAGE = 50;
const FAULTY = Boolean(process.env.FAULT);
const orders = Array.from({ length: 10_000 }, (_, id) => ({
  id,
  customer: { name: `customer ${id % 700}`, city: 'Oslo', tags: ['new', 'newsletter'] },
  lines: [1, 2, 3].map((line) => ({ product: `product ${id * line}`, quantity: line, cents: 100 + id })),
}));

http
  .createServer((request, response) => {
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify(FAULTY ? orders : orders.slice(0, PAGE)));
  })
  .listen(Number(process.env.PORT), '127.0.0.1');
