import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

/**
 * Sends the quotes of the day.
 *
 * <p>{@code FAULT=1} leaves TCP_NODELAY off, so the body waits until the client has acknowledged the head.
 */
final class Quotes {
  private static final boolean IS_FAULTY = !System.getenv().getOrDefault("FAULT", "").isEmpty();
  private static final byte[] BODY = "{\"AAPL\":101.5,\"EQNR\":27.3,\"SAP\":118.9}".getBytes();

  public static void main(String[] arguments) throws IOException {
    System.setProperty("sun.net.httpserver.nodelay", String.valueOf(!IS_FAULTY));
    int port = Integer.parseInt(System.getenv("PORT"));
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 128);
    server.setExecutor(Executors.newFixedThreadPool(16));
    server.createContext("/health", Quotes::send);
    server.createContext("/quotes", Quotes::send);
    server.start();
  }

  private static void send(HttpExchange exchange) throws IOException {
    exchange.getResponseHeaders().set("Content-Type", "application/json");
    exchange.sendResponseHeaders(200, BODY.length);
    try (OutputStream body = exchange.getResponseBody()) {
      body.write(BODY);
    }
  }
}
