// Shows the dishes that a kitchen has, and asks it for each of five. ROLE is menus or kitchen.
//
// FAULT=1 keeps no connection to the kitchen, so that every call opens one.

const http = require('node:http');

const { ROLE, KITCHEN_URL, PORT, FAULT } = process.env;
const DISHES = ['soup', 'salad', 'pasta', 'stew', 'cake'];
const agent = new http.Agent({ keepAlive: !FAULT });

function kitchen(_, response) {
  response.end('{"left":7}');
}

function ask(dish) {
  return new Promise((resolve, reject) => {
    const call = http.get(`${KITCHEN_URL}/dishes/${dish}`, { agent }, (reply) => {
      let body = '';
      reply.on('data', (part) => {
        body += part;
      });
      reply.on('end', () => resolve(JSON.parse(body).left));
    });
    call.on('error', reject);
  });
}

async function menus(request, response) {
  if (request.url === '/health') {
    response.end('ok');
    return;
  }
  try {
    const menu = {};
    for (const dish of DISHES) {
      menu[dish] = await ask(dish);
    }
    response.end(JSON.stringify(menu));
  } catch {
    response.statusCode = 502;
    response.end();
  }
}

http.createServer(ROLE === 'kitchen' ? kitchen : menus).listen(Number(PORT), '127.0.0.1');
