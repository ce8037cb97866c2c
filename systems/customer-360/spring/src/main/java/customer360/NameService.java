package customer360;

import org.springframework.context.annotation.Profile;
import org.springframework.data.annotation.Id;
import org.springframework.data.relational.core.mapping.Column;
import org.springframework.data.relational.core.mapping.Table;
import org.springframework.data.repository.reactive.ReactiveCrudRepository;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Flux;

/** A row of the table, and what the service name returns. */
@Table("name")
record Name(@Id @Column("personid") int personId, String first, String middle, String last) {}

@Profile("name")
interface Names extends ReactiveCrudRepository<Name, Integer> {}

@RestController
@Profile("name")
class NameService {
    private final Names names;

    NameService(Names names) {
        this.names = names;
    }

    /** The driver does not prepare this query, as it prepares only those with parameters: so it is in the original. */
    @GetMapping("/api/name")
    Flux<Name> all() {
        return names.findAll();
    }
}
