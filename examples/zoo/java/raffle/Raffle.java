import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.concurrent.Executors;

/**
 * Sells tickets of a raffle, numbered in PostgreSQL, and prints each, which takes 10 ms.
 *
 * <p>{@code FAULT=1} prints within the transaction that has taken the number.
 */
final class Raffle {
  private static final int THREADS = 16;
  private static final int PRINT_MS = 10;
  private static final boolean IS_FAULTY = !System.getenv().getOrDefault("FAULT", "").isEmpty();
  private static final String NEXT = "UPDATE raffles SET sold = sold + 1 WHERE id = 1 RETURNING sold";

  private static HikariDataSource pool;

  public static void main(String[] arguments) throws IOException {
    URI database = URI.create(System.getenv("DATABASE_URL"));
    HikariConfig config = new HikariConfig();
    config.setJdbcUrl("jdbc:postgresql://" + database.getHost() + ":" + database.getPort() + database.getPath());
    config.setUsername("postgres");
    config.setMaximumPoolSize(THREADS);
    config.setAutoCommit(false);
    pool = new HikariDataSource(config);
    System.setProperty("sun.net.httpserver.nodelay", "true");
    int port = Integer.parseInt(System.getenv("PORT"));
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 128);
    server.setExecutor(Executors.newFixedThreadPool(THREADS));
    server.createContext("/health", exchange -> respond(exchange, 200));
    server.createContext("/tickets", Raffle::sell);
    server.start();
  }

  private static void sell(HttpExchange exchange) throws IOException {
    try {
      takeNumber();
      if (!IS_FAULTY) {
        print();
      }
      respond(exchange, 201);
    } catch (SQLException failure) {
      respond(exchange, 500);
    }
  }

  private static void takeNumber() throws SQLException {
    try (Connection connection = pool.getConnection();
        Statement statement = connection.createStatement();
        ResultSet row = statement.executeQuery(NEXT)) {
      row.next();
      long number = row.getLong(1);
      if (IS_FAULTY) {
        print();
      }
      statement.executeUpdate("INSERT INTO tickets VALUES (" + number + ")");
      connection.commit();
    }
  }

  private static void print() {
    try {
      Thread.sleep(PRINT_MS);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private static void respond(HttpExchange exchange, int status) throws IOException {
    exchange.sendResponseHeaders(status, -1);
    exchange.close();
  }
}
