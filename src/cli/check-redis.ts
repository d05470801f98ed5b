import { randomUUID } from "node:crypto";
import type { Config } from "../config/config.ts";
import { tlsOptions } from "../net/client-tls.ts";
import { isTlsFault, reasonOf } from "../net/system-errors.ts";
import { infoField } from "../redis/acknowledged.ts";
import type { RedisConnector } from "../redis/connect.ts";
import { readyWithin, within } from "../redis/deadline.ts";
import { describeDurability } from "../redis/durability.ts";
import { accountKeys } from "../redis/keys.ts";
import { isCluster } from "../redis/link.ts";
import { loadScript } from "../redis/script.ts";
import { parseRedisUrl } from "../redis/url.ts";
import { createWriter, type MinReplicas } from "../redis/writer.ts";
import { type Finding, findings } from "./finding.ts";
import { tlsFault } from "./reach.ts";
import { connectMs, reachRedis, shortTroubleOf } from "./reach-redis.ts";

const answerMs = 2_000;

/**
 * Checks Redis as the gateway will use it: connects, reads version, persistence, eviction and
 * replicas, and writes to keys of its own, which it removes again.
 */
export async function checkRedis(redis: NonNullable<Config["redis"]>): Promise<Finding[]> {
  const { ok, failed } = findings("redis");
  const { connection, trouble } = await reachRedis(redis);
  const { client } = connection;
  try {
    if (trouble !== undefined) {
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
    // Before the scripts: a replica that refuses one ends the connection.
    const durable = await durability(connection);
    const connected = ok(`connected, version ${versions.join(", ")}${nodes}`);
    return [connected, durable, ...(await scripts(connection, redis))];
  } catch (error) {
    const answer = shortTroubleOf(error);
    const lacksRight = answer.startsWith("NOPERM");
    return [failed(`answers unexpectedly: ${answer}`, lacksRight ? rights(redis) : undefined)];
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

const script = loadScript(new URL("./check-redis.lua", import.meta.url));

/** Writes as the gateway will, and listens on a channel as it will. */
async function scripts(
  connection: RedisConnector,
  { prefix, minReplicas }: NonNullable<Config["redis"]>,
): Promise<Finding[]> {
  const { ok, failed } = findings("redis scripts");
  const keys = accountKeys(prefix, "default");
  const id = `check-${randomUUID()}`;
  const names = [keys.lease(id), keys.record(id), keys.index(id), keys.topic(id), keys.wakeUp];
  const write = createWriter(connection, minReplicas);
  const listener = connection.subscriber();
  try {
    await readyWithin(connectMs, listener);
    const { missing } = await write(script, names, []);
    await within(answerMs, listener.subscribe(keys.wakeUp));
    return [replicas(minReplicas, missing), ok(`run on keys that begin with ${prefix}:`)];
  } catch (error) {
    return [failed(`cannot be run: ${shortTroubleOf(error)}`, rights({ prefix }))];
  }
}

/** @param missing why a write would not count, for lack of replicas or of the right to ask about them */
function replicas(min: MinReplicas, missing: Error | undefined): Finding {
  const { ok, failed } = findings("redis replicas");
  if (missing === undefined) return ok(`a write counts: REDIS_MIN_REPLICAS is ${min}`);
  return failed(
    `a write would not count: REDIS_MIN_REPLICAS is ${min}, ${shortTroubleOf(missing)}`,
    "callbacks would be answered 503: connect replicas, see why one lags, or allow the user ROLE, WAIT and CLUSTER",
  );
}

/** What a user of Redis needs. */
const rights = ({ prefix }: { readonly prefix: string }) =>
  `allow the user all commands, keys and channels that begin with ${prefix}:, at a primary`;

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
