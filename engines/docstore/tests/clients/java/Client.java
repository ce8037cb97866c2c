import com.azure.cosmos.ConsistencyLevel;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.ThrottlingRetryOptions;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBatchOperationResult;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.function.IntConsumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Microsoft's client for Java, in gateway mode, against the store whose address is the first argument, every response checked.
 * The second argument is the certificate that it trusts; after both, the argument "load" puts it under load.
 */
class Client {
    static final String KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
    static final int COUNT = 120;
    static final List<Integer> EVERYTHING = IntStream.range(0, COUNT).boxed().collect(Collectors.toList());
    static final ObjectMapper JSON = new ObjectMapper();

    static ObjectNode item(int n) {
        ObjectNode item = JSON.createObjectNode();
        item.put("id", "" + n).put("owner", "o" + n % 20).put("n", n).put("group", "" + "abc".charAt(n % 3));
        for (int tag = 0; tag < n % 3; tag++) item.withArray("tags").add("x");
        return item;
    }

    /** Its write takes more than the 400 request units of a second. */
    static ObjectNode large(int n) {
        return item(n).put("filling", "x".repeat(70_000));
    }

    static PartitionKey of(int n) {
        return new PartitionKey("o" + n % 20);
    }

    static void expect(Object found, Object expected) {
        if (!Objects.equals(found, expected)) throw new AssertionError("found " + found + ", expected " + expected);
    }

    static void refused(int status, Runnable action) {
        try {
            action.run();
        } catch (CosmosException refusal) {
            expect(refusal.getStatusCode(), status);
            return;
        }
        throw new AssertionError("done, expected status " + status);
    }

    static List<Integer> ascending(List<Integer> numbers) {
        return numbers.stream().sorted().collect(Collectors.toList());
    }

    static CosmosClientBuilder builder(String address) {
        return new CosmosClientBuilder().endpoint(address).key(KEY).gatewayMode().consistencyLevel(ConsistencyLevel.SESSION)
            .contentResponseOnWriteEnabled(true);
    }

    static CosmosContainer create(CosmosDatabase database, String id, int throughput) {
        database.createContainer(new CosmosContainerProperties(id, "/owner"), ThroughputProperties.createManualThroughput(throughput));
        return database.getContainer(id);
    }

    static void fill(CosmosContainer items) {
        for (int n : EVERYTHING) items.createItem(item(n));
    }

    static JsonNode read(CosmosContainer items, String id, int n) {
        return items.readItem(id, of(n), JsonNode.class).getItem();
    }

    static void documents(CosmosContainer items) {
        refused(409, () -> items.createItem(item(1)));
        refused(404, () -> read(items, "1", 2));
        expect(read(items, "1", 1).get("n").asInt(), 1);

        ObjectNode fresh = JSON.createObjectNode().put("id", "new").put("owner", "o1");
        expect(items.upsertItem(fresh).getStatusCode(), 201);
        expect(items.upsertItem(fresh.put("n", 7)).getStatusCode(), 200);
        CosmosPatchOperations patch = CosmosPatchOperations.create().increment("/n", 5).add("/m", 1);
        JsonNode patched = items.patchItem("new", of(1), patch, JsonNode.class).getItem();
        expect(List.of(patched.get("n").asInt(), patched.get("m").asInt()), List.of(12, 1));
        CosmosPatchItemRequestOptions unmet = new CosmosPatchItemRequestOptions().setFilterPredicate("from c where c.n = 1");
        refused(412, () -> items.patchItem("new", of(1), CosmosPatchOperations.create().set("/n", 0), unmet, JsonNode.class));
        items.deleteItem("new", of(1), new CosmosItemRequestOptions());
        refused(404, () -> read(items, "new", 1));
    }

    static void aChangeThatSomebodyElseHasOvertaken(CosmosContainer items) {
        JsonNode read = read(items, "2", 2);
        items.replaceItem(read, "2", of(2), new CosmosItemRequestOptions());
        CosmosItemRequestOptions late = new CosmosItemRequestOptions().setIfMatchETag(read.get("_etag").asText());
        refused(412, () -> items.replaceItem(read, "2", of(2), late));
    }

    static List<Integer> statuses(CosmosContainer items, CosmosBatch batch) {
        List<CosmosBatchOperationResult> results = items.executeCosmosBatch(batch).getResults();
        return results.stream().map(CosmosBatchOperationResult::getStatusCode).collect(Collectors.toList());
    }

    static void batches(CosmosContainer items) {
        ObjectNode fresh = JSON.createObjectNode().put("id", "b").put("owner", "o1");
        CosmosBatch batch = CosmosBatch.createCosmosBatch(of(1));
        batch.createItemOperation(fresh);
        batch.readItemOperation("1");
        batch.deleteItemOperation("b");
        expect(statuses(items, batch), List.of(201, 200, 204));
        CosmosBatch failing = CosmosBatch.createCosmosBatch(of(1));
        failing.createItemOperation(fresh);
        failing.createItemOperation(item(1));
        expect(statuses(items, failing), List.of(424, 409));
        refused(404, () -> read(items, "b", 1));
    }

    static SqlQuerySpec query(String sql) {
        return new SqlQuerySpec(sql, List.of(new SqlParameter("@least", 50)));
    }

    /** The results of a query in pages of 7, each by a query of its own that continues the one before. */
    static List<Integer> numbers(CosmosContainer items, PartitionKey key, String sql) {
        return numbers(items, key, sql, page -> { });
    }

    /** The same, with something to do after each page. */
    static List<Integer> numbers(CosmosContainer items, PartitionKey key, String sql, IntConsumer between) {
        CosmosQueryRequestOptions options = new CosmosQueryRequestOptions().setMaxDegreeOfParallelism(3);
        if (key != null) options.setPartitionKey(key);
        List<Integer> found = new ArrayList<>();
        String token = null;
        int pages = 0;
        do {
            FeedResponse<Integer> page = items.queryItems(query(sql), options, Integer.class).iterableByPage(token, 7).iterator().next();
            found.addAll(page.getResults());
            token = page.getContinuationToken();
            between.accept(++pages);
        } while (token != null);
        return found;
    }

    /** The results of a query whose continuations this client does not offer. */
    static <T> List<T> whole(CosmosContainer items, String sql, Class<T> kind) {
        return items.queryItems(sql, new CosmosQueryRequestOptions(), kind).stream().collect(Collectors.toList());
    }

    static void queries(CosmosContainer items) {
        expect(ascending(numbers(items, of(3), "SELECT VALUE c.n FROM c")), List.of(3, 23, 43, 63, 83, 103));
        expect(numbers(items, of(3), "SELECT VALUE c.n FROM c WHERE c.n > @least ORDER BY c.n DESC"), List.of(103, 83, 63));

        List<Integer> descending = EVERYTHING.stream().sorted(Comparator.reverseOrder()).collect(Collectors.toList());
        expect(ascending(numbers(items, null, "SELECT VALUE c.n FROM c")), EVERYTHING);
        expect(numbers(items, null, "SELECT VALUE c.n FROM c WHERE c.owner IN ('o1', 'o2', 'o9')").size(), 18);
        expect(numbers(items, null, "SELECT VALUE c.n FROM c ORDER BY c.n DESC"), descending);
        expect(numbers(items, null, "SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC"), List.of(119, 118, 117));
        expect(numbers(items, null, "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 3"), List.of(10, 11, 12));
        expect(whole(items, "SELECT VALUE COUNT(1) FROM c", Integer.class), List.of(COUNT));
        List<String> kinds = whole(items, "SELECT DISTINCT VALUE c['group'] FROM c", String.class);
        expect(kinds.stream().sorted().collect(Collectors.toList()), List.of("a", "b", "c"));
        List<JsonNode> groups = whole(items, "SELECT c['group'] AS g, SUM(c.n) AS s FROM c GROUP BY c['group']", JsonNode.class);
        List<String> sums = groups.stream().map(group -> group.get("g").asText() + group.get("s").asInt()).sorted().collect(Collectors.toList());
        expect(sums, List.of("a2340", "b2380", "c2420"));
    }

    static void aSplitInTheMiddleOfAQuery(CosmosDatabase database) {
        CosmosContainer items = create(database, "split", 10_000);
        fill(items);
        // Within one query: a continuation of this client names one range, and forgets how far the other parts of a split one are.
        List<Integer> found = new ArrayList<>();
        int pages = 0;
        CosmosQueryRequestOptions options = new CosmosQueryRequestOptions().setMaxBufferedItemCount(1);
        for (FeedResponse<Integer> page : items.queryItems(query("SELECT VALUE c.n FROM c"), options, Integer.class).iterableByPage(10)) {
            found.addAll(page.getResults());
            if (++pages == 3) items.replaceThroughput(ThroughputProperties.createManualThroughput(40_000));
        }
        expect(ascending(found), EVERYTHING);
        expect(items.readThroughput().getProperties().getManualThroughput(), 40_000);
        queries(items);
        expect(items.getFeedRanges().size(), 4);
    }

    static void aSplitInTheMiddleOfASortedQuery(CosmosDatabase database) {
        CosmosContainer items = create(database, "sorted", 10_000);
        fill(items);
        IntConsumer raise = page -> {
            if (page == 3) items.replaceThroughput(ThroughputProperties.createManualThroughput(40_000));
        };
        expect(numbers(items, null, "SELECT VALUE c.n FROM c ORDER BY c.n", raise), EVERYTHING);
        expect(items.getFeedRanges().size(), 4);
    }

    static void aThrottledClientRetries(CosmosDatabase database, String address) {
        CosmosContainer items = create(database, "throttled", 400);
        ThrottlingRetryOptions never = new ThrottlingRetryOptions().setMaxRetryAttemptsOnThrottledRequests(0);
        int refusals = 0;
        try (CosmosClient hasty = builder(address).throttlingRetryOptions(never).buildClient()) {
            CosmosContainer hastily = hasty.getDatabase(database.getId()).getContainer("throttled");
            for (int n = 0; n < 6; n++) {
                try {
                    hastily.upsertItem(large(n));
                } catch (CosmosException refusal) {
                    expect(refusal.getStatusCode(), 429);
                    expect(refusal.getRetryAfterDuration().compareTo(Duration.ofSeconds(2)) <= 0, true);
                    refusals++;
                    items.upsertItem(large(n));
                }
            }
        }
        if (refusals == 0) throw new AssertionError("6 large writes went through without a 429");
        expect(read(items, "5", 5).get("n").asInt(), 5);
    }

    /** Trusts one certificate in all that this program does. */
    static void trust(String certificate) throws Exception {
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        try (InputStream text = Files.newInputStream(Path.of(certificate))) {
            trusted.setCertificateEntry("store", CertificateFactory.getInstance("X.509").generateCertificate(text));
        }
        Path file = Files.createTempFile("trusted", ".p12");
        file.toFile().deleteOnExit();
        try (OutputStream out = Files.newOutputStream(file)) {
            trusted.store(out, "changeit".toCharArray());
        }
        System.setProperty("javax.net.ssl.trustStore", file.toString());
        System.setProperty("javax.net.ssl.trustStorePassword", "changeit");
    }

    public static void main(String[] arguments) throws Exception {
        trust(arguments[1]);
        if (arguments.length > 2) {
            Load.run(arguments[0]);
            System.exit(0);
        }
        try (CosmosClient client = builder(arguments[0]).buildClient()) {
            client.createDatabase("java");
            CosmosDatabase database = client.getDatabase("java");
            CosmosContainer items = create(database, "items", 90_000);
            expect(items.getFeedRanges().size(), 9);
            fill(items);
            documents(items);
            aChangeThatSomebodyElseHasOvertaken(items);
            batches(items);
            queries(items);
            aSplitInTheMiddleOfAQuery(database);
            aSplitInTheMiddleOfASortedQuery(database);
            aThrottledClientRetries(database, arguments[0]);
            database.delete();
        }
        // Threads of the client outlive it.
        System.exit(0);
    }
}
