import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Gives rides to one of three engines. An engine computes two rides at a time, each for 20 ms. {@code ROLE} is dispatch or
 * engine.
 *
 * <p>{@code FAULT=1} gives all rides to the first engine.
 */
final class Dispatch {
  private static final boolean IS_FAULTY = !System.getenv().getOrDefault("FAULT", "").isEmpty();
  private static final Semaphore PLACES = new Semaphore(2, true);
  private static final AtomicInteger NEXT = new AtomicInteger();
  private static final HttpClient CLIENT =
      HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).executor(Executors.newFixedThreadPool(2)).build();

  public static void main(String[] arguments) throws IOException {
    System.setProperty("sun.net.httpserver.nodelay", "true");
    int port = Integer.parseInt(System.getenv("PORT"));
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 128);
    server.setExecutor(Executors.newFixedThreadPool(32));
    server.createContext("/health", exchange -> respond(exchange, 200));
    if (System.getenv("ROLE").equals("engine")) {
      server.createContext("/rides", Dispatch::compute);
    } else {
      server.createContext("/rides", Dispatch::dispatch);
    }
    server.start();
  }

  private static void compute(HttpExchange exchange) throws IOException {
    PLACES.acquireUninterruptibly();
    try {
      Thread.sleep(20);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    } finally {
      PLACES.release();
    }
    respond(exchange, 200);
  }

  private static void dispatch(HttpExchange exchange) throws IOException {
    String[] engines = System.getenv("ENGINE_URLS").split(",");
    String engine = engines[IS_FAULTY ? 0 : Math.floorMod(NEXT.getAndIncrement(), engines.length)];
    HttpRequest request = HttpRequest.newBuilder(URI.create(engine + "/rides")).build();
    try {
      respond(exchange, CLIENT.send(request, BodyHandlers.discarding()).statusCode());
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
