// Clients in Node: the http module, fetch, node-postgres.
//
//     node client.js http|post|fetch|postgres ADDRESS SERVICE_MS THINK_MS BYTES WORKERS SECONDS
//
// Calls for two seconds unmeasured, prints "measuring", and at its end the mean number of calls under way by its own clock,
// their number and mean time.
const [kind, address, ...numbers] = process.argv.slice(2);
const [serviceMs, thinkMs, bytes, workers, seconds] = numbers.map(Number);
const [host, port] = address.split(":");
const path = serviceMs < 0 ? `/?ms=5&slow=${-serviceMs}&bytes=${bytes}` : `/?ms=${serviceMs}&bytes=${bytes}`;
const now = () => performance.now() / 1e3;

function http(method) {
  const http = require("node:http");
  const agent = new http.Agent({ keepAlive: true, maxSockets: workers });
  return () =>
    new Promise((resolve, reject) => {
      const request = http.request({ host, port, path, method, agent }, (response) => {
        response.on("data", () => {}).on("end", resolve).on("error", reject);
      });
      request.on("error", reject);
      request.end(method === "POST" ? JSON.stringify({ items: [1, 2, 3] }) : undefined);
    });
}

function postgres() {
  const { Pool } = require("pg");
  const pool = new Pool({ host, port: Number(port), user: "postgres", max: workers });
  return () => pool.query("SELECT pg_sleep($1)", [serviceMs / 1e3]);
}

const call = {
  http: () => http("GET"),
  post: () => http("POST"),
  fetch: () => async () => (await fetch(`http://${address}${path}`)).arrayBuffer(),
  postgres,
}[kind]();

let busy = 0;
let calls = 0;
const began = now() + 2;
setTimeout(() => console.log("measuring"), 2000);

async function work() {
  while (now() - began < seconds) {
    const sent = now();
    await call();
    if (sent >= began) {
      busy += now() - sent;
      calls += 1;
    }
    if (thinkMs > 0) await new Promise((resolve) => setTimeout(resolve, -Math.log(1 - Math.random()) * thinkMs));
  }
}

Promise.all(Array.from({ length: workers }, work)).then(() => {
  const outstanding = busy / (now() - began);
  console.log(JSON.stringify({ outstanding, calls, mean_ms: (busy / calls) * 1e3 }));
  process.exit(0);
});
