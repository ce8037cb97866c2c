import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import javax.sql.DataSource;
import org.h2.tools.Server;

/**
 * The catalogue of a library: a shelf with its books and their authors, from a database behind a pool, and whether the
 * shelf can be visited, from another service.
 *
 * <p>Environment:
 *
 * <ul>
 *   <li>{@code ROLE}: {@code library} or {@code rooms}, which of the two services this process is
 *   <li>{@code PORT}: where it listens, on 127.0.0.1
 *   <li>{@code ROOMS}: address of the rooms service, for the library
 *   <li>{@code FAULT}: nothing, or one of {@code n-plus-one} (asks for the author of each book by itself), {@code
 *       pool-wait} (one connection for all, kept while the rooms are asked), {@code retry-storm} (in every other
 *       stretch of three seconds the rooms fail three times of four, and are asked again until they answer)
 * </ul>
 */
final class Library {
  private static final String FAULT = System.getenv().getOrDefault("FAULT", "");
  private static final int SHELVES = 100;
  private static final int BOOKS_PER_SHELF = 40;
  private static final int AUTHORS = 300;
  private static final int THREADS = 16;
  private static final int ATTEMPTS_MAX = 8;
  /** How long it takes to look whether a room is open. */
  private static final int ROOM_MILLIS = 10;
  /** How long the rooms fail, and how long they do not, one after the other. */
  private static final long STORM_NANOS = 3_000_000_000L;

  private final DataSource pool;
  private final URI rooms;
  private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

  private Library(DataSource pool, URI rooms) {
    this.pool = pool;
    this.rooms = rooms;
  }

  public static void main(String[] arguments) throws Exception {
    int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "8080"));
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 128);
    server.setExecutor(Executors.newFixedThreadPool(THREADS));
    server.createContext("/health", exchange -> answer(exchange, 200, "{\"status\":\"ok\"}"));
    if ("rooms".equals(System.getenv("ROLE"))) {
      server.createContext("/rooms/", Library::room);
    } else {
      Library library = new Library(filled(), URI.create(System.getenv().getOrDefault("ROOMS", "http://127.0.0.1:8081")));
      server.createContext("/shelves/", library::shelf);
    }
    server.start();
  }

  private static DataSource filled() throws SQLException {
    HikariConfig config = new HikariConfig();
    config.setJdbcUrl("jdbc:h2:" + served() + "/mem:library;DB_CLOSE_DELAY=-1");
    config.setPoolName("library");
    config.setMaximumPoolSize(FAULT.equals("pool-wait") ? 1 : THREADS);
    DataSource pool = new HikariDataSource(config);
    try (Connection connection = pool.getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("CREATE TABLE author (id INT PRIMARY KEY, name VARCHAR(40))");
      statement.execute("CREATE TABLE book (id INT PRIMARY KEY, shelf INT, author INT, title VARCHAR(40))");
      statement.execute("CREATE INDEX book_shelf ON book (shelf)");
      statement.execute("INSERT INTO author SELECT x, 'Author ' || x FROM SYSTEM_RANGE(0, " + (AUTHORS - 1) + ")");
      statement.execute(
          "INSERT INTO book SELECT x, MOD(x, " + SHELVES + "), MOD(x * 7, " + AUTHORS + "), 'Book ' || x"
              + " FROM SYSTEM_RANGE(0, " + (SHELVES * BOOKS_PER_SHELF - 1) + ")");
    }
    return pool;
  }

  /** Begins to serve databases on a free port, and says where: a query costs a way there and back, as elsewhere. */
  private static String served() throws SQLException {
    System.setProperty("h2.bindAddress", "127.0.0.1");
    Server server = Server.createTcpServer("-tcpPort", "0", "-tcpDaemon", "-ifNotExists").start();
    return "tcp://127.0.0.1:" + server.getPort();
  }

  private void shelf(HttpExchange exchange) throws IOException {
    int shelf = lastNumber(exchange) % SHELVES;
    try {
      List<String> books;
      String open;
      try (Connection connection = pool.getConnection()) {
        books = FAULT.equals("n-plus-one") ? booksOneByOne(connection, shelf) : books(connection, shelf);
        open = FAULT.equals("pool-wait") ? isOpen(shelf) : "";
      }
      if (open.isEmpty()) {
        open = isOpen(shelf);
      }
      answer(exchange, 200, "{\"open\":" + open + ",\"books\":[" + String.join(",", books) + "]}");
    } catch (SQLException | InterruptedException failure) {
      answer(exchange, 500, "{\"error\":\"" + failure.getClass().getSimpleName() + "\"}");
    }
  }

  private static List<String> books(Connection connection, int shelf) throws SQLException {
    List<String> books = new ArrayList<>();
    String query = "SELECT b.title, a.name FROM book b JOIN author a ON a.id = b.author WHERE b.shelf = ?";
    try (PreparedStatement statement = connection.prepareStatement(query)) {
      statement.setInt(1, shelf);
      try (ResultSet rows = statement.executeQuery()) {
        while (rows.next()) {
          books.add(book(rows.getString(1), rows.getString(2)));
        }
      }
    }
    return books;
  }

  private static List<String> booksOneByOne(Connection connection, int shelf) throws SQLException {
    List<String> books = new ArrayList<>();
    try (PreparedStatement statement = connection.prepareStatement("SELECT title, author FROM book WHERE shelf = ?")) {
      statement.setInt(1, shelf);
      try (ResultSet rows = statement.executeQuery()) {
        while (rows.next()) {
          books.add(book(rows.getString(1), author(connection, rows.getInt(2))));
        }
      }
    }
    return books;
  }

  private static String author(Connection connection, int id) throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement("SELECT name FROM author WHERE id = ?")) {
      statement.setInt(1, id);
      try (ResultSet rows = statement.executeQuery()) {
        return rows.next() ? rows.getString(1) : "";
      }
    }
  }

  private static String book(String title, String author) {
    return "{\"title\":\"" + title + "\",\"author\":\"" + author + "\"}";
  }

  /** Asks the rooms until they answer, at once and without a pause: that is the storm when they fail. */
  private String isOpen(int shelf) throws IOException, InterruptedException {
    HttpRequest request = HttpRequest.newBuilder(rooms.resolve("/rooms/" + shelf)).build();
    for (int attempt = 1; ; attempt++) {
      var response = client.send(request, BodyHandlers.ofString());
      if (response.statusCode() == 200 || attempt == ATTEMPTS_MAX) {
        return response.statusCode() == 200 ? response.body() : "null";
      }
    }
  }

  private static void room(HttpExchange exchange) throws IOException {
    try {
      Thread.sleep(ROOM_MILLIS);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
    boolean isStorm = FAULT.equals("retry-storm") && System.nanoTime() / STORM_NANOS % 2 == 0;
    boolean fails = isStorm && Math.random() < 0.75;
    answer(exchange, fails ? 503 : 200, fails ? "busy" : String.valueOf(lastNumber(exchange) % 2 == 0));
  }

  private static int lastNumber(HttpExchange exchange) {
    String path = exchange.getRequestURI().getPath();
    String last = path.substring(path.lastIndexOf('/') + 1);
    return last.matches("\\d{1,8}") ? Integer.parseInt(last) : 0;
  }

  private static void answer(HttpExchange exchange, int status, String body) throws IOException {
    byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
    exchange.getResponseHeaders().set("Content-Type", "application/json");
    exchange.sendResponseHeaders(status, bytes.length);
    exchange.getResponseBody().write(bytes);
    exchange.close();
  }
}
