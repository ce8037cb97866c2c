import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

/**
 * Computes the interest on loans day by day.
 *
 * <p>{@code FAULT=1} computes the table of rates for each request, in a synchronized method, so one request computes
 * at a time.
 */
final class Rates {
  private static final int DAYS = 365 * 30;
  private static final int TABLE = 100;
  private static final boolean IS_FAULTY = !System.getenv().getOrDefault("FAULT", "").isEmpty();
  private static final double[] TABLE_OF_RATES = table();

  public static void main(String[] arguments) throws IOException {
    System.setProperty("sun.net.httpserver.nodelay", "true");
    int port = Integer.parseInt(System.getenv("PORT"));
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 128);
    server.setExecutor(Executors.newFixedThreadPool(16));
    server.createContext("/health", exchange -> respond(exchange, "ok"));
    server.createContext("/rates", exchange -> respond(exchange, String.valueOf(rate(17))));
    server.start();
  }

  private static double rate(int years) {
    return IS_FAULTY ? recomputed(years) : TABLE_OF_RATES[years];
  }

  private static synchronized double recomputed(int years) {
    return table()[years];
  }

  private static double[] table() {
    double[] rates = new double[TABLE];
    for (int years = 0; years < TABLE; years++) {
      double owed = 1;
      for (int day = 0; day < DAYS; day++) {
        owed += owed * (0.01 + years * 0.0001) / 365;
      }
      rates[years] = owed;
    }
    return rates;
  }

  private static void respond(HttpExchange exchange, String text) throws IOException {
    byte[] body = text.getBytes();
    exchange.sendResponseHeaders(200, body.length);
    exchange.getResponseBody().write(body);
    exchange.close();
  }
}
