// Prices products by a simulation, once each.
//
// FAULT=1 simulates a product when it is asked for first, so requests are dear until most have been asked for; otherwise
// all are simulated before the service is ready.
'use strict'

const http = require('node:http')

const PRODUCTS = 400
const DRAWS = 1_500_000
const prices = new Map()

function simulate(product) {
  let state = product
  let sum = 0
  for (let draw = 0; draw < DRAWS; draw++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    sum += state % 100
  }
  return sum / DRAWS
}

function priceOf(product) {
  if (!prices.has(product)) prices.set(product, simulate(product))
  return prices.get(product)
}

if (!process.env.FAULT) for (let product = 1; product <= PRODUCTS; product++) priceOf(product)

http
  .createServer((request, response) => {
    const product = Number(request.url.split('/').pop())
    const body = Number.isInteger(product) ? JSON.stringify({ price: priceOf(product) }) : 'ok'
    response.end(body)
  })
  .listen(Number(process.env.PORT), '127.0.0.1')
