package customer360;

import org.springframework.context.annotation.Profile;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.reactive.function.client.WebClient;
import reactor.core.publisher.Flux;

/** A name as the service customer has it: as in the original, its number comes from a field that nobody sends. */
record CustomerName(int id, String first, String middle, String last) {}

/** A person as the service customer has it. */
record CustomerPerson(int personId, CustomerName name) {}

/** What the service customer returns. */
record Customer(String customerId, CustomerPerson person) {}

@RestController
@Profile("customer")
class CustomerService {
    private final WebClient upstream;

    CustomerService(WebClient upstream) {
        this.upstream = upstream;
    }

    @GetMapping("/api/customer")
    Flux<Customer> all() {
        return upstream.get().uri("/api/person").retrieve().bodyToFlux(CustomerPerson.class)
            .map(person -> new Customer(person.personId() + "-1", person));
    }
}
