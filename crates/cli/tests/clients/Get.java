import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;

/** Gets a URL with the class named, and prints the body. Usage: java Get.java CLASS URL */
public class Get {
    public static void main(String[] arguments) throws Exception {
        URI url = URI.create(arguments[1]);
        if (arguments[0].equals("HttpClient")) {
            HttpRequest request = HttpRequest.newBuilder(url).build();
            System.out.print(HttpClient.newHttpClient().send(request, BodyHandlers.ofString()).body());
        } else {
            HttpURLConnection connection = (HttpURLConnection) url.toURL().openConnection();
            System.out.write(connection.getInputStream().readAllBytes());
            System.out.flush();
        }
    }
}
