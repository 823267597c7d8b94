// Kafka Streams as its manual shows it: a store of the texts that came before, exactly once, its own defaults.
// Arguments: bootstrap servers, application id, input topic, output topic, threads, folder of the store.

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

public final class ExactFilter {
  private static final String SEEN = "seen";
  private static final byte[] YES = {1};

  /** Forwards a message if no message of its partition before had the same text. */
  private static final class Once implements Processor<byte[], byte[], byte[], byte[]> {
    private final ObjectMapper json = new ObjectMapper();
    private final MessageDigest md5;
    private ProcessorContext<byte[], byte[]> context;
    private KeyValueStore<byte[], byte[]> seen;

    Once() {
      try {
        md5 = MessageDigest.getInstance("MD5");
      } catch (NoSuchAlgorithmException error) {
        throw new IllegalStateException(error);
      }
    }

    @Override
    public void init(ProcessorContext<byte[], byte[]> given) {
      context = given;
      seen = given.getStateStore(SEEN);
    }

    @Override
    public void process(Record<byte[], byte[]> message) {
      String text;
      try {
        text = json.readTree(message.value()).path("text").asText();
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
      byte[] digest = md5.digest(text.getBytes(StandardCharsets.UTF_8));
      if (seen.putIfAbsent(digest, YES) == null) {
        context.forward(message);
      }
    }
  }

  public static void main(String[] given) {
    Properties settings = new Properties();
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, given[0]);
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, given[1]);
    settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, given[4]);
    settings.put(StreamsConfig.STATE_DIR_CONFIG, given[5]);
    settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
    settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
    settings.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
    StreamsBuilder builder = new StreamsBuilder();
    builder.addStateStore(
        Stores.keyValueStoreBuilder(
            Stores.persistentKeyValueStore(SEEN), Serdes.ByteArray(), Serdes.ByteArray()));
    builder.<byte[], byte[]>stream(given[2]).process(Once::new, SEEN).to(given[3]);
    KafkaStreams streams = new KafkaStreams(builder.build(), settings);
    Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
    streams.start();
  }
}
