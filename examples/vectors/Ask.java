import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.Path;
import java.util.Map;
import org.neo4j.dbms.api.DatabaseManagementServiceBuilder;

/** Opens the home folder of a Neo4j, and prints what each query gives: a row as a line of JSON. */
class Ask {
    public static void main(String[] args) {
        var json = new ObjectMapper();
        var service = new DatabaseManagementServiceBuilder(Path.of(args[0])).build();
        try {
            for (int i = 1; i < args.length; i++) {
                for (var row : service.database("neo4j").executeTransactionally(args[i], Map.of(), result -> result.stream().toList())) {
                    System.out.println(json.valueToTree(row));
                }
            }
        } finally {
            service.shutdown();
        }
    }
}
