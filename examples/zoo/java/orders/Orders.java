import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Lists the orders of a customer with their totals, from PostgreSQL.
 *
 * <p>{@code FAULT=1} queries the total of each order separately.
 */
final class Orders {
  private static final int CUSTOMERS = 200;
  private static final int THREADS = 16;
  private static final boolean IS_FAULTY = !System.getenv().getOrDefault("FAULT", "").isEmpty();
  private static final String WITH_TOTALS =
      "SELECT o.id, sum(l.cents) FROM orders o JOIN lines l ON l.order_id = o.id WHERE o.customer = ? GROUP BY o.id";
  private static final String PAGE = "SELECT id, 0 FROM orders WHERE customer = ?";
  private static final String TOTAL = "SELECT sum(cents) FROM lines WHERE order_id = ?";

  private static HikariDataSource pool;

  public static void main(String[] arguments) throws IOException {
    URI database = URI.create(System.getenv("DATABASE_URL"));
    HikariConfig config = new HikariConfig();
    config.setJdbcUrl("jdbc:postgresql://" + database.getHost() + ":" + database.getPort() + database.getPath());
    config.setUsername("postgres");
    config.setMaximumPoolSize(THREADS);
    pool = new HikariDataSource(config);
    System.setProperty("sun.net.httpserver.nodelay", "true");
    int port = Integer.parseInt(System.getenv("PORT"));
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 128);
    server.setExecutor(Executors.newFixedThreadPool(THREADS));
    server.createContext("/health", exchange -> respond(exchange, 200, "ok"));
    server.createContext("/orders", Orders::list);
    server.start();
  }

  private static void list(HttpExchange exchange) throws IOException {
    StringBuilder body = new StringBuilder();
    try (Connection connection = pool.getConnection();
        PreparedStatement page = connection.prepareStatement(IS_FAULTY ? PAGE : WITH_TOTALS)) {
      page.setInt(1, ThreadLocalRandom.current().nextInt(CUSTOMERS));
      try (ResultSet rows = page.executeQuery()) {
        while (rows.next()) {
          long cents = IS_FAULTY ? total(connection, rows.getInt(1)) : rows.getLong(2);
          body.append(rows.getInt(1)).append(": ").append(cents).append('\n');
        }
      }
      respond(exchange, 200, body.toString());
    } catch (SQLException failure) {
      respond(exchange, 500, failure.getMessage());
    }
  }

  private static long total(Connection connection, int order) throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(TOTAL)) {
      statement.setInt(1, order);
      try (ResultSet rows = statement.executeQuery()) {
        return rows.next() ? rows.getLong(1) : 0;
      }
    }
  }

  private static void respond(HttpExchange exchange, int status, String text) throws IOException {
    byte[] body = text.getBytes();
    exchange.sendResponseHeaders(status, body.length);
    exchange.getResponseBody().write(body);
    exchange.close();
  }
}
