// Microsoft's client for JavaScript under load against the store whose address is the first argument, which may end and come
// back.
//
// Writes until standard input ends, and prints the id of each document whose write was acknowledged. Then every one of them has
// to be there.

const { CosmosClient } = require("@azure/cosmos");

const key = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
const writers = 8;

async function main() {
  const client = new CosmosClient({ endpoint: process.argv[2], key });
  const { database } = await client.databases.create({ id: "load" });
  const { container } = await database.containers.create({ id: "items", partitionKey: "/owner", throughput: 90000 });
  const acknowledged = new Map();
  let isOver = false;
  const ended = new Promise((resolve) => process.stdin.on("end", resolve).resume());

  const write = async (writer) => {
    for (let n = 1; !isOver; n++) {
      const document = { id: `${writer}-${n}`, owner: `o${n % 50}`, n };
      try {
        await container.items.upsert(document);
      } catch (error) {
        // The client has given up on it: it may be there or not. Errors of the program itself are none of the store's.
        if (error instanceof TypeError || error instanceof ReferenceError) throw error;
        continue;
      }
      acknowledged.set(document.id, n);
      process.stdout.write(`${document.id}\n`);
    }
  };
  const writing = [...Array(writers).keys()].map(write);
  await ended;
  isOver = true;
  await Promise.all(writing);

  const { resources } = await container.items.query("SELECT c.id, c.n FROM c").fetchAll();
  const kept = new Map(resources.map(({ id, n }) => [id, n]));
  const lost = [...acknowledged].filter(([id, n]) => kept.get(id) !== n);
  if (lost.length > 0) throw new Error(`${lost.length} of ${acknowledged.size} acknowledged documents are lost, such as ${lost[0]}`);
  client.dispose();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
