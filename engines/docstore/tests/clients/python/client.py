"""Microsoft's client for Python against the store whose address is the first argument, every response checked.

A step that goes wrong ends the program with a traceback.
"""

import sys

from azure.core import MatchConditions
from azure.cosmos import CosmosClient, PartitionKey, ThroughputProperties, exceptions

KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
ITEMS = 120
LARGE = 6


def item(n):
    return {"id": str(n), "owner": f"o{n % 20}", "n": n, "group": "abc"[n % 3], "tags": ["x"] * (n % 3)}


def large(n):
    """Its write takes more than the 400 request units of a second."""
    return item(n) | {"filling": "x" * 70_000}


def expect(found, expected):
    assert found == expected, f"found {found!r}, expected {expected!r}"


def refused(error, action):
    try:
        action()
    except error as refusal:
        return refusal
    raise AssertionError(f"done, expected {error.__name__}")


def databases_and_containers(client):
    database = client.create_database("python")
    assert "python" in [found["id"] for found in client.list_databases()]
    refused(exceptions.CosmosResourceExistsError, lambda: client.create_database("python"))
    items = database.create_container("items", PartitionKey("/owner"), offer_throughput=90_000)
    expect(len(list(items.read_feed_ranges())), 9)
    expect(items.get_throughput().offer_throughput, 90_000)
    return database, items


def documents(items):
    for n in range(ITEMS):
        items.create_item(item(n))
    refused(exceptions.CosmosResourceExistsError, lambda: items.create_item(item(1)))
    expect(items.read_item("1", "o1")["n"], 1)
    refused(exceptions.CosmosResourceNotFoundError, lambda: items.read_item("1", "o2"))

    expect(items.upsert_item({"id": "new", "owner": "o1"})["owner"], "o1")
    expect(items.upsert_item({"id": "new", "owner": "o1", "n": 7})["n"], 7)
    patched = items.patch_item("new", "o1", [{"op": "incr", "path": "/n", "value": 5}, {"op": "add", "path": "/m", "value": 1}])
    expect((patched["n"], patched["m"]), (12, 1))
    unmet = lambda: items.patch_item("new", "o1", [{"op": "set", "path": "/n", "value": 0}], filter_predicate="from c where c.n = 1")
    refused(exceptions.CosmosAccessConditionFailedError, unmet)
    items.delete_item("new", "o1")
    refused(exceptions.CosmosResourceNotFoundError, lambda: items.read_item("new", "o1"))


def a_change_that_somebody_else_has_overtaken(items):
    read = items.read_item("2", "o2")
    items.replace_item("2", read)
    late = lambda: items.replace_item("2", read, etag=read["_etag"], match_condition=MatchConditions.IfNotModified)
    expect(refused(exceptions.CosmosAccessConditionFailedError, late).status_code, 412)


def batches(items):
    create = ("create", ({"id": "b", "owner": "o1", "z": 1, "a": 2},))
    done = items.execute_item_batch([create, ("read", ("1",)), ("read", ("b",)), ("delete", ("b",))], "o1")
    expect([result["statusCode"] for result in done], [201, 200, 200, 204])
    expect(list(done[2]["resourceBody"])[:4], ["id", "owner", "z", "a"])
    failed = refused(
        exceptions.CosmosBatchOperationError,
        lambda: items.execute_item_batch([create, ("create", (item(1),))], "o1"),
    )
    expect((failed.status_code, failed.error_index), (409, 1))
    refused(exceptions.CosmosResourceNotFoundError, lambda: items.read_item("b", "o1"))


def queries_of_one_partition(items):
    def ask(sql, **parameters):
        named = [{"name": f"@{name}", "value": value} for name, value in parameters.items()]
        return list(items.query_items(sql, parameters=named, partition_key="o3"))

    expect(sorted(found["n"] for found in ask("SELECT * FROM c")), [3, 23, 43, 63, 83, 103])
    expect(ask("SELECT VALUE c.n FROM c WHERE c.n > @least ORDER BY c.n DESC", least=50), [103, 83, 63])
    groups = ask("SELECT c['group'] AS g, COUNT(1) AS n FROM c GROUP BY c['group']")
    expect(sorted((found["g"], found["n"]) for found in groups), [("a", 2), ("b", 2), ("c", 2)])


def queries_across_partitions(items):
    def ask(sql, **options):
        return list(items.query_items(sql, enable_cross_partition_query=True, **options))

    everything = list(range(ITEMS))
    expect(sorted(found["n"] for found in ask("SELECT * FROM c")), everything)
    expect(sorted(ask("SELECT VALUE c.n FROM c", max_item_count=7)), everything)
    expect(len(ask("SELECT * FROM c WHERE c.owner IN ('o1', 'o2', 'o9')")), 18)
    expect(ask("SELECT VALUE c.n FROM c ORDER BY c.n DESC", max_item_count=7), everything[::-1])
    by_two = sorted((item(n) for n in everything), key=lambda found: (found["group"], -found["n"]))
    expect(ask("SELECT VALUE c.n FROM c ORDER BY c['group'], c.n DESC"), [found["n"] for found in by_two])
    expect(ask("SELECT TOP 5 VALUE c.n FROM c ORDER BY c.n"), everything[:5])
    expect(ask("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 5"), everything[10:15])
    expect(sorted(ask("SELECT DISTINCT VALUE c['group'] FROM c")), ["a", "b", "c"])
    expect(ask("SELECT VALUE COUNT(1) FROM c"), [ITEMS])
    expect(ask("SELECT VALUE AVG(c.n) FROM c"), [sum(everything) / ITEMS])
    expect(len(ask("SELECT c.id FROM c JOIN tag IN c.tags")), sum(n % 3 for n in everything))


def pages(items, between=lambda page: None, order=""):
    """The numbers of all items, read in pages that each continue from the token of the one before."""
    sql = f"SELECT * FROM c {order}"
    found, token = [], None
    for page in range(ITEMS):
        pages = items.query_items(sql, enable_cross_partition_query=True, max_item_count=10).by_page(token)
        found += [read["n"] for read in next(pages)]
        token = pages.continuation_token
        if not token:
            break
        between(page)
    return found


def lists_and_changes(items):
    expect(sorted(read["n"] for read in items.read_all_items(max_item_count=7)), list(range(ITEMS)))
    expect(len(list(items.query_items_change_feed(start_time="Beginning"))), ITEMS)


def a_split_in_the_middle_of_a_query(database):
    items = database.create_container("split", PartitionKey("/owner"), offer_throughput=10_000)
    for n in range(ITEMS):
        items.create_item(item(n))

    def raise_throughput(page):
        if page == 3:
            expect(items.replace_throughput(40_000).offer_throughput, 40_000)

    expect(sorted(pages(items, raise_throughput)), list(range(ITEMS)))
    expect(sorted(read["n"] for read in items.read_all_items()), list(range(ITEMS)))
    expect(items.read_item("1", "o1")["n"], 1)
    ordered = items.query_items("SELECT VALUE c.n FROM c ORDER BY c.n", enable_cross_partition_query=True)
    expect(list(ordered), list(range(ITEMS)))


def a_split_in_the_middle_of_a_sorted_query(database):
    items = database.create_container("sorted", PartitionKey("/owner"), offer_throughput=10_000)
    for n in range(ITEMS):
        items.create_item(item(n))
    raise_throughput = lambda page: page == 3 and items.replace_throughput(40_000)
    expect(pages(items, raise_throughput, "ORDER BY c.n"), list(range(ITEMS)))
    expect(len(list(items.read_feed_ranges())), 4)


def a_throttled_client_retries(database):
    items = database.create_container("throttled", PartitionKey("/owner"), offer_throughput=400)
    statuses = []
    for n in range(LARGE):
        items.upsert_item(large(n), raw_response_hook=lambda reply: statuses.append(reply.http_response.status_code))
    expect(statuses.count(201), LARGE)
    assert 429 in statuses, f"{LARGE} large writes went through without a 429"
    expect(items.read_item("5", "o5")["n"], 5)


def hierarchical_keys(database):
    autoscale = ThroughputProperties(auto_scale_max_throughput=4_000)
    items = database.create_container("levels", PartitionKey(["/tenant", "/user"], kind="MultiHash"), offer_throughput=autoscale)
    expect(items.get_throughput().auto_scale_max_throughput, 4_000)
    items.create_item({"id": "1", "tenant": "a", "user": "b"})
    items.create_item({"id": "2", "tenant": "a", "user": "c"})
    expect(items.read_item("1", ["a", "b"])["user"], "b")
    expect(len(list(items.query_items("SELECT * FROM c", partition_key=["a"]))), 2)


def main():
    client = CosmosClient(sys.argv[1], KEY)
    database, items = databases_and_containers(client)
    documents(items)
    a_change_that_somebody_else_has_overtaken(items)
    batches(items)
    queries_of_one_partition(items)
    queries_across_partitions(items)
    expect(sorted(pages(items)), list(range(ITEMS)))
    lists_and_changes(items)
    a_split_in_the_middle_of_a_query(database)
    a_split_in_the_middle_of_a_sorted_query(database)
    a_throttled_client_retries(database)
    hierarchical_keys(database)
    client.delete_database("python")
    assert "python" not in [found["id"] for found in client.list_databases()]


main()
