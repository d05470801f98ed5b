import { percentDecoded } from "../net/address-text.ts";

/** `redis+sentinel://user:password@host:port,host:port/master-name` */
const sentinelUrl = /^(rediss?)\+sentinel:\/\/(?:([^/\s]*)@)?([^/@\s]+)\/([^/\s]+)$/;

/**
 * Reads REDIS_URL: one server, the nodes of a cluster, or a Sentinel set. Undefined for a text that
 * is none.
 * @returns `nodes`, the URLs of the servers, or of the Sentinels that know them, with their
 * `addresses`; `setName`, that of the Sentinel set; and empty texts if it gives no user or password
 */
export function parseRedisUrl(text: string) {
  const [, scheme, user = "", hosts, setName] = sentinelUrl.exec(text) ?? [];
  const nodes =
    hosts?.split(",").map((host) => `${scheme}://${host}`) ??
    text.split(",").map((node) => node.trim());
  const urls = nodes.map((node) => (/^rediss?:\/\/\S+$/.test(node) ? URL.parse(node) : null));
  if (!urls.every((url) => url !== null)) return undefined;
  const protocols = new Set(urls.map(({ protocol }) => protocol));
  // A cluster has no databases.
  const path = nodes.length > 1 ? /^\/?0?$/ : /^\/?\d*$/;
  if (protocols.size > 1 || !urls.every(({ pathname }) => path.test(pathname))) return undefined;
  const users = hosts ? [user.split(/:(.*)/)] : urls.map((url) => [url.username, url.password]);
  const credentials = users.map((texts) => texts.map(percentDecoded));
  if (credentials.flat().includes(undefined)) return undefined;
  const [[username = "", password = ""] = []] = credentials;
  const addresses = urls.map(({ hostname, port }) => ({
    host: hostname.replace(/^\[|\]$/g, ""),
    port: Number(port || (setName === undefined ? 6_379 : 26_379)),
  }));
  return { isTls: protocols.has("rediss:"), username, password, nodes, addresses, setName };
}

/** Whether a replica can become the primary: Sentinels and clusters promote one on a failure. */
export function hasFailover(url: string): boolean {
  return sentinelUrl.test(url) || url.includes(",");
}
