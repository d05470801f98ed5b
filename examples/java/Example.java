import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.BadRequest;
import com.google.rpc.RetryInfo;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.MetadataUtils;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import paymentsgateway.v1.*;

/**
 * A client of the payments gateway in Java: it pays an order and follows it to its end, or follows
 * all events of the merchant account from a saved cursor.
 *
 * <pre>
 *   Example pay [external id] [card number] [amount]
 *   Example events [cursor file]
 * </pre>
 *
 * PAYMENTS_GATEWAY_URL is the rpc listener (http://127.0.0.1:4001), PAYMENTS_GATEWAY_KEY an API
 * key, if the gateway requires one.
 */
public final class Example {
  private final ManagedChannel channel;
  private final Metadata credentials = new Metadata();
  private final List<String> args;

  public static void main(String[] args) throws Exception {
    new Example(List.of(args)).run();
  }

  private Example(List<String> args) {
    this.args = args;
    URI address = URI.create(env("PAYMENTS_GATEWAY_URL", "http://127.0.0.1:4001"));
    boolean secure = "https".equals(address.getScheme());
    int port = address.getPort() >= 0 ? address.getPort() : secure ? 443 : 80;
    ManagedChannelBuilder<?> builder = ManagedChannelBuilder.forAddress(address.getHost(), port);
    if (!secure) builder.usePlaintext();
    // A watch may be silent for long: pings find out that its connection is dead.
    channel = builder.keepAliveTime(30, TimeUnit.SECONDS).build();
    String key = env("PAYMENTS_GATEWAY_KEY", "");
    if (!key.isEmpty()) credentials.put(header("authorization"), "Bearer " + key);
  }

  private void run() throws Exception {
    switch (arg(0, "")) {
      case "pay":
        pay(arg(1, "order-" + UUID.randomUUID()), arg(2, "4000000000003014"), arg(3, "25.00"));
        break;
      case "events":
        events(Path.of(arg(1, "cursor.txt")));
        break;
      default:
        end(2, "usage: pay [external id] [card number] [amount] | events [cursor file]");
    }
  }

  private void pay(String order, String number, String amount) throws Exception {
    var payments =
        PaymentServiceGrpc.newBlockingStub(channel)
            .withInterceptors(MetadataUtils.newAttachHeadersInterceptor(credentials));
    var request =
        CreatePaymentRequest.newBuilder()
            .setExternalId(order)
            .setAmount(amount)
            .setCurrency("UAH")
            .setMode(PaymentMode.PAYMENT_MODE_DIRECT)
            .setCustomer(PaymentCustomerInput.getDefaultInstance())
            .setPaymentMethod(
                PaymentMethodInput.newBuilder()
                    .setCc(
                        Card.newBuilder()
                            .setNumber(number)
                            .setCvv("123")
                            .setExpMonth(12)
                            .setExpYear(2031)))
            // Answer once the customer has something to do, or the payment is settled.
            .setWaitUntil(WaitUntil.WAIT_UNTIL_ACTION)
            .build();
    // One key for the order: it is never charged twice, even when this program is started again.
    var key = new Metadata();
    key.put(header("idempotency-key"), order);
    var headers = new AtomicReference<Metadata>();
    var trailers = new AtomicReference<Metadata>();

    PaymentState state = PaymentState.PAYMENT_STATE_UNKNOWN;
    String cursor = "";
    try {
      var answer =
          payments
              .withDeadlineAfter(30, TimeUnit.SECONDS)
              .withInterceptors(
                  MetadataUtils.newAttachHeadersInterceptor(key),
                  MetadataUtils.newCaptureMetadataInterceptor(headers, trailers))
              .createPayment(request);
      state = answer.getState();
      cursor = answer.getCursor();
      if (headers.get().containsKey(header("idempotent-replayed"))) {
        System.out.println("the answer to an earlier call");
      }
      System.out.println(name(state));
      if (answer.getPayment().getActionRequired()) {
        System.out.println("the customer goes to " + answer.getPayment().getAction().getValue());
      }
    } catch (StatusRuntimeException error) {
      boolean unknown = detailsOf(error).stream().anyMatch(one -> one.is(OutcomeUnknown.class));
      if (!unknown) explain(error);
      // Do not call again: the gateway looks the outcome up, and the watch tells it.
      System.out.println("the outcome is not known yet");
    }

    var last = new AtomicReference<>(state);
    if (state == PaymentState.PAYMENT_STATE_PENDING
        || state == PaymentState.PAYMENT_STATE_UNKNOWN) {
      follow(
          after -> {
            var watch = WatchPaymentRequest.newBuilder().setExternalId(order).setUntilFinal(true);
            if (!after.isEmpty()) watch.setAfterCursor(after);
            var answers = payments.withWaitForReady().watchPayment(watch.build());
            return map(answers, WatchPaymentResponse::getEvent);
          },
          cursor,
          event -> {
            // `state` says whether it is paid; the status of a single operation does not.
            last.set(event.getState());
            String source = event.getSource().name().replace("EVENT_SOURCE_", "");
            System.out.println(source + " " + name(event.getState()));
            return event.getFinal()
                || event.getCallOutcomeValue() >= CallOutcome.CALL_OUTCOME_NOT_DONE_VALUE;
          });
    }
    channel.shutdownNow();
    if (last.get() != PaymentState.PAYMENT_STATE_PAID) System.exit(1);
  }

  private void events(Path file) throws Exception {
    var service =
        EventServiceGrpc.newBlockingStub(channel)
            .withInterceptors(MetadataUtils.newAttachHeadersInterceptor(credentials));
    follow(
        after -> {
          var request = StreamEventsRequest.newBuilder().setAfterCursor(after).build();
          var answers = service.withWaitForReady().streamEvents(request);
          return map(answers, StreamEventsResponse::getEvent);
        },
        Files.exists(file) ? Files.readString(file) : "earliest",
        event -> {
          System.out.println(event.getExternalId() + " " + name(event.getState()));
          try {
            // A real service saves the cursor in the transaction that handles the event.
            Files.writeString(file, event.getCursor());
          } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
          }
          return false;
        });
  }

  /**
   * Hands out each event once, in order, until `handle` returns true. When the connection breaks or
   * the gateway restarts, it goes on after the last event; `withWaitForReady` lets a call wait for
   * the connection.
   */
  private static void follow(
      Function<String, Iterator<Event>> open, String cursor, Predicate<Event> handle)
      throws InterruptedException {
    for (int cuts = 0; ; cuts++) {
      Status.Code code = Status.Code.UNAVAILABLE;
      try {
        Iterator<Event> events = open.apply(cursor);
        while (events.hasNext()) {
          Event event = events.next();
          // A heartbeat is a message without an event.
          if (event.getCursor().isEmpty()) continue;
          cursor = event.getCursor();
          cuts = 0;
          if (handle.test(event)) return;
        }
      } catch (StatusRuntimeException error) {
        code = error.getStatus().getCode();
        if (USELESS_TO_RETRY.contains(code)) explain(error);
      }
      System.err.println("reconnecting: " + code);
      // At random, so that clients that lost their connections together do not come back together.
      long longest = Math.min(5_000, 200L << Math.min(cuts, 5));
      Thread.sleep(ThreadLocalRandom.current().nextLong(longest));
    }
  }

  private static final Set<Status.Code> USELESS_TO_RETRY =
      EnumSet.of(
          Status.Code.INVALID_ARGUMENT,
          Status.Code.NOT_FOUND,
          Status.Code.OUT_OF_RANGE,
          Status.Code.PERMISSION_DENIED,
          Status.Code.UNAUTHENTICATED);

  private static List<Any> detailsOf(StatusRuntimeException error) {
    return StatusProto.fromThrowable(error).getDetailsList();
  }

  /** Ends the program with the exit code and the text for an error, by the details it carries. */
  private static void explain(StatusRuntimeException error) {
    try {
      if (detailsOf(error).isEmpty()) {
        // Every error of the gateway has details: this one is of the connection.
        end(5, "no answer (" + error.getStatus() + "): run this again for the same order");
      }
      for (Any detail : detailsOf(error)) {
        if (detail.is(UpstreamError.class)) {
          end(1, "declined: " + detail.unpack(UpstreamError.class).getCode());
        } else if (detail.is(BadRequest.class)) {
          var fields = detail.unpack(BadRequest.class).getFieldViolationsList();
          end(
              2,
              fields.stream()
                  .map(field -> field.getField() + ": " + field.getDescription())
                  .collect(Collectors.joining("\n")));
        } else if (detail.is(RetryInfo.class)) {
          var delay = detail.unpack(RetryInfo.class).getRetryDelay();
          double seconds = delay.getSeconds() + delay.getNanos() / 1e9;
          end(3, "nothing was done, try again in " + seconds + "s");
        }
      }
    } catch (InvalidProtocolBufferException malformed) {
      malformed.addSuppressed(error);
      end(4, malformed.toString());
    }
    if (error.getStatus().getCode() == Status.Code.OUT_OF_RANGE) {
      end(4, "the cursor is too old: read the states with ListPayments, and begin without one");
    }
    end(4, error.getStatus().getCode() + ": " + error.getStatus().getDescription());
  }

  private static <From, To> Iterator<To> map(Iterator<From> from, Function<From, To> to) {
    return new Iterator<>() {
      @Override
      public boolean hasNext() {
        return from.hasNext();
      }

      @Override
      public To next() {
        return to.apply(from.next());
      }
    };
  }

  private static Metadata.Key<String> header(String name) {
    return Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER);
  }

  private static String name(PaymentState state) {
    return state.name().replace("PAYMENT_STATE_", "");
  }

  private static String env(String name, String otherwise) {
    String value = System.getenv(name);
    return value == null || value.isEmpty() ? otherwise : value;
  }

  private String arg(int index, String otherwise) {
    return args.size() > index ? args.get(index) : otherwise;
  }

  private static void end(int code, String message) {
    System.err.println(message);
    System.exit(code);
  }
}
