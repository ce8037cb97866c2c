// The explorer: containers, what their partitions use, and queries. It is a client like any other: requests go to the
// store's own REST interface and are signed with the key in the page.

const EMULATOR_KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
const API_VERSION = "2020-07-15";
const PAGE_ITEMS = 50;
const MINUTE = 60;

const at = (id) => document.getElementById(id);
const selected = { container: null, continuation: null, offer: null };
/** By database, container and partition: the last reading and the rates of the last minute. */
const history = new Map();

function element(name, properties = {}, children = []) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function say(message, isFailed = false) {
  at("state").textContent = message;
  at("state").classList.toggle("failed", isFailed);
}

const bytesOf = (base64) => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));

async function signature(method, kind, link, date) {
  const text = `${method.toLowerCase()}\n${kind}\n${link}\n${date.toLowerCase()}\n\n`;
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", bytesOf(at("key").value), algorithm, false, ["sign"]);
  const signed = new Uint8Array(await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(text)));
  return encodeURIComponent(`type=master&ver=1.0&sig=${btoa(String.fromCharCode(...signed))}`);
}

/** Sends one request of the REST interface; `link` is what its signature is about. Failures carry the store's message. */
async function ask(method, path, [kind, link], { headers = {}, body } = {}) {
  const date = new Date().toUTCString();
  const authorization = await signature(method, kind, link, date);
  const all = { authorization, "x-ms-date": date, "x-ms-version": API_VERSION, ...headers };
  const response = await fetch(path, { method, headers: all, body });
  const text = await response.text();
  const content = text ? JSON.parse(text) : {};
  if (!response.ok) throw new Error(`${response.status}: ${content.message ?? response.statusText}`);
  return { content, headers: response.headers };
}

const linkOf = ({ database, container }) => `dbs/${database}/colls/${container}`;
const pathOf = ({ database, container }) => `/dbs/${encodeURIComponent(database)}/colls/${encodeURIComponent(container)}`;

async function listContainers() {
  const { content } = await ask("GET", "/dbs", ["dbs", ""]);
  const found = [];
  for (const { id: database } of content.Databases) {
    const of = await ask("GET", `/dbs/${encodeURIComponent(database)}/colls`, ["colls", `dbs/${database}`]);
    found.push(...of.content.DocumentCollections.map(({ id: container }) => ({ database, container })));
  }
  at("containers").replaceChildren(...found.map((one) => {
    const button = element("button", { type: "button", textContent: `${one.database} / ${one.container}` });
    button.addEventListener("click", () => attempt(() => select(one, button)));
    return element("li", {}, [button]);
  }));
  if (found.length === 1) at("containers").querySelector("button").click();
}

async function select(container, button) {
  for (const other of at("containers").querySelectorAll("button")) other.ariaCurrent = String(other === button);
  selected.container = container;
  at("name").textContent = `${container.database} / ${container.container}`;
  at("container").hidden = false;
  at("none").hidden = true;
  const { content } = await ask("GET", pathOf(container), ["colls", linkOf(container)]);
  at("facts").textContent = `Partition key: ${content.partitionKey.paths.join(", ")}`;
  await readThroughput(content._rid);
  await query();
}

async function readThroughput(rid) {
  const { content } = await ask("GET", "/offers", ["offers", ""]);
  selected.offer = content.Offers.find((offer) => offer.offerResourceId === rid) ?? null;
  at("throughput").hidden = !selected.offer;
  if (!selected.offer) return;
  const { offerAutopilotSettings, offerThroughput } = selected.offer.content;
  at("rate").value = offerAutopilotSettings?.maxThroughput ?? offerThroughput;
}

async function changeThroughput() {
  const rate = Number(at("rate").value);
  const { offerAutopilotSettings } = selected.offer.content;
  const content = offerAutopilotSettings ? { offerAutopilotSettings: { maxThroughput: rate } } : { offerThroughput: rate };
  const id = selected.offer.id;
  // The resource id of an offer is signed in lower case.
  const body = JSON.stringify({ ...selected.offer, content });
  await ask("PUT", `/offers/${id}`, ["offers", id.toLowerCase()], { body });
  await readThroughput(selected.offer.offerResourceId);
  say(`The container provides ${rate} RU/s now.`);
}

async function query(continuation = null) {
  const container = selected.container;
  const partitionKey = at("partition-key").value.trim();
  const headers = {
    "content-type": "application/query+json",
    "x-ms-documentdb-isquery": "True",
    "x-ms-max-item-count": String(PAGE_ITEMS),
    ...(partitionKey
      ? { "x-ms-documentdb-partitionkey": `[${partitionKey}]` }
      : { "x-ms-documentdb-query-enablecrosspartition": "True" }),
    ...(continuation ? { "x-ms-continuation": continuation } : {}),
  };
  const body = JSON.stringify({ query: at("sql").value, parameters: [] });
  at("result").textContent = "";
  const options = { headers, body };
  const { content, headers: received } = await ask("POST", `${pathOf(container)}/docs`, ["docs", linkOf(container)], options);
  selected.continuation = received.get("x-ms-continuation");
  at("more").hidden = !selected.continuation;
  if (!continuation) at("items").replaceChildren();
  at("items").append(...content.Documents.map(item));
  const [shown, charge] = [at("items").children.length, received.get("x-ms-request-charge")];
  at("result").textContent = `${shown} ${shown === 1 ? "item" : "items"}; the last page cost ${charge} RU`;
}

function item(value) {
  const text = element("pre", { textContent: JSON.stringify(value, null, 2) });
  return element("li", {}, [element("details", {}, [element("summary", { textContent: JSON.stringify(value) }), text])]);
}

async function readUsage() {
  const response = await fetch("usage");
  const { unixMs, containers } = await response.json();
  for (const { database, container, partitions } of containers) {
    const isShown = selected.container?.database === database && selected.container?.container === container;
    const rows = partitions.map((partition) => read(`${database}/${container}/${partition.id}`, partition, unixMs));
    if (isShown) at("partitions").tBodies[0].replaceChildren(...rows.map(row));
  }
}

/** A partition's rates since its last reading. */
function read(key, partition, unixMs) {
  const known = history.get(key) ?? { rates: [] };
  const seconds = (unixMs - known.unixMs) / 1000;
  const since = (now, before) => (seconds > 0 ? (now - before) / seconds : 0);
  const rate = known.last ? since(partition.consumed, known.last.consumed) : 0;
  const refused = known.last ? since(partition.throttled, known.last.throttled) : 0;
  const rates = [...known.rates, rate].slice(-MINUTE);
  history.set(key, { last: partition, unixMs, rates });
  return { ...partition, rate, refused, rates };
}

function row({ id, provisioned, bytes, rate, refused, rates }) {
  const share = provisioned > 0 ? Math.min(rate / provisioned, 1) : 0;
  const fill = element("i", { className: share >= 0.98 ? "is-full" : "" });
  fill.style.width = `${(100 * share).toFixed(1)}%`;
  const cell = (textContent, className = "") => element("td", { textContent, className });
  return element("tr", {}, [
    cell(id),
    element("td", {}, [element("div", { className: "bar" }, [fill])]),
    cell(`${rate.toFixed(0)} of ${provisioned.toFixed(0)}`),
    cell(`${refused.toFixed(0)}/s`, refused > 0 ? "is-refused" : ""),
    cell(size(bytes)),
    element("td", {}, [minute(rates, provisioned)]),
  ]);
}

function size(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1 << 20 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / (1 << 20)).toFixed(1)} MiB`;
}

function minute(rates, provisioned) {
  const most = Math.max(provisioned, ...rates, 1);
  const make = (name) => document.createElementNS("http://www.w3.org/2000/svg", name);
  const [chart, line] = [make("svg"), make("polyline")];
  chart.setAttribute("class", "minute");
  chart.setAttribute("viewBox", `0 0 ${MINUTE} 100`);
  chart.setAttribute("preserveAspectRatio", "none");
  const x = (index) => MINUTE - rates.length + index + 1;
  line.setAttribute("points", rates.map((rate, index) => `${x(index)},${98 - (96 * rate) / most}`).join(" "));
  chart.append(line);
  return chart;
}

/** Runs what a person asked for and says why it failed, if it did. */
async function attempt(run) {
  try {
    say("");
    await run();
  } catch (error) {
    say(error.message, true);
  }
}

function submits(form, run) {
  at(form).addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(run);
  });
}

submits("query", () => query());
submits("throughput", changeThroughput);
at("more").addEventListener("click", () => attempt(() => query(selected.continuation)));
at("key").addEventListener("change", () => attempt(listContainers));
at("sql").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) at("query").requestSubmit();
});
at("key").value = EMULATOR_KEY;
attempt(listContainers);
setInterval(() => readUsage().catch((error) => say(`The store does not respond: ${error.message}`, true)), 1000);
readUsage().catch(() => {});
