// A client of the payments gateway in Go: it pays an order and follows it to its end, or follows
// all events of the merchant account from a saved cursor.
//
//	example pay [external id] [card number] [amount]
//	example events [cursor file]
//
// PAYMENTS_GATEWAY_URL is the rpc listener (http://127.0.0.1:4001), PAYMENTS_GATEWAY_KEY an API
// key, if the gateway requires one.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net/url"
	"os"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	pb "payments-gateway.internal/gen/payments/v1"
)

func main() {
	address, err := url.Parse(or(os.Getenv("PAYMENTS_GATEWAY_URL"), "http://127.0.0.1:4001"))
	if err != nil {
		end(4, err.Error())
	}
	// grpc.NewClient and insecure.NewCredentials are newer names of what these two do.
	security := grpc.WithInsecure()
	if address.Scheme == "https" {
		security = grpc.WithTransportCredentials(credentials.NewTLS(nil))
	}
	// A watch may be silent for long: pings find out that its connection is dead.
	alive := keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}
	connection, err := grpc.Dial(address.Host, security, grpc.WithKeepaliveParams(alive))
	if err != nil {
		end(4, err.Error())
	}
	defer connection.Close()

	ctx := context.Background()
	if key := os.Getenv("PAYMENTS_GATEWAY_KEY"); key != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+key)
	}
	switch arg(1, "") {
	case "pay":
		order := arg(2, fmt.Sprintf("order-%d", time.Now().UnixNano()))
		pay(ctx, connection, order, arg(3, "4000000000003014"), arg(4, "25.00"))
	case "events":
		events(ctx, connection, arg(2, "cursor.txt"))
	default:
		end(2, "usage: pay [external id] [card number] [amount] | events [cursor file]")
	}
}

func pay(ctx context.Context, connection *grpc.ClientConn, order, number, amount string) {
	payments := pb.NewPaymentServiceClient(connection)

	call, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	// One key for the order: it is never charged twice, even when this program is started again.
	call = metadata.AppendToOutgoingContext(call, "idempotency-key", order)
	var header metadata.MD
	answer, err := payments.CreatePayment(call, &pb.CreatePaymentRequest{
		ExternalId: order,
		Amount:     amount,
		Currency:   "UAH",
		Mode:       pb.PaymentMode_PAYMENT_MODE_DIRECT,
		Customer:   &pb.PaymentCustomerInput{},
		PaymentMethod: &pb.PaymentMethodInput{Method: &pb.PaymentMethodInput_Cc{
			Cc: &pb.Card{Number: number, Cvv: "123", ExpMonth: 12, ExpYear: 2031},
		}},
		// Answer once the customer has something to do, or the payment is settled.
		WaitUntil: pb.WaitUntil_WAIT_UNTIL_ACTION,
	}, grpc.Header(&header))
	if err != nil && !outcomeUnknown(err) {
		end(explain(err))
	}

	state := pb.PaymentState_PAYMENT_STATE_UNKNOWN
	cursor := ""
	if err != nil {
		// Do not call again: the gateway looks the outcome up, and the watch tells it.
		fmt.Println("the outcome is not known yet")
	} else {
		state, cursor = answer.State, answer.Cursor
		if len(header.Get("idempotent-replayed")) > 0 {
			fmt.Println("the answer to an earlier call")
		}
		fmt.Println(name(state))
		if answer.Payment.GetActionRequired() {
			fmt.Println("the customer goes to", answer.Payment.GetAction().GetValue())
		}
	}
	if state == pb.PaymentState_PAYMENT_STATE_PENDING || state == pb.PaymentState_PAYMENT_STATE_UNKNOWN {
		open := func(after *string) (receive, error) {
			stream, err := payments.WatchPayment(ctx, &pb.WatchPaymentRequest{
				ExternalId: order, AfterCursor: after, UntilFinal: true,
			}, grpc.WaitForReady(true))
			if err != nil {
				return nil, err
			}
			return func() (*pb.Event, error) { message, err := stream.Recv(); return message.GetEvent(), err }, nil
		}
		follow(open, cursor, func(event *pb.Event) bool {
			// `state` says whether it is paid; the status of a single operation does not.
			state = event.State
			fmt.Println(strings.TrimPrefix(event.Source.String(), "EVENT_SOURCE_"), name(state))
			return event.Final || event.CallOutcome >= pb.CallOutcome_CALL_OUTCOME_NOT_DONE
		})
	}
	if state != pb.PaymentState_PAYMENT_STATE_PAID {
		os.Exit(1)
	}
}

func events(ctx context.Context, connection *grpc.ClientConn, file string) {
	saved, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		end(4, err.Error())
	}
	open := func(after *string) (receive, error) {
		request := &pb.StreamEventsRequest{AfterCursor: after}
		stream, err := pb.NewEventServiceClient(connection).StreamEvents(ctx, request, grpc.WaitForReady(true))
		if err != nil {
			return nil, err
		}
		return func() (*pb.Event, error) { message, err := stream.Recv(); return message.GetEvent(), err }, nil
	}
	follow(open, or(string(saved), "earliest"), func(event *pb.Event) bool {
		fmt.Println(event.ExternalId, name(event.State))
		// A real service saves the cursor in the transaction that handles the event.
		if err := os.WriteFile(file, []byte(event.Cursor), 0o600); err != nil {
			end(4, err.Error())
		}
		return false
	})
}

// receive returns the next event; nil for a heartbeat.
type receive func() (*pb.Event, error)

// follow hands out each event once, in order, until handle returns true. When the connection
// breaks or the gateway restarts, it goes on after the last event; WaitForReady lets a call wait
// for the connection.
func follow(open func(after *string) (receive, error), cursor string, handle func(*pb.Event) bool) {
	for cuts := 0; ; cuts++ {
		var after *string
		if cursor != "" {
			after = &cursor
		}
		next, err := open(after)
		for err == nil {
			var event *pb.Event
			if event, err = next(); event != nil {
				cursor, cuts = event.Cursor, 0
				if handle(event) {
					return
				}
			}
		}
		switch status.Code(err) {
		case codes.InvalidArgument, codes.NotFound, codes.OutOfRange, codes.PermissionDenied, codes.Unauthenticated:
			end(explain(err))
		}
		if err == io.EOF {
			err = status.Error(codes.Unavailable, "the stream ended")
		}
		fmt.Fprintln(os.Stderr, "reconnecting:", status.Code(err))
		// At random, so that clients that lost their connections together do not come back together.
		longest := 5 * time.Second
		if cuts < 5 {
			longest = 200 * time.Millisecond << cuts
		}
		time.Sleep(time.Duration(rand.Int63n(int64(longest))))
	}
}

func outcomeUnknown(err error) bool {
	for _, detail := range status.Convert(err).Details() {
		if _, ok := detail.(*pb.OutcomeUnknown); ok {
			return true
		}
	}
	return false
}

// explain gives the exit code and the text for an error, by the details that it carries.
func explain(err error) (int, string) {
	failed := status.Convert(err)
	if len(failed.Details()) == 0 {
		// Every error of the gateway has details: this one is of the connection.
		return 5, fmt.Sprintf("no answer (%s): run this again for the same order", failed.Message())
	}
	for _, detail := range failed.Details() {
		switch detail := detail.(type) {
		case *pb.UpstreamError:
			return 1, "declined: " + detail.GetCode()
		case *errdetails.BadRequest:
			var fields []string
			for _, violation := range detail.FieldViolations {
				fields = append(fields, violation.Field+": "+violation.Description)
			}
			return 2, strings.Join(fields, "\n")
		case *errdetails.RetryInfo:
			return 3, fmt.Sprint("nothing was done, try again in ", detail.RetryDelay.AsDuration())
		}
	}
	if failed.Code() == codes.OutOfRange {
		return 4, "the cursor is too old: read the states with ListPayments, and begin without one"
	}
	return 4, fmt.Sprint(failed.Code(), ": ", failed.Message())
}

func name(state pb.PaymentState) string {
	return strings.TrimPrefix(state.String(), "PAYMENT_STATE_")
}

func arg(index int, otherwise string) string {
	if len(os.Args) > index {
		return os.Args[index]
	}
	return otherwise
}

func or(value, otherwise string) string {
	if value != "" {
		return value
	}
	return otherwise
}

func end(code int, message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(code)
}
