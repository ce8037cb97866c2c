package customer360;

import org.springframework.context.annotation.Profile;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.reactive.function.client.WebClient;
import reactor.core.publisher.Flux;

/** What the service person returns. */
record Person(int personId, Name name) {}

@RestController
@Profile("person")
class PersonService {
    private final WebClient upstream;

    PersonService(WebClient upstream) {
        this.upstream = upstream;
    }

    @GetMapping("/api/person")
    Flux<Person> all() {
        return upstream.get().uri("/api/name").retrieve().bodyToFlux(Name.class)
            .map(name -> new Person(name.personId(), name));
    }
}
