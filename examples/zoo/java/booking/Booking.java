import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Books seats in PostgreSQL and waits for the gate's confirmation before it commits.
 *
 * <p>{@code FAULT=1} has one database connection for all requests.
 */
final class Booking {
  private static final int SEATS = 5_000;
  private static final int THREADS = 16;
  private static final int GATE_MILLIS = 20;
  private static final boolean IS_FAULTY = !System.getenv().getOrDefault("FAULT", "").isEmpty();

  private static HikariDataSource pool;

  public static void main(String[] arguments) throws IOException {
    URI database = URI.create(System.getenv("DATABASE_URL"));
    HikariConfig config = new HikariConfig();
    config.setJdbcUrl("jdbc:postgresql://" + database.getHost() + ":" + database.getPort() + database.getPath());
    config.setUsername("postgres");
    config.setAutoCommit(false);
    config.setMaximumPoolSize(IS_FAULTY ? 1 : THREADS);
    pool = new HikariDataSource(config);
    System.setProperty("sun.net.httpserver.nodelay", "true");
    int port = Integer.parseInt(System.getenv("PORT"));
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 128);
    server.setExecutor(Executors.newFixedThreadPool(THREADS));
    server.createContext("/health", exchange -> respond(exchange, 200));
    server.createContext("/bookings", Booking::book);
    server.start();
  }

  private static void book(HttpExchange exchange) throws IOException {
    try (Connection connection = pool.getConnection();
        PreparedStatement update = connection.prepareStatement("UPDATE seats SET taken = taken + 1 WHERE id = ?")) {
      update.setInt(1, ThreadLocalRandom.current().nextInt(SEATS));
      update.executeUpdate();
      Thread.sleep(GATE_MILLIS);
      connection.commit();
      respond(exchange, 201);
    } catch (SQLException | InterruptedException failure) {
      respond(exchange, 500);
    }
  }

  private static void respond(HttpExchange exchange, int status) throws IOException {
    exchange.sendResponseHeaders(status, -1);
    exchange.close();
  }
}
