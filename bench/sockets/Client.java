import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.sql.Connection;
import java.sql.DriverManager;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Clients in Java: java.net.http, HttpURLConnection, JDBC.
 *
 * <pre>java -cp postgresql.jar Client.java http|url|postgres ADDRESS SERVICE_MS THINK_MS BYTES WORKERS SECONDS</pre>
 *
 * Calls for two seconds unmeasured, prints "measuring", and at its end the mean number of calls under way by its own
 * clock, their number and mean time.
 */
class Client {
    public static void main(String[] arguments) throws Exception {
        String kind = arguments[0], address = arguments[1];
        double serviceMs = Double.parseDouble(arguments[2]), thinkMs = Double.parseDouble(arguments[3]);
        int workers = Integer.parseInt(arguments[5]);
        double seconds = Double.parseDouble(arguments[6]);
        String time = serviceMs < 0 ? "ms=5&slow=" + -serviceMs : "ms=" + serviceMs;
        URI uri = URI.create("http://" + address + "/?" + time + "&bytes=" + arguments[4]);
        AtomicLong busy = new AtomicLong(), calls = new AtomicLong();
        long began = System.nanoTime() + 2_000_000_000L;
        Callable<?> shared = kind.equals("http") ? overHttp(uri) : null;
        Thread[] threads = new Thread[workers];
        for (int worker = 0; worker < workers; worker++) {
            Random random = new Random(worker);
            threads[worker] = new Thread(() -> {
                try {
                    Callable<?> call = shared != null ? shared : kind.equals("url") ? overUrl(uri) : overJdbc(address, serviceMs);
                    while (System.nanoTime() - began < seconds * 1e9) {
                        long sent = System.nanoTime();
                        call.call();
                        if (sent >= began) {
                            busy.addAndGet(System.nanoTime() - sent);
                            calls.incrementAndGet();
                        }
                        if (thinkMs > 0) Thread.sleep(Math.round(-Math.log(1 - random.nextDouble()) * thinkMs));
                    }
                } catch (Exception error) {
                    error.printStackTrace();
                    System.exit(1);
                }
            });
            threads[worker].start();
        }
        Thread.sleep(2_000);
        System.out.println("measuring");
        for (Thread thread : threads) thread.join();
        System.out.printf("{\"outstanding\": %.4f, \"calls\": %d, \"mean_ms\": %.4f}%n",
            busy.get() / (double) (System.nanoTime() - began), calls.get(), busy.get() / 1e6 / calls.get());
        System.exit(0);
    }

    static Callable<?> overHttp(URI uri) {
        HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        HttpRequest request = HttpRequest.newBuilder(uri).build();
        return () -> client.send(request, HttpResponse.BodyHandlers.ofByteArray());
    }

    static Callable<?> overUrl(URI uri) throws Exception {
        return () -> {
            HttpURLConnection connection = (HttpURLConnection) uri.toURL().openConnection();
            try (InputStream body = connection.getInputStream()) {
                return body.readAllBytes();
            }
        };
    }

    static Callable<?> overJdbc(String address, double serviceMs) throws Exception {
        Connection connection = DriverManager.getConnection("jdbc:postgresql://" + address + "/postgres?user=postgres");
        var statement = connection.prepareStatement("SELECT pg_sleep(?)::text");
        return () -> {
            statement.setDouble(1, serviceMs / 1e3);
            return statement.executeQuery().next();
        };
    }
}
