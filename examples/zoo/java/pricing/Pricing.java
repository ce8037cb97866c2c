import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;

/**
 * Prices products by a simulation, once each.
 *
 * <p>{@code FAULT=1} simulates a product when it is asked for first, so requests are dear until most have been asked for;
 * otherwise all are simulated before the service is ready.
 */
final class Pricing {
  private static final boolean IS_FAULTY = !System.getenv().getOrDefault("FAULT", "").isEmpty();
  private static final int PRODUCTS = 250;
  private static final int DRAWS = 10_000_000;
  private static final ConcurrentHashMap<Integer, Double> PRICES = new ConcurrentHashMap<>();

  public static void main(String[] arguments) throws IOException {
    if (!IS_FAULTY) {
      for (int product = 1; product <= PRODUCTS; product++) {
        priceOf(product);
      }
    }
    int port = Integer.parseInt(System.getenv("PORT"));
    System.setProperty("sun.net.httpserver.nodelay", "true");
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 128);
    server.setExecutor(Executors.newFixedThreadPool(8));
    server.createContext("/health", exchange -> send(exchange, "ok"));
    server.createContext("/prices/", Pricing::price);
    server.start();
  }

  private static double priceOf(int product) {
    Double price = PRICES.get(product);
    if (price == null) {
      price = simulate(product);
      PRICES.put(product, price);
    }
    return price;
  }

  private static double simulate(int product) {
    int state = product;
    long sum = 0;
    for (int draw = 0; draw < DRAWS; draw++) {
      state = state * 1664525 + 1013904223;
      sum += Integer.remainderUnsigned(state, 100);
    }
    return (double) sum / DRAWS;
  }

  private static void price(HttpExchange exchange) throws IOException {
    String path = exchange.getRequestURI().getPath();
    int product = Integer.parseInt(path.substring(path.lastIndexOf('/') + 1));
    send(exchange, "{\"price\":" + priceOf(product) + "}");
  }

  private static void send(HttpExchange exchange, String text) throws IOException {
    byte[] body = text.getBytes();
    exchange.sendResponseHeaders(200, body.length);
    try (OutputStream out = exchange.getResponseBody()) {
      out.write(body);
    }
  }
}
