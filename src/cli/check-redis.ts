import { randomUUID } from "node:crypto";
import type { Config } from "../config/config.ts";
import { tlsOptions } from "../net/client-tls.ts";
import { codeInWords, isTlsFault } from "../net/system-errors.ts";
import { within } from "../net/timer.ts";
import { infoField } from "../redis/acknowledged.ts";
import { describeDurability } from "../redis/durability.ts";
import { accountKeys } from "../redis/keys.ts";
import { isCluster } from "../redis/link.ts";
import { readyWithin } from "../redis/ready-within.ts";
import { loadScript } from "../redis/script.ts";
import { parseRedisUrl } from "../redis/url.ts";
import { createWriter } from "../redis/writer.ts";
import { type Finding, findings } from "./finding.ts";
import { tlsFault } from "./reach.ts";
import { connectMs, reachRedis, shortTroubleOf } from "./reach-redis.ts";

const answerMs = 2_000;

const script = loadScript(new URL("./check-redis.lua", import.meta.url));

/**
 * Checks Redis as the gateway will use it: connects, reads version, persistence, eviction and
 * replicas, writes to keys of its own, which it removes again, and listens.
 */
export async function checkRedis(redis: NonNullable<Config["redis"]>): Promise<Finding[]> {
  const { ok, warning, failed } = findings("redis");
  const { prefix, minReplicas } = redis;
  const { connection, trouble } = await reachRedis(redis);
  const { client } = connection;
  try {
    if (trouble !== undefined) {
      const fault = isTlsFault(trouble) ? trouble : await tlsFaultOf(redis);
      const advice =
        fault === undefined
          ? "correct REDIS_URL, or start Redis: without it the gateway answers callbacks 503"
          : "REDIS_TLS_CA_FILE names the authorities to trust, REDIS_TLS_CERT_FILE and REDIS_TLS_KEY_FILE the certificate to show";
      return [failed(`cannot be reached: ${codeInWords(fault ?? trouble)}`, advice)];
    }
    const servers = isCluster(client) ? client.nodes("master") : [client];
    const infos = await Promise.all(servers.map((server) => within(answerMs, server.info())));
    const versions = [...new Set(infos.map((info) => infoField(info, "redis_version") ?? "?"))];
    const nodes = servers.length > 1 ? `, ${servers.length} masters` : "";
    // Before the script: a replica that refuses it ends the connection.
    const lost = await describeDurability(connection);
    const keys = accountKeys(prefix, "default");
    const id = `check-${randomUUID()}`;
    const names = [keys.probe, keys.record(id), keys.index(id), keys.topic(id), keys.wakeUp];
    const { missing } = await createWriter(connection, minReplicas)(script, names, []);
    const listener = connection.subscriber();
    await readyWithin(connectMs, listener);
    await within(answerMs, listener.subscribe(keys.wakeUp));
    return [
      ok(`connected, version ${versions.join(", ")}${nodes}; takes writes below ${prefix}:`),
      lost === undefined
        ? ok("append-only file, no eviction")
        : warning(
            lost,
            "set appendonly yes, appendfsync always, maxmemory-policy noeviction, in a file that Redis may write",
          ),
      missing === undefined
        ? ok(`a write counts: REDIS_MIN_REPLICAS is ${minReplicas}`)
        : failed(
            `a write would not count: REDIS_MIN_REPLICAS is ${minReplicas}, ${shortTroubleOf(missing)}`,
            "callbacks would be answered 503: connect replicas, see why one lags, or allow the user ROLE, WAIT and CLUSTER",
          ),
    ];
  } catch (error) {
    return [
      failed(
        `cannot be used: ${shortTroubleOf(error)}`,
        `allow the user all commands, keys and channels that begin with ${prefix}:, at a primary`,
      ),
    ];
  } finally {
    await connection.close();
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
