import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.UUID;
import java.util.concurrent.Executors;
import org.mariadb.jdbc.MariaDbPoolDataSource;

/**
 * A small shop: JDBC with MariaDB's driver and its pool. A transaction begins with
 * setAutoCommit(false); nothing sends BEGIN.
 *
 * <pre>java -cp /usr/share/java/mariadb-java-client.jar Shop.java naive|for-update</pre>
 */
public class Shop {
  private final MariaDbPoolDataSource pool;
  private final boolean locked;

  Shop(String mode) throws SQLException {
    locked = switch (mode) {
      case "naive" -> false;
      case "for-update" -> true;
      default -> throw new IllegalArgumentException("no mode " + mode);
    };
    String port = System.getenv().getOrDefault("MYSQL_PORT", "3306");
    pool = new MariaDbPoolDataSource(
        "jdbc:mariadb://127.0.0.1:" + port + "/shop?user=root&maxPoolSize=4&minPoolSize=1&poolValidMinDelay=0");
    pool.getConnection().close(); // connect now, not with the first buyer
  }

  boolean buy(int item) throws SQLException {
    try (Connection connection = pool.getConnection()) {
      if (!locked) {
        return sell(connection, item, "");
      }
      connection.setAutoCommit(false);
      boolean sold = sell(connection, item, " FOR UPDATE");
      connection.commit();
      return sold;
    } // the pool rolls back what was not committed
  }

  /** Reports whether a unit was left. */
  private static boolean sell(Connection connection, int item, String lock) throws SQLException {
    int stock = 0;
    try (var select = connection.prepareStatement("SELECT stock FROM items WHERE id = ?" + lock)) {
      select.setInt(1, item);
      var rows = select.executeQuery();
      if (rows.next()) {
        stock = rows.getInt(1);
      }
    }
    if (stock < 1) {
      return false;
    }
    try (var update = connection.prepareStatement("UPDATE items SET stock = ? WHERE id = ?")) {
      update.setInt(1, stock - 1);
      update.setInt(2, item);
      update.executeUpdate();
    }
    try (var insert = connection.prepareStatement("INSERT INTO orders (item_id, buyer) VALUES (?, ?)")) {
      insert.setInt(1, item);
      insert.setString(2, UUID.randomUUID().toString());
      insert.executeUpdate();
    }
    return true;
  }

  private void handle(HttpExchange exchange) throws IOException {
    try {
      String query = String.valueOf(exchange.getRequestURI().getQuery());
      if (!exchange.getRequestMethod().equals("POST") || !query.matches("item=\\d+")) {
        reply(exchange, 400, "POST /buy?item=ID");
      } else if (buy(Integer.parseInt(query.substring("item=".length())))) {
        reply(exchange, 200, "bought");
      } else {
        reply(exchange, 409, "sold out");
      }
    } catch (SQLException e) {
      System.err.println(e.getMessage());
      reply(exchange, 500, "error");
    }
  }

  private static void reply(HttpExchange exchange, int status, String text) throws IOException {
    byte[] body = (text + "\n").getBytes(StandardCharsets.UTF_8);
    exchange.sendResponseHeaders(status, body.length);
    try (var out = exchange.getResponseBody()) {
      out.write(body);
    }
  }

  public static void main(String[] args) throws Exception {
    Shop shop = new Shop(args.length > 0 ? args[0] : "naive");
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 8080), 50);
    server.setExecutor(Executors.newFixedThreadPool(4));
    server.createContext("/healthz", exchange -> reply(exchange, 200, "ok"));
    server.createContext("/buy", shop::handle);
    server.start();
  }
}
