import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Prices parcels by tariffs that are kept in memory, in a heap of 128 MB.
 *
 * <p>{@code FAULT=1} keeps so many tariffs that hardly any heap is left.
 */
final class Tariffs {
  record Tariff(int zone, int grams, String name) {}

  private static final boolean IS_FAULTY = !System.getenv().getOrDefault("FAULT", "").isEmpty();
  private static final int KEPT = IS_FAULTY ? 1_200_000 : 20_000;
  private static final int OFFERS = 5_000;
  private static final List<Tariff> TARIFFS = new ArrayList<>(KEPT);

  public static void main(String[] arguments) throws IOException {
    for (int id = 0; id < KEPT; id++) {
      TARIFFS.add(new Tariff(id % 90, id % 30_000, "tariff " + id));
    }
    System.setProperty("sun.net.httpserver.nodelay", "true");
    int port = Integer.parseInt(System.getenv("PORT"));
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 128);
    server.setExecutor(Executors.newFixedThreadPool(16));
    server.createContext("/health", exchange -> respond(exchange, "ok"));
    server.createContext("/offers", exchange -> respond(exchange, cheapest()));
    server.start();
  }

  private static String cheapest() {
    int first = ThreadLocalRandom.current().nextInt(KEPT - OFFERS);
    List<Tariff> offers = new ArrayList<>();
    for (Tariff tariff : TARIFFS.subList(first, first + OFFERS)) {
      offers.add(new Tariff(tariff.zone(), tariff.grams() + 1, tariff.name() + " plus"));
    }
    offers.sort((left, right) -> Integer.compare(left.grams() * left.zone(), right.grams() * right.zone()));
    return offers.get(0).name();
  }

  private static void respond(HttpExchange exchange, String text) throws IOException {
    byte[] body = text.getBytes();
    exchange.sendResponseHeaders(200, body.length);
    exchange.getResponseBody().write(body);
    exchange.close();
  }
}
