"""Microsoft's client for Python under load against the store whose address is the first argument, which may end and come back.

Writes until standard input ends, and prints the id of each document whose write was acknowledged. Then every one of them has
to be there.
"""

import sys
import threading

from azure.core.exceptions import AzureError
from azure.cosmos import CosmosClient, PartitionKey

KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
WRITERS = 8


def write(items, writer, acknowledged, is_over):
    n = 0
    while not is_over.is_set():
        n += 1
        document = {"id": f"{writer}-{n}", "owner": f"o{n % 50}", "n": n}
        try:
            items.upsert_item(document)
        except AzureError:
            # The client has given up on it: it may be there or not.
            continue
        acknowledged[document["id"]] = n
        print(document["id"], flush=True)


def main():
    client = CosmosClient(sys.argv[1], KEY)
    items = client.create_database("load").create_container("items", PartitionKey("/owner"), offer_throughput=90_000)
    acknowledged, is_over = {}, threading.Event()
    writers = [threading.Thread(target=write, args=(items, writer, acknowledged, is_over)) for writer in range(WRITERS)]
    for writer in writers:
        writer.start()
    sys.stdin.read()
    is_over.set()
    for writer in writers:
        writer.join()
    found = items.query_items("SELECT c.id, c.n FROM c", enable_cross_partition_query=True)
    kept = {document["id"]: document["n"] for document in found}
    lost = [id for id, n in acknowledged.items() if kept.get(id) != n]
    assert not lost, f"{len(lost)} of {len(acknowledged)} acknowledged documents are lost, such as {lost[0]}"


main()
