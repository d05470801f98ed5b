import type { TestContext } from "node:test";
import { connectRedis, type RedisConnector } from "../../src/redis/connect.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { closing } from "../of-suite.ts";
import { tlsFile } from "../tls.ts";
import { until } from "../until.ts";
import type { Settings } from "./server.ts";

type ConnectOptions = Parameters<typeof connectRedis>[2];

/** A connection to Redis, which notes its errors, and is closed after the test. */
export function connecting(t: TestContext, url: string, options?: ConnectOptions) {
  const errors: string[] = [];
  const redis = connectRedis(new Secret(url), ({ message }) => errors.push(message), options);
  return Object.assign(closing(t, redis), { errors });
}

/** A connection to Redis, which has answered. */
export async function connected(url: string): Promise<RedisConnector> {
  const redis = connectRedis(new Secret(url), () => {});
  await until(async () => (await redis.client.ping()) === "PONG");
  return redis;
}

/** Has a server speak TLS at this port too. @param asks whether it asks clients for certificates */
export const byTls = (
  port: number,
  asks = false,
  authorities = tlsFile("ca-one.crt"),
): Settings => [
  ["tls-port", String(port)],
  ["tls-cert-file", tlsFile("localhost.crt")],
  ["tls-key-file", tlsFile("localhost.key")],
  ["tls-ca-cert-file", authorities],
  ["tls-auth-clients", asks ? "yes" : "no"],
];
