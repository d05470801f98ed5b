import assert from "node:assert/strict";
import { request as httpRequest } from "node:http";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { toJson } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { createClient as createWsClient } from "graphql-ws";
import WebSocket from "ws";
import { type Gateway, startGateway } from "../../src/gateway.ts";
import { PaymentMode } from "../../src/gen/payments/v1/payment_input_pb.ts";
import {
  CreatePaymentRequestSchema,
  PaymentService,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { PayoutService } from "../../src/gen/payments/v1/payout_service_pb.ts";
import { SubscriptionService } from "../../src/gen/payments/v1/subscription_service_pb.ts";
import { WalletService } from "../../src/gen/payments/v1/wallet_service_pb.ts";
import { readConfig } from "../../src/config.ts";
import { createLogger } from "../../src/log.ts";
import { sign } from "../../src/upstream/signature.ts";
import {
  audience,
  issuer,
  keysText,
  newKey,
  scratch,
  signingKey,
  signToken,
} from "../auth/issuer.ts";
import { patienceMs } from "../start.ts";
import { type Canaries, findCanaries, type Place } from "./canaries.ts";
import { behaviours, type EchoingUpstream, startEchoingUpstream } from "./echoing-upstream.ts";
