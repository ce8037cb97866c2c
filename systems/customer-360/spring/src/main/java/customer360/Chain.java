package customer360;

import java.util.Map;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Profile;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.reactive.function.client.WebClient;

/**
 * The chain customer, person, name, PostgreSQL as it is usually written with WebFlux and R2DBC: a peer to measure
 * against. The profile says which service a process is. It does no tracing and writes no access log.
 */
@SpringBootApplication
public class Chain {
    public static void main(String[] arguments) {
        SpringApplication.run(Chain.class, arguments);
    }

    /** The next service of the chain. */
    @Bean
    @Profile({"person", "customer"})
    WebClient upstream(WebClient.Builder builder, @Value("${upstream}") String base) {
        return builder.baseUrl(base).build();
    }

    @RestController
    static class Health {
        @GetMapping("/health")
        Map<String, String> health() {
            return Map.of("status", "up");
        }
    }
}
