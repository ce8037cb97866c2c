import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

/**
 * Sends mail through a server that takes 40 ms for each.
 *
 * <p>{@code FAULT=1} leaves two threads for all requests.
 */
final class Mailer {
  private static final int SMTP_MILLIS = 40;
  private static final boolean IS_FAULTY = !System.getenv().getOrDefault("FAULT", "").isEmpty();

  public static void main(String[] arguments) throws IOException {
    System.setProperty("sun.net.httpserver.nodelay", "true");
    int port = Integer.parseInt(System.getenv("PORT"));
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 128);
    server.setExecutor(Executors.newFixedThreadPool(IS_FAULTY ? 2 : 32));
    server.createContext("/health", exchange -> respond(exchange, 200));
    server.createContext("/mails", Mailer::send);
    server.start();
  }

  private static void send(HttpExchange exchange) throws IOException {
    try {
      exchange.getRequestBody().readAllBytes();
      Thread.sleep(SMTP_MILLIS);
      respond(exchange, 202);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      respond(exchange, 503);
    }
  }

  private static void respond(HttpExchange exchange, int status) throws IOException {
    exchange.sendResponseHeaders(status, -1);
    exchange.close();
  }
}
