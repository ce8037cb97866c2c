import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The client under load, against a store that may end and come back. Writes until standard input ends, and prints the id of
 * each document whose write was acknowledged. Then every one of them has to be there.
 */
class Load {
    static final int WRITERS = 8;

    static void run(String address) throws Exception {
        CosmosClient client = Client.builder(address).buildClient();
        client.createDatabase("load");
        CosmosContainer items = Client.create(client.getDatabase("load"), "items", 90_000);
        Map<String, Integer> acknowledged = new ConcurrentHashMap<>();
        AtomicBoolean isOver = new AtomicBoolean();
        List<Thread> writers = new ArrayList<>();
        for (int number = 0; number < WRITERS; number++) {
            int writer = number;
            writers.add(new Thread(() -> write(items, writer, acknowledged, isOver)));
        }
        writers.forEach(Thread::start);
        System.in.readAllBytes();
        isOver.set(true);
        for (Thread writer : writers) writer.join();
        Map<String, Integer> kept = new HashMap<>();
        items.queryItems("SELECT * FROM c", new CosmosQueryRequestOptions(), ObjectNode.class)
            .forEach(item -> kept.put(item.get("id").asText(), item.get("n").asInt()));
        acknowledged.forEach((id, n) -> Client.expect(kept.get(id), n));
    }

    static void write(CosmosContainer items, int writer, Map<String, Integer> acknowledged, AtomicBoolean isOver) {
        for (int n = 0; !isOver.get(); n++) {
            String id = writer + "-" + n, owner = "o" + n % 20;
            ObjectNode item = Client.JSON.createObjectNode().put("id", id).put("owner", owner).put("n", n);
            try {
                items.upsertItem(item, new PartitionKey(owner), null);
            } catch (CosmosException givenUp) {
                // It may be there or not.
                continue;
            }
            acknowledged.put(id, n);
            System.out.println(id);
        }
    }
}
