"""A client of the payments gateway in Python: it pays an order and follows it to its end, or
follows all events of the merchant account from a saved cursor.

    python main.py pay [external id] [card number] [amount]
    python main.py events [cursor file]

PAYMENTS_GATEWAY_URL is the rpc listener (http://127.0.0.1:4001), PAYMENTS_GATEWAY_KEY an API key,
if the gateway requires one.
"""

import os
import random
import sys
import time
import uuid
from pathlib import Path
from urllib.parse import urlsplit

import grpc
from google.rpc import error_details_pb2, status_pb2
from payments.v1 import error_pb2, event_pb2, event_service_pb2, event_service_pb2_grpc
from payments.v1 import payment_input_pb2, payment_pb2, payment_service_pb2
from payments.v1 import payment_service_pb2_grpc
from payments.v1.payment_pb2 import PAYMENT_STATE_PAID, PAYMENT_STATE_PENDING
from payments.v1.payment_pb2 import PAYMENT_STATE_UNKNOWN


def main(command="", *args):
    address = urlsplit(os.environ.get("PAYMENTS_GATEWAY_URL") or "http://127.0.0.1:4001")
    # A watch may be silent for long: pings find out that its connection is dead.
    options = [
        ("grpc.keepalive_time_ms", 30_000),
        ("grpc.keepalive_timeout_ms", 10_000),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.max_reconnect_backoff_ms", 5_000),
    ]
    if address.scheme == "https":
        secure = grpc.ssl_channel_credentials()
        channel = grpc.secure_channel(address.netloc, secure, options)
    else:
        channel = grpc.insecure_channel(address.netloc, options)
    key = os.environ.get("PAYMENTS_GATEWAY_KEY")
    metadata = [("authorization", f"Bearer {key}")] if key else []
    with channel:
        if command == "pay":
            pay(channel, metadata, *args)
        elif command == "events":
            events(channel, metadata, *args)
        else:
            end(2, "usage: pay [external id] [card number] [amount] | events [cursor file]")


def pay(channel, metadata, order=None, number="4000000000003014", amount="25.00"):
    order = order or f"order-{uuid.uuid4()}"
    payments = payment_service_pb2_grpc.PaymentServiceStub(channel)
    request = payment_service_pb2.CreatePaymentRequest(
        external_id=order,
        amount=amount,
        currency="UAH",
        mode=payment_input_pb2.PAYMENT_MODE_DIRECT,
        customer=payment_input_pb2.PaymentCustomerInput(),
        payment_method=payment_input_pb2.PaymentMethodInput(
            cc=payment_input_pb2.Card(number=number, cvv="123", exp_month=12, exp_year=2031)
        ),
        # Answer once the customer has something to do, or the payment is settled.
        wait_until=event_pb2.WAIT_UNTIL_ACTION,
    )
    # One key for the order: it is never charged twice, even when this program is started again.
    with_key = [*metadata, ("idempotency-key", order)]
    state, cursor = PAYMENT_STATE_UNKNOWN, ""
    try:
        answer, call = payments.CreatePayment.with_call(request, timeout=30, metadata=with_key)
    except grpc.RpcError as error:
        if not any(isinstance(detail, error_pb2.OutcomeUnknown) for detail in details_of(error)):
            end(*explain(error))
        # Do not call again: the gateway looks the outcome up, and the watch tells it.
        print("the outcome is not known yet", flush=True)
    else:
        state, cursor = answer.state, answer.cursor
        if "idempotent-replayed" in dict(call.initial_metadata()):
            print("the answer to an earlier call")
        print(name(state), flush=True)
        if answer.payment.action_required:
            print("the customer goes to", answer.payment.action.value, flush=True)

    if state in (PAYMENT_STATE_PENDING, PAYMENT_STATE_UNKNOWN):

        def watch(after):
            request = payment_service_pb2.WatchPaymentRequest(
                external_id=order, after_cursor=after, until_final=True
            )
            return payments.WatchPayment(request, metadata=metadata, wait_for_ready=True)

        for event in follow(watch, cursor):
            # `state` says whether it is paid; the status of a single operation does not.
            state = event.state
            source = event_pb2.EventSource.Name(event.source).removeprefix("EVENT_SOURCE_")
            print(source, name(state), flush=True)
            if event.final or event.call_outcome >= event_pb2.CALL_OUTCOME_NOT_DONE:
                break
    if state != PAYMENT_STATE_PAID:
        sys.exit(1)


def events(channel, metadata, file="cursor.txt"):
    saved = Path(file)
    stub = event_service_pb2_grpc.EventServiceStub(channel)

    def stream(after):
        request = event_service_pb2.StreamEventsRequest(after_cursor=after)
        return stub.StreamEvents(request, metadata=metadata, wait_for_ready=True)

    for event in follow(stream, saved.read_text() if saved.exists() else "earliest"):
        print(event.external_id, name(event.state), flush=True)
        # A real service saves the cursor in the transaction that handles the event.
        saved.write_text(event.cursor)


def follow(open_stream, cursor):
    """Yields each event once, in order. When the connection breaks or the gateway restarts, it
    goes on after the last event; `wait_for_ready` lets a call wait for the connection."""
    cuts = 0
    while True:
        code = grpc.StatusCode.UNAVAILABLE
        try:
            for message in open_stream(cursor or None):
                # A message without an event is a heartbeat.
                if message.HasField("event"):
                    cursor, cuts = message.event.cursor, 0
                    yield message.event
        except grpc.RpcError as error:
            code = error.code()
            if code in useless_to_retry:
                end(*explain(error))
        print("reconnecting:", code.name, file=sys.stderr, flush=True)
        # At random, so that clients that lost their connections together do not come back together.
        time.sleep(random.uniform(0, min(5, 0.2 * 2**cuts)))
        cuts = min(cuts + 1, 5)


useless_to_retry = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNAUTHENTICATED,
}

detail_types = {
    f"type.googleapis.com/{message.DESCRIPTOR.full_name}": message
    for message in (
        error_details_pb2.BadRequest,
        error_details_pb2.ErrorInfo,
        error_details_pb2.RetryInfo,
        error_pb2.OutcomeUnknown,
        error_pb2.UpstreamError,
    )
}


def details_of(error):
    """The details that the gateway attached to an error."""
    packed = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
    return [
        detail_types[detail.type_url].FromString(detail.value)
        for detail in status_pb2.Status.FromString(packed).details
        if detail.type_url in detail_types
    ]


def explain(error):
    """The exit code and the text for an error, by the details that it carries."""
    details = details_of(error)
    if not details:
        # Every error of the gateway has details: this one is of the connection.
        return 5, f"no answer ({error.details()}): run this again for the same order"
    for detail in details:
        if isinstance(detail, error_pb2.UpstreamError):
            return 1, f"declined: {detail.code}"
        if isinstance(detail, error_details_pb2.BadRequest):
            return 2, "\n".join(f"{v.field}: {v.description}" for v in detail.field_violations)
        if isinstance(detail, error_details_pb2.RetryInfo):
            seconds = detail.retry_delay.ToTimedelta().total_seconds()
            return 3, f"nothing was done, try again in {seconds:g}s"
    if error.code() == grpc.StatusCode.OUT_OF_RANGE:
        return 4, "the cursor is too old: read the states with ListPayments, and begin without one"
    return 4, f"{error.code().name}: {error.details()}"


def name(state):
    # A newer gateway may know states that this program does not.
    known = payment_pb2.PaymentState.values()
    text = payment_pb2.PaymentState.Name(state) if state in known else str(state)
    return text.removeprefix("PAYMENT_STATE_")


def end(code, message):
    print(message, file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main(*sys.argv[1:])
