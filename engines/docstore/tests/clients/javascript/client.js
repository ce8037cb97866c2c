// Microsoft's client for JavaScript against the store whose address is the first argument, every response checked.

const assert = require("node:assert/strict");
const { CosmosClient } = require("@azure/cosmos");

const key = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
const endpoint = process.argv[2];
const count = 120;
const everything = [...Array(count).keys()];

const item = (n) => ({ id: `${n}`, owner: `o${n % 20}`, n, group: "abc"[n % 3], tags: Array(n % 3).fill("x") });
// Its write takes more than the 400 request units of a second.
const large = (n) => ({ ...item(n), filling: "x".repeat(70_000) });
const largeCount = 6;
const ascending = (numbers) => [...numbers].sort((a, b) => a - b);
const refused = (code, action) => assert.rejects(action, (error) => error.code === code);

async function create(database, id, throughput) {
  const { container } = await database.containers.create({ id, partitionKey: "/owner", throughput });
  for (const n of everything) await container.items.create(item(n));
  return container;
}

async function documents(items) {
  await refused(409, () => items.items.create(item(1)));
  assert.equal((await items.item("1", "o1").read()).resource.n, 1);
  assert.equal((await items.item("1", "o2").read()).statusCode, 404);

  assert.equal((await items.items.upsert({ id: "new", owner: "o1" })).statusCode, 201);
  assert.equal((await items.items.upsert({ id: "new", owner: "o1", n: 7 })).statusCode, 200);
  const patch = [{ op: "incr", path: "/n", value: 5 }, { op: "add", path: "/m", value: 1 }];
  const { resource } = await items.item("new", "o1").patch(patch);
  assert.deepEqual([resource.n, resource.m], [12, 1]);
  const unmet = { condition: "from c where c.n = 1", operations: [{ op: "set", path: "/n", value: 0 }] };
  await refused(412, () => items.item("new", "o1").patch(unmet));
  await items.item("new", "o1").delete();
  assert.equal((await items.item("new", "o1").read()).statusCode, 404);
}

async function aChangeThatSomebodyElseHasOvertaken(items) {
  const { resource } = await items.item("2", "o2").read();
  await items.item("2", "o2").replace(resource);
  const accessCondition = { type: "IfMatch", condition: resource._etag };
  await refused(412, () => items.item("2", "o2").replace(resource, { accessCondition }));
}

async function batches(items) {
  const create = { operationType: "Create", resourceBody: { id: "b", owner: "o1", z: 1, a: 2 } };
  const others = [{ operationType: "Read", id: "1" }, { operationType: "Read", id: "b" }, { operationType: "Delete", id: "b" }];
  const done = await items.items.batch([create, ...others], "o1");
  assert.deepEqual(done.result.map((result) => result.statusCode), [201, 200, 200, 204]);
  assert.deepEqual(Object.keys(done.result[2].resourceBody).slice(0, 4), ["id", "owner", "z", "a"]);
  const failed = await items.items.batch([create, { operationType: "Create", resourceBody: item(1) }], "o1");
  assert.deepEqual(failed.result.map((result) => result.statusCode), [424, 409]);
  const bulk = await items.items.executeBulkOperations([0, 1, 2].map((n) => ({
    operationType: "Upsert", partitionKey: item(n).owner, resourceBody: item(n),
  })));
  assert.deepEqual(bulk.map((result) => result.response.statusCode), [200, 200, 200]);
}

async function queries(items, maxDegreeOfParallelism) {
  const ask = async (sql, options) => {
    const iterator = items.items.query(sql, { maxDegreeOfParallelism, maxItemCount: 7, ...options });
    return (await iterator.fetchAll()).resources;
  };
  const byGroup = (rows) => rows.sort((a, b) => (a.g < b.g ? -1 : 1));

  const ofOwner = { query: "SELECT VALUE c.n FROM c WHERE c.owner = @owner", parameters: [{ name: "@owner", value: "o3" }] };
  assert.deepEqual(ascending(await ask(ofOwner)), [3, 23, 43, 63, 83, 103]);
  assert.equal((await ask("SELECT * FROM c", { partitionKey: "o3" })).length, 6);
  assert.deepEqual(ascending(await ask("SELECT VALUE c.n FROM c")), everything);
  assert.deepEqual(await ask("SELECT VALUE c.n FROM c ORDER BY c.n"), everything);
  assert.deepEqual(await ask("SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC"), [119, 118, 117]);
  assert.deepEqual(await ask("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 3"), [10, 11, 12]);
  assert.deepEqual((await ask("SELECT DISTINCT VALUE c['group'] FROM c")).sort(), ["a", "b", "c"]);
  assert.deepEqual(await ask("SELECT VALUE COUNT(1) FROM c"), [count]);
  const groups = await ask("SELECT c['group'] AS g, COUNT(1) AS n, SUM(c.n) AS s FROM c GROUP BY c['group']");
  const expected = [{ g: "a", n: 40, s: 2340 }, { g: "b", n: 40, s: 2380 }, { g: "c", n: 40, s: 2420 }];
  assert.deepEqual(byGroup(groups), expected);
}

// The numbers of all items, read in pages that each continue from the token of the one before.
async function pages(items, between = async () => {}, order = "") {
  const found = [];
  let continuationToken;
  for (let page = 0; page < count; page++) {
    const iterator = items.items.query(`SELECT VALUE c.n FROM c ${order}`, { maxItemCount: 10, continuationToken });
    const response = await iterator.fetchNext();
    found.push(...response.resources);
    continuationToken = response.continuationToken;
    if (!continuationToken) break;
    await between(page);
  }
  return found;
}

// Splits the container's one partition after the fourth page.
const raiseThroughput = (items) => async (page) => {
  if (page !== 3) return;
  const { resource: offer } = await items.readOffer();
  offer.content.offerThroughput = 40000;
  await items.database.client.offer(offer.id).replace(offer);
};

async function aSplitInTheMiddleOfASortedQuery(database) {
  const items = await create(database, "sorted", 10000);
  assert.deepEqual(await pages(items, raiseThroughput(items), "ORDER BY c.n"), everything);
  assert.equal((await items.readPartitionKeyRanges().fetchAll()).resources.length, 4);
}

async function aSplitInTheMiddleOfAQuery(database) {
  const items = await create(database, "split", 10000);
  assert.deepEqual(ascending(await pages(items, raiseThroughput(items))), everything);
  for (const maxDegreeOfParallelism of [0, 3, -1]) await queries(items, maxDegreeOfParallelism);
  assert.equal((await items.items.readAll().fetchAll()).resources.length, count);
}

async function aThrottledClientRetries(database) {
  const { container } = await database.containers.create({ id: "throttled", partitionKey: "/owner", throughput: 400 });
  const retryOptions = { maxRetryAttemptCount: 0, fixedRetryIntervalInMilliseconds: 0, maxWaitTimeInSeconds: 0 };
  const impatient = new CosmosClient({ endpoint, key, connectionPolicy: { retryOptions } });
  const hasty = impatient.database(database.id).container("throttled");
  let refusals = 0;
  for (let n = 0; n < largeCount; n++) {
    try {
      await hasty.items.upsert(large(n));
    } catch (error) {
      assert.equal(error.code, 429);
      assert.ok(error.retryAfterInMs <= 2000, `${error.retryAfterInMs}`);
      refusals++;
      await container.items.upsert(large(n));
    }
  }
  assert.ok(refusals > 0, `${largeCount} large writes went through without a 429`);
  assert.equal((await container.item("5", "o5").read()).resource.n, 5);
  impatient.dispose();
}

async function main() {
  const client = new CosmosClient({ endpoint, key });
  const { database } = await client.databases.create({ id: "javascript" });
  const items = await create(database, "items", 90000);
  assert.equal((await items.readPartitionKeyRanges().fetchAll()).resources.length, 9);
  await documents(items);
  await aChangeThatSomebodyElseHasOvertaken(items);
  await batches(items);
  for (const maxDegreeOfParallelism of [0, 3, -1]) await queries(items, maxDegreeOfParallelism);
  assert.deepEqual(ascending(await pages(items)), everything);
  await aSplitInTheMiddleOfAQuery(database);
  await aSplitInTheMiddleOfASortedQuery(database);
  await aThrottledClientRetries(database);
  await database.delete();
  client.dispose();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
