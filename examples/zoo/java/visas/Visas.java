import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.net.URI;
import java.util.concurrent.Executors;

/**
 * Asks an embassy for a visa, which takes 40 ms. {@code ROLE} is visas or embassy.
 *
 * <p>{@code FAULT=1} has three threads for requests; else there are 32.
 */
final class Visas {
  private static final boolean IS_FAULTY = !System.getenv().getOrDefault("FAULT", "").isEmpty();

  public static void main(String[] arguments) throws IOException {
    System.setProperty("sun.net.httpserver.nodelay", "true");
    System.setProperty("http.maxConnections", "32");
    int port = Integer.parseInt(System.getenv("PORT"));
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 128);
    server.setExecutor(Executors.newFixedThreadPool(IS_FAULTY ? 3 : 32));
    server.createContext("/health", exchange -> respond(exchange, 200));
    boolean isEmbassy = System.getenv("ROLE").equals("embassy");
    server.createContext("/visas", isEmbassy ? Visas::grant : Visas::ask);
    server.start();
  }

  private static void grant(HttpExchange exchange) throws IOException {
    try {
      Thread.sleep(40);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
    respond(exchange, 200);
  }

  private static void ask(HttpExchange exchange) throws IOException {
    URI embassy = URI.create(System.getenv("EMBASSY_URL") + "/visas");
    HttpURLConnection call = (HttpURLConnection) embassy.toURL().openConnection();
    int status = call.getResponseCode();
    call.getInputStream().close();
    respond(exchange, status);
  }

  private static void respond(HttpExchange exchange, int status) throws IOException {
    exchange.sendResponseHeaders(status, -1);
    exchange.close();
  }
}
