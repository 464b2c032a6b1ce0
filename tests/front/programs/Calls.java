import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;

/** Makes the calls in a file with Java's default client, which asks for HTTP/2 in each request over plain HTTP. */
public class Calls {
    public static void main(String[] args) throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            String[] parts = line.split("\t", 2);
            HttpRequest request = HttpRequest.newBuilder(URI.create(System.getenv("URL") + parts[0]))
                .header("Authorization", "Bearer " + System.getenv("KEY"))
                .POST(HttpRequest.BodyPublishers.ofString(parts[1]))
                .build();
            HttpResponse<String> response = client.send(request, HttpResponse.BodyHandlers.ofString());
            System.out.println(response.statusCode() + "\t" + response.body());
        }
    }
}
