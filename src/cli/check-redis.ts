import { randomUUID } from "node:crypto";
import type { Config } from "../config/config.ts";
import { tlsOptions } from "../net/client-tls.ts";
import { isTlsFault, reasonOf, systemCode } from "../net/system-errors.ts";
import { infoField } from "../redis/acknowledged.ts";
import { connectRedis, type RedisClient, type RedisConnector } from "../redis/connect.ts";
import { RedisTimeout, within } from "../redis/deadline.ts";
import { describeDurability } from "../redis/durability.ts";
import { accountKeys } from "../redis/keys.ts";
import { isCluster } from "../redis/link.ts";
import { readyWithin } from "../redis/ready.ts";
import { parseRedisUrl } from "../redis/url.ts";
import type { MinReplicas } from "../redis/writer.ts";
import { type Finding, findings } from "./finding.ts";
import { printable } from "./terminal.ts";
import { tlsFault } from "./tls-fault.ts";

const connectMs = 3_000;
const answerMs = 2_000;

/**
 * Checks Redis as the gateway will use it: connects, reads version, persistence, eviction and
 * replicas, and runs a script on keys of its own, which it removes again.
 */
export async function checkRedis(redis: NonNullable<Config["redis"]>): Promise<Finding[]> {
  const { ok, failed } = findings("redis");
  let trouble = `no answer within ${connectMs / 1_000} s`;
  // A cluster or Sentinel set reports its first error only after all of its nodes have failed.
  const { promise: failing, resolve: onFailing } = Promise.withResolvers<void>();
  const onError = (error: Error) => {
    trouble = troubleOf(error);
    onFailing();
  };
  const connection = connectRedis(redis.url, onError, { tls: redis.tls });
  const { client } = connection;
  try {
    await Promise.race([readyWithin(connectMs, client), failing]);
    if (client.status !== "ready") {
      const fault = isTlsFault(trouble) ? trouble : await tlsFaultOf(redis);
      const advice =
        fault === undefined
          ? "correct REDIS_URL, or start Redis: without it the gateway answers callbacks 503"
          : "REDIS_TLS_CA_FILE names the authorities to trust, REDIS_TLS_CERT_FILE and REDIS_TLS_KEY_FILE the certificate to show";
      return [failed(`cannot be reached: ${reasonOf(fault ?? trouble)}`, advice)];
    }
    const servers = isCluster(client) ? client.nodes("master") : [client];
    const infos = await Promise.all(servers.map((server) => within(answerMs, server.info())));
    const versions = [...new Set(infos.map((info) => infoField(info, "redis_version") ?? "?"))];
    const nodes = servers.length > 1 ? `, ${servers.length} masters` : "";
    return [
      ok(`connected, version ${versions.join(", ")}${nodes}`),
      await durability(connection),
      replicas(infos, redis.minReplicas),
      await scripts(client, redis.prefix),
    ];
  } catch (error) {
    return [failed(`answers unexpectedly: ${troubleOf(error)}`)];
  } finally {
    await connection.close();
  }
}

async function durability(connection: RedisConnector): Promise<Finding> {
  const { ok, warning } = findings("redis durability");
  const lost = await describeDurability(connection);
  if (lost === undefined) return ok("append-only file, no eviction");
  return warning(
    lost,
    "set appendonly yes, appendfsync always, maxmemory-policy noeviction, in a file that Redis may write",
  );
}

function replicas(infos: readonly string[], min: MinReplicas): Finding {
  const { ok, failed, warning } = findings("redis replicas");
  const roles = infos.map((info) => infoField(info, "role"));
  if (roles.some((role) => role !== "master")) {
    return failed("it is a replica, which accepts no writes", "name the master, or a Sentinel set");
  }
  const counts = infos.map((info) => Number(infoField(info, "connected_slaves") ?? 0));
  const fewest = Math.min(...counts);
  if (min === "all") {
    return ok(`${fewest} connected, every one that could be promoted has to hold a write`);
  }
  const found = `${fewest} connected, and REDIS_MIN_REPLICAS is ${min}`;
  if (fewest > min && min > 0) {
    return warning(
      `${found}: a failover to another replica loses what only ${min} held`,
      "set REDIS_MIN_REPLICAS to all",
    );
  }
  if (fewest >= min) return ok(`${fewest} connected, REDIS_MIN_REPLICAS is ${min}`);
  return failed(
    `${found}: callbacks would be answered 503`,
    "connect replicas, or lower REDIS_MIN_REPLICAS",
  );
}

/** Runs the commands of the gateway's own scripts, on keys with the gateway's names. */
const script = `
local call = redis.call
call('SET', KEYS[1], '1', 'PX', 10000)
call('GET', KEYS[1])
call('EXISTS', KEYS[1])
call('HSET', KEYS[2], 'a', '1')
call('HGET', KEYS[2], 'a')
call('HMGET', KEYS[2], 'a')
call('HGETALL', KEYS[2])
call('HDEL', KEYS[2], 'b')
call('PEXPIRE', KEYS[2], 10000)
call('ZADD', KEYS[3], 0, 'a')
call('ZCARD', KEYS[3])
call('ZRANGEBYLEX', KEYS[3], '-', '+')
call('ZREVRANGEBYLEX', KEYS[3], '+', '-')
call('ZRANGEBYSCORE', KEYS[3], 0, 0)
call('ZREVRANGEBYSCORE', KEYS[3], 0, 0)
call('ZREM', KEYS[3], 'b')
call('ZREMRANGEBYLEX', KEYS[3], '(a', '+')
call('ZREMRANGEBYRANK', KEYS[3], 1, -1)
call('XADD', KEYS[4], '*', 'a', '1')
call('XRANGE', KEYS[4], '-', '+')
call('XREVRANGE', KEYS[4], '+', '-')
call('XTRIM', KEYS[4], 'MAXLEN', 1)
call('PUBLISH', KEYS[5], '1')
call('TIME')
call('UNLINK', KEYS[1])
return call('DEL', KEYS[2], KEYS[3], KEYS[4])`;

async function scripts(client: RedisClient, prefix: string): Promise<Finding> {
  const { ok, failed } = findings("redis scripts");
  const keys = accountKeys(prefix, "default");
  const id = `check-${randomUUID()}`;
  const names = [keys.lease(id), keys.record(id), keys.topic(id), keys.index(id), keys.wakeUp];
  try {
    await within(answerMs, client.eval(script, names.length, ...names));
    return ok(`run on keys that begin with ${prefix}:`);
  } catch (error) {
    return failed(
      `cannot be run: ${troubleOf(error)}`,
      `allow the user all commands, keys and channels that begin with ${prefix}:`,
    );
  }
}

/** What is wrong with TLS at the first address of REDIS_URL where anything is. */
async function tlsFaultOf({ url, tls }: NonNullable<Config["redis"]>): Promise<string | undefined> {
  const { isTls = false, addresses = [] } = parseRedisUrl(url.reveal()) ?? {};
  if (!isTls) return undefined;
  for (const address of addresses) {
    const fault = await tlsFault(address, tlsOptions(tls));
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** The reason for a Redis error without the command, which contains keys and values. */
function troubleOf(error: unknown): string {
  if (error instanceof RedisTimeout) return error.message;
  // The driver keeps the error of a cluster's node beside its own.
  const { lastNodeError } = error as { lastNodeError?: unknown };
  const code = systemCode(error) ?? systemCode(lastNodeError);
  // Else the message is from Redis: a code in capitals, then a sentence.
  return code ?? printable((error as Error).message).slice(0, 200);
}
